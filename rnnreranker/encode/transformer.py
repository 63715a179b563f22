"""An encoder of any kind on torch, run by its class of sentence-transformers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.device import EXACT, put
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.private.sentence_transformers import skipped_tokens
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.in_batches import CountedText, count_tokens
from rnnreranker.encode.model_folder import KINDS, MASK, PROMPTS, TextKind, prompts_of, read_settings, words_of

if TYPE_CHECKING:
    import torch

NO_LIMIT = 10**6  # tokenizers without a limit say a larger number
CHUNK = 16  # tokens of a batch whose logits SpladePooling pools at a time
KNOWN = ("bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")  # `model_type`, of which graphs are known


class TorchModel:
    """An encoder of sentence-transformers, in evaluation mode.

    Args:
        kind: a key of `KINDS`; folder: of the model.
        device: of torch; dtype: of the weights there, float32 = that of `dense`.
        dense: the settings of a dense encoder, as in `settings_of`.

    Attributes:
        modules: of sentence-transformers; transformer: of transformers, if there is one.
        about: as in `GraphModel`: dimension, limit (tokens at most), pad (fills short lists), kinds (fills token
            types), prompts (by `TextKind`), lowercase; for late interaction lengths, expansion (of queries: the token,
            and whether it is attended to), skipped (tokens by `TextKind`); for sparse encoders words, their
            fingerprint.
        computed_on: the kind of device and the type; token_type: of the tokens of documents.

    Raises:
        InputError, MissingDependencyError: missing weights, other words than the model's; no sentence-transformers.
    """

    graph = None

    def __init__(
        self, kind: str, folder: Path, device: str = "cpu", dtype: str = EXACT, dense: dict[str, Any] | None = None
    ) -> None:
        self.kind, self.folder, self._device, self._dense = KINDS[kind], folder, device, dense
        self.computed_on = " ".join([device.partition(":")[0], *([] if dtype == EXACT else [dtype])])
        self.token_type = int((dense or {}).get("document_type") or 0)
        self._tokenizing = threading.Lock()  # a tokenizer keeps its settings in itself: one thread at a time
        with phase("importing torch and transformers", "imports"):
            package = require("sentence_transformers", f"the {kind} {folder}", self.kind.extra)
            transformers = require("transformers", f"the {kind} {folder}", "transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        with phase("loading the model"):
            self.modules = getattr(package, self.kind.of)(**self._modules(), device=device).eval()
        inside = (one for one in self.modules.modules() if isinstance(one, transformers.PreTrainedModel))
        if (transformer := next(inside, None)) is not None:
            self.transformer = transformer
            types = int(getattr(transformer.config, "type_vocab_size", 0))
            if self.token_type >= max(1, types):
                raise InputError(f"document_type={self.token_type}: {folder} has {types} token types")
        if self.kind.of == "SparseEncoder":
            self._pool_sooner()
        put(self.modules, device, dtype)
        self.about = self._about()
        self.cut_at(**self.about["lengths"])
        probe: Any = ("a", "a") if kind == "cross-encoder" else "a"
        output = self.forward(self.read([probe], "document"), "document")
        self.about["dimension"] = int((output[0][0] if isinstance(output, list) else output).shape[1])
        if kind == "sparse-encoder":
            self.about["words"] = words_of(self.modules.tokenizer, self.about["dimension"], folder)

    def _modules(self) -> dict[str, Any]:
        """Arguments of the class of sentence-transformers: the folder, or modules if settings choose the pooling."""
        options: dict[str, Any] = {"dtype": self._dense["dtype"]} if self._dense else {}
        given = {"model_name_or_path": str(self.folder), "local_files_only": True, "model_kwargs": options}
        if not self.kind.whole or (self._dense and self._dense["pooling"] is None):
            return given
        from transformers import AutoTokenizer

        own = read_settings(self.folder)
        path = self.folder / own.transformer
        whole = load_whole(path, self.kind.whole, **options)
        check_vocabulary(path, AutoTokenizer.from_pretrained(path, local_files_only=True), whole)
        if not self._dense:
            return given
        if whole.config.is_encoder_decoder:
            raise InputError(f"{path}: an encoder-decoder model; expected an encoder with its pooling")
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        text = Transformer(str(path), model_kwargs={**options, "local_files_only": True}, do_lower_case=own.lowercase)
        words = text.tokenizer
        words.padding_side = "right"
        if words.pad_token is None:
            words.pad_token = words.convert_ids_to_tokens(0)
        return {"modules": [text, Pooling(int(whole.config.hidden_size), self._dense["pooling"])]}

    def _pool_sooner(self) -> None:
        """Make SPLADE's pooling faster if its head is known; else bound its memory."""
        for module in self.modules.modules():
            if type(module).__name__ == "SpladePooling":
                module.chunk_size = CHUNK
        names = [type(one).__name__ for one in self.modules.children()]
        if len(names) != 2 or names[1] != "SpladePooling" or self.transformer.config.model_type not in KNOWN:
            return
        pooling, head = self.modules[1], self.transformer.get_output_embeddings()
        if pooling.pooling_strategy == "max" and pooling.activation_function == "relu":
            self.modules[1] = splade_max(head)
            head.forward = lambda states: states

    def _about(self) -> dict[str, Any]:
        modules, words, first = self.modules, self.modules.tokenizer, self.modules[0]
        positions = getattr(getattr(first, "config", None), "max_position_embeddings", None)
        limits = [one for one in (modules.max_seq_length, positions) if one and one < NO_LIMIT]
        limit = int(min(limits, default=512 if hasattr(self, "transformer") else NO_LIMIT))
        pairs, usual = self.kind.output == "scores", modules.default_prompt_name
        typed = pairs and "token_type_ids" in words.model_input_names
        named = {name: text for name, text in modules.prompts.items() if not pairs or name == usual}
        about: dict[str, Any] = {
            "limit": None if limit == NO_LIMIT else limit,
            "pad": getattr(words, "pad_token_id", None) or 0,
            "kinds": (words.pad_token_type_id or 0) if typed else None,
            "lengths": dict.fromkeys(PROMPTS, limit),
            "prompts": prompts_of(named, usual),
            "lowercase": bool(getattr(first, "do_lower_case", False)),
        }
        if self.kind.of == "MultiVectorEncoder":
            expansion = first.query_expansion or {}
            own = {"query": expansion.get("length") or first.query_length, "document": first.document_length}
            about["lengths"] = {side: min(int(length or limit), limit) for side, length in own.items()}
            token = words.convert_tokens_to_ids(expansion.get("token") or words.mask_token or words.eos_token)
            about["expansion"] = [token, bool(expansion.get("attend"))] if expansion else None
            masks = [one for one in modules.children() if type(one).__name__ == MASK]
            about["skipped"] = {
                side: [token for one in masks if side in one.skiplist_tasks for token in skipped_tokens(one)]
                for side in PROMPTS
            }
        return about

    def cut_at(self, query: int, document: int) -> None:
        """Set the tokens at which texts are cut, also in the modules, which are saved."""
        self.lengths, first = {"query": query, "document": document}, self.modules[0]
        if self.kind.of != "MultiVectorEncoder":
            if self.modules.max_seq_length is None or self.modules.max_seq_length < NO_LIMIT:
                self.modules.max_seq_length = document
            return
        first.query_length, first.document_length = None, document
        if expansion := first.query_expansion:
            first.query_expansion = {**expansion, "length": query}
        else:
            first.query_length = query

    def read(self, texts: Sequence[Any], task: TextKind) -> list[CountedText]:
        """Texts or pairs with their numbers of tokens, for `forward`."""
        if not texts:
            return []
        limit, words = self.lengths[task], self.modules.tokenizer
        if hasattr(words, "pad_token_id"):
            columns = list(zip(*texts, strict=True)) if isinstance(texts[0], tuple) else [texts]
            counts = count_tokens(words, self._tokenizing, *columns)
        else:
            counts = [len(text) // 4 + 2 for text in texts]  # of word embeddings: a guess
        filled = task == "query" and self.about.get("expansion") is not None
        return [
            CountedText(text, limit if filled else min(count, limit), count > limit)
            for text, count in zip(texts, counts, strict=True)
        ]

    def forward(self, batch: Sequence[CountedText], task: TextKind) -> Any:
        """(b, d) float32: the output for a batch; for late interaction a list of vectors (t, d) float32 and token
        numbers
        (t,) int32 of each text.
        """
        import torch

        blank = getattr(self.modules.tokenizer, "pad_token", "")  # in place of a text without any token
        with torch.inference_mode():
            with self._tokenizing:
                features = self.features([one.text if one.length else blank for one in batch], task)
            there = {
                name: value.to(self._device) if hasattr(value, "to") else value for name, value in features.items()
            }
            if self.kind.of == "MultiVectorEncoder":
                tokens, mask = (one.cpu() for one in self.tokens(there, task))
                pairs = zip(tokens.float().numpy(), mask.numpy(), features["input_ids"].int().numpy(), strict=True)
                return [(vectors[its], ids[its]) for vectors, its, ids in pairs]
            return self.computed(there, task).cpu().numpy()

    def features(self, texts: Sequence[Any], task: TextKind) -> dict[str, Any]:
        import torch

        features: dict[str, Any] = self.modules.preprocess(list(texts), task=task)
        if self.token_type and task == "document":
            features["token_type_ids"] = torch.full_like(features["input_ids"], self.token_type)
        return features

    def tokens(self, features: dict[str, Any], task: TextKind) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, t, d) token vectors, and (n, t) bool: which of them count."""
        outputs = self.modules(dict(features), task=task)
        return outputs["token_embeddings"], outputs["attention_mask"].bool()

    def computed(self, features: dict[str, Any], task: TextKind) -> torch.Tensor:
        import torch

        output = self.modules(dict(features), task=task)[self.kind.output]
        output = (output.to_dense() if output.is_sparse else output).float()
        if self.kind.of == "SparseEncoder" and self.modules.max_active_dims is not None:
            kept = torch.topk(output, self.modules.max_active_dims, dim=1)
            output = torch.zeros_like(output).scatter_(1, kept.indices, kept.values)
        if self._dense:
            output = output[:, : self._dense.get("truncate_dim")]
            output = torch.nn.functional.normalize(output, dim=1) if self._dense["normalize"] else output
        return output


def splade_max(head: Any) -> Any:
    """A module in place of a masked-language model's last layer and SPLADE's max pooling.

    log(1 + relu(x)) rises with x, so the largest logit of a word gives its weight. The first token replaces padding,
    which changes no maximum; the bias comes last, as rounding keeps the order.
    """
    import torch

    class SpladeMax(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = head

        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            states, attended = features["token_embeddings"], features["attention_mask"].unsqueeze(-1) == 1
            largest = torch.matmul(torch.where(attended, states, states[:, :1]), head.weight.t()).amax(dim=1)
            largest = largest if head.bias is None else largest + head.bias
            return {**features, "sentence_embedding": largest.float().relu().log1p()}

    return SpladeMax()


def load_whole(folder: Path, kind: str = "AutoModel", **options: Any) -> Any:
    """The model of a folder with all weights from its files; kind: the class of transformers.

    Raises:
        InputError: missing weights, which transformers would draw at random; an AutoModel may lack those of a pooler.
    """
    transformers = require("transformers", "encoding text", "transformers")
    transformers.logging.set_verbosity_error()
    model, loading_info = getattr(transformers, kind).from_pretrained(
        folder, local_files_only=True, output_loading_info=True, **options
    )
    if lost := sorted(name for name in loading_info["missing_keys"] if kind != "AutoModel" or "pooler" not in name):
        raise InputError(f"{folder}: its weights lack {lost[0]} ({len(lost)} missing); get the model again")
    return model


def save_rest(model: Any, path: Path, inner: str) -> None:
    from safetensors.torch import save_file

    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file({name: value for name, value in state.items() if not name.startswith(inner)}, str(path))


def load_rest(model: Any, path: Path, inner: str) -> None:
    """Load the weights of a module whose names do not begin with `inner`; InputError: the file has others."""
    from safetensors.torch import load_file

    keys = model.load_state_dict(load_file(str(path)), strict=False)
    lost = [name for name in keys.missing_keys if not name.startswith(inner)]
    if lost or keys.unexpected_keys:
        raise InputError(f"{path}: does not fit config.json ({(lost + keys.unexpected_keys)[0]})")


def check_vocabulary(folder: Path, tokenizer: Any, model: Any) -> None:
    """Check that every token has an embedding, and that there are words.

    Raises:
        InputError: token numbers beyond the embeddings; special tokens alone, as without a tokenizer's files.
    """
    words, rows = tokenizer.get_vocab(), model.get_input_embeddings().weight.shape[0]
    if words and set(words.values()) <= {*tokenizer.all_special_ids}:
        raise InputError(
            f"{folder}: its tokenizer knows no words; expected tokenizer.json or vocab.txt in it: put those of "
            "the model that it was trained from beside its weights"
        )
    if not words or max(words.values()) >= rows:
        raise InputError(
            f"{folder}: its tokenizer has token {max(words.values(), default=0)}, its model {rows} embeddings; get it "
            "again"
        )
