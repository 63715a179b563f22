"""The base of rerankers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.command import progress, say
from rnnreranker.base.device import Devices, devices_of
from rnnreranker.base.errors import InputError, brief
from rnnreranker.base.given import count_of, instance_of
from rnnreranker.base.method import Inputs, find, settings_of
from rnnreranker.parts.vectors.exact import all_finite
from rnnreranker.parts.vectors.of_run import check_missing, notice_missing, query_rows, vector_rows
from rnnreranker.parts.vectors.together import notice_mismatch
from rnnreranker.runs.head import choose_head, starts_of, with_new_head

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

Missing = Literal["error", "skip"]


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
    in_run: Any = None  # (n,) float64, of the run as they are: run scores
    vectors: Any = None  # (n, d) float32, finite: vectors
    rows: Any = None  # (n,) int64, of graph or tokens: neighbours, tokens
    texts: Any = None  # n strings: texts

    def __len__(self) -> int:
        return len(self.docids)

    def part(self, part: slice) -> Candidates:
        given = {name: value for name, value in vars(self).items() if value is not None}
        return Candidates(**{name: value[part] for name, value in given.items()})


class Reranker(ABC):
    """Reranks the first `params.context` candidates of every query; without such a setting, all of them.

    Args:
        inputs: what `needs` names, with the same documents in the same rows; a VectorSource stands for
            `Inputs(vectors=it)`.
        params: of the class `Params`, or a mapping of its settings; None = the defaults.
        threads: None = one per core. Results do not depend on it.
        missing: for candidates without vector, graph row or text: "error", or "skip" = rank them below the others.
        device: as in `devices_of`, if the method `takes_device`.

    Raises:
        InputError: another `missing`, parameters of another method, an unusable device.

    A subclass in its own file is a method: it sets `name`, `needs`, `Params` and implements `scores`, or `scores_of`
    for several queries at once.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    Params: ClassVar[type[settings.Params]] = settings.Params
    takes_device: ClassVar[bool] = False
    takes_source: ClassVar[bool] = False  # whether similarities can come from vectors or a graph, see `RnnReranker`
    at_once: ClassVar[int] = 2**18  # values of the vectors that are scored at once, which fit the cache
    rows_at_once: int = 0  # candidates that are scored at once without vectors; 0 = those of one query
    model_setting: ClassVar[str] = ""  # the parameter that names the model, of a method that computes with one

    def __init__(
        self,
        inputs: Inputs | VectorSource,
        params: Any = None,
        *,
        threads: int | None = None,
        missing: Missing = "error",
        device: str | Devices | None = None,
    ) -> None:
        if not isinstance(missing, str) or missing not in ("error", "skip"):
            raise InputError(f"missing={brief(missing)}: expected 'error' or 'skip'")
        if not isinstance(inputs, Inputs) and not hasattr(inputs, "fetch"):
            raise InputError(f"vectors={brief(inputs)}: expected what open_vectors returns, a graph or Inputs")
        if isinstance(params, Mapping):
            params = self.Params.of(params, "params")
        if device is not None and not self.takes_device:
            raise InputError(f"device={device}: {self.name} takes none, it computes on the processor")
        self.inputs = inputs if isinstance(inputs, Inputs) else Inputs(vectors=inputs)
        self.params = settings_of(self, "rerank", params)
        self.threads = None if threads is None else count_of(threads, "threads")
        self.missing = missing
        self.devices = devices_of(device)
        self.prepare()

    def prepare(self) -> None:  # noqa: B027  not every method has something to load
        """Load the method's model; the constructor calls it."""

    def describe(self) -> dict[str, Any]:
        """What scores depend on besides the inputs, for JSON."""
        return {"name": self.name, **self.params.to_dict()}

    def remark(self) -> str:
        """A line about the candidates scored since the last call, or ""."""
        return ""

    @abstractmethod
    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64, finite, larger = better."""

    def alone(self, qid: str, docids: Sequence[str]) -> tuple[Query, Candidates]:
        """A query and candidates outside a run, as arguments of `scores`.

        Raises:
            InputError: the method reads scores of a run; the query or candidates lack an input.
        """
        if self.reads_scores:
            raise InputError(f"rerank {self.name}: reads scores of the run, which these candidates have not")
        inputs: Any = self.inputs
        vector: Any = None
        rows: Any = None
        tokens = inputs.query_tokens.one(qid) if "query tokens" in self.needs else None
        if "query vectors" in self.needs:
            vector = inputs.query_vectors.vectors[self._places[qid]]
        for need in ("vectors", "tokens"):
            if need in self.needs:
                rows = getattr(inputs, need).rows(list(docids))
                if (rows < 0).any():
                    lost = docids[int(np.argmin(rows))]
                    raise InputError(f"query {qid}: {lost} is not in the index; use the run's own index")
        if "texts" in self.needs and (without := [docid for docid in docids if docid not in inputs.texts]):
            raise InputError(
                f"query {qid}: {len(without)} of its {len(docids)} candidates and positives have no text (first: "
                f"{', '.join(without[:3])}); give the run's own index, or {argument('documents')} that have them"
            )
        text = inputs.topics[qid] if "topics" in self.needs else None
        candidates = Candidates(
            np.array(docids, dtype=object),
            vectors=self.vectors.fetch(rows) if "vectors" in self.needs else None,
            rows=rows,
            texts=[inputs.texts[docid] for docid in docids] if "texts" in self.needs else None,
        )
        _check_finite(candidates)
        return Query(qid, text, vector, tokens), candidates

    @cached_property
    def _places(self) -> dict[str, int]:
        return {qid: row for row, qid in enumerate(self.inputs.query_vectors.qids)}

    @property
    def reads_scores(self) -> bool:
        """Whether scores or ranks of the run count."""
        return "run scores" in self.needs

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the scores of the run, as the method uses them."""
        return run.scores

    @property
    def vectors(self) -> VectorSource:
        source: VectorSource = self.inputs.vectors
        return source

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """The run with its first candidates in descending order of new scores, ties by docid; other entries are below.

        Args:
            run: Q queries, any depth.
            query_vectors: (d,) float32 of every query of the run, in any order; None = those of the inputs.

        Raises:
            InputError: a query without text or vector, a candidate without vector or text (missing="error"), other
                dimensions or rows, NaN or infinite vectors or scores.
        """
        from rnnreranker.base.process.threads import one_blas_thread

        texts, vectors = self._topics(run), self._query_vectors(run, query_vectors)
        tokens = self.inputs.query_tokens.of(run.qids) if "query tokens" in self.needs else None
        queries = [
            Query(
                qid,
                None if texts is None else texts[qid],
                None if vectors is None else vectors[number],
                None if tokens is None else tokens.one(qid),
            )
            for number, qid in enumerate(run.qids)
        ]
        rows, usable = self._usable(run)
        notice_missing(run, usable, self.name)
        chosen = choose_head(run, getattr(self.params, "context", len(run.docids)), usable)
        entries, starts = np.flatnonzero(chosen), starts_of(chosen, run.offsets)
        reads = "run scores" in self.needs
        whole = Candidates(
            run.docids_of(entries),
            scores=self.run_scores(run)[chosen].astype(np.float64) if reads else None,
            in_run=run.scores[chosen] if reads else None,
            rows=None if rows is None else rows[run.rows[entries]],
        )
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
        for query, first, last in zip(queries, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if last > first:
                own = candidates.part(slice(first, last))
                if "texts" in self.needs:
                    own = replace(own, texts=[self.inputs.texts[docid] for docid in own.docids.tolist()])
                new[first:last] = self._checked(query.qid, self.scores(query, own), len(own))
        return new

    def _blocks(self, starts: list[int], whole: Candidates) -> Iterator[tuple[int, int, Candidates]]:
        """Ranges of queries, first:last, and their candidates."""
        fetches = "vectors" in self.needs
        ranges = ranges_of(starts, self.at_once // self.vectors.dimension if fetches else self.rows_at_once)
        if not ranges:
            return
        parts = [slice(starts[first], starts[last]) for first, last in ranges]
        longest = max(part.stop - part.start for part in parts)
        buffers = np.empty((2, longest, self.vectors.dimension if fetches else 0), dtype=np.float32)

        def block(number: int) -> Candidates:
            part = whole.part(parts[number])
            if not fetches:
                return part
            buffer = buffers[number % 2, : len(part)]  # not that of the block that is being scored
            return replace(part, vectors=self.vectors.fetch(part.rows, buffer))

        with ThreadPoolExecutor(1, thread_name_prefix="rnnreranker-fetch") as ahead:
            coming = ahead.submit(block, 0)
            for number, (first, last) in enumerate(progress(ranges, unit="chunks", what="rerank")):
                fetched = coming.result()
                if number + 1 < len(ranges):
                    coming = ahead.submit(block, number + 1)
                yield first, last, fetched

    def check(self, run: Run) -> None:
        """Raise InputError if queries or candidates of a run lack vectors or texts."""
        self._topics(run)
        self._usable(run)

    def _topics(self, run: Run) -> Any:
        if "topics" not in self.needs:
            return None
        topics = self.inputs.topics
        if lost := [qid for qid in run if qid not in topics]:
            raise InputError(
                f"{len(lost)} of {len(run)} queries of the run have no text in the topics (first: "
                f"{', '.join(lost[:3])}); give the topics that the run was made from"
            )
        return topics

    def _query_vectors(self, run: Run, given: QueryVectors | None) -> Any:
        """(Q, d) float32 in the order of the run, None if not needed; a notice reports vectors that do not match."""
        if "query vectors" not in self.needs:
            return None
        queries = self.inputs.query_vectors if given is None else given
        rows = query_rows(run, queries, self.vectors.dimension if "vectors" in self.needs else None)
        if "vectors" in self.needs and self.inputs.compared is not queries:
            self.inputs.compared = queries
            notice_mismatch(run, queries, self.vectors)
        return rows

    def _usable(self, run: Run) -> tuple[Any, np.ndarray]:
        """(V,) rows of the run's documents, None if not needed; (V,) bool, usable."""
        from rnnreranker.runs import Run

        rows: Any = None
        instance_of(run, Run, "run")
        usable = np.ones(len(run.docids), dtype=bool)
        if has_rows := [one for one in ("vectors", "neighbours", "tokens") if one in self.needs]:
            source, *others = (getattr(self.inputs, one) for one in has_rows)
            rows = vector_rows(source, run, skip=self.missing == "skip", beside=others[0] if others else None)
            usable &= rows >= 0
        if "texts" in self.needs:
            texts = self.inputs.texts
            usable &= np.fromiter((docid in texts for docid in run.docids), dtype=bool, count=len(usable))
            check_missing(run, usable, "have no text", self.missing == "skip")
        return rows, usable

    def _checked(self, qid: str, scores: Any, count: int) -> np.ndarray:
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != (count,):
            raise InputError(f"rerank {self.name}: query {qid}: scores of shape {values.shape}, expected ({count},)")
        if not np.isfinite(values).all():
            raise InputError(f"rerank {self.name}: query {qid}: NaN or infinite scores; expected finite ones")
        return values


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


def inner_products(query: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """(n,) float64: the inner product of a query (d,) with every row of candidates (n, d)."""
    # einsum, not BLAS: a row's sum does not depend on where the row stands, so equal vectors tie
    products: np.ndarray = np.einsum("nd,d->n", candidates.astype(np.float64), query.astype(np.float64))
    return products


def make_reranker(name: str, inputs: Inputs | VectorSource, params: Any = None, **options: Any) -> Reranker:
    """The reranker of a name; arguments as in `Reranker`; InputError: unknown name."""
    made: Reranker = find("reranker", name)(inputs, params, **options)
    return made
