"""Triplets and n-tuples from pools: which negatives a positive gets, and the files that training reads."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.process.phases import phase
from rnnreranker.labels.negatives.filters import Pool, discarded
from rnnreranker.labels.negatives.params import NegativeParams

SUFFIXES = (".parquet", ".jsonl", ".tsv")


@dataclass(frozen=True)
class Mined:
    """A query, one of its positives, and negatives for them."""

    qid: str
    positive: str
    negatives: tuple[str, ...]


@phase("choosing negatives")
def mine(pools: Iterable[Pool], threshold: float, params: NegativeParams) -> list[Mined]:
    """Up to `params.negatives` candidates for every positive that its filter keeps: the first of the run, or drawn.

    A draw depends on the seed, the query and the positive alone. Positives that no candidate is left for are missing.
    """
    negatives = params.negatives
    mined = []
    for pool in pools:
        away = discarded(pool, params.filter, threshold)
        for row, positive in enumerate(pool.positives):
            kept = np.flatnonzero(~away[row])
            if params.sampling == "random" and len(kept) > negatives:
                key = zlib.crc32(f"{pool.qid}\t{positive}".encode())
                kept = np.sort(np.random.default_rng([params.seed, key]).choice(kept, negatives, replace=False))
            chosen = tuple(pool.candidates[candidate] for candidate in kept[:negatives].tolist())
            if chosen:
                mined.append(Mined(pool.qid, positive, chosen))
    return mined


def rows_of(
    mined: Sequence[Mined], form: Literal["triplet", "n-tuple"], negatives: int
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Column names, and rows of ids: query, positive, then one negative ("triplet") or all of them ("n-tuple").

    Only positives that have all `negatives` make an n-tuple.
    """
    if form == "triplet":
        triplets: list[tuple[str, ...]] = [(one.qid, one.positive, bad) for one in mined for bad in one.negatives]
        return ["anchor", "positive", "negative"], triplets
    names = ["anchor", "positive", *(f"negative_{number}" for number in range(1, negatives + 1))]
    return names, [(one.qid, one.positive, *one.negatives) for one in mined if len(one.negatives) == negatives]


def write_rows(
    path: str | Path,
    names: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    topics: Mapping[str, str],
    texts: Mapping[str, str],
) -> None:
    """Write texts (.parquet, .jsonl: one column a text, as sentence-transformers takes them) or ids (.tsv).

    Raises:
        InputError: another suffix, a query or document without a text.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}")
    if path.suffix == ".tsv":
        with write_atomically(path) as stream:
            stream.write("".join("\t".join(row) + "\n" for row in rows).encode())
        return
    queries = [row[0] for row in rows if row[0] not in topics]
    documents = [docid for row in rows for docid in row[1:] if docid not in texts]
    if queries or documents:
        first = f"query {queries[0]}" if queries else f"document {documents[0]}"
        raise InputError(f"{first}: has no text; give --topics, and an index with texts or --documents, or write .tsv")
    filled = [(topics[row[0]], *(texts[docid] for docid in row[1:])) for row in rows]
    with write_atomically(path) as stream:
        if path.suffix == ".jsonl":
            lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in filled)
            stream.write("".join(lines).encode())
        else:
            import pyarrow
            import pyarrow.parquet as parquet

            columns = [pyarrow.array([row[at] for row in filled], pyarrow.string()) for at in range(len(names))]
            parquet.write_table(pyarrow.table(columns, names=list(names)), stream, compression="zstd")


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
