"""Learners of texts on groups: their base, the dual encoder and the cross-encoder."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.encode.model_folder import ModelSettings, TextKind, read_settings
from rnnreranker.encode.query_encoder import COSINE_SCALE
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.segmentation import language_of, words
from rnnreranker.labels.soft import Labels
from rnnreranker.train.groups import Group, GroupInputs, Groups, LabelScale, scaled_labels
from rnnreranker.train.losses import Loss
from rnnreranker.train.request import NOTHING, Start
from rnnreranker.train.trainer import Learner, limit_of, loading, start_folder
from rnnreranker.train.validation import Scored, Validation, validate

PAIRS = {"cpu": 16, "cuda": 512}  # pairs of about the same length that go through the model together
TOKENS = {"cpu": 2**11, "cuda": 2**17}  # padded tokens of the texts that go through the model together


class GroupLearner(Learner):
    """A model of sentence-transformers that is trained on groups."""

    in_order = True

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        queries = {"training_queries": len({pool.qid for pool in inputs.pools})}
        made = {**inputs.made, **queries, "validation_queries": len(inputs.checked)}
        Learner.__init__(self, start, params, made, inputs.content())
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
        others: dict[str, float] = {}
        return validate(self.scored(self.inputs.checked, others), self.ranking, self.params.seed, others)

    @abstractmethod
    def scored(self, lists: Sequence[Labels], others: dict[str, float]) -> Iterable[Scored]:
        """Scores of the candidates of each query; further measures go into `others`."""

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(str(folder), create_model_card=False)


class CrossLearner(GroupLearner):
    """A cross-encoder, with a new classification head if the model has none.

    Raises:
        InputError: the model is no encoder, or its tokenizer has other words.
    """

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs, device)
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
        """Pairs of texts; targets and positive, (B, n) each."""
        pairs = [(self.inputs.queries[one.qid], self.inputs.documents[docid]) for one in rows for docid in one.docids]
        targets, positive = np.stack([one.targets for one in rows]), np.stack([one.positive for one in rows])
        return {"pairs": pairs, "targets": torch.from_numpy(targets), "positive": torch.from_numpy(positive)}

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        targets, positive = inputs["targets"], inputs["positive"]
        return self.ranking(self.scores(inputs["pairs"]).view(targets.shape), targets, positive, positive | True)

    def scored(self, lists: Sequence[Labels], others: dict[str, float]) -> Iterator[Scored]:
        pairs = [(self.inputs.queries[one.qid], self.inputs.documents[docid]) for one in lists for docid in one.docids]
        scores = self.scores(pairs).cpu().numpy()
        for one, own in zip(lists, np.split(scores, np.cumsum([len(one.docids) for one in lists])[:-1]), strict=True):
            yield Scored(one.qid, one.docids, one.targets, one.positive, own)

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

    prompts: prefixes of texts, by kind; at_once: documents that a validation encodes together.
    """

    prompts: Mapping[TextKind, str]
    at_once: ClassVar[int] = 4096

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

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
        """The candidates and targets of each query among the documents of a batch."""
        return in_batch(groups, docids, self.inputs.teacher) if self.params.of_batch else in_groups(groups, docids)

    def texts(self, lists: Sequence[Group | Labels]) -> dict[str, dict[str, Tensor]]:
        """Features of the queries and of the distinct documents of groups or labels."""
        queries = [self.inputs.queries[one.qid] for one in lists]
        documents = [self.inputs.documents[docid] for docid in documents_of(lists)]
        return {"query": self.features(queries, "query"), "document": self.features(documents, "document")}

    def batch(self, rows: Sequence[Group]) -> dict[str, Any]:
        return {"label": self.label(rows, documents_of(rows)), **self.texts(rows)}

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        return of_columns(self.ranking, self.scores(inputs["query"], inputs["document"]), inputs["label"])

    def aims(self, one: Labels) -> np.ndarray | None:
        """(n,) float32: what the loss reads in place of targets, or None."""
        return None

    def scored(self, lists: Sequence[Labels], others: dict[str, float]) -> Iterator[Scored]:
        for block in self._blocks(lists):
            sides = self.texts(block).values()
            there = ({name: value.to(self.model.device) for name, value in side.items()} for side in sides)
            trained, searched = (scores.float().cpu().numpy() for scores in self.both(*there))
            for row, (one, own) in enumerate(zip(block, _columns(block, documents_of(block)), strict=True)):
                scores = trained[row, own], searched[row, own]
                yield Scored(one.qid, one.docids, one.targets, one.positive, *scores, self.aims(one))

    def _blocks(self, lists: Sequence[Labels]) -> Iterator[list[Labels]]:
        """The lists in order, in blocks of at most `at_once` documents."""
        block: list[Labels] = []
        seen: set[str] = set()
        for one in lists:
            if block and len(seen.union(one.docids)) > self.at_once:
                yield block
                block, seen = [], set()
            block.append(one)
            seen.update(one.docids)
        yield block


class DualLearner(TwoSidedLearner):
    """A dual encoder with mean pooling, whatever the pooling of the start; "none" starts new towers of words.

    Raises:
        InputError: modules after the pooling, two towers already, a tokenizer with other words, or texts without a
            word.
    """

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs, device)
        self.scale = params.inverse_temperature or COSINE_SCALE
        self._labels: LabelScale | None = None
        if self.ranking.of_cosines:
            self.scale, self._labels = 1.0, params.label_scale
        self.folder, path, own = None, Path(start.name), ModelSettings()
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
            prompts = {name: prompt for name, prompt in self.prompts.items() if prompt}
            self.model: SentenceTransformer = SentenceTransformer(
                modules=tower, device=device, prompts=prompts, similarity_fn_name="dot", local_files_only=True
            )

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
        """As of every model; a loss of cosines gets scaled labels as targets, 0 for unlabelled documents."""
        label = super().label(groups, docids)
        if self._labels is None:
            return label
        rows = np.zeros((len(groups), len(docids)), dtype=np.float32)
        for row, group in enumerate(groups):
            assert group.pool is not None
            known = dict(zip(group.pool.docids, scaled_labels(group.pool, self._labels).tolist(), strict=True))
            rows[row] = [known.get(docid, 0.0) for docid in docids]
        return label | {"targets": torch.from_numpy(rows).gather(1, label["columns"])}

    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        """Cosines times the inverse temperature."""
        return self.scale * (self.vectors(query, "query") @ self.vectors(document, "document").T)

    def vectors(self, features: dict[str, Tensor], kind: TextKind) -> Tensor:
        """(b, d): vectors of texts."""
        compute = lambda part: self.model(dict(part), task=kind)["sentence_embedding"]
        return compute(features) if "offsets" in features else by_length(features, compute)  # words have no padding

    def aims(self, one: Labels) -> np.ndarray | None:
        return None if self._labels is None else scaled_labels(one, self._labels)


def documents_of(lists: Iterable[Group | Labels]) -> list[str]:
    """The U distinct documents of groups or labels, in order."""
    return list(dict.fromkeys(docid for one in lists for docid in one.docids))


def in_groups(groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
    """Every query with the n candidates of its own group.

    Returns:
        (B, n) each: columns int64, of `docids`; targets float32; positive and valid bool, all valid.
    """
    positive, targets = (np.stack([getattr(group, name) for group in groups]) for name in ("positive", "targets"))
    return _tensors(np.array(_columns(groups, docids)), targets, positive, np.ones_like(positive))


def in_batch(groups: Sequence[Group], docids: Sequence[str], teacher: Any = None) -> dict[str, Tensor]:
    """Every query with the candidates of all groups; targets sum to 1 over the valid ones.

    A teacher's targets are the softmax of its scores over all candidates (paper 002, eqs. 2, 3 and 6). Without a
    teacher, a query's known positives of other groups are invalid; unlabelled candidates have target 0.

    Returns:
        As `in_groups`, (B, U) each.
    """
    shape, columns = (len(groups), len(docids)), np.array(_columns(groups, docids))
    valid = np.array([[teacher is not None or docid not in group.known for docid in docids] for group in groups])
    np.put_along_axis(valid, columns, True, axis=1)
    positive = np.zeros(shape, dtype=bool)
    np.put_along_axis(positive, columns, np.stack([group.positive for group in groups]), axis=1)
    if teacher is None:
        targets = np.where(valid, np.stack([group.targets_of(docids) for group in groups]), 0)
    else:
        logits = teacher.logits([group.pool for group in groups if group.pool is not None], docids)
        targets = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float32)
    targets /= targets.sum(axis=1, keepdims=True)
    return _tensors(np.broadcast_to(np.arange(shape[1]), shape), targets, positive, valid)


def _columns(lists: Sequence[Group | Labels], docids: Sequence[str]) -> list[list[int]]:
    columns = {docid: column for column, docid in enumerate(docids)}
    return [[columns[docid] for docid in one.docids] for one in lists]


def _tensors(*given: np.ndarray) -> dict[str, Tensor]:
    names = ("columns", "targets", "positive", "valid")
    return {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in zip(names, given, strict=True)}


def of_columns(loss: Loss, scores: Tensor, label: Mapping[str, Tensor]) -> Tensor:
    """The loss of scores (B, U) at the columns of a label."""
    return loss(scores.gather(1, label["columns"]), label["targets"], label["positive"], label["valid"])


def by_length(features: dict[str, Tensor], compute: Callable[[dict[str, Tensor]], Tensor]) -> Tensor:
    """(n, …): computes texts of about the same length together, to avoid padding.

    features: (n, t) each, with `attention_mask`, padded on the right.
    """
    lengths, order = torch.sort(features["attention_mask"].sum(dim=1), stable=True)
    ordered, sizes = {name: value[order] for name, value in features.items()}, lengths.tolist()
    parts, start = [], 0
    while start < len(sizes):
        stop = start + 1
        while stop < len(sizes) and sizes[stop] * (stop + 1 - start) <= TOKENS[order.device.type]:
            stop += 1
        parts.append(compute({name: value[start:stop, : sizes[stop - 1]] for name, value in ordered.items()}))
        start = stop
    return torch.cat(parts)[torch.argsort(order)]


SIZE = 300  # numbers of an embedding
UNKNOWN = "[UNK]"  # its embedding is 0 and stays so: with vectors of length 1 it takes no part
RUN = r"[\p{L}\p{N}](?:[\p{L}\p{N}]|[\u0300-\u036f])*"  # letters and digits, as in `terms.segmentation`


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
    model: Any
    if language == "zh":
        logs = [(word, math.log(counts[word] / counts.total())) for word in ordered]
        model = models.Unigram([(UNKNOWN, 0.0), *logs], 0, False)
    else:
        model = models.WordLevel({word: number for number, word in enumerate([UNKNOWN, *ordered])}, UNKNOWN)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(RUN), "removed", invert=True)
    return tokenizer
