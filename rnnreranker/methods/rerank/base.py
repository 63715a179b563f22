"""The base of rerankers."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import progress, say
from rnnreranker.base.errors import InputError, argument
from rnnreranker.methods.base import SearchMethod
from rnnreranker.parts.vectors.exact import all_finite
from rnnreranker.runs.head import choose_head, starts_of, with_new_head

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class ContextParams(settings.Params):
    """The setting of methods whose scores are cheap."""

    context: int = settings.context_setting(1000)


@dataclass(frozen=True, eq=False)
class Query:
    """A query; fields outside the reranker's `needs` are None."""

    qid: str
    text: Any = None  # str: topics
    vector: Any = None  # (d,) float32: query vectors
    tokens: Any = None  # (q, d) float32: query tokens


@dataclass(frozen=True, eq=False)
class Candidates:
    """The n >= 1 candidates of a query, in the order of the run; fields outside the reranker's `needs` are None."""

    docids: np.ndarray  # (n,) strings
    scores: Any = None  # (n,) float64, see `Reranker.run_scores`: run scores
    vectors: Any = None  # (n, d) float32, finite: vectors
    rows: Any = None  # (n,) int64, of vectors, graph or tokens
    texts: Any = None  # n strings: texts

    def __len__(self) -> int:
        return len(self.docids)

    def part(self, part: slice) -> Candidates:
        given = {name: value for name, value in vars(self).items() if value is not None}
        return Candidates(**{name: value[part] for name, value in given.items()})


class Reranker(SearchMethod):
    """Reranks the first `params.context` candidates of every query; without such a setting, all of them.

    Arguments and errors as in `SearchMethod`. A subclass in its own file is a method: it sets `name`, `needs`, `Params`
    and implements `scores`, or `scores_of` for several queries at once.
    """

    kind = "rerank"
    takes_source: ClassVar[bool] = False  # whether similarities can come from vectors or a graph, see `RnnReranker`
    at_once: ClassVar[int] = 2**18  # values of the vectors that are scored at once, which fit the cache
    rows_at_once: int = 0  # candidates that are scored at once without vectors; 0 = those of one query
    model_setting: ClassVar[str] = ""  # the parameter that names the model, of a method that computes with one

    def describe(self) -> dict[str, Any]:
        """What scores depend on besides the inputs, for JSON."""
        return {"name": self.name, **self.params.to_dict()}

    def remark(self) -> str:
        """A line about the candidates scored since the last call, or ""."""
        return ""

    @abstractmethod
    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64, finite, larger = better."""

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the scores of the run, as the method uses them."""
        return run.scores

    def alone(self, qid: str, docids: Sequence[str]) -> tuple[Query, Candidates]:
        """A query and candidates outside a run, as arguments of `scores`, of a method that reads no scores of a run.

        Raises:
            InputError: the query or candidates lack an input.
        """
        inputs, rows = self.inputs, None
        for need in self.needs & {"vectors", "tokens"}:
            rows = getattr(inputs, need).rows(list(docids))
            if (rows < 0).any():
                lost = docids[int(np.argmin(rows))]
                raise InputError(f"query {qid}: {lost} is not in the index; use the run's own index")
        if "texts" in self.needs and (without := [docid for docid in docids if docid not in inputs.texts]):
            raise InputError(
                f"query {qid}: {len(without)} of its {len(docids)} candidates and positives have no text (first: "
                f"{', '.join(without[:3])}); give the run's own index, or {argument('documents')} that have them"
            )
        vector = inputs.query_vectors.vectors[self._row_of[qid]] if "query vectors" in self.needs else None
        candidates = self._filled(Candidates(np.array(docids, dtype=object), rows=rows))
        _check_finite(candidates)
        return self._query(qid, vector), candidates

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {qid: row for row, qid in enumerate(self.inputs.query_vectors.qids)}

    def _query(self, qid: str, vector: Any) -> Query:
        text = self.inputs.topics[qid] if "topics" in self.needs else None
        tokens = self.inputs.query_tokens.one(qid) if "query tokens" in self.needs else None
        return Query(qid, text, vector, tokens)

    def _filled(self, candidates: Candidates, buffer: np.ndarray | None = None) -> Candidates:
        """Candidates with their vectors and texts."""
        texts = self.inputs.texts if "texts" in self.needs else None
        return replace(
            candidates,
            vectors=self.vectors.fetch(candidates.rows, buffer) if "vectors" in self.needs else None,
            texts=None if texts is None else [texts[docid] for docid in candidates.docids.tolist()],
        )

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """The run with its first candidates in descending order of new scores, ties by docid; other entries are below.

        Args:
            run: Q queries, any depth.
            query_vectors: (d,) float32 of every query of the run, in any order; None = those of the inputs.

        Raises:
            InputError: a query without text or vector, a candidate without vector or text (missing="error"), other
                dimensions or rows, NaN or infinite vectors or scores.
        """
        from rnnreranker.base.jobs import one_blas_thread

        rows = self.rows_of(run)
        vectors = self.vectors_of(run, query_vectors)
        queries = [self._query(qid, vector) for qid, vector in zip(run.qids, vectors, strict=True)]
        chosen = choose_head(run, getattr(self.params, "context", len(run.docids)), rows >= 0)
        entries, starts = np.flatnonzero(chosen), starts_of(chosen, run.offsets)
        scores = self.run_scores(run)[chosen].astype(np.float64) if "run scores" in self.needs else None
        whole = Candidates(run.docids_of(entries), scores, rows=rows[run.rows[entries]])
        new = np.empty(len(entries))
        with one_blas_thread():
            for first, last, block in self._blocks(starts.tolist(), whole):
                part, bounds = slice(starts[first], starts[last]), starts[first : last + 1] - starts[first]
                try:
                    new[part] = self.scores_of(queries[first:last], block, bounds)
                except InputError:  # it does not say which docid
                    _check_finite(block)
                    raise
        if remark := self.remark():
            say(remark)
        return with_new_head(run, chosen, new)

    def scores_of(self, queries: Sequence[Query], candidates: Candidates, bounds: np.ndarray) -> np.ndarray:
        """(n,) float64: the new scores of the n candidates of Q queries; bounds: (Q + 1,), where candidates of queries
        begin.
        """
        _check_finite(candidates)
        new = np.empty(len(candidates))
        for query, (first, last) in zip(queries, itertools.pairwise(bounds.tolist()), strict=True):
            if last > first:
                scores = np.asarray(self.scores(query, candidates.part(slice(first, last))), dtype=np.float64)
                if scores.shape != (last - first,) or not np.isfinite(scores).all():
                    raise InputError(
                        f"rerank {self.name}: query {query.qid}: scores of shape {scores.shape}, or NaN or infinite "
                        f"ones; expected ({last - first},) finite ones"
                    )
                new[first:last] = scores
        return new

    def _blocks(self, starts: list[int], whole: Candidates) -> Iterator[tuple[int, int, Candidates]]:
        """Ranges of queries, first:last, and their candidates; those of the next range are fetched meanwhile."""
        width = self.vectors.dimension if "vectors" in self.needs else 0
        ranges = ranges_of(starts, self.at_once // width if width else self.rows_at_once)
        longest = max((starts[last] - starts[first] for first, last in ranges), default=0)
        buffers = itertools.cycle(np.empty((2, longest, width), dtype=np.float32))  # one for the block being scored

        def block(first: int, last: int) -> Candidates:
            part = whole.part(slice(starts[first], starts[last]))
            return self._filled(part, next(buffers)[: len(part)])

        with ThreadPoolExecutor(1, thread_name_prefix="rnnreranker-fetch") as ahead:
            submitted = (ahead.submit(block, *one) for one in ranges)
            coming: Any = next(submitted, None)
            for first, last in progress(ranges, unit="chunks", what="rerank"):
                fetched, coming = coming.result(), next(submitted, None)
                yield first, last, fetched


def ranges_of(bounds: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Ranges of queries, first:last, with at most `most` entries together, or one longer query.

    bounds: query i owns the entries bounds[i]:bounds[i + 1].

    >>> ranges_of([0, 5, 7, 9], 8), ranges_of([0, 5, 7, 9], 0)
    ([(0, 2), (2, 3)], [(0, 1), (1, 2), (2, 3)])
    """
    ranges, first = [], 0
    while first < len(bounds) - 1:
        last = max(first + 1, bisect_right(bounds, bounds[first] + most, lo=first) - 1)
        ranges.append((first, last))
        first = last
    return ranges


def _check_finite(candidates: Candidates) -> None:
    """Raise InputError with the docid of the first NaN or infinite vector."""
    if candidates.vectors is not None and not all_finite(candidates.vectors):
        docid = candidates.docids[np.flatnonzero(~np.isfinite(candidates.vectors).all(axis=1))[0]]
        raise InputError(f"the vector of {docid} has NaN or infinite values; build the index again")
