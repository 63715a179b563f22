"""An index of ours in PyTerrier: an artifact with a retriever, a reranker and a corpus graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyterrier

from rnnreranker.adapters.pyterrier.frames import COLUMNS, frame_of, in_order_of, run_of, with_queries, with_scores
from rnnreranker.base.checksums import DESCRIPTION
from rnnreranker.base.chosen_method import as_list, choose
from rnnreranker.base.errors import require
from rnnreranker.base.given import count_of
from rnnreranker.parts.neighbours.graph import PART
from rnnreranker.runs import Run
from rnnreranker.search.opened import Index, open_index

if TYPE_CHECKING:
    import pandas

QUERIES = ("qid", "query")
KIND = {"type": "rnnreranker", "format": "index"}  # of the artifact, by which PyTerrier knows it


class RnnIndex(pyterrier.Artifact):
    """An index of `python -m rnnreranker.index`; `pyterrier.Artifact.load(FOLDER)` returns it too.

    path: the folder, or a name for `open_index`, as "pydoc".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(path))
        self.index: Index = open_index(os.fspath(path))

    def retriever(self, retrieve: Any = "auto", rerank: Any = "rnn", hits: int = 1000, **others: Any) -> RnnRetriever:
        return RnnRetriever(self.index, retrieve, rerank, hits, **others)

    def reranker(
        self, rerank: Any = "rnn", *, topics: pandas.DataFrame | None = None, **others: Any
    ) -> RnnIndexReranker:
        return RnnIndexReranker(self.index, rerank, topics=topics, **others)

    def __repr__(self) -> str:
        return f"RnnIndex({self.index.name!r})"

    def corpus_graph(self, k: int | None = None) -> Any:
        """The graph of the index, with k neighbours of a document, for pyterrier_adaptive (GAR) and pyterrier_dr
        (LADR).
        """
        adaptive = require("pyterrier_adaptive", "a corpus graph of PyTerrier", "'rnnreranker[pyterrier]'")
        return adaptive.NpTopKCorpusGraph(Path(str(self.path)) / PART, k)


class RnnRetriever(pyterrier.Transformer):
    """Searches an index of ours: one row a query in, its hits out.

    index: an `Index`, or a name for `open_index`; other arguments as in `Index.search`.
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        retrieve: Any = "auto",
        rerank: Any = "rnn",
        hits: int = 1000,
        **others: Any,
    ) -> None:
        super().__init__()
        self.index = index if isinstance(index, Index) else open_index(os.fspath(index))
        self.asked = {"retrieve": retrieve, "rerank": rerank, "hits": count_of(hits, "hits"), **others}

    def transform_inputs(self) -> list[str]:
        return [*QUERIES]

    def __repr__(self) -> str:
        return _shown("RnnRetriever", self.index, self.asked)

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The hits of every query, with `score` and `rank` (from 0), and the columns of the query; errors as
        `Index.search`.
        """
        pyterrier.validate.query_frame(inp, extra_columns=["query"], context=self)
        topics = _topics(with_queries(inp))
        run = self.index.search(topics, **self.asked) if topics else Run.from_dict({})
        return frame_of(run, inp)


class RnnIndexReranker(pyterrier.Transformer):
    """Reranks any results by an index of ours.

    Args:
        index: an `Index`, or a name for `open_index`.
        rerank, others: as in `Index.rerank`.
        topics: with qid and query, for rows without a query, which `+` leaves.
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        rerank: Any = "rnn",
        *,
        topics: pandas.DataFrame | None = None,
        **others: Any,
    ) -> None:
        super().__init__()
        self.index = index if isinstance(index, Index) else open_index(os.fspath(index))
        self.topics, self.asked = topics, {"rerank": rerank, **others}
        self._first = next((choose("reranker", form, "rerank") for form in as_list(rerank)), None)

    def transform_inputs(self) -> list[str]:
        """The needed columns; no score if the first method reads none."""
        reads = self._first is None or (
            "run scores" in self._first.needs and getattr(self._first.params, "uses_run", True)
        )
        return [*(COLUMNS if reads else COLUMNS[:2]), "query"]

    def __repr__(self) -> str:
        return _shown("RnnIndexReranker", self.index, self.asked)

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The rows in their new order, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError, UnavailableError: as `Index.rerank`, `with_queries` and `with_scores`.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        frame = with_queries(
            with_scores(inp, getattr(getattr(self._first, "params", None), "context", None)), self.topics
        )
        topics, most = _topics(frame), int(frame.groupby("qid").size().max()) if len(frame) else 1
        run = self.index.rerank(run_of(frame), topics=topics, hits=most, **self.asked) if topics else Run.from_dict({})
        return in_order_of(run, frame)


def _shown(kind: str, index: Index, asked: dict[str, Any]) -> str:
    return f"{kind}({', '.join([repr(index.name), *(f'{name}={value!r}' for name, value in asked.items())])})"


def described(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    return dict(KIND) if DESCRIPTION in listing else None


def _topics(frame: pandas.DataFrame) -> dict[str, str]:
    queries = frame.drop_duplicates("qid")
    return dict(zip(queries["qid"].astype(str), queries["query"].astype(str), strict=True))
