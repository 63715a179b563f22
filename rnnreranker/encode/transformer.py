"""An encoder of any kind on torch, run by its class of sentence-transformers."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

from rnnreranker.base.command import phase
from rnnreranker.base.device import EXACT, put
from rnnreranker.base.errors import InputError
from rnnreranker.base.private import skipped_tokens
from rnnreranker.encode.in_batches import CountedText
from rnnreranker.encode.model_folder import (
    KINDS,
    MASK,
    PROMPTS,
    TextKind,
    modules_of,
    prompts_of,
    read_settings,
    words_of,
)

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

NO_LIMIT = 10**6  # tokenizers without a limit say a larger number
KNOWN = ("bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta")  # `model_type`, of which graphs are known
SPARSE = {"SpladePooling", "SparseStaticEmbedding", "SparseAutoEncoder", "Router"}  # modules of saved SparseEncoders


class TorchModel:
    """An encoder of sentence-transformers, in evaluation mode.

    Args:
        kind: a key of `KINDS`; folder: of the model.
        device: of torch; dtype: of the weights there, float32 = that of `dense`.
        dense: the settings of a dense encoder, as in `settings_of`.

    Attributes:
        modules: of sentence-transformers; transformer: of transformers, None without one.
        about: as in `GraphModel`: dimension, settings (those of `dense`), limit (tokens at most), pad (fills short
            lists), kinds (fills token types), prompts and lengths (by `TextKind`); for late interaction expansion (of
            queries: the token, and whether it is attended to), skipped (tokens by `TextKind`); words: of sparse
            encoders, their fingerprint.
        computed_on: the kind of device and the type.

    Raises:
        InputError: missing weights, other words than the model's.
    """

    graph = None

    def __init__(
        self, kind: str, folder: Path, device: str, dtype: str = EXACT, dense: Mapping[str, Any] | None = None
    ) -> None:
        self.kind, self.folder, self._device, self._dense = KINDS[kind], folder, device, dense or {}
        self.computed_on = " ".join([device.partition(":")[0], *([] if dtype == EXACT else [dtype])])
        self._tokenizing = threading.Lock()  # a tokenizer keeps its settings in itself: one thread at a time
        with phase("loading the model"):
            self.modules = self._loaded().eval()
        self.transformer: Any = self.modules.transformers_model
        self.token_type = int(self._dense.get("document_type") or 0)
        types = int(getattr(getattr(self.transformer, "config", None), "type_vocab_size", 0))
        if self.token_type >= max(1, types):
            raise InputError(f"document_type={self.token_type}: {folder} has {types} token types")
        if self.kind.of == "SparseEncoder":
            self._pool_sooner()
        put(self.modules, device, dtype)
        self.about = self._about()
        self.cut_at(**self.about["lengths"])
        output = self.forward(self.read([("a", "a") if self.kind.output == "scores" else "a"], "document"), "document")
        self.about["dimension"] = int((output[0][0] if isinstance(output, list) else output).shape[1])
        if self.kind.of == "SparseEncoder":
            self.about["words"] = words_of(self.modules.tokenizer, self.about["dimension"], folder)

    def _loaded(self) -> Any:
        """The model of the folder, or its transformer with the pooling of the settings."""
        import sentence_transformers
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        kind, pooling = getattr(sentence_transformers, self.kind.of), self._dense.get("pooling")
        own = read_settings(self.folder)
        path, saved = self.folder / own.transformer, SPARSE & {*modules_of(self.folder)}
        if self.kind.whole and not (saved and self.kind.of == "SparseEncoder") and (pooling or not self._dense):
            check_vocabulary(path, load_whole(path, self.kind.whole))
        if not pooling:
            return kind(str(self.folder), device=self._device, local_files_only=True)
        text = Transformer(str(path), model_kwargs={"local_files_only": True}, do_lower_case=own.lowercase)
        return kind(modules=[text, Pooling(text.get_embedding_dimension(), pooling)], device=self._device)

    def _pool_sooner(self) -> None:
        """Make SPLADE's pooling faster if its head is known."""
        names = [type(one).__name__ for one in self.modules.children()]
        if names[1:] == ["SpladePooling"] and self.transformer.config.model_type in KNOWN:
            pooling, head = self.modules[1], self.transformer.get_output_embeddings()
            if (pooling.pooling_strategy, pooling.activation_function) == ("max", "relu"):
                self.modules[1] = SpladeMax(head)
                head.forward = lambda states: states

    def _about(self) -> dict[str, Any]:
        modules, words, first = self.modules, self.modules.tokenizer, self.modules[0]
        limit, pairs, usual = modules.max_seq_length, self.kind.output == "scores", modules.default_prompt_name
        if not limit or limit >= NO_LIMIT:
            limit = None if self.transformer is None else 512
        typed = pairs and "token_type_ids" in words.model_input_names
        about: dict[str, Any] = {
            "settings": dict(self._dense),
            "limit": limit,
            "pad": getattr(words, "pad_token_id", None) or 0,
            "kinds": (words.pad_token_type_id or 0) if typed else None,
            "lengths": dict.fromkeys(PROMPTS, limit or NO_LIMIT),
            "prompts": prompts_of({} if pairs and not usual else modules.prompts, usual),
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
            if document < NO_LIMIT:
                self.modules.max_seq_length = document
            return
        first.query_length, first.document_length = query, document
        if first.query_expansion:
            first.query_length, first.query_expansion = None, {**first.query_expansion, "length": query}

    def read(self, texts: Sequence[Any], task: TextKind) -> list[CountedText]:
        """Texts or pairs with their numbers of tokens, for `forward`."""
        if not texts:
            return []
        limit, words = self.lengths[task], self.modules.tokenizer
        if hasattr(words, "pad_token_id"):
            columns = list(zip(*texts, strict=True)) if isinstance(texts[0], tuple) else [texts]
            with self._tokenizing:
                counts = [len(tokens) for tokens in words(*map(list, columns))["input_ids"]]
        else:
            counts = [len(text) // 4 + 2 for text in texts]  # of word embeddings: a guess
        filled = task == "query" and self.about.get("expansion") is not None
        return [
            CountedText(text, limit if filled else min(count, limit), count > limit)
            for text, count in zip(texts, counts, strict=True)
        ]

    def forward(self, batch: Sequence[CountedText], task: TextKind) -> Any:
        """(b, d) float32: the output for a batch; for late interaction of each text vectors (t, d) float32 and token
        numbers (t,) int32.
        """
        blank = getattr(self.modules.tokenizer, "pad_token", "")  # in place of a text without any token
        with torch.inference_mode():
            with self._tokenizing:
                features = self.modules.preprocess([one.text if one.length else blank for one in batch], task=task)
            if self.token_type and task == "document":
                features["token_type_ids"] = torch.full_like(features["input_ids"], self.token_type)
            there = {
                name: value.to(self._device) if hasattr(value, "to") else value for name, value in features.items()
            }
            if self.kind.of != "MultiVectorEncoder":
                return self.computed(there, task).cpu().numpy()
            outputs = self.modules(there, task=task)
            tokens, real = outputs["token_embeddings"].float().cpu().numpy(), outputs["attention_mask"].bool().cpu()
            pairs = zip(tokens, real.numpy(), features["input_ids"].int().numpy(), strict=True)
            return [(vectors[its], ids[its]) for vectors, its, ids in pairs]

    def computed(self, features: dict[str, Any], task: TextKind) -> torch.Tensor:
        output = self.modules(dict(features), task=task)[self.kind.output]
        output = (output.to_dense() if output.is_sparse else output).float()
        if self.kind.of == "SparseEncoder":
            from sentence_transformers.util import select_max_active_dims

            output = select_max_active_dims(output, self.modules.max_active_dims)
        if self._dense:
            output = output[:, : self._dense.get("truncate_dim")]
            output = torch.nn.functional.normalize(output, dim=1) if self._dense["normalize"] else output
        return output


class SpladeMax(torch.nn.Module):
    """In place of a masked-language model's last layer and SPLADE's max pooling.

    log(1 + relu(x)) rises with x, so the largest logit of a word gives its weight. The first token replaces padding,
    which changes no maximum; the bias comes last, as rounding keeps the order.
    """

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.head = head

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        states, attended = features["token_embeddings"], features["attention_mask"].unsqueeze(-1) == 1
        largest = torch.matmul(torch.where(attended, states, states[:, :1]), self.head.weight.t()).amax(dim=1)
        largest = largest if self.head.bias is None else largest + self.head.bias
        return {**features, "sentence_embedding": largest.float().relu().log1p()}


def load_whole(folder: Path, kind: str = "AutoModel", **options: Any) -> Any:
    """The model of a folder with all weights from its files; kind: the class of transformers.

    Raises:
        InputError: missing weights, which transformers would draw at random; an AutoModel may lack those of a pooler;
            an encoder-decoder model.
    """
    model, loading_info = getattr(transformers, kind).from_pretrained(
        folder, local_files_only=True, output_loading_info=True, **options
    )
    if lost := sorted(name for name in loading_info["missing_keys"] if kind != "AutoModel" or "pooler" not in name):
        raise InputError(
            f"{folder}: its weights lack {lost[0]} ({len(lost)} missing); expected a whole {kind}: get the model again"
        )
    if model.config.is_encoder_decoder:
        raise InputError(f"{folder}: an encoder-decoder model; expected an encoder")
    return model


def check_vocabulary(folder: Path, model: Any) -> Any:
    """The tokenizer of a folder; checks that every token has an embedding, and that there are words.

    Raises:
        InputError: token numbers beyond the embeddings; special tokens alone, as without a tokenizer's files.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    numbers, rows = {*tokenizer.get_vocab().values()}, model.get_input_embeddings().weight.shape[0]
    if numbers <= {*tokenizer.all_special_ids}:
        raise InputError(
            f"{folder}: its tokenizer knows no words; expected tokenizer.json or vocab.txt of the model in it"
        )
    if max(numbers) >= rows:
        raise InputError(f"{folder}: its tokenizer has token {max(numbers)}, its model {rows} embeddings; get it again")
    return tokenizer


def save_rest(model: Any, path: Path, inner: str) -> None:
    """Write the weights of a module whose names do not begin with `inner`."""
    state = model.state_dict().items()
    rest = {name: value.detach().cpu().contiguous() for name, value in state if not name.startswith(inner)}
    save_file(rest, str(path))


def load_rest(model: Any, path: Path, inner: str) -> None:
    """Load what `save_rest` wrote; InputError: the file has other weights."""
    keys = model.load_state_dict(load_file(str(path)), strict=False)
    if wrong := [*(name for name in keys.missing_keys if not name.startswith(inner)), *keys.unexpected_keys]:
        raise InputError(f"{path}: does not fit config.json ({wrong[0]})")
