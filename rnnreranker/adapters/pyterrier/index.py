"""An index of ours in PyTerrier: an artifact with a retriever, a reranker and a corpus graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyterrier

from rnnreranker.adapters.pyterrier.frames import COLUMNS, frame_of, run_of
from rnnreranker.base.errors import require
from rnnreranker.base.files.checksums import DESCRIPTION
from rnnreranker.parts.neighbours.graph import PART
from rnnreranker.runs import Run
from rnnreranker.search.opened import Index, open_index

if TYPE_CHECKING:
    import pandas

QUERIES = ("qid", "query")
KIND = {"type": "rnnreranker", "format": "index"}  # of the artifact, by which PyTerrier knows it


class RnnIndex(pyterrier.Artifact):
    """An index that `python -m rnnreranker.index` made; also what `pyterrier.Artifact.load(FOLDER)` gives.

    Args:
        path: the folder, or a name as of `open_index`, as "pydoc".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(path))
        self.index: Index = open_index(os.fspath(path))

    def retriever(self, retrieve: Any = "auto", rerank: Any = "rnn", hits: int = 1000) -> RnnRetriever:
        """A transformer that searches the index."""
        return RnnRetriever(self.index, retrieve, rerank, hits)

    def reranker(self, rerank: Any = "rnn") -> RnnIndexReranker:
        """A transformer that reranks any results by what the index has of their documents."""
        return RnnIndexReranker(self.index, rerank)

    def corpus_graph(self, k: int | None = None) -> Any:
        """The graph of the index, with k neighbours of a document, for GAR of pyterrier_adaptive, LADR of pyterrier_dr.

        Raises:
            MissingDependencyError: pyterrier_adaptive is not installed.
        """
        adaptive = require("pyterrier_adaptive", "a corpus graph of PyTerrier", "'rnnreranker[pyterrier]'")
        return adaptive.NpTopKCorpusGraph(Path(str(self.path)) / PART, k)


class RnnRetriever(pyterrier.Transformer):
    """Searches an index of ours: one row a query in, its hits out.

    Args:
        index: of `open_index`, or what that takes.
        retrieve, rerank, hits: as of `Index.search`.
    """

    def __init__(
        self, index: Index | str | os.PathLike[str], retrieve: Any = "auto", rerank: Any = "rnn", hits: int = 1000
    ) -> None:
        super().__init__()
        self.index = index if isinstance(index, Index) else open_index(os.fspath(index))
        self.retrieve, self.rerank, self.hits = retrieve, rerank, hits

    def transform_inputs(self) -> list[str]:
        """The columns that are needed."""
        return [*QUERIES]

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The hits of every query, with `score` and `rank` (from 0), and the columns that the query has.

        Raises:
            pyterrier.validate.InputValidationError: no qid or query, or rows that are of documents.
            InputError, UnavailableError: as `Index.search`.
        """
        pyterrier.validate.query_frame(inp, extra_columns=["query"], context=self)
        topics = _topics(inp)
        run = self.index.search(topics, self.retrieve, self.rerank, self.hits) if topics else Run.from_dict({})
        return frame_of(run, inp)


class RnnIndexReranker(pyterrier.Transformer):
    """Reranks any results by what an index of ours has of their documents.

    Args:
        index: of `open_index`, or what that takes; rerank: a written form or several, as of `Index.rerank`.
    """

    def __init__(self, index: Index | str | os.PathLike[str], rerank: Any = "rnn") -> None:
        super().__init__()
        self.index = index if isinstance(index, Index) else open_index(os.fspath(index))
        self.rerank = rerank

    def transform_inputs(self) -> list[str]:
        """The columns that are needed."""
        return [*COLUMNS, "query"]

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The rows in their new order, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError, UnavailableError: as `Index.rerank`.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        others = [name for name in inp.columns if name not in ("score", "rank")]
        queries = inp[["qid"]].drop_duplicates()
        topics = _topics(inp)
        run = self.index.rerank(run_of(inp), self.rerank, topics) if topics else Run.from_dict({})
        ranked = frame_of(run, queries)
        ranked["docno"] = ranked["docno"].astype(inp["docno"].dtype)
        return ranked.merge(inp[others], on=["qid", "docno"], how="left")[[*others, "score", "rank"]]


def described(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """What PyTerrier is told of a folder: that it is an index of ours, or None."""
    return dict(KIND) if DESCRIPTION in listing else None


def _topics(frame: pandas.DataFrame) -> dict[str, str]:
    queries = frame.drop_duplicates("qid")
    return dict(zip(queries["qid"].astype(str), queries["query"].astype(str), strict=True))
