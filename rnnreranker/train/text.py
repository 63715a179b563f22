"""Learners of texts on groups: cross-encoders, dual, sparse and late-interaction encoders."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from sentence_transformers.sparse_encoder.modules import SpladePooling
from sentence_transformers.util import batch_to_device
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_json, write_json
from rnnreranker.base.settings import hints_of
from rnnreranker.encode.coder import COSINE_SCALE
from rnnreranker.encode.kinds import cut_texts
from rnnreranker.encode.late import late_start
from rnnreranker.encode.model_folder import (
    MASK,
    ModelSettings,
    TextKind,
    loading,
    words_of,
)
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.transformer import KNOWN, TorchModel, check_vocabulary
from rnnreranker.encode.words.analysis import language_of, words
from rnnreranker.labels.soft import Labels
from rnnreranker.train.groups import Group, GroupInputs, Groups, scaled_labels
from rnnreranker.train.models import NOTHING
from rnnreranker.train.params import Similarity
from rnnreranker.train.request import Start
from rnnreranker.train.trainer import Features, RankedLearner, by_length, start_of

LOGITS = {"cpu": 2**20, "cuda": 2**27}  # logits held at a time: on a CPU what its cache holds
Lists = Sequence[Group] | Sequence[Labels]
PYLATE = ["Transformer", "Dense", MASK, "Normalize"]  # modules of PyLate's models
FIXED = {"strategy": "fixed", "token": None, "skiplist_tasks": ["document"], "keep_only_token_ids": None}  # in PyLate
SETTINGS = (
    *("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"),
    *("1_Dense/config.json", f"2_{MASK}/config.json"),
)
WRITTEN = "written"  # of features: (n, 1) bool, texts with more than white space; others have no tokens


class GroupLearner(RankedLearner):
    """A model of sentence-transformers that is trained on groups.

    Attributes:
        scores: a function of the features of `texts`, to scores of any shape, which count from 0 when flattened.
    """

    in_order = True
    scores: Callable[..., Tensor]

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        made = {"training_queries": len(inputs.pools), "validation_queries": len(inputs.checked)}
        super().__init__(start, params, {**inputs.made, **made}, [*inputs.content(), start.settings])
        self.inputs, self.checked = inputs, inputs.checked
        self.training = Groups(inputs.pools, params, inputs.collection)
        self.load(start, device)

    @abstractmethod
    def load(self, start: Start, device: str) -> None:
        """Load the model and its `folder`."""

    @property
    def epoch(self) -> int:
        return self.steps_of(len(self.inputs.pools))

    @property
    def steps(self) -> int:
        return self.steps_of(len(self.training))

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(str(folder), create_model_card=False)

    @abstractmethod
    def texts(self, lists: Lists) -> tuple[dict[str, Features], list[dict[str, int]]]:
        """Arguments of `scores`, and for each query docid → number of its score."""

    def batch(self, rows: Sequence[Group]) -> dict[str, Any]:
        """Texts, the numbers of the scores that count for a query, (B, N), and their targets."""
        features, at = self.texts(rows)
        whole, teacher = [[*own] for own in at], self.inputs.teacher
        lists = whole if self.params.of_batch else [one.docids for one in rows]
        logits = None if teacher is None else teacher.logits([one.pool for one in rows], whole[0])
        numbers = torch.tensor([[own[docid] for docid in docids] for own, docids in zip(at, lists, strict=True)])
        return {"features": features, "numbers": numbers, "label": in_batch(rows, lists, self.own, logits)}

    def loss(self, inputs: Any) -> Tensor:
        return self.ranked(self.scores(**inputs["features"]), inputs)

    def ranked(self, scores: Tensor, inputs: Any) -> Tensor:
        """The loss of scores."""
        return self.ranking(scores.flatten()[inputs["numbers"]], **inputs["label"])

    def scored(self, lists: Sequence[Labels]) -> Iterable[np.ndarray]:
        features, at = self.texts(lists)
        moved = {side: batch_to_device(part, self.model.device) for side, part in features.items()}
        scores = self.scores(**moved).float().cpu().numpy().ravel()
        return [scores[[own[docid] for docid in one.docids]] for own, one in zip(at, lists, strict=True)]


class CrossLearner(GroupLearner):
    """A cross-encoder, with a new classification head if the model has none.

    Raises:
        InputError: the model is no encoder, or its tokenizer has other words.
    """

    def load(self, start: Start, device: str) -> None:
        self.folder, path, _, limit, _ = start_of(start, "a cross-encoder", self.params.max_length)
        with loading(path, "a cross-encoder"):
            self.model: CrossEncoder = CrossEncoder(
                str(path), num_labels=1, max_length=limit, device=device, local_files_only=True,
                activation_fn=torch.nn.Identity(),
            )  # fmt: skip
            if self.model.tokenizer.pad_token is None:
                raise ValueError("its tokenizer has no padding")

    def texts(self, lists: Lists) -> tuple[dict[str, Features], list[dict[str, int]]]:
        number, queries, documents = count(), self.inputs.queries, self.inputs.documents
        pairs = [(queries[one.qid], documents[docid]) for one in lists for docid in one.docids]
        at = [{docid: next(number) for docid in one.docids} for one in lists]
        return {"pairs": tensors(self.model.preprocess(pairs))}, at

    def scores(self, pairs: Features) -> Tensor:
        return by_length(pairs, lambda part: self.model(part)["scores"].view(-1).float())


def tensors(features: Mapping[str, Any]) -> Features:
    """The inputs of a model that have a row for each text."""
    return {name: value for name, value in features.items() if torch.is_tensor(value) and value.dim()}


class TwoSidedLearner(GroupLearner):
    """A model that encodes queries and documents separately, each after its prompt; `scores` returns (B, U)."""

    def features(self, texts: list[str], kind: TextKind) -> Features:
        """Inputs of the model: tensors, padded on the right."""
        return tensors(self.model.preprocess(texts, prompt=self.model.prompts[kind] or None, task=kind))

    def texts(self, lists: Lists) -> tuple[dict[str, Features], list[dict[str, int]]]:
        docids = dict.fromkeys(docid for one in lists for docid in one.docids)
        queries = self.features([self.inputs.queries[one.qid] for one in lists], "query")
        documents = self.features([self.inputs.documents[docid] for docid in docids], "document")
        at = [{docid: row * len(docids) + column for column, docid in enumerate(docids)} for row in range(len(lists))]
        return {"query": queries, "document": documents}, at


def in_batch(
    groups: Sequence[Group],
    lists: Sequence[Sequence[str]],
    labels: Callable[[Labels], np.ndarray] | None = None,
    logits: np.ndarray | None = None,
) -> Features:
    """Arguments of a loss, `targets` (float32), `positive` and `valid` (bool), (B, N) each, for each group's query.

    Targets sum to 1 over the valid documents; unlabelled ones have 0. Known positives of other groups are invalid.

    Args:
        lists: docids, N a group.
        labels: of a query's labels the targets, (n,), which stay as they are.
        logits: of a teacher, (B, N): targets are their softmax, and all documents are valid (paper 002, eqs. 2, 3, 6).
    """
    rows = []
    for one, docids in zip(groups, lists, strict=True):
        own = one.pool.targets if labels is None else labels(one.pool)
        target_of, first = dict(zip(one.pool.docids, own.tolist(), strict=True)), one.docids[0]
        counted = [docid in one.docids or docid not in one.known for docid in docids]
        rows.append([[target_of.get(docid, 0) for docid in docids], [docid == first for docid in docids], counted])
    targets, *flags = torch.tensor(rows, dtype=torch.float32).unbind(dim=1)
    positive, valid = (flag > 0 for flag in flags)
    if logits is not None:
        targets, valid = torch.from_numpy(logits).softmax(dim=1).float(), torch.ones_like(valid)
    if labels is None:
        targets = targets.where(valid, 0)
        targets = targets.where(targets.any(dim=1, keepdim=True), positive.float())
        targets = targets / targets.sum(dim=1, keepdim=True)
    return {"targets": targets, "positive": positive, "valid": valid}


class DualLearner(TwoSidedLearner):
    """A dual encoder with mean pooling, whatever the pooling of the start; "none" starts new towers of words.

    Raises:
        InputError: modules after the pooling, two towers already, a tokenizer with other words, or texts without a
            word.
    """

    def load(self, start: Start, device: str) -> None:
        params, inputs, own = self.params, self.inputs, ModelSettings()
        self.scale = params.inverse_temperature or COSINE_SCALE
        if self.ranking.of_cosines:
            self.scale, self.own = 1.0, lambda one: scaled_labels(one, params.label_scale)
        if start.name == NOTHING:
            asked = dict.fromkeys(pool.qid for pool in inputs.pools)
            texts = [*inputs.documents.values(), *(inputs.queries[qid] for qid in asked)]
            tower = word_tower(texts, params.max_length)
        else:
            self.folder, path, _, limit, own = start_of(start, "a dual encoder", params.max_length)
            transformer = Transformer(str(path), model_kwargs={"local_files_only": True}, max_seq_length=limit)
            tower = [transformer, Pooling(transformer.get_embedding_dimension(), "mean"), Normalize()]
        if own.beyond:
            raise InputError(
                f"{self.folder}: has a module {own.beyond}; expected a transformer, whose tokens are then averaged"
            )
        if params.towers == "separate":
            tower = [Router.for_query_document(tower, copy.deepcopy(tower))]
        self.model = SentenceTransformer(modules=tower, **how_of(own, device))

    def scores(self, query: Features, document: Features) -> Tensor:
        """Cosines times the inverse temperature."""
        return self.scale * (self.vectors(query, "query") @ self.vectors(document, "document").T)

    def vectors(self, features: Features, kind: TextKind) -> Tensor:
        """(b, d): vectors of texts."""
        return by_length(features, lambda part: self.model(part, task=kind)["sentence_embedding"])


def how_of(own: ModelSettings, device: str) -> dict[str, Any]:
    """How a model of sentence-transformers with these settings is made."""
    prompts = {"query": own.query_prompt, "document": own.document_prompt}
    return {"device": device, "prompts": prompts, "similarity_fn_name": "dot"}


SIZE = 300  # numbers of an embedding
UNKNOWN = "[UNK]"  # its embedding is 0 and stays so: with vectors of length 1 it takes no part
RUN = r"[\p{L}\p{N}](?:[\p{L}\p{N}]|[\u0300-\u036f])*"  # letters and digits, as in `encode.words.analysis`


def word_tower(texts: Sequence[str], longest: int | None) -> list[Any]:
    """A tower of random word embeddings; a text without a known word gets the vector 0.

    longest: words at which texts are cut; None = never.

    Raises:
        InputError: texts without a word.
        MissingDependencyError: the texts are Chinese and jieba is missing.
    """
    tokenizer = word_tokenizer(texts)
    if longest is not None:
        tokenizer.enable_truncation(longest)
    tower = StaticEmbedding(tokenizer, embedding_dim=SIZE)
    unknown = tokenizer.token_to_id(UNKNOWN)
    tower.embedding.weight.data[unknown] = 0
    tower.embedding.padding_idx = unknown  # no gradient either
    return [tower, Normalize()]


def word_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Splits texts into the words of `texts`, lowercase and NFKC, without punctuation; errors as `word_tower`.

    English words are runs of letters and digits. Chinese words of the vocabulary come from jieba; a unigram model of
    their counts then splits texts, so no other program needs jieba.
    """
    language = language_of("".join(texts))
    counts = Counter(word for text in texts for word in words(text, language))
    if not counts:
        raise InputError("no text has a word: there is nothing to make towers of")
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    model: Any = models.WordLevel({word: number for number, word in enumerate([UNKNOWN, *ordered])}, UNKNOWN)
    if language == "zh":
        logs = [(word, math.log(counts[word] / counts.total())) for word in ordered]
        model = models.Unigram([(UNKNOWN, 0.0), *logs], 0, False)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(RUN), "removed", invert=True)
    return tokenizer


def largest_logits(hidden: Tensor, attention: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(b, V): max over tokens of <hidden, weight> + bias where that is above 0, else 0.

    Gradients are computed for these words alone, in a fraction of the time and memory of all logits.

    Args:
        hidden: (b, T, h), input of the head; attention: (b, T), 0 at padding, 1 at the first token.
        weight: (V, h) and bias: (V,) of the head.
    """
    padded = torch.where(attention.unsqueeze(2) > 0, hidden, hidden[:, :1])  # a repeated token changes no maximum
    with torch.no_grad():
        step = max(64, LOGITS[hidden.device.type] // (hidden.shape[0] * hidden.shape[1]))
        blocks = zip(weight.split(step), bias.split(step), strict=True)
        parts = zip(*(torch.nn.functional.linear(padded, *block).max(dim=1) for block in blocks), strict=True)
        largest, tokens = (torch.cat(part, dim=1) for part in parts)
        rows, words = (largest > 0).nonzero(as_tuple=True)
    logits = (padded[rows, tokens[rows, words]] * torch.nn.functional.embedding(words, weight)).sum(dim=1) + bias[words]
    return torch.zeros_like(largest).index_put((rows, words), logits)


class SparseLearner(TwoSidedLearner):
    """A SPLADE encoder, from a masked-language model or a saved SparseEncoder."""

    at_once = 8  # (documents, V) weights are dense

    def load(self, start: Start, device: str) -> None:
        self.folder, path, _, limit, own = start_of(
            start, "a sparse encoder", self.params.max_length, "AutoModelForMaskedLM"
        )
        transformer = Transformer(str(path), transformer_task="fill-mask", max_seq_length=limit)
        self.model = SparseEncoder(modules=[transformer, SpladePooling("max")], **how_of(own, device))
        self._head = transformer.model.get_output_embeddings()
        words_of(self.model.tokenizer, len(self._head.weight), path)
        self._known = self._head.bias is not None and transformer.model.config.model_type in KNOWN  # a linear layer
        if self._known:
            self._head.forward = lambda states: states

    def features(self, texts: list[str], kind: TextKind) -> Features:
        """As of every model; queries of SPLADE-doc have their words, (b, V): 1 each, as in the authors' program."""
        if kind == "document" or self.params.architecture != "doc":
            return super().features(texts, kind)
        tokens = self.model.tokenizer(texts, add_special_tokens=False)["input_ids"]
        weights = torch.zeros(len(texts), len(self._head.weight))
        for row, own in zip(weights, tokens, strict=True):
            row[own] = 1
        return {"words": weights}

    def weights(self, features: Features) -> Tensor:
        """(b, V): log(1 + relu(max over tokens of the logits)), or given words."""
        return features["words"] if "words" in features else by_length(features, self._part)

    def _part(self, features: Features) -> Tensor:
        if not self._known:
            return self.model(features)["sentence_embedding"]
        hidden = self.model[0](features)["token_embeddings"]
        return largest_logits(hidden, features["attention_mask"], self._head.weight, self._head.bias).log1p()

    def scores(self, query: Features, document: Features) -> Tensor:
        return self.weights(query) @ self.weights(document).T

    def losses(self, inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, and the weighted FLOPS of documents and of queries, whose weights rise quadratically.

        FLOPS: sum over words of the squared mean weight.
        """
        queries, documents = self.weights(inputs["features"]["query"]), self.weights(inputs["features"]["document"])
        params, rise = self.params, self.params.regularizer_warmup
        rise = int(rise if rise >= 1 else rise * self.steps)
        share = 1.0 if self.step >= rise else (self.step / rise) ** 2
        return (
            self.ranked(queries @ documents.T, inputs),
            documents.mean(dim=0).square().sum() * (params.lambda_d * share),
            queries.mean(dim=0).square().sum() * (0.0 if params.architecture == "doc" else params.lambda_q * share),
        )

    def loss(self, inputs: Any) -> Tensor:
        return torch.stack(self.losses(inputs)).sum()


class LateLearner(TwoSidedLearner):
    """A late-interaction encoder, from one or from a transformer.

    Raises:
        InputError: the model cannot be loaded, or its limits or dimension differ from the settings.
    """

    def load(self, start: Start, device: str) -> None:
        params = self.params
        self.folder = late_start(start.name, params.dimension).path
        with loading(self.folder, "a late-interaction encoder"):
            self._late = late = TorchModel("late-encoder", self.folder, device)
            cut_texts([late], self.folder, **{name: getattr(params, name) for name in hints_of(LateEncoderParams)})
            self.model, own = late.modules, late.about["dimension"]
            self.model.prompts = late.about["prompts"]
            check_vocabulary(self.folder, self.model[0].model)
        if params.dimension not in (None, own):
            raise InputError(f"dimension={params.dimension}: expected {own}, which a token of {start.name} has")

    def save(self, folder: Path) -> None:
        """Write the settings as PyLate does, which sentence-transformers reads too, where PyLate can state them."""
        super().save(folder)
        prefixes = {f"{kind}_prefix": prompt.strip() for kind, prompt in self.model.prompts.items()}
        if [type(one).__name__ for one in self.model] != PYLATE or not {*prefixes.values()} <= {
            *self.model.tokenizer.get_vocab()
        }:
            return
        files = {name: read_json(folder / name) for name in SETTINGS}
        modules, whole, text, dense, mask = files.values()
        own = mask | (text.pop("query_expansion") or {})
        if own | FIXED != own:
            return
        modules[0]["type"], modules[1]["type"] = "sentence_transformers.models.Transformer", "pylate.models.Dense.Dense"
        del modules[2:], dense["module_input_name"], dense["module_output_name"]
        whole |= prefixes | {f"{kind}_length": length for kind, length in self._late.lengths.items()}
        whole |= {"attend_to_expansion_tokens": own["attend"], "skiplist_words": own["skiplist_words"]}
        files[SETTINGS[1]] = whole | {"model_type": "ColBERT"}
        files[SETTINGS[2]] = {"do_lower_case": bool(text.get("do_lower_case"))}
        for name, content in files.items():
            write_json(folder / name, content)

    def features(self, texts: list[str], kind: TextKind) -> Features:
        return super().features(texts, kind) | {WRITTEN: torch.tensor([[bool(text.strip())] for text in texts])}

    def tokens(self, features: Features, kind: TextKind) -> tuple[Tensor, Tensor]:
        """Vectors (n, t, d) float32, and which tokens count (n, t): none in blank texts."""
        outputs = self.model(dict(features), task=kind)
        return outputs["token_embeddings"].float(), outputs["attention_mask"].bool() & features[WRITTEN]

    def scores(self, query: Features, document: Features) -> Tensor:
        asked, similarity = self.tokens(query, "query"), self.params.similarity

        def compute(part: Features) -> Tensor:
            return late_scores(*asked, *self.tokens(part, "document"), similarity).T

        return by_length(document, compute).T


def late_scores(
    queries: Tensor, asked: Tensor, documents: Tensor, real: Tensor, similarity: Similarity = "maxsim"
) -> Tensor:
    """(B, U) float32: every query with every document.

    maxsim: sum over query tokens i of max_j q_i . d_j, 0 for a document without tokens. l2: sum of max(max_j -|q_i -
    d_j|^2, -|q_i|^2): the program of paper 002 pads documents with zero vectors.

    Args:
        queries: (B, q, d) float32; asked: (B, q) bool, tokens that count.
        documents: (U, t, d) float32; real: (U, t) bool, tokens that count; others are ignored, NaN included.
    """
    documents = torch.where(real.unsqueeze(2), documents, 0)
    products = torch.einsum("bqd,utd->buqt", queries, documents)
    low = torch.finfo(products.dtype).min
    if similarity == "l2":
        floor = -(queries**2).sum(dim=2).unsqueeze(1)  # (B, 1, q)
        products = 2 * products - (documents**2).sum(dim=2)[None, :, None, :] + floor.unsqueeze(3)
    best = products.masked_fill(~real[None, :, None, :], low).max(dim=3).values
    best = torch.maximum(best, floor) if similarity == "l2" else torch.where(real.any(dim=1)[None, :, None], best, 0)
    return torch.where(asked.unsqueeze(1), best, 0).sum(dim=2)
