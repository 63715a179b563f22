"""Which negatives a positive or a query gets of its pool, and what filters remove and lose."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.process.phases import phase
from rnnreranker.labels.negatives.filters import Pool, discarded
from rnnreranker.labels.negatives.params import NegativeParams


@dataclass(frozen=True)
class Mined:
    """A query, one of its positives, and negatives for them."""

    qid: str
    positive: str
    negatives: tuple[str, ...]


@dataclass(frozen=True)
class MinedQuery:
    """A query, all its positives, and negatives for it."""

    qid: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


@phase("choosing negatives")
def mine(pools: Iterable[Pool], threshold: float, params: NegativeParams) -> list[Mined]:
    """Up to `params.negatives` candidates for every positive that its filter keeps: the first of the run, or drawn.

    A draw depends on the seed, the query and the positive alone. Positives that no candidate is left for are missing.
    """
    mined = []
    for pool in pools:
        away = discarded(pool, params.filter, threshold)
        for row, positive in enumerate(pool.positives):
            if chosen := _chosen(pool, positive, away[row], params):
                mined.append(Mined(pool.qid, positive, chosen))
    return mined


@phase("choosing negatives")
def mine_queries(pools: Iterable[Pool], threshold: float, params: NegativeParams) -> list[MinedQuery]:
    """Up to `params.negatives` candidates for every query that the filter keeps beside each of its positives.

    Queries that no candidate is left for stay, with their positives. One positive alone has the negatives of `mine`.
    """
    mined = []
    for pool in pools:
        away = np.any(discarded(pool, params.filter, threshold), axis=0)
        chosen = _chosen(pool, pool.positives[0], away, params)
        mined.append(MinedQuery(pool.qid, pool.positives, chosen))
    return mined


def _chosen(pool: Pool, positive: str, away: np.ndarray, params: NegativeParams) -> tuple[str, ...]:
    """The negatives among a pool's candidates, of which `away` (n,) says which are none: the first, or drawn."""
    kept = np.flatnonzero(~away)
    if params.sampling == "random" and len(kept) > params.negatives:
        key = zlib.crc32(f"{pool.qid}\t{positive}".encode())
        kept = np.sort(np.random.default_rng([params.seed, key]).choice(kept, params.negatives, replace=False))
    return tuple(pool.candidates[candidate] for candidate in kept[: params.negatives].tolist())


@dataclass(frozen=True)
class Toll:
    """What a filter does by full judgements: judged pairs it discards, of positives hidden from it and of negatives."""

    filter: str
    threshold: float
    pairs: int
    discarded: int
    hidden: int
    hidden_discarded: int
    negative: int
    negative_discarded: int


def toll(
    pools: Sequence[Pool], how: str, threshold: float, truth: Mapping[tuple[str, str], int], relevant: int = 1
) -> Toll:
    """Hidden positives that a filter removes and true negatives that it loses; pairs without a judgement do not count.

    truth: (query id, docid) -> grade, of full judgements.
    """
    pairs = gone = hidden = hidden_gone = negative = negative_gone = 0
    for pool in pools:
        away = discarded(pool, how, threshold)
        pairs, gone = pairs + away.size, gone + int(away.sum())
        grades = [truth.get((pool.qid, docid)) for docid in pool.candidates]
        yes = np.array([grade is not None and grade >= relevant for grade in grades], dtype=bool)
        no = np.array([grade is not None and grade < relevant for grade in grades], dtype=bool)
        hidden, hidden_gone = hidden + len(away) * int(yes.sum()), hidden_gone + int(away[:, yes].sum())
        negative, negative_gone = negative + len(away) * int(no.sum()), negative_gone + int(away[:, no].sum())
    return Toll(how, threshold, pairs, gone, hidden, hidden_gone, negative, negative_gone)
