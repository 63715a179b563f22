"""Groups to train on: a positive with negatives drawn anew in every epoch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.negatives.make import holds_texts, read_negatives
from rnnreranker.labels.soft import Labels
from rnnreranker.train.params import GroupParams, Kind
from rnnreranker.train.request import all_documents, check_different, held_out_of, labels_of, validation_of

if TYPE_CHECKING:
    from rnnreranker.train.request import TrainRequest

AT_RANDOM = ("random", "mixed")  # kinds that read the names of all documents


def shares(kind: Kind, size: int, rng: np.random.Generator) -> tuple[int, int]:
    """Numbers of a group's negatives from the run and from the collection; "mixed" draws the side of an odd one.

    >>> [shares(kind, 3, np.random.default_rng(0)) for kind in ("run", "random", "mixed", "in-batch")]
    [(2, 0), (0, 2), (1, 1), (0, 0)]
    """
    wanted = 0 if kind == "in-batch" else size - 1
    if kind == "mixed":
        half = wanted // 2 + (int(rng.integers(2)) if wanted % 2 else 0)
        return half, wanted - half
    return (0, wanted) if kind == "random" else (wanted, 0)


def sampled(qid: str, known: Collection[str], collection: Sequence[str], count: int, seed: int) -> list[str]:
    """At most `count` random documents of a collection (docids, ascending), without a query's positives (`known`)."""
    rng = np.random.default_rng([seed, int(fingerprint("random negatives", qid)[:15], 16)])
    wanted = min(count + len(known), len(collection))
    drawn = rng.choice(len(collection), wanted, replace=False).tolist()
    return [docid for number in drawn if (docid := collection[number]) not in known][:count]


@dataclass(frozen=True, eq=False)
class Group:
    """A query with n candidates, first the positive it was drawn for.

    targets: (n,) float32, sums to 1; positive: (n,) bool; known: all positives of the query; scale: divisor of the
    pool's targets, 0 if they are unused.
    """

    qid: str
    docids: tuple[str, ...]
    targets: np.ndarray
    positive: np.ndarray
    known: frozenset[str]
    pool: Labels | None = None
    scale: float = 0.0

    def targets_of(self, docids: Sequence[str]) -> np.ndarray:
        """(m,) float32: targets of any documents, scaled as those of the group; 0 for unlabelled ones."""
        target_of: dict[str, float] = {}
        if self.pool is not None and self.scale > 0:
            target_of = dict(zip(self.pool.docids, (self.pool.targets / self.scale).tolist(), strict=True))
        target_of |= zip(self.docids, self.targets.tolist(), strict=True)
        return np.array([target_of.get(docid, 0.0) for docid in docids], dtype=np.float32)


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
    _orders: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Group:
        epoch, within = divmod(index, len(self.pools))
        if epoch not in self._orders:
            self._orders.clear()  # epochs come one after the other
            self._orders[epoch] = np.random.default_rng([self.seed, epoch]).permutation(len(self.pools))
        return self._drawn(self.pools[int(self._orders[epoch][within])], epoch)

    def _drawn(self, pool: Labels, epoch: int) -> Group:
        positives, known = list(compress(pool.docids, pool.positive)), self._known[pool.qid]
        own = fingerprint(pool.qid, positives)
        rng = np.random.default_rng([self.seed, epoch, int(own[:15], 16)])
        first, (of_run, at_random) = int(rng.choice(len(positives))), shares(self.kind, self.size, rng)
        sample: list[str] = []
        if self.kind in AT_RANDOM:  # labelled candidates that are in the sample are in the run by chance alone
            sample = sampled(pool.qid, known, self.collection, self.depth, self.seed)
        seen = set(sample)
        negatives = [docid for docid in compress(pool.docids, ~pool.positive) if docid not in seen][: self.depth]
        lacking = max(0, of_run - len(negatives)) if sample else 0
        docids = [positives[first]]
        for several, count in ((negatives, of_run - lacking), (sample, at_random + lacking)):
            docids += [several[number] for number in rng.choice(len(several), count, replace=False).tolist()]
        target_of = dict(zip(pool.docids, pool.targets.tolist(), strict=True))
        targets = np.array([target_of.get(docid, 0.0) for docid in docids], dtype=np.float32)
        positive, scale = np.arange(len(docids)) == 0, float(targets.sum())
        if scale <= 0:  # a positive without probability, and no other in the group has any
            targets = positive.astype(np.float32)
        return Group(pool.qid, tuple(docids), targets / targets.sum(), positive, known, pool, scale)

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        positives: dict[str, frozenset[str]] = {}
        for pool in self.pools:
            positives[pool.qid] = positives.get(pool.qid, frozenset()).union(compress(pool.docids, pool.positive))
        return positives


def enough(pools: Sequence[Labels], size: int, depth: int) -> list[Labels]:
    """The pools with enough negatives for a group; prints how many lack them. InputError: all lack them."""
    counts = [int((~pool.positive).sum()) for pool in pools]
    kept = [p for p, most in zip(pools, counts, strict=True) if p.positive.any() and min(most, depth) >= size - 1]
    if not kept:
        raise InputError(
            f"no query has {counted(size - 1, 'negative')} for a group of {size}: the most that one has is "
            f"{min(max(counts, default=0), depth)}; give a lower group_size, or labels with more candidates"
        )
    if len(kept) < len(pools):
        left = counted(len(pools) - len(kept), "positive or query", "positives or queries")
        say(f"{left} with less than {counted(size - 1, 'negative')} left out")
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
    targets = positive.astype(np.float32) / np.float32(len(positives))
    return Labels(qid, [*positives, *negatives], positive.astype(np.float32), targets, positive)


def first_candidates(labels: Labels, count: int) -> Labels:
    """The labels of a query over its positives and its first `count` other candidates."""
    kept = np.union1d(np.flatnonzero(labels.positive), np.flatnonzero(~labels.positive)[:count])
    targets, positive = labels.targets[kept], labels.positive[kept]
    total = float(targets.sum())
    targets = targets / np.float32(total) if total > 0 else positive / np.float32(positive.sum())
    docids = [labels.docids[candidate] for candidate in kept.tolist()]
    return Labels(labels.qid, docids, labels.scores[kept], targets.astype(np.float32), positive)


LabelScale = Literal["scores", "cosine", "maxmin", "targets"]


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
        highest = labels.targets.max(initial=0)
        return (labels.targets / highest if highest > 0 else labels.targets).astype(np.float32)
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

    made: source of the candidates, for the record; teacher: a `late.BatchTeacher`; collection: as in `Groups`.
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
        texts = [self.queries[qid] for qid in sorted({one.qid for one in both})], sorted(self.documents.items())
        return [len(self.pools), candidates, texts, self.teacher and self.teacher.fingerprint, list(self.collection)]


def load_groups(request: TrainRequest, params: GroupParams) -> GroupInputs:
    """Read all inputs of a request.

    Raises:
        InputError: unreadable or mismatched files, missing texts, negatives or targets, or too few documents.
    """
    from rnnreranker.base.files import file_digest
    from rnnreranker.data.topics import topics_of

    if (request.labels is None) == (request.negatives is None):
        both = f"{argument('labels')} or {argument('negatives')}"
        raise InputError(f"give {both}, one of them: what groups are drawn from")
    queries: dict[str, str] = {}
    made: dict[str, Any]
    if request.labels is not None:
        labels = labels_of(request.labels)
        pools, texts, made = list(labels), False, {"labels": labels.metadata}
    else:
        assert request.negatives is not None
        mined, texts = read_negatives(request.negatives), holds_texts(request.negatives)
        pools = [hard_pool(one.qid, one.positives, one.negatives) for one in mined]
        made = {"negatives": file_digest(Path(request.negatives))}
        queries = {one.qid: one.qid for one in mined} if texts else {}
    if not texts:
        if request.topics is None:
            raise InputError(f"{argument('topics')} is missing: it has the texts of the training queries")
        queries = topics_of(request.topics)
    given, others = validation_of(request, params.validation_queries, queries)
    queries |= others
    if given is not None:
        checked = list(given)
        check_different((pool.qid for pool in pools), given.qids)
    else:
        held_out = held_out_of(list(dict.fromkeys(pool.qid for pool in pools)), params, ("query", "queries"))
        checked = [pool for pool in pools if pool.qid in held_out]
        checked = merged(checked) if request.negatives is not None else checked
        pools = [pool for pool in pools if pool.qid not in held_out]
    if "teacher" in params.ranking.needs and not any((pool.targets[~pool.positive] > 0).any() for pool in pools):
        raise InputError(
            f"loss {params.ranking.name}: needs targets of the negatives, and the candidates have none; give "
            f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
        )
    pools = enough(pools, params.group_size if params.kind == "run" else 1, params.depth)
    checked = [first_candidates(one, params.validation_candidates) for one in checked[: params.validation_queries]]
    check_texts((one.qid for one in (*pools, *checked)), (), queries, {})
    read = [first_candidates(one, params.depth) for one in pools]
    own = [*(read if texts else ()), *(checked if texts and given is None else ())]
    documents = {docid: docid for one in own for docid in one.docids}  # of a file with texts these are the ids
    read = checked if texts else [*read, *checked]
    documents |= _texts(request, {docid: None for one in read for docid in one.docids if docid not in documents})
    collection: tuple[str, ...] = ()
    if params.kind in AT_RANDOM:
        if not texts:
            whole = all_documents(request, "random negatives are drawn from them")
            documents |= {document.docid: document.text for document in whole}
        collection = tuple(sorted(documents))
        if len(collection) < params.group_size:
            raise InputError(
                f"negatives_from={params.kind}: {len(collection)} documents in the collection, groups have "
                f"{params.group_size}; give {argument('index')} or {argument('documents')} with all documents, or a "
                "lower group_size"
            )
    return GroupInputs(pools, checked, queries, documents, made, collection=collection)


def _texts(request: TrainRequest, wanted: Mapping[str, None]) -> dict[str, str]:
    """Texts of documents. InputError: no source, or missing texts."""
    from rnnreranker.index.opening import open_index
    from rnnreranker.search.inputs import texts_for

    if not wanted:
        return {}
    if not request.documents and request.index is None:
        both = f"{argument('index')}, of an index with texts, or {argument('documents')}"
        raise InputError(f"give {both}: the texts of the candidates")
    opened = None if request.index is None else open_index(request.index)
    texts = texts_for(wanted, opened, request.documents, asked_fields(request.documents, request.fields))
    check_texts((), wanted, {}, texts)
    if empty := sum(not text.strip() for text in texts.values()):
        say(f"{counted(empty, 'candidate')} with an empty text")
    return texts
