"""What a reranker is: a run in, a run out; a subclass says how the candidates of one query are scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.command import progress, say
from rnnreranker.base.device import Devices, devices_of
from rnnreranker.base.errors import InputError, brief
from rnnreranker.base.given import count_of, instance_of
from rnnreranker.base.method import Inputs, find
from rnnreranker.parts.vectors.of_run import (
    FetchedTogether,
    check_missing,
    notice_missing,
    query_rows,
    vector_rows,
)
from rnnreranker.parts.vectors.together import notice_mismatch
from rnnreranker.parts.vectors.validity import all_finite
from rnnreranker.runs.head import choose_head, starts_of, with_new_head

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

Missing = Literal["error", "skip"]


@dataclass(frozen=True, eq=False)
class Query:
    """A query; what the `needs` of the reranker do not name is None."""

    qid: str
    text: Any = None  # str: topics
    vector: Any = None  # (d,) float32: query vectors
    tokens: Any = None  # (q, d) float32: query tokens


@dataclass(frozen=True, eq=False)
class Candidates:
    """The n >= 1 candidates of a query that are reranked, in the order of the run.

    What the `needs` of the reranker do not name is None.
    """

    docids: np.ndarray  # (n,) strings
    scores: Any = None  # (n,) float64, of the run: run scores
    ranks: Any = None  # (n,) int64, of the run, from 1: run scores
    vectors: Any = None  # (n, d) float32, finite: vectors
    rows: Any = None  # (n,) int64, of graph or tokens: neighbours, tokens
    texts: Any = None  # n strings: texts

    def __len__(self) -> int:
        return len(self.docids)


class Reranker(ABC):
    """Reranks the first `params.context` candidates of every query; without such a setting, all of them.

    Args:
        inputs: what `needs` names; a VectorSource alone stands for `Inputs(vectors=it)`. `texts` is a mapping from
            docid to text, which may read them when they are asked for. Vectors, `neighbours` and `tokens` beside each
            other have the same documents in the same rows.
        params: of the class `Params`, or a mapping of its settings; None = the defaults.
        threads: worker threads of a method that has several; None = one per core. Results do not depend on it.
        missing: what to do with candidates without vector, row of the graph or text: "error", or "skip" = put them
            below the reranked ones.
        device: as of `devices_of`, of a method that `takes_device`; None = the method's own.

    Raises:
        InputError: `missing` is neither, parameters of another method, a device that the method does not take or that
            is not here.

    A subclass in a file of its own is a method: it sets `name`, `needs`, `Params` and writes `scores`.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    Params: ClassVar[type[settings.Params]] = settings.Params
    takes_device: ClassVar[bool] = False
    takes_source: ClassVar[bool] = False  # whether similarities can come from vectors or a graph, see `RnnReranker`
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
        if params is not None and not isinstance(params, self.Params):
            raise InputError(f"rerank {self.name}: got {type(params).__name__}, expected {self.Params.__name__}")
        if device is not None and not self.takes_device:
            raise InputError(f"device={device}: {self.name} takes none, it computes on the processor")
        self.inputs = inputs if isinstance(inputs, Inputs) else Inputs(vectors=inputs)
        self.params = params if params is not None else self.Params()
        self.threads = None if threads is None else count_of(threads, "threads")
        self.missing = missing
        self.devices = devices_of(device)
        self.prepare()

    def prepare(self) -> None:  # noqa: B027  not every method has something to load
        """Load what the method computes with, such as a model; the constructor calls it, before any work."""

    def describe(self) -> dict[str, Any]:
        """What the scores depend on besides the inputs: name, parameters, and of a model its contents; JSON values."""
        return {"name": self.name, **self.params.to_dict()}

    def remark(self) -> str:
        """One line that a person should know of the candidates scored since it was last asked for; empty = nothing."""
        return ""

    @abstractmethod
    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64, finite, larger = better: the new scores of the candidates of one query."""

    def alone(self, qid: str, docids: Sequence[str]) -> tuple[Query, Candidates]:
        """A query and candidates that stand in no run, as `scores` takes them, with what the inputs have of them.

        Raises:
            InputError: a method that reads scores of the run; a query or candidates without what is needed of them.
        """
        if self.reads_scores:
            raise InputError(f"rerank {self.name}: reads scores of the run, which these candidates have not")
        inputs, vector = self.inputs, None
        rows: Any = None
        if "query vectors" in self.needs:
            vector = inputs.query_vectors.vectors[self._places[qid]]
        for need in ("vectors", "tokens"):
            if need in self.needs:
                rows = getattr(inputs, need).rows(list(docids))
                if (rows < 0).any():
                    lost = docids[int(np.argmin(rows))]
                    raise InputError(f"query {qid}: {lost} is not in the index; use the run's own index")
        texts = inputs.topics if "topics" in self.needs else {qid: None}
        query = Query(qid, texts[qid], vector, inputs.query_tokens.one(qid) if "query tokens" in self.needs else None)
        names = np.array(docids, dtype=object)
        return query, Candidates(
            names,
            vectors=self._vectors_of(rows, names) if "vectors" in self.needs else None,
            rows=rows,
            texts=_texts(qid, docids, inputs.texts) if "texts" in self.needs else None,
        )

    @cached_property
    def _places(self) -> dict[str, int]:
        return {qid: row for row, qid in enumerate(self.inputs.query_vectors.qids)}

    @property
    def reads_scores(self) -> bool:
        """Whether the new scores depend on the ranks or scores of the run."""
        return "run scores" in self.needs

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the scores of the run as the method takes them."""
        return run.scores

    @property
    def vectors(self) -> VectorSource:
        """Where candidate vectors come from, (d,) float32 each."""
        source: VectorSource = self.inputs.vectors
        return source

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """The run with the first candidates of every query in descending order of their new scores, ties by docid.

        Args:
            run: Q queries, any depth.
            query_vectors: a (d,) float32 vector for every query of the run, in any order; None = those of the inputs.

        Returns:
            A run of the same queries and entries; those that were not scored are moved below the others.

        Raises:
            InputError: a query without text or vector, a candidate without vector or text (missing="error"), vectors
                of another dimension than the queries', or in other rows than in the graph, NaN or infinite vectors or
                scores.
        """
        from rnnreranker.base.process.threads import one_blas_thread

        texts, queries = self._topics(run), self._query_vectors(run, query_vectors)
        tokens = self.inputs.query_tokens.of(run.qids) if "query tokens" in self.needs else None
        rows, usable = self._usable(run)
        notice_missing(run, usable, self.name)
        chosen = choose_head(run, getattr(self.params, "context", len(run.docids)), usable)
        entries, starts = np.flatnonzero(chosen), starts_of(chosen, run.offsets)
        reads = "run scores" in self.needs
        ranks = run.ranks[chosen] if reads else None
        scores = self.run_scores(run)[chosen].astype(np.float64) if reads else None
        bounds, new = starts.tolist(), np.empty(len(entries), dtype=np.float64)
        docids = run.docids[run.rows[entries]]
        source_rows: Any = None if rows is None else rows[run.rows[entries]]
        with_rows, with_texts = bool(self.needs & {"neighbours", "tokens"}), "texts" in self.needs
        vectors: FetchedTogether | None = None
        if "vectors" in self.needs:
            vectors = FetchedTogether(
                lambda part: self._vectors_of(source_rows[part], docids[part]), bounds, self.vectors.dimension
            )
        with one_blas_thread():
            for number in progress(np.flatnonzero(np.diff(starts)).tolist(), unit="queries", what="rerank"):
                part, qid = slice(bounds[number], bounds[number + 1]), run.qids[number]
                query = Query(
                    qid,
                    None if texts is None else texts[qid],
                    None if queries is None else queries[number],
                    None if tokens is None else tokens.one(qid),
                )
                own = docids[part]
                candidates = Candidates(
                    own,
                    None if scores is None else scores[part],
                    None if ranks is None else ranks[part],
                    None if vectors is None else vectors.of(number),
                    source_rows[part] if with_rows else None,
                    [self.inputs.texts[docid] for docid in own.tolist()] if with_texts else None,
                )
                new[part] = self._checked(qid, self.scores(query, candidates), len(own))
        if remark := self.remark():
            say(remark)
        return with_new_head(run, chosen, new)

    def check(self, run: Run) -> None:
        """Look, before any work, that queries and candidates of a run have what the method needs of them.

        Raises:
            InputError: how many have no vector or text, and the first three; with missing="skip" where all have none.
        """
        self._topics(run)
        self._usable(run)

    def _topics(self, run: Run) -> Any:
        """The texts of the queries by id; None where they are not needed."""
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
        """(Q, d) float32 in the order of the run; None where they are not needed.

        A notice says what speaks against their belonging to the vectors of the documents.
        """
        if "query vectors" not in self.needs:
            return None
        queries = self.inputs.query_vectors if given is None else given
        rows = query_rows(run, queries, self.vectors.dimension if "vectors" in self.needs else None)
        if "vectors" in self.needs and self.inputs.compared is not queries:
            self.inputs.compared = queries
            notice_mismatch(run, queries, self.vectors)
        return rows

    def _usable(self, run: Run) -> tuple[Any, np.ndarray]:
        """The (V,) rows of the run's documents in what has rows, None where none is needed; (V,) bool, usable."""
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

    def _vectors_of(self, rows: np.ndarray, docids: np.ndarray) -> np.ndarray:
        vectors = self.vectors.fetch(rows)
        if not all_finite(vectors):
            docid = docids[np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0]]
            raise InputError(f"the vector of {docid} has NaN or infinite values; build the index again")
        return vectors

    def _checked(self, qid: str, scores: Any, count: int) -> np.ndarray:
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != (count,):
            raise InputError(f"rerank {self.name}: query {qid}: scores of shape {values.shape}, expected ({count},)")
        if not np.isfinite(values).all():
            raise InputError(f"rerank {self.name}: query {qid}: NaN or infinite scores; expected finite ones")
        return values


def _texts(qid: str, docids: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    if lost := [docid for docid in docids if docid not in texts]:
        raise InputError(
            f"query {qid}: {len(lost)} of its {len(docids)} candidates and positives have no text (first: "
            f"{', '.join(lost[:3])}); give the run's own index, or {argument('documents')} that have them"
        )
    return [texts[docid] for docid in docids]


def inner_products(query: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """(n,) float64: the inner product of a query (d,) with every row of candidates (n, d)."""
    # einsum, not BLAS: a row's sum does not depend on where the row stands, so equal vectors tie
    products: np.ndarray = np.einsum("nd,d->n", candidates.astype(np.float64), query.astype(np.float64))
    return products


def make_reranker(
    name: str,
    inputs: Inputs | VectorSource,
    params: Any = None,
    *,
    threads: int | None = None,
    missing: Missing = "error",
    device: str | Devices | None = None,
) -> Reranker:
    """The reranker of a name, of this package or of another one; the arguments are those of `Reranker`.

    Raises:
        InputError: no such reranker, and what its constructor raises.
    """
    made: Reranker = find("reranker", name)(inputs, params, threads=threads, missing=missing, device=device)
    return made
