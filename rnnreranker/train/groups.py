"""Groups to train on: a positive with negatives drawn anew in every epoch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.method import Inputs
from rnnreranker.index.opening import IndexOnDisk, open_index
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.methods.base import labeler_of
from rnnreranker.labels.negatives import holds_texts, read_negatives
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import Labels
from rnnreranker.parts.tokens.source import query_tokens
from rnnreranker.train.params import GroupParams, Kind
from rnnreranker.train.request import TrainRequest, held_out_of, labels_of, validation_of

AT_RANDOM = ("random", "mixed")  # kinds that read the names of all documents
LabelScale = Literal["scores", "cosine", "maxmin", "targets"]


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

    Args:
        pools: a query may have several; count: number of groups; size: candidates of a group.
        depth: negatives come from the first `depth` of a pool, or from as many random documents.
        collection: docids of all documents, ascending, for random ones.
    """

    pools: Sequence[Labels]
    count: int
    size: int
    depth: int
    seed: int
    kind: Kind = "run"
    collection: Sequence[str] = ()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Group:
        epoch, number = divmod(index, len(self.pools))
        pool = self.pools[int(_order(self.seed, epoch, len(self.pools))[number])]
        positives, known = list(compress(pool.docids, pool.positive)), self._known[pool.qid]
        rng = np.random.default_rng([self.seed, epoch, int(fingerprint(pool.qid, positives)[:15], 16)])
        docids, wanted, sample = [positives[int(rng.choice(len(positives)))]], self.size - 1, list[str]()
        at_random = wanted * (self.kind == "random")
        if self.kind == "mixed":  # the side of an odd one is drawn
            at_random = wanted - wanted // 2 - (int(rng.integers(2)) if wanted % 2 else 0)
        if self.kind in AT_RANDOM:  # labelled candidates that are in the sample are in the run by chance alone
            sample = sampled(pool.qid, known, self.collection, self.depth, self.seed)
        seen = set(sample)
        negatives = [docid for docid in compress(pool.docids, ~pool.positive) if docid not in seen][: self.depth]
        of_run = 0 if self.kind == "in-batch" else wanted - at_random
        lacking = max(0, of_run - len(negatives)) if sample else 0
        for several, count in ((negatives, of_run - lacking), (sample, at_random + lacking)):
            docids += [several[number] for number in rng.choice(len(several), count, replace=False).tolist()]
        return Group(pool, docids, known)

    @functools.cached_property
    def _known(self) -> dict[str, set[str]]:
        positives: dict[str, set[str]] = {}
        for pool in self.pools:
            positives.setdefault(pool.qid, set()).update(compress(pool.docids, pool.positive))
        return positives


@functools.lru_cache(maxsize=1)  # epochs come one after the other
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)


def in_batch(
    groups: Sequence[Group],
    lists: Sequence[Sequence[str]],
    labels: Callable[[Labels], np.ndarray] | None = None,
    logits: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets (float32), positive and valid (bool), (B, N) each: of N documents for the query of each group.

    Targets sum to 1 over the valid documents; unlabelled ones have 0. Known positives of other groups are invalid.

    Args:
        lists: docids, N a group.
        labels: of a query's labels the targets, (n,), which stay as they are.
        logits: of a teacher, (B, N): targets are their softmax, and all documents are valid (paper 002, eqs. 2, 3, 6).
    """
    given = [one.pool.targets if labels is None else labels(one.pool) for one in groups]
    known = [dict(zip(one.pool.docids, own.tolist(), strict=True)) for one, own in zip(groups, given, strict=True)]
    both = list(zip(groups, lists, strict=True))
    targets = np.array([[of.get(docid, 0) for docid in own] for of, own in zip(known, lists, strict=True)], np.float32)
    positive = np.array([[docid == one.docids[0] for docid in own] for one, own in both])
    valid = np.array([[docid in one.docids or docid not in one.known for docid in own] for one, own in both])
    if logits is not None:
        targets, valid = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float32), valid | True
    if labels is None:
        targets = np.where(valid, targets, 0)
        targets = np.where(targets.any(axis=1, keepdims=True), targets, positive).astype(np.float32)
        targets /= targets.sum(axis=1, keepdims=True)
    return targets, positive, valid


def enough(pools: Sequence[Labels], size: int, depth: int) -> list[Labels]:
    """The pools with enough negatives for a group; prints how many lack them. InputError: all lack them."""
    most = [min(int((~pool.positive).sum()), depth) if pool.positive.any() else 0 for pool in pools]
    kept = [pool for pool, negatives in zip(pools, most, strict=True) if negatives >= size - 1]
    wanted = f"{counted(size - 1, 'negative')} for a group of {size}"
    if not kept:
        raise InputError(
            f"no query has {wanted}: the most that one has is {max(most, default=0)}; give a lower group_size, or "
            "labels with more candidates"
        )
    if len(kept) < len(pools):
        say(f"{counted(len(pools) - len(kept), 'positive or query', 'positives or queries')} without {wanted} left out")
    return kept


def merged(pools: Sequence[Labels]) -> list[Labels]:
    """One list per query of the pools of mined negatives, all positives first, for validation."""
    own: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for pool in pools:
        sides = own.setdefault(pool.qid, ({}, {}))
        for docid, positive in zip(pool.docids, pool.positive.tolist(), strict=True):
            sides[not positive][docid] = None
    return [hard_pool(qid, one, [docid for docid in rest if docid not in one]) for qid, (one, rest) in own.items()]


def hard_pool(qid: str, positives: Collection[str], negatives: Collection[str]) -> Labels:
    """Labels with all probability on the positives."""
    positive = np.arange(len(positives) + len(negatives)) < len(positives)
    scores = positive.astype(np.float32)
    return Labels(qid, [*positives, *negatives], scores, scores / np.float32(len(positives)), positive)


def first_candidates(labels: Labels, count: int) -> Labels:
    """The labels of a query over its positives and its first `count` other candidates."""
    kept = np.union1d(np.flatnonzero(labels.positive), np.flatnonzero(~labels.positive)[:count])
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
    scores = np.where(known, labels.scores, 0)
    if scale == "cosine":
        scores = (1 + scores) / 2
    elif scale == "maxmin" and known.any():
        low, high = float(scores[known].min()), float(scores[known].max())
        scores = (scores - low) / (high - low) if high > low else np.zeros_like(scores)
    return np.where(known, np.clip(scores, 0, 1), 0).astype(np.float32)


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
        candidates = [[one.qid, one.docids, one.targets.tolist(), one.positive.tolist()] for one in both]
        texts = sorted(self.queries.items()), sorted(self.documents.items())
        return [len(self.pools), candidates, texts, self.teacher and self.teacher.fingerprint, list(self.collection)]


def load_groups(request: TrainRequest, params: GroupParams) -> GroupInputs:
    """Read all inputs of a request.

    Raises:
        InputError: unreadable or mismatched files, missing texts, negatives or targets, or too few documents.
    """
    if (request.labels is None) == (request.negatives is None):
        both = f"{argument('labels')} or {argument('negatives')}"
        raise InputError(f"give {both}, one of them: what groups are drawn from")
    texts = request.labels is None and holds_texts(str(request.negatives))  # of such a file the ids are the texts
    if request.labels is not None:
        labels = labels_of(request.labels)
        pools, made = list(labels), dict[str, Any](labels=labels.metadata)
    else:
        mined, made = read_negatives(str(request.negatives)), {"negatives": file_digest(Path(str(request.negatives)))}
        pools = [hard_pool(one.qid, one.positives, one.negatives) for one in mined]
    queries = {pool.qid: pool.qid for pool in pools} if texts else request.texts_of_queries()
    given, others = validation_of(request, params.validation_queries)
    queries |= others
    held_out = held_out_of([pool.qid for pool in pools], params, given)
    checked = [pool for pool in pools if pool.qid in held_out] if given is None else list(given)
    documents = {docid: docid for one in (*pools, *(checked if given is None else ())) for docid in one.docids * texts}
    checked = merged(checked) if given is None and request.negatives is not None else checked
    pools = [pool for pool in pools if pool.qid not in held_out]
    if "teacher" in params.ranking.needs and not any((pool.targets[~pool.positive] > 0).any() for pool in pools):
        raise InputError(
            f"loss {params.ranking.name}: needs targets of the negatives, and the candidates have none; give "
            f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
        )
    pools = enough(pools, params.group_size if params.kind == "run" else 1, params.depth)
    checked = [first_candidates(one, params.validation_candidates) for one in checked[: params.validation_queries]]
    check_texts((one.qid for one in (*pools, *checked)), (), queries, {})
    read = [*(first_candidates(one, params.depth) for one in pools), *checked]
    wanted = {docid: None for one in read for docid in one.docids if docid not in documents}
    documents |= request.texts(wanted)
    check_texts((), wanted, {}, documents)
    if params.kind in AT_RANDOM and not texts:
        whole = request.all_documents("random negatives are drawn from them")
        documents |= {document.docid: document.text for document in whole}
    collection = sorted(documents) if params.kind in AT_RANDOM else []
    if 0 < len(collection) < params.group_size:
        raise InputError(
            f"negatives_from={params.kind}: {len(collection)} documents in the collection, groups have "
            f"{params.group_size}; give {argument('index')} or {argument('documents')} with all documents, or a "
            "lower group_size"
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

    def __init__(self, metadata: Mapping[str, Any], index: IndexOnDisk, topics: Mapping[str, str]) -> None:
        source = index.token_vectors
        labeler = labeler_of(metadata, Inputs(tokens=source, query_tokens=lambda: query_tokens(source, topics)))
        made = labeler.label_params
        teacher: Any = getattr(labeler, "teacher", None)
        if not hasattr(teacher, "asked"):
            raise InputError(
                f"batch_teacher: labels of the method {labeler.name} have no teacher over tokens, which can score any "
                "document; expected collective, or teacher late or prf:feedback=colbert"
            )
        if metadata.get("index") != source.fingerprint:
            raise InputError(f"{index.name}: the labels were not made from its tokens; give the index that they were")
        if replace(made, temperature=1.0, mass=None) != PLAIN:
            raise InputError(
                f"batch_teacher: the labels were made with {made}; expected normalization=none, boost=1 and "
                "n_max=none, as the targets of a batch are the softmax of the teacher's scores"
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
