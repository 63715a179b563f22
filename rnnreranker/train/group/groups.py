"""Groups to train on: a positive with negatives drawn for it, anew in every epoch, the same whenever they are asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.labels.negatives.filters import Mined
from rnnreranker.labels.soft import Labels
from rnnreranker.train.params import Kind

AT_RANDOM = ("random", "mixed")  # kinds that read the names of all documents


def shares(kind: Kind, size: int, rng: np.random.Generator) -> tuple[int, int]:
    """How many negatives of a group come from the run and from the collection; of mixed, the odd one by a draw.

    >>> [shares(kind, 3, np.random.default_rng(0)) for kind in ("run", "random", "mixed", "in-batch")]
    [(2, 0), (0, 2), (1, 1), (0, 0)]
    """
    wanted = 0 if kind == "in-batch" else size - 1
    if kind == "mixed":
        half = wanted // 2 + (int(rng.integers(2)) if wanted % 2 else 0)
        return half, wanted - half
    return (0, wanted) if kind == "random" else (wanted, 0)


def sampled(qid: str, known: Collection[str], collection: Sequence[str], count: int, seed: int) -> list[str]:
    """Documents drawn for a query from a whole collection, none of its positives among them.

    Args:
        qid: the query; known: its positives.
        collection: docids, ascending, so that the draw does not depend on how documents stand in a file.
        count: documents wanted; there are fewer where the collection has no more.
        seed: of the draw, which depends on the query besides.
    """
    rng = np.random.default_rng([seed, int(fingerprint("random negatives", qid)[:15], 16)])
    wanted = min(count + len(known), len(collection))
    drawn = rng.choice(len(collection), wanted, replace=False).tolist()
    return [docid for number in drawn if (docid := collection[number]) not in known][:count]


def check_collection(kind: Kind, size: int, collection: Sequence[str]) -> None:
    """Nothing, where a collection has documents for a group.

    Raises:
        InputError: fewer than a positive and its random negatives.
    """
    if kind in AT_RANDOM and len(collection) < size:
        raise InputError(
            f"negatives_from={kind}: {len(collection)} documents in the collection, groups have {size}; give "
            f"{argument('index')} or {argument('documents')} with all documents, or a lower group_size"
        )


@dataclass(frozen=True, eq=False)
class Group:
    """A query with n candidates, the first of them the positive it was drawn for.

    targets: (n,) float32, sums to 1 over the group; positive: (n,) bool; known: all positives of the query; pool: what
    it was drawn from; scale: what the targets of the pool were divided by, 0 where they were not taken.
    """

    qid: str
    docids: tuple[str, ...]
    targets: np.ndarray
    positive: np.ndarray
    known: frozenset[str]
    pool: Labels | None = None
    scale: float = 0.0

    def targets_of(self, docids: Sequence[str]) -> np.ndarray:
        """(m,) float32: the targets of any documents by the labels of the query, as those of the group are scaled."""
        target_of = dict(zip(self.docids, self.targets.tolist(), strict=True))
        if self.pool is not None and self.scale > 0:
            wanted = set(docids).difference(target_of)
            of_pool = zip(self.pool.docids, self.pool.targets.tolist(), strict=True)
            target_of |= {docid: target / self.scale for docid, target in of_pool if docid in wanted}
        return np.array([target_of.get(docid, 0.0) for docid in docids], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a whole training, in the order of its steps; a group is drawn when it is asked for.

    A draw depends on the seed, the epoch, the query and the positives it may take, so neither threads nor a resumption
    change it.

    Args:
        pools: what groups are drawn from: candidates with positives among them, a query perhaps more than once.
        count: groups in all.
        size: candidates of a group; depth: the negatives are drawn from the first so many of a pool, and at random from
            as many documents of the collection.
        seed: of order and draws.
        kind: where the negatives come from.
        collection: docids of all documents, ascending, of kinds that draw at random.
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
        positives = np.flatnonzero(pool.positive)
        own = fingerprint(pool.qid, [pool.docids[candidate] for candidate in positives.tolist()])
        rng = np.random.default_rng([self.seed, epoch, int(own[:15], 16)])
        first, (of_run, at_random) = rng.choice(positives, 1), shares(self.kind, self.size, rng)
        negatives, known = negatives_of(pool, self.depth), self._known[pool.qid]
        there: list[str] = []
        if self.kind in AT_RANDOM:  # candidates that are in the sample are labelled, and of the run by chance alone
            there = sampled(pool.qid, known, self.collection, self.depth, self.seed)
            apart = [
                candidate
                for candidate in np.flatnonzero(~pool.positive).tolist()
                if pool.docids[candidate] not in set(there)
            ]
            negatives = np.array(apart[: self.depth], dtype=np.int64)
            of_run, at_random = min(of_run, len(negatives)), at_random + max(0, of_run - len(negatives))
        chosen = np.concatenate([first, rng.choice(negatives, of_run, replace=False)]).astype(np.int64)
        docids = [pool.docids[candidate] for candidate in chosen.tolist()]
        if at_random:
            candidate_of = {docid: candidate for candidate, docid in enumerate(pool.docids)}
            drawn = [there[candidate] for candidate in rng.choice(len(there), at_random, replace=False).tolist()]
            docids, chosen = docids + drawn, np.append(chosen, [candidate_of.get(docid, -1) for docid in drawn])
        targets = np.where(chosen >= 0, pool.targets[chosen], np.float32(0))
        positive = np.where(chosen >= 0, pool.positive[chosen], False)
        total = scale = float(targets.sum())
        if total <= 0:  # a positive without probability, and no other in the group has any
            targets, total = positive.astype(np.float32), 1.0
        return Group(
            pool.qid,
            tuple(docids),
            (targets / np.float32(total)).astype(np.float32),
            positive,
            self._known[pool.qid],
            pool,
            scale,
        )

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        positives: dict[str, set[str]] = {}
        for pool in self.pools:
            marked = np.flatnonzero(pool.positive).tolist()
            positives.setdefault(pool.qid, set()).update(pool.docids[candidate] for candidate in marked)
        return {qid: frozenset(own) for qid, own in positives.items()}


def negatives_of(pool: Labels, depth: int) -> np.ndarray:
    """The rows of the first `depth` candidates that are not positive."""
    return np.flatnonzero(~pool.positive)[:depth]


def enough(pools: Sequence[Labels], size: int, depth: int) -> list[Labels]:
    """The pools that have negatives for a group; how many have not is said; InputError: none is left."""
    kept = [pool for pool in pools if pool.positive.any() and len(negatives_of(pool, depth)) >= size - 1]
    if not kept:
        most = max((len(negatives_of(pool, depth)) for pool in pools), default=0)
        raise InputError(
            f"no query has {counted(size - 1, 'negative')} for a group of {size}: the most that one has is {most}; "
            "give a lower group_size, or labels or negatives with more candidates"
        )
    if len(kept) < len(pools):
        left = counted(len(pools) - len(kept), "positive or query", "positives or queries")
        say(f"{left} with less than {counted(size - 1, 'negative')} left out")
    return kept


def pools_of(mined: Sequence[Mined]) -> list[Labels]:
    """One pool for every positive of mined negatives, with the whole probability on it."""
    return [_hard(one.qid, list(one.positives), list(one.negatives)) for one in mined]


def merged(pools: Sequence[Labels]) -> list[Labels]:
    """One list a query of the pools of mined negatives: to validate on, all its positives first."""
    own: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for pool in pools:
        positives, negatives = own.setdefault(pool.qid, ({}, {}))
        for docid, positive in zip(pool.docids, pool.positive.tolist(), strict=True):
            (positives if positive else negatives)[docid] = None
    return [
        _hard(qid, list(positives), [docid for docid in negatives if docid not in positives])
        for qid, (positives, negatives) in own.items()
    ]


def _hard(qid: str, positives: list[str], negatives: list[str]) -> Labels:
    positive = np.arange(len(positives) + len(negatives)) < len(positives)
    targets = positive.astype(np.float32) / np.float32(len(positives))
    return Labels(qid, [*positives, *negatives], positive.astype(np.float32), targets, positive)


def first_candidates(labels: Labels, count: int) -> Labels:
    """The labels of a query over its positives and its first `count` other candidates."""
    kept = np.union1d(np.flatnonzero(labels.positive), negatives_of(labels, count))
    targets = labels.targets[kept]
    total = float(targets.sum())
    targets = targets / np.float32(total) if total > 0 else labels.positive[kept] / np.float32(labels.positive.sum())
    docids = [labels.docids[candidate] for candidate in kept.tolist()]
    return Labels(labels.qid, docids, labels.scores[kept], targets.astype(np.float32), labels.positive[kept])


LabelScale = Literal["scores", "cosine", "maxmin", "targets"]


def scaled_labels(labels: Labels, scale: LabelScale) -> np.ndarray:
    """(n,) float32 in [0, 1]: the scaled labels of a query's n candidates; 0 of one without a score.

    Args:
        labels: of the query.
        scale: "scores": the scores of the method, cut to [0, 1], as of hard labels and of paper 004's eq. 5;
            "cosine": (1 + score) / 2, which is 1 - f of its eq. 6; "maxmin": from 0, the lowest score of the query, to
            1, the highest (all 0 where they are equal); "targets": over the largest target, as normalisation, boost and
            the rest of the labels' parameters have made them.

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
