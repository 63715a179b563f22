"""Hard negatives: filters of likely positives, and the choice among the rest.

Every filter gives each pair of positive and candidate a suspicion and discards pairs above a threshold, so filters are
comparable at one share of discarded pairs.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import Params, choices, hints_of, setting
from rnnreranker.labels.judged import Judged, contexts_of

if TYPE_CHECKING:
    from rnnreranker.labels.methods.base import VectorLabeler
    from rnnreranker.runs import Run

DEFAULT_RATE = 0.1  # share of pairs discarded where neither a threshold nor a rate is given
SIMILAR = {"rnn": "evidence", "joint": "joint"}  # filter → the labels whose similarities it goes by


@dataclass(frozen=True)
class NegativeParams(Params):
    """Settings of mining; see `suspicion` for filters. InputError: values out of range, a threshold beside a rate."""

    filter: Literal["rnn", "joint", "margin", "relative-margin", "max-score", "none"] = setting(
        "rnn", "what is discarded"
    )
    threshold: float | None = setting(
        None, "discard above it: s* for rnn, joint similarity for joint; see docs/negatives.md for the others"
    )
    rate: float | None = setting(
        None, f"discard this share of pairs instead (without a threshold {DEFAULT_RATE})", at_least=0, at_most=1
    )
    form: Literal["triplet", "n-tuple", "labeled-pair", "labeled-list"] = setting(
        "triplet", "rows of one negative, of all of a positive, of a document and its label, or of lists of both"
    )
    negatives: int = setting(3, "of a positive", at_least=1)
    sampling: Literal["top", "random"] = setting("top", "the first kept ones of the run, or drawn")
    seed: int = setting(0, "of --sampling random", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and self.rate is not None:
            raise InputError(f"threshold={self.threshold:g} and rate={self.rate:g}: give one of them, not both")


FILTERS = tuple(choices(hints_of(NegativeParams)["filter"]))


@dataclass(frozen=True, eq=False)
class Pool:
    """One query's R positives and n other candidates, in the order of the run.

    positive_scores: (R,) and scores: (n,) inner products with the query; similarity: filter of `SIMILAR` → (R, n).
    """

    qid: str
    positives: tuple[str, ...]
    candidates: tuple[str, ...]
    positive_scores: np.ndarray
    scores: np.ndarray
    similarity: Mapping[str, np.ndarray]

    def without(self, docids: Collection[str]) -> Pool:
        """The pool without some of its candidates."""
        kept = np.array([docid not in docids for docid in self.candidates], dtype=bool)
        return dataclasses.replace(
            self,
            candidates=tuple(itertools.compress(self.candidates, kept.tolist())),
            scores=self.scores[kept],
            similarity={how: values[:, kept] for how, values in self.similarity.items()},
        )


def pools(run: Run, judged: Judged, labelers: Mapping[str, VectorLabeler], size: int = 0) -> list[Pool]:
    """The pools of the run's queries with positives, in order.

    Args:
        judged: positives by query, see `labels.judged.positives_of`.
        labelers: filter of `SIMILAR` → labeler of its similarities, all of one context; without vectors inner products
            are 0.
        size: the context if there are no labelers.

    Raises:
        InputError: queries or candidates without a vector, or of another dimension.
    """
    first = next(iter(labelers.values()), None)
    rows, size = (None, size) if first is None else (first.source_of_rows, first.params.context)
    contexts, _ = contexts_of(run, judged, size, rows)
    products = [np.zeros(one.size) for one in contexts]
    near: list[dict[str, np.ndarray]] = [{} for _ in contexts]
    for how, labeler in labelers.items():
        labeler.check(run, judged)
        for index, similarities, _ in labeler.compared(contexts):
            near[index][how] = similarities.astype(np.float64)
            if labeler.source == "vectors":
                fetched = labeler.inputs.vectors.fetch(contexts[index].rows)
                products[index] = (fetched @ labeler.of_query[contexts[index].qid]).astype(np.float64)
    made = []
    for one, scores, alike in zip(contexts, products, near, strict=True):
        docids, other, count = one.docids[: one.size], ~one.positive[: one.size], len(one.grades)
        similarity = {how: values[:, other] for how, values in alike.items()}
        candidates = tuple(itertools.compress(docids, other.tolist()))
        made.append(Pool(one.qid, tuple(docids[:count]), candidates, scores[:count], scores[other], similarity))
    return made


def suspicion(pool: Pool, how: str) -> np.ndarray:
    """(R, n) float64: suspicion that a candidate is positive, seen from each positive; -inf for "none".

    rnn and joint: the highest similarity to any positive. As sentence-transformers' mine_hard_negatives: margin = s(q,
    c) - s(q, l), relative-margin = (s(q, c) - s(q, l)) / |s(q, l)|, max-score = s(q, c).

    Raises:
        InputError: unknown filter.
    """
    positives = pool.positive_scores[:, None]
    if how in SIMILAR:
        values: Any = pool.similarity[how].max(axis=0)
    elif how == "max-score":
        values = pool.scores
    elif how == "margin":
        values = pool.scores - positives
    elif how == "relative-margin":
        values = (pool.scores - positives) / np.where(positives != 0, np.abs(positives), 1.0)
    elif how == "none":
        values = -np.inf
    else:
        raise InputError(f"filter {how}: not known; {nearest(how, FILTERS)}")
    return np.broadcast_to(values, (len(pool.positives), len(pool.candidates)))


def threshold_at(several: Sequence[Pool], how: str, rate: float) -> float:
    """The smallest threshold that discards at most this share of all pairs; ties are kept.

    Raises:
        InputError: unknown filter, no pairs.
    """
    values = np.concatenate([np.zeros(0), *(suspicion(pool, how).ravel() for pool in several)])
    if not len(values):
        raise InputError("no query has a candidate beside its positives: there are no negatives to choose from")
    allowed = int(rate * len(values) + 1e-9)
    return -np.inf if allowed >= len(values) else float(np.sort(values)[len(values) - 1 - allowed])


def discarded(pool: Pool, how: str, threshold: float) -> np.ndarray:
    return suspicion(pool, how) > threshold


@dataclass(frozen=True)
class Mined:
    """A query, one of its positives or all, and their negatives."""

    qid: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


@phase("choosing negatives")
def mine(several: Iterable[Pool], threshold: float, params: NegativeParams) -> list[Mined]:
    """Up to `params.negatives` kept candidates of every positive, the first of the run or drawn.

    A draw depends on the seed, the query and the positive. Positives without a candidate are dropped; for
    "labeled-pair" negatives are kept beside each positive of a query, and every query remains.
    """
    mined, together = [], params.form == "labeled-pair"
    for pool in several:
        away = discarded(pool, params.filter, threshold)
        rows = [(pool.positives, away.any(axis=0))] if together else zip(zip(pool.positives), away, strict=True)
        for positives, gone in rows:
            kept = np.flatnonzero(~gone)
            if params.sampling == "random" and len(kept) > params.negatives:
                key = zlib.crc32(f"{pool.qid}\t{positives[0]}".encode())
                drawn = np.random.default_rng([params.seed, key]).choice(kept, params.negatives, replace=False)
                kept = np.sort(drawn)
            if len(kept) or together:
                negatives = tuple(pool.candidates[candidate] for candidate in kept[: params.negatives].tolist())
                mined.append(Mined(pool.qid, positives, negatives))
    return mined


@dataclass(frozen=True)
class Toll:
    """Judged pairs that a filter discards: all, hidden positives, and true negatives."""

    filter: str
    threshold: float
    pairs: int
    discarded: int
    hidden: int
    hidden_discarded: int
    negative: int
    negative_discarded: int


def toll(
    several: Sequence[Pool], how: str, threshold: float, truth: Mapping[tuple[str, str], int], relevant: int = 1
) -> Toll:
    """Discarded pairs of a filter by full judgements; unjudged pairs do not count.

    truth: (query id, docid) → grade.
    """
    counts = np.zeros((3, 2), dtype=np.int64)
    for pool in several:
        away = discarded(pool, how, threshold)
        grades = np.array([truth.get((pool.qid, docid), np.nan) for docid in pool.candidates], dtype=np.float64)
        sides = np.ones(len(grades), dtype=bool), grades >= relevant, grades < relevant
        counts += [(len(away) * side.sum(), away[:, side].sum()) for side in sides]
    return Toll(how, threshold, *counts.ravel().tolist())
