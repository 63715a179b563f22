"""The columns of a run, and ids and scores in any order brought into them: encoded to integers, checked, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.runs.arrow import as_numpy, strings

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("trec", "msmarco")


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """For Q queries the L retrieved entries, best first; ties stand in ascending order of docid.

    Attributes:
        qids: Q distinct query ids.
        offsets: (Q+1,) int64; query i owns the entries offsets[i]:offsets[i+1].
        docids: (V,) object array of the distinct docids.
        rows: (L,) int32, entry -> row of `docids`.
        scores: (L,) float64, finite, non-increasing within a query.
    """

    qids: tuple[str, ...]
    offsets: np.ndarray
    docids: np.ndarray
    rows: np.ndarray
    scores: np.ndarray

    @property
    def queries(self) -> np.ndarray:
        """(L,) int64: entry -> number of its query."""
        return np.repeat(np.arange(len(self.qids)), np.diff(self.offsets))

    @property
    def ranks(self) -> np.ndarray:
        """(L,) int64: entry -> its rank within the query, from 1."""
        return np.arange(1, len(self.rows) + 1) - np.repeat(self.offsets[:-1], np.diff(self.offsets))


class RepeatedEntryError(InputError):
    """A docid stands twice in one query: `first` and `second` are the numbers of the two entries, from 0."""

    def __init__(self, qid: str, docid: str, first: int, second: int) -> None:
        super().__init__(
            f"query {qid}: docid {docid} stands there twice (entries {first} and {second}); expected every docid once"
        )
        self.qid, self.docid, self.first, self.second = qid, docid, first, second


def encode(names: Sequence[str] | np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct names (object array, in order of first appearance) and the number of each entry's name (int32).

    Raises:
        InputError: a name that is no string.
    """
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{what}: {name!r} is of type {type(name).__name__}; expected strings")
    codes: dict[str, int] = {}
    rows = np.fromiter((codes.setdefault(name, len(codes)) for name in names), dtype=np.int32, count=len(names))
    return np.array(list(codes), dtype=object), rows


def dictionary_of(column: pyarrow.Array | pyarrow.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """`encode` for a column of strings that Arrow holds, dictionary-encoded or not."""
    names, codes = numbered(column)
    highest = np.maximum.accumulate(codes)
    if len(codes) and codes[0] == 0 and highest[-1] == len(names) - 1 and (np.diff(highest) <= 1).all():
        return names, codes  # numbered as they appear
    first = np.full(len(names), len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal codes the last assignment stays: the first entry
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
    row_of = np.empty(len(names), dtype=np.int32)
    row_of[order] = np.arange(len(order))
    return names[order], row_of[codes]


def numbered(column: pyarrow.Array | pyarrow.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct names of a column of strings (object array) as Arrow has them, and the number of each entry, int32.

    Arrow numbers names as they appear; a dictionary that a column came with may have another order, and others names.
    """
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    names = column.dictionary.to_numpy(zero_copy_only=False)
    return names, column.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)


def from_codes(
    qids: tuple[str, ...], queries: np.ndarray, docids: np.ndarray, rows: np.ndarray, scores: np.ndarray
) -> Columns:
    """The columns of entries in any order.

    Args:
        qids: Q distinct query ids, in the order they are to have.
        queries: (L,) entry -> query number.
        docids: (V,) distinct docids; rows: (L,) entry -> row of docids; scores: (L,) float64.

    Raises:
        InputError: a NaN or infinite score.
        RepeatedEntryError: a docid twice in a query.
    """
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        entry = wrong[0]
        where = f"query {qids[queries[entry]]}, docid {docids[rows[entry]]}"
        raise InputError(f"{where}: score {scores[entry]}; expected a finite number")
    _check_repeated(qids, queries, docids, rows)
    order = _order(queries, docids, rows, scores)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(queries, minlength=len(qids)))]).astype(np.int64)
    rows = rows.astype(np.int32, copy=False)
    if order is not None:
        rows, scores = rows[order], scores[order]
    return Columns(qids, offsets, docids, rows, scores)


def _check_repeated(qids: tuple[str, ...], queries: np.ndarray, docids: np.ndarray, rows: np.ndarray) -> None:
    pairs = queries.astype(np.int64) * max(len(docids), 1) + rows
    pairs.sort()
    if not (pairs[1:] == pairs[:-1]).any():
        return
    pairs = queries.astype(np.int64) * max(len(docids), 1) + rows
    order = np.argsort(pairs, kind="stable")
    same = np.flatnonzero(pairs[order[1:]] == pairs[order[:-1]])
    repeated = same[np.argmin(order[same + 1])]  # the pair that is completed first
    first, second = int(order[repeated]), int(order[repeated + 1])
    raise RepeatedEntryError(qids[queries[second]], docids[rows[second]], first, second)


def _order(queries: np.ndarray, docids: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> np.ndarray | None:
    """The entries by query, descending score, ascending docid; None where they stand so already."""
    step = np.diff(queries)
    within = step == 0
    falls = np.diff(scores)
    if (step < 0).any() or (falls[within] > 0).any():
        return np.lexsort((_in_order(docids)[rows], -scores, queries))
    tied = within & (falls == 0)
    if not tied.any():
        return None  # docids need no comparison
    among = np.zeros(len(rows), dtype=bool)  # the entries of tied stretches
    among[1:] = tied
    among[:-1] |= tied
    entries = np.flatnonzero(among)
    stretches = np.cumsum(np.concatenate([[True], ~tied]))[entries]
    known, codes = np.unique(rows[entries], return_inverse=True)
    order = np.lexsort((_in_order(docids[known])[codes], stretches))
    if np.array_equal(order, np.arange(len(order))):
        return None
    entries_in_order = np.arange(len(rows))
    entries_in_order[entries] = entries[order]
    return entries_in_order


def _in_order(names: np.ndarray) -> np.ndarray:
    """(V,) int32: the rank of each of V distinct names among them in ascending order of code points."""
    import pyarrow.compute

    ranks = np.empty(len(names), dtype=np.int32)
    in_order = pyarrow.compute.sort_indices(strings(names))  # bytes: code point order
    ranks[as_numpy(in_order)] = np.arange(len(names))
    return ranks
