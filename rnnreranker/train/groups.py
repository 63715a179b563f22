"""Groups to train on: a positive with negatives drawn anew in every epoch."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError, argument, refuse
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.method import Inputs
from rnnreranker.index.opening import Index, open_index
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.methods.base import labeler_of
from rnnreranker.labels.negatives import holds_texts, read_negatives
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import Labels
from rnnreranker.parts.tokens.part import query_tokens
from rnnreranker.train.params import GroupParams, LabelScale
from rnnreranker.train.request import TrainRequest, held_out_of, labels_of, validation_of


def sampled(qid: str, known: Collection[str], collection: Sequence[str], count: int, seed: int) -> list[str]:
    """At most `count` random documents of a collection (docids, ascending), without a query's positives (`known`)."""
    rng = np.random.default_rng([seed, int(fingerprint("random negatives", qid)[:15], 16)])
    drawn = rng.choice(len(collection), min(count + len(known), len(collection)), replace=False).tolist()
    return [docid for number in drawn if (docid := collection[number]) not in known][:count]


class Group(NamedTuple):
    """A query with n candidates, first the positive that it was drawn for.

    pool: labels of the query; known: all its positives.
    """

    pool: Labels
    docids: Sequence[str]
    known: Collection[str]

    @property
    def qid(self) -> str:
        return self.pool.qid


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a training in the order of its steps; a draw depends on seed, epoch, query and its positives.

    Negatives come from the first `depth` of a pool, or from as many random documents.

    collection: docids of all documents, ascending, for random ones.
    """

    pools: Sequence[Labels]
    params: GroupParams
    collection: Sequence[str] = ()

    def __len__(self) -> int:
        params = self.params
        return params.max_steps * params.batch_size or math.ceil(params.epochs * len(self.pools))

    def __getitem__(self, index: int) -> Group:
        epoch, number = divmod(index, len(self.pools))
        seed, depth = self.params.seed, self.params.depth
        pool = self.pools[int(_order(seed, epoch, len(self.pools))[number])]
        known, negatives = (list(compress(pool.docids, side)) for side in (pool.positive, ~pool.positive))
        if self.params.at_random:
            negatives = sampled(pool.qid, known, self.collection, depth, seed)
        rng = np.random.default_rng([seed, epoch, int(fingerprint(pool.qid, known)[:15], 16)])
        first = known[int(rng.choice(len(known)))]
        drawn = rng.choice(len(negatives[:depth]), self.params.group_size - 1, replace=False).tolist()
        return Group(pool, [first, *(negatives[row] for row in drawn)], known)


@functools.lru_cache(maxsize=1)  # epochs come one after the other
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)


def enough(pools: Sequence[Labels], size: int, depth: int) -> list[Labels]:
    """The pools with enough negatives for a group; prints how many lack them. InputError: all lack them."""
    most = [min(int((~pool.positive).sum()), depth) for pool in pools]
    kept = [pool for pool, negatives in zip(pools, most, strict=True) if negatives >= size - 1]
    wanted = f"{counted(size - 1, 'negative')} for a group of {size}"
    if not kept:
        raise InputError(
            f"no query has {wanted}: the most that one has is {max(most, default=0)}; give a lower group_size, or "
            "labels with more candidates"
        )
    if left := len(pools) - len(kept):
        say(f"{counted(left, 'query', 'queries')} without {wanted} left out")
    return kept


def pools_of(path: str) -> list[Labels]:
    """One list per query of a file of negatives, all positives first, with all probability on them."""
    own: dict[str, dict[str, bool]] = {}
    for (qid, relevant), negatives in read_negatives(path).items():
        pool = own.setdefault(qid, {})
        pool |= {docid: pool.get(docid, False) for docid in negatives} | {relevant: True}
    made = []
    for qid, pool in own.items():
        docids = sorted(pool, key=lambda docid: not pool[docid])
        positive = np.array([pool[docid] for docid in docids])
        scores = positive.astype(np.float32)
        made.append(Labels(qid, docids, scores, scores / scores.sum(), positive))
    return made


def first_candidates(labels: Labels, count: int) -> Labels:
    """The labels of a query over its positives and its first `count` other candidates."""
    kept = np.flatnonzero(labels.positive | (np.cumsum(~labels.positive) <= count))
    positive = labels.positive[kept]
    targets = labels.targets[kept] if labels.targets[kept].any() else positive.astype(np.float32)
    docids = [labels.docids[candidate] for candidate in kept.tolist()]
    return Labels(labels.qid, docids, labels.scores[kept], targets / targets.sum(), positive)


def scaled_labels(labels: Labels, scale: LabelScale) -> np.ndarray:
    """(n,) float32 in [0, 1]: labels of a query's candidates; 0 without a score.

    "scores": scores clipped to [0, 1] (paper 004, eq. 5); "cosine": (1 + score) / 2, 1 - f of its eq. 6; "maxmin":
    (score - lowest) / (highest - lowest), 0 if they are equal; "targets": targets over the largest.

    >>> one = Labels("q", ["a", "b", "c"], np.array([0.5, -0.5, -np.inf], dtype=np.float32), np.array([0.8, 0.2, 0],
    ...     dtype=np.float32), np.array([True, False, False]))
    >>> scaled_labels(one, "scores").tolist(), scaled_labels(one, "cosine").tolist()
    ([0.5, 0.0, 0.0], [0.75, 0.25, 0.0])
    >>> scaled_labels(one, "maxmin").tolist(), scaled_labels(one, "targets").tolist()
    ([1.0, 0.0, 0.0], [1.0, 0.25, 0.0])
    """
    if scale == "targets":
        return labels.targets / max(labels.targets.max(initial=0), np.finfo(np.float32).tiny)
    known = np.isfinite(labels.scores)
    scores = labels.scores[known]
    if scale == "cosine":
        scores = (1 + scores) / 2
    elif scale == "maxmin" and len(scores):
        scores = (scores - scores.min()) / (float(np.ptp(scores)) or 1)
    scaled = np.zeros(len(known), dtype=np.float32)
    scaled[known] = scores.clip(0, 1)
    return scaled


@dataclass(frozen=True, eq=False)
class GroupInputs:
    """Candidates of training (`pools`) and validation queries (`checked`), with all texts by id.

    made: source of the candidates, for the record; teacher: a `BatchTeacher`; collection: as in `Groups`.
    """

    pools: Sequence[Labels]
    checked: Sequence[Labels]
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    made: Mapping[str, Any]
    teacher: Any = None
    collection: Sequence[str] = ()

    def content(self) -> list[Any]:
        both = [*self.pools, *self.checked]
        labels = [[one.docids, one.scores.tolist(), one.targets.tolist(), one.positive.tolist()] for one in both]
        texts = dict(self.queries), dict(self.documents)
        return [len(self.pools), [one.qid for one in both], labels, texts, self.teacher and self.teacher.fingerprint]


def load_groups(request: TrainRequest, params: GroupParams) -> GroupInputs:
    """Read all inputs of a request.

    Raises:
        InputError: unreadable or mismatched files, missing texts, negatives or targets, or too few documents.
    """
    if (request.labels is None) == (request.negatives is None):
        both = f"{argument('labels')} or {argument('negatives')}"
        raise InputError(f"give {both}, one of them: what groups are drawn from")
    texts, made = False, dict[str, Any]()
    if request.negatives is None:
        labels = labels_of(request.labels)  # type: ignore[arg-type]
        pools, made["labels"] = list(labels), labels.metadata
    else:
        path = str(request.negatives)
        pools, made["negatives"], texts = pools_of(path), file_digest(Path(path)), holds_texts(path)  # ids are texts
        if texts and params.at_random:
            raise InputError(
                f"{path}: has texts; negatives_from=random draws docids of a collection: give a .tsv of ids"
            )
    queries = {pool.qid: pool.qid for pool in pools} if texts else request.texts_of_queries()
    given, others = validation_of(request, params.validation_queries)
    queries |= others
    held_out = held_out_of([pool.qid for pool in pools], params, given)
    checked = [pool for pool in pools if pool.qid in held_out] if given is None else list(given)
    documents = {docid: docid for one in pools for docid in one.docids * texts}
    pools = [pool for pool in pools if pool.qid not in held_out]
    if params.ranking.needs and not any((pool.targets[~pool.positive] > 0).any() for pool in pools):
        raise InputError(
            f"loss {params.ranking.name}: needs targets of the negatives, and the candidates have none; give "
            f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
        )
    pools = enough(pools, 1 if params.at_random else params.group_size, params.depth)
    checked = [first_candidates(one, params.validation_candidates) for one in checked[: params.validation_queries]]
    read = [*(first_candidates(one, params.depth) for one in pools), *checked]
    wanted = {docid: None for one in read for docid in one.docids if docid not in documents}
    if params.at_random:
        whole = request.all_documents("random negatives are drawn from them")
        documents = {document.docid: document.text for document in whole}
    else:
        documents |= request.texts(wanted)
    check_texts((one.qid for one in read), wanted, queries, documents)
    collection = sorted(documents) if params.at_random else []
    if 0 < len(collection) < params.group_size + max(int(pool.positive.sum()) for pool in pools):
        raise InputError(
            f"{len(collection)} documents in the collection, too few random ones for groups of {params.group_size}; "
            f"give {argument('index')} or {argument('documents')} with all documents, or a lower group_size"
        )
    teacher = None
    if getattr(params, "batch_teacher", False):
        if request.labels is None or request.index is None:
            given_too = f"{argument('labels')}, and {argument('index')} with the tokens that they were made from"
            raise InputError(f"batch_teacher: needs {given_too}")
        topics = {pool.qid: queries[pool.qid] for pool in pools}
        teacher = BatchTeacher(made["labels"], open_index(request.index, needs={"tokens"}), topics)
    return GroupInputs(pools, checked, queries, documents, made, teacher, collection)


PLAIN = LabelParams(normalization="none", boost=1.0, n_max=None)  # targets are a softmax of the scores


class BatchTeacher:
    """The token-based teacher of a label file; it scores any document.

    It expands each query once, by the candidates of its labels: paper 002 (2.3.1) reuses the centroids "for estimating
    R*_q(p) of any p".

    Args:
        metadata: of the labels.
        index: with the tokens that made them; topics: texts of all training queries.

    Raises:
        InputError: labels of another index or with unknown settings, or targets that are no softmax of MaxSim.
    """

    def __init__(self, metadata: Mapping[str, Any], index: Index, topics: Mapping[str, str]) -> None:
        source = index.token_vectors
        labeler = labeler_of(metadata, Inputs(tokens=source, query_tokens=lambda: query_tokens(source, topics)))
        made = labeler.label_params
        teacher: Any = getattr(labeler, "teacher", None)
        refuse(
            (
                not hasattr(teacher, "asked"),
                f"batch_teacher: labels of the method {labeler.name} have no teacher over tokens, which can score any "
                "document; expected collective, or teacher late or prf:feedback=colbert",
            ),
            (
                metadata.get("index") != source.fingerprint,
                f"{index.name}: the labels were not made from its tokens; give the index that they were",
            ),
            (
                replace(made, temperature=1.0, mass=None) != PLAIN,
                f"batch_teacher: the labels were made with {made}; expected normalization=none, boost=1 and "
                "n_max=none, as the targets of a batch are the softmax of the teacher's scores",
            ),
        )
        self._teacher, self._temperature, self._source = teacher, made.temperature, source
        self._positives_first = bool(getattr(labeler.params, "positives", False))
        self._asked: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.fingerprint = fingerprint(source.fingerprint, labeler.describe())

    def logits(self, pools: Sequence[Labels], docids: Sequence[str]) -> np.ndarray:
        """(B, U) float64: scores over the temperature.

        pools: whole labels of the queries.

        Raises:
            InputError: a document or query has no tokens in the index.
        """
        rows = self._source.rows(list(docids))
        if (rows < 0).any():
            raise InputError(
                f"{docids[int(np.argmin(rows))]} is not in {self._source.folder}; use the index of the labels"
            )
        for pool in pools:
            if pool.qid not in self._asked:
                taken = np.flatnonzero(np.isfinite(pool.scores))
                known = range(int(pool.positive[taken].sum())) if self._positives_first else ()
                alone = self._teacher.alone(pool.qid, [pool.docids[candidate] for candidate in taken.tolist()])
                self._asked[pool.qid] = self._teacher.asked(*alone, known)
        tokens, weights = zip(*(self._asked[pool.qid] for pool in pools), strict=True)
        offsets, threads = np.cumsum([0, *map(len, tokens)], dtype=np.int64), self._teacher.threads
        scores = self._source.scores(np.concatenate(tokens), offsets, rows, threads, np.concatenate(weights))
        return scores.astype(np.float64) / self._temperature
