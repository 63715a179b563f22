"""The Run type."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, count_of
from rnnreranker.runs.columns import Docids, encode
from rnnreranker.runs.ordering import best_first, by_docid, offsets_of, repeated_entry

if TYPE_CHECKING:
    import pyarrow


class Run:
    """The L retrieved entries of Q queries, best first; ties of given values by descending docid, else ascending.

    Attributes:
        qids: Q distinct ids; ids: V distinct docids.
        offsets: (Q+1,) int64; query i owns the entries offsets[i]:offsets[i+1].
        rows: (L,) int32, entry -> row of `docids`.
        scores: (L,) float64, finite, non-increasing within a query.

    >>> run = Run.from_dict({"q1": {"b": 1.0, "a": 1.0, "c": 2.0}})
    >>> run
    Run(1 query, 3 entries)
    >>> run["q1"]
    [('c', 2.0), ('b', 1.0), ('a', 1.0)]
    """

    def __init__(
        self,
        qids: tuple[str, ...],
        offsets: np.ndarray,
        docids: Docids | np.ndarray | pyarrow.Array,
        rows: np.ndarray,
        scores: np.ndarray,
    ) -> None:
        self.qids, self.offsets, self.rows, self.scores = qids, offsets, rows, scores
        self.ids = docids if isinstance(docids, Docids) else Docids(docids)

    @property
    def docids(self) -> np.ndarray:
        """(V,) object array."""
        return self.ids.objects

    def docids_of(self, entries: slice | np.ndarray) -> np.ndarray:
        """(n,) object array: the docids of some entries."""
        return self.ids.of_rows(self.rows[entries])

    @property
    def queries(self) -> np.ndarray:
        """(L,) int64: entry -> query number."""
        return np.repeat(np.arange(len(self.qids)), np.diff(self.offsets))

    @property
    def ranks(self) -> np.ndarray:
        """(L,) int64: entry -> rank within the query, from 1."""
        return np.arange(1, len(self.rows) + 1) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @classmethod
    @phase("reading runs")
    def read(cls, path: str | os.PathLike[str], format: str | None = None) -> Run:
        """The run of a file, plain or .gz.

        Args:
            path: TREC (`qid Q0 docid rank score tag`; ranks are ignored) or MS MARCO (`qid docid rank`; score = 1 /
                rank), with white space between columns and lines in any order. Queries keep the order of their first
                lines; scores equal in float32 are ties, by descending docid, as trec_eval breaks them.
            format: "trec" or "msmarco"; None = by the number of columns.

        Raises:
            InputError: no such file, no lines, or a malformed line: file:line and what is wrong.
        """
        from rnnreranker.runs.reading import read_run

        return read_run(path, format, cls.from_codes)._as_trec_eval()

    def _as_trec_eval(self) -> Run:
        """The run with ties of float32 scores by descending docid; tied scores become their float32 value."""
        with np.errstate(over="ignore"):
            single = self.scores.astype(np.float32)
        queries, backwards = self.queries, self.rows[::-1]
        tied = (single[1:] == single[:-1]) & np.isfinite(single[1:]) & (queries[1:] == queries[:-1])
        if not tied.any():
            return self
        scores = np.where(np.append(tied, False) | np.append(False, tied), single, self.scores)
        rows = backwards[by_docid(tied[::-1], self.ids, backwards)][::-1]
        return Run(self.qids, self.offsets, self.ids, rows, scores)

    def write(self, path: str | os.PathLike[str], tag: str = "rnnreranker", format: str = "trec") -> None:
        """Write a TREC or MS MARCO file, whole or not at all, gzipped if the name ends in .gz.

        TREC scores are lowered just enough to decrease strictly in float32, so tools that sort again by score
        (trec_eval: float32, ties by descending docid) keep our order. Queries without entries have no line.

        Raises:
            InputError: unknown format; a tag or id that is empty or has white space; scores beyond float32; an
                unwritable path.
        """
        from rnnreranker.runs.writing import write_run

        write_run(self, path, tag, format)

    def as_written(self) -> Run:
        """The run that `read` returns for the TREC file of `write`: without ties.

        Raises:
            InputError: scores beyond float32.
        """
        from rnnreranker.runs.writing import written_scores

        return Run(self.qids, self.offsets, self.ids, self.rows, written_scores(self))

    @classmethod
    def from_columns(cls, qids: Sequence[str], docids: Sequence[str], scores: Sequence[float] | np.ndarray) -> Run:
        """A run from three columns of equal length in any order: lists, arrays, or columns of a data frame.

        Queries keep the order of first appearance; ties are as `read` orders them. Integer ids become their digits.

        Raises:
            InputError: unequal lengths, other types, NaN or infinite scores, a docid twice in a query.
        """
        lengths = [len(column) if hasattr(column, "__len__") else "no" for column in (qids, docids, scores)]
        if "no" in lengths or len(set(lengths)) > 1:
            raise InputError("{} qids, {} docids, {} scores: expected equal numbers".format(*lengths))
        names, codes = encode(qids, "qids")
        distinct, rows = encode(docids, "docids")
        return cls.from_codes(names.tolist(), codes, Docids(distinct), rows, _as_scores(scores))._as_trec_eval()

    @classmethod
    def from_dict(cls, entries: Mapping[str, Mapping[str, float]]) -> Run:
        """A run from {qid: {docid: score}}, also of queries without entries; ties are as `read` orders them.

        Integer ids become their digits.

        Raises:
            InputError: other types, an id twice (7 and "7"), NaN or infinite scores.
        """
        if not isinstance(entries, Mapping):
            raise InputError(f"run: got {type(entries).__name__}; expected {{qid: {{docid: score}}}}")
        for qid, scores_of in entries.items():
            if not isinstance(scores_of, Mapping):
                raise InputError(f"query {qid}: got {type(scores_of).__name__}; expected {{docid: score}}")
        qids, _ = encode(list(entries), "qids")
        if len(qids) < len(entries):
            raise InputError("qids: a number and a string are the same id; expected distinct ids")
        codes = np.repeat(np.arange(len(entries)), [len(scores_of) for scores_of in entries.values()])
        distinct, rows = encode([docid for scores_of in entries.values() for docid in scores_of], "docids")
        scores = _as_scores([score for scores_of in entries.values() for score in scores_of.values()])
        return cls.from_codes(qids.tolist(), codes, Docids(distinct), rows, scores)._as_trec_eval()

    @classmethod
    def from_codes(
        cls, qids: Sequence[str], queries: np.ndarray, docids: Docids, rows: np.ndarray, scores: np.ndarray
    ) -> Run:
        """A run of entries in any order.

        qids: Q distinct ids; queries: (L,) entry -> query number; docids: V; rows: (L,) entry -> row of docids; scores:
        (L,) float64.

        Raises:
            InputError: a NaN or infinite score, a docid twice in a query.
        """
        for entry in np.flatnonzero(~np.isfinite(scores))[:1].tolist():
            where = f"query {qids[queries[entry]]}, docid {docids.of_rows(rows[[entry]])[0]}"
            raise InputError(f"{where}: score {scores[entry]}; expected a finite number")
        if (repeated := repeated_entry(queries, rows, len(docids))) is not None:
            first, second = repeated
            where = f"query {qids[queries[second]]}: docid {docids.of_rows(rows[[second]])[0]}"
            raise InputError(f"{where} stands there twice (entries {first} and {second}); expected every docid once")
        return cls.in_order(qids, queries, docids, rows, scores)

    @classmethod
    def in_order(
        cls, qids: Sequence[str], queries: np.ndarray, docids: Docids, rows: np.ndarray, scores: np.ndarray
    ) -> Run:
        """`from_codes` for entries that are known to be sound."""
        rows = rows.astype(np.int32, copy=False)
        step = np.diff(queries)
        if (step < 0).any() or (np.diff(scores)[step == 0] > 0).any():
            order = np.lexsort((-scores, queries))
            queries, rows, scores = queries[order], rows[order], scores[order]
        rows = rows[by_docid((np.diff(queries) == 0) & (np.diff(scores) == 0), docids, rows)]
        return cls(tuple(qids), offsets_of(queries, len(qids)), docids, rows, scores)

    @classmethod
    def from_pairs(cls, qids: tuple[str, ...], docids: Docids, pairs: np.ndarray, scores: np.ndarray, what: str) -> Run:
        """A run of entries by query, with scores rounded to float32, the precision of trec_eval.

        qids: Q; docids: V; pairs: (n,) int64, ascending and distinct, query number × V + row of the docid; scores: (n,)
        float64; what: names a score in messages.

        Raises:
            InputError: a score beyond float32.
        """
        with np.errstate(over="ignore"):
            single = scores.astype(np.float32)
        if not np.isfinite(single).all():
            raise InputError(f"{what} is beyond float32 (3.4e38), which evaluation tools use")
        queries, rows = np.divmod(pairs, max(len(docids), 1))
        order = best_first(queries, single, docids, rows, len(qids))
        return cls(
            qids, offsets_of(queries, len(qids)), docids, rows[order].astype(np.int32), single[order].astype(np.float64)
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{qid: {docid: score}} in the order of the run."""
        return {qid: dict(self[qid]) for qid in self.qids}

    def head(self, depth: int) -> Run:
        """The first `depth` entries of every query; InputError unless depth is an integer >= 1."""
        deeper = np.diff(self.offsets) > count_of(depth, "depth")
        return self.where(self.ranks <= depth) if deeper.any() else self

    def where(self, kept: np.ndarray) -> Run:
        """The run of the entries of an (L,) bool mask; every query stays."""
        offsets = np.append(0, np.cumsum(kept))[self.offsets]
        return Run(self.qids, offsets, self.ids, self.rows[kept], self.scores[kept])

    def of_queries(self, numbers: np.ndarray | Sequence[int] | Sequence[bool]) -> Run:
        """The run of some queries, by their distinct numbers, in that order, or by a (Q,) mask.

        Raises:
            InputError: numbers outside 0..Q-1, or twice; a mask of another length.
        """
        try:
            chosen = np.arange(len(self))[numbers]
        except IndexError as error:
            raise InputError(f"queries: {error}; expected numbers below {len(self)} or as many truth values") from None
        if len(np.unique(chosen)) < len(chosen) or np.min(numbers, initial=0) < 0:
            raise InputError("queries: a number twice, or below 0; expected distinct ones from 0")
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        qids = tuple(self.qids[number] for number in chosen.tolist())
        return Run(qids, offsets, self.ids, self.rows[entries], self.scores[entries])

    def only(self, qids: Iterable[str]) -> Run:
        """The run of those of its queries that are among some, in its order."""
        wanted = set(qids)
        return self.of_queries([qid in wanted for qid in self.qids])

    def ranked(self, qid: str) -> list[str]:
        """The docids of a query, best first."""
        return [docid for docid, _ in self[qid]]

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.qids)

    def __contains__(self, qid: object) -> bool:
        return qid in self._numbers

    def __getitem__(self, qid: str) -> list[tuple[str, float]]:
        query = self._numbers[qid]
        entries = slice(self.offsets[query], self.offsets[query + 1])
        return list(zip(self.docids_of(entries).tolist(), self.scores[entries].tolist(), strict=True))

    def __repr__(self) -> str:
        noun = "query" if len(self) == 1 else "queries"
        entries = "entry" if len(self.rows) == 1 else "entries"
        return f"Run({len(self)} {noun}, {len(self.rows)} {entries})"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {qid: number for number, qid in enumerate(self.qids)}


def _as_scores(scores: Any) -> np.ndarray:
    try:
        given = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores: expected numbers") from None
    if given.ndim != 1:
        raise InputError(f"scores: shape {given.shape}; expected one number for each entry")
    return given
