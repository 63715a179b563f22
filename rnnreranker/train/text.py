"""Learners of texts on groups: their base, cross-encoders, dual encoders and sparse encoders."""

from __future__ import annotations

import copy
import functools
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from sentence_transformers.sparse_encoder.modules import SpladePooling
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.encode.coder import COSINE_SCALE
from rnnreranker.encode.model_folder import ModelSettings, TextKind, read_settings, words_of
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.analysis import language_of, words
from rnnreranker.labels.soft import Labels
from rnnreranker.parts.impacts.part import word_use
from rnnreranker.train.groups import Group, GroupInputs, Groups, in_batch, scaled_labels
from rnnreranker.train.request import NOTHING, Start
from rnnreranker.train.trainer import Learner, limit_of, loading, start_folder
from rnnreranker.train.validation import Scored, Validation, validate

PAIRS = {"cpu": 16, "cuda": 512}  # pairs of about the same length that go through the model together
TOKENS = {"cpu": 2**11, "cuda": 2**17}  # padded tokens of the texts that go through the model together
LOGITS = {"cpu": 2**20, "cuda": 2**27}  # logits held at a time: on a CPU what its cache holds
PROBE = ["a", "one text, and a longer one"]


class GroupLearner(Learner):
    """A model of sentence-transformers that is trained on groups.

    at_once: queries whose candidates a validation scores together.
    """

    in_order = True
    at_once: ClassVar[int] = 32

    def __init__(self, start: Start, params: Any, inputs: GroupInputs) -> None:
        queries = {"training_queries": len({pool.qid for pool in inputs.pools})}
        made = {**inputs.made, **queries, "validation_queries": len(inputs.checked)}
        super().__init__(start, params, made, inputs.content())
        self.inputs, self.ranking = inputs, params.ranking
        count = params.max_steps * params.batch_size * params.accumulate or math.ceil(params.epochs * len(inputs.pools))
        drawn = params.group_size, params.depth, params.seed, params.kind, inputs.collection
        self.training = Groups(inputs.pools, count, *drawn)

    @property
    def epoch(self) -> int:
        return self.steps_of(len(self.inputs.pools))

    @property
    def steps(self) -> int:
        return self.steps_of(len(self.training))

    def validation(self) -> Validation:
        lists = self.inputs.checked
        blocks = (self.scored(lists[start : start + self.at_once]) for start in range(0, len(lists), self.at_once))
        validated = validate(chain.from_iterable(blocks), self.ranking, self.params.seed)
        return validated._replace(measures=validated.measures | self.others())

    @abstractmethod
    def scored(self, lists: Sequence[Labels]) -> Iterable[Scored]:
        """Scores of the candidates of each query."""

    def others(self) -> dict[str, float]:
        """Further measures of the texts that were scored."""
        return {}

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(str(folder), create_model_card=False)


class CrossLearner(GroupLearner):
    """A cross-encoder, with a new classification head if the model has none.

    Raises:
        InputError: the model is no encoder, or its tokenizer has other words.
    """

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs)
        self.folder, path = start_folder(start.name, ("encoder", "sparse-encoder", "cross-encoder"))
        with loading(path, "a cross-encoder"):
            limit = limit_of(path, load_whole(path), params.max_length)
            self.model: CrossEncoder = CrossEncoder(
                str(path), num_labels=1, max_length=limit, device=device, local_files_only=True,
                activation_fn=torch.nn.Identity(),
            )  # fmt: skip
            if self.model.tokenizer.pad_token is None:
                raise ValueError("its tokenizer has no padding")

    def batch(self, rows: Sequence[Group]) -> dict[str, Any]:
        """Pairs of texts, and the targets of each group."""
        return {"pairs": self.pairs(rows), "label": label(rows, [one.docids for one in rows])}

    def pairs(self, lists: Sequence[Group] | Sequence[Labels]) -> list[tuple[str, str]]:
        return [(self.inputs.queries[one.qid], self.inputs.documents[docid]) for one in lists for docid in one.docids]

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        scores = self.scores(inputs["pairs"]).view(len(inputs["label"]["targets"]), -1)
        return self.ranking(scores, **inputs["label"])

    def scored(self, lists: Sequence[Labels]) -> Iterator[Scored]:
        parts = self.scores(self.pairs(lists)).cpu().split([len(one.docids) for one in lists])
        for one, own in zip(lists, parts, strict=True):
            yield Scored(one.qid, one.docids, one.targets, one.positive, own.numpy())

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        """(n,): scores of pairs; pairs of about the same length are computed together."""
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]) + len(pairs[i][1]), i))
        device, parts = self.model.device, []
        for start in range(0, len(order), PAIRS[device.type]):
            features = self.model.preprocess([pairs[i] for i in order[start : start + PAIRS[device.type]]])
            there = {name: one.to(device) if torch.is_tensor(one) else one for name, one in features.items()}
            parts.append(self.model(there)["scores"].view(-1).float())
        return torch.cat(parts)[torch.argsort(torch.tensor(order, device=device))]


class TwoSidedLearner(GroupLearner):
    """A model that encodes queries and documents separately.

    prompts: prefixes of texts, by kind; own: targets of a loss that are no distribution, of a query's labels.
    """

    prompts: Mapping[TextKind, str]
    own: Callable[[Labels], np.ndarray] | None = None

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        """Inputs of the model: tensors, padded on the right."""
        features = self.model.preprocess(texts, prompt=self.prompts[kind] or None, task=kind)
        return {name: value for name, value in features.items() if torch.is_tensor(value) and value.dim()}

    @abstractmethod
    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        """(B, U): every query with every document."""

    def both(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Sequence[Tensor]:
        """Scores of the loss and of a search."""
        return [self.scores(query, document)] * 2

    def texts(self, lists: Sequence[Group] | Sequence[Labels]) -> dict[str, dict[str, Tensor]]:
        """Features of the queries and of the distinct documents of groups or labels."""
        queries = [self.inputs.queries[one.qid] for one in lists]
        documents = [self.inputs.documents[docid] for docid in documents_of(lists)]
        return {"query": self.features(queries, "query"), "document": self.features(documents, "document")}

    def batch(self, rows: Sequence[Group]) -> dict[str, Any]:
        """Texts, the columns of the documents that count for a query, (B, N), and their targets."""
        docids, teacher = documents_of(rows), self.inputs.teacher
        logits = None if teacher is None else teacher.logits([one.pool for one in rows], docids)
        lists = [docids] * len(rows) if self.params.of_batch else [one.docids for one in rows]
        return {"label": label(rows, lists, self.own, logits), "columns": columns(lists, docids), **self.texts(rows)}

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        return self.ranked(self.scores(inputs["query"], inputs["document"]), inputs)

    def ranked(self, scores: Tensor, inputs: Any) -> Tensor:
        """The loss of scores (B, U)."""
        return self.ranking(scores.gather(1, inputs["columns"]), **inputs["label"])

    def scored(self, lists: Sequence[Labels]) -> Iterator[Scored]:
        sides = ({name: one.to(self.model.device) for name, one in side.items()} for side in self.texts(lists).values())
        trained, searched = (scores.float().cpu().numpy() for scores in self.both(*sides))
        docids = documents_of(lists)
        for row, one in enumerate(lists):
            own, aims = columns([one.docids], docids)[0].numpy(), self.own and self.own(one)
            yield Scored(one.qid, one.docids, one.targets, one.positive, trained[row, own], searched[row, own], aims)


class DualLearner(TwoSidedLearner):
    """A dual encoder with mean pooling, whatever the pooling of the start; "none" starts new towers of words.

    Raises:
        InputError: modules after the pooling, two towers already, a tokenizer with other words, or texts without a
            word.
    """

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs)
        self.scale, path, own = params.inverse_temperature or COSINE_SCALE, Path(start.name), ModelSettings()
        if self.ranking.of_cosines:
            self.scale, self.own = 1.0, functools.partial(scaled_labels, scale=params.label_scale)
        if start.name != NOTHING:
            self.folder, path = start_folder(start.name, ("encoder", "sparse-encoder"))
            own = read_settings(self.folder)
        if own.beyond:
            raise InputError(
                f"{self.folder}: has a module {own.beyond}; expected a transformer, whose tokens are then averaged"
            )
        self.prompts = {"query": own.query_prompt, "document": own.document_prompt}
        with loading(path, "a dual encoder"):
            if self.folder is None:
                asked = dict.fromkeys(pool.qid for pool in inputs.pools)
                texts = [*inputs.documents.values(), *(inputs.queries[qid] for qid in asked)]
                tower = word_tower(texts, params.max_length)
            else:
                transformer = Transformer(str(path), model_kwargs={"local_files_only": True})
                transformer.max_seq_length = limit_of(path, transformer.model, params.max_length)
                tower = [transformer, Pooling(transformer.get_embedding_dimension(), "mean"), Normalize()]
            if params.towers == "separate":
                tower = [Router.for_query_document(tower, copy.deepcopy(tower))]
            self.model: SentenceTransformer = SentenceTransformer(
                modules=tower, device=device, prompts=written(self.prompts), similarity_fn_name="dot",
                local_files_only=True,
            )  # fmt: skip

    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        """Cosines times the inverse temperature."""
        return self.scale * (self.vectors(query, "query") @ self.vectors(document, "document").T)

    def vectors(self, features: dict[str, Tensor], kind: TextKind) -> Tensor:
        """(b, d): vectors of texts."""
        return by_length(features, lambda part: self.model(part, task=kind)["sentence_embedding"])


def written(prompts: Mapping[TextKind, str]) -> dict[str, str]:
    """The prompts of a model's files."""
    return {name: prompt for name, prompt in prompts.items() if prompt}


def documents_of(lists: Iterable[Group] | Iterable[Labels]) -> list[str]:
    """The U distinct documents of groups or labels, in order."""
    return list(dict.fromkeys(docid for one in lists for docid in one.docids))


def columns(lists: Sequence[Sequence[str]], docids: Sequence[str]) -> Tensor:
    """(B, N) int64: the places in `docids` of each list."""
    at = {docid: column for column, docid in enumerate(docids)}
    return torch.tensor([[at[docid] for docid in own] for own in lists])


def label(groups: Sequence[Group], lists: Sequence[Sequence[str]], *how: Any) -> dict[str, Tensor]:
    """`in_batch` as arguments of a loss."""
    named = zip(("targets", "positive", "valid"), in_batch(groups, lists, *how), strict=True)
    return {name: torch.from_numpy(one) for name, one in named}


def by_length(
    features: dict[str, Tensor], compute: Callable[[dict[str, Tensor]], Tensor], tokens: Mapping[str, int] = TOKENS
) -> Tensor:
    """(n, …): computes texts of about the same length together, to avoid padding.

    features: (n, t) each, with `attention_mask`, padded on the right; others have no padding. tokens: of a part at
    most, padded, by device.
    """
    if "attention_mask" not in features:
        return compute(dict(features))
    lengths, order = torch.sort(features["attention_mask"].sum(dim=1), stable=True)
    parts, start, sizes = [], 0, lengths.tolist()
    while start < len(sizes):
        stop = start + 1
        while stop < len(sizes) and sizes[stop] * (stop + 1 - start) <= tokens[order.device.type]:
            stop += 1
        chosen = order[start:stop]
        parts.append(compute({name: value[chosen, : sizes[stop - 1]] for name, value in features.items()}))
        start = stop
    return torch.cat(parts)[torch.argsort(order)]


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


class _Largest(torch.autograd.Function):
    """See `largest_logits`."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        step = max(64, LOGITS[hidden.device.type] // (hidden.shape[0] * hidden.shape[1]))
        ctx.save_for_backward(hidden, weight)
        blocks = zip(weight.split(step), bias.split(step), strict=True)
        return torch.cat([torch.nn.functional.linear(hidden, *block).amax(dim=1) for block in blocks], dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Computes only words with a gradient: those with a weight above 0."""
        (hidden, weight), (gradient,) = ctx.saved_tensors, gradients
        of_hidden, of_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        for row, own in enumerate(gradient):
            words = own.nonzero()[:, 0]
            if len(words):
                chosen = weight[words]  # (n, h)
                tokens = (hidden[row] @ chosen.T).argmax(dim=0)
                share = own[words].unsqueeze(1)
                of_hidden[row].index_add_(0, tokens, share * chosen)
                of_weight.index_add_(0, words, share * hidden[row, tokens])
        return of_hidden, of_weight, gradient.sum(dim=0)


def largest_logits(hidden: Tensor, attention: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(b, V): max over tokens of <hidden, weight> + bias, in a fraction of the time and memory of all logits.

    Args:
        hidden: (b, T, h), input of the head; attention: (b, T), 0 at padding, 1 at the first token.
        weight: (V, h) and bias: (V,) of the head.
    """
    padded = torch.where(attention.unsqueeze(2) > 0, hidden, hidden[:, :1])  # a repeated token changes no maximum
    return _Largest.apply(padded, weight, bias)


class SparseLearner(TwoSidedLearner):
    """A SPLADE encoder, from a masked-language model or a saved SparseEncoder."""

    at_once = 8  # (documents, V) weights are dense

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs)
        self.folder, path = start_folder(start.name, ("sparse-encoder", "encoder"))
        own = read_settings(self.folder)
        self.prompts = {"query": own.query_prompt, "document": own.document_prompt}
        with loading(path, "a sparse encoder"):
            load_whole(path, "AutoModelForMaskedLM")
            transformer = Transformer(str(path), transformer_task="fill-mask")
            transformer.max_seq_length = limit_of(path, transformer.model, params.max_length)
            modules = [transformer, SpladePooling("max")]
            self.model: SparseEncoder = SparseEncoder(
                modules=modules, device=device, prompts=written(self.prompts), similarity_fn_name="dot"
            )
            self._head = transformer.model.get_output_embeddings()
            words_of(self.model.tokenizer, len(self._head.weight), path)
        self._used: tuple[list[csr_matrix], list[csr_matrix]] = [], []
        with torch.no_grad():  # one linear layer makes the logits, if weights equal those of SpladePooling
            self.model.eval()
            features = {name: one.to(self.model.device) for name, one in self.features(PROBE, "document").items()}
            expected, weights = self.model(dict(features))["sentence_embedding"], self._part(features)
            self.model.train()
        if weights.shape != expected.shape or not torch.allclose(weights, expected, rtol=1e-3, atol=1e-3):
            raise InputError(
                f"{path}: its words have no weights by one linear layer; expected a masked-language model whose head "
                "ends in one, as of BERT, DistilBERT and RoBERTa"
            )

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        """As of every model; queries of SPLADE-doc have their words, (b, V): 1 or the count of each."""
        if kind == "document" or self.params.architecture != "doc":
            return super().features(texts, kind)
        tokens = self.model.tokenizer(texts, add_special_tokens=False)["input_ids"]
        counts = [torch.tensor(own, dtype=torch.int64).bincount(minlength=len(self._head.weight)) for own in tokens]
        words = torch.stack(counts).float()
        return {"words": words.clamp(max=1) if self.params.query_weights == "binary" else words}

    def weights(self, features: dict[str, Tensor]) -> Tensor:
        """(b, V): log(1 + relu(max over tokens of the logits)), or given words."""
        return features["words"] if "words" in features else by_length(features, self._part)

    def _part(self, features: dict[str, Tensor]) -> Tensor:
        head = self._head
        head.forward = lambda given: given
        try:
            hidden = self.model[0](dict(features))["token_embeddings"]
        finally:
            del head.forward
        bias = torch.zeros_like(head.weight[:, 0]) if head.bias is None else head.bias
        return torch.log1p(torch.relu(largest_logits(hidden, features["attention_mask"], head.weight, bias)))

    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        sides = self.weights(query), self.weights(document)
        if not self.model.training:
            for used, weights in zip(self._used, sides, strict=True):
                used.append(csr_matrix(weights.float().cpu().numpy()))
        return sides[0] @ sides[1].T

    def losses(self, inputs: Any, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, and the weighted regularisation of documents and of queries, which rises quadratically."""
        queries, documents = self.weights(inputs["query"]), self.weights(inputs["document"])
        params, rise = self.params, self.params.regularizer_warmup
        rise = int(rise if rise >= 1 else rise * self.steps)
        share = 1.0 if step >= rise else (step / rise) ** 2
        of_queries = queries.abs().sum(dim=1).mean() if params.query_regularizer == "l1" else flops(queries)
        return (
            self.ranked(queries @ documents.T, inputs),
            flops(documents) * (params.lambda_d * share),
            of_queries * (0.0 if params.architecture == "doc" else params.lambda_q * share),
        )

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        return torch.stack(self.losses(inputs, step)).sum()

    def others(self) -> dict[str, float]:
        """Numbers of used words, and the FLOPS of a pair."""
        queries, documents = (vstack(side, "csr") for side in self._used)
        self._used = [], []
        return word_use(queries, np.bincount(documents.indices, minlength=documents.shape[1]), documents.shape[0])


def flops(weights: Tensor) -> Tensor:
    """Sum over words of the squared mean of (b, V) weights."""
    return torch.sum(torch.mean(weights, dim=0) ** 2)
