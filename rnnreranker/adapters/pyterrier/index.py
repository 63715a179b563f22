"""Transformers of PyTerrier: a retriever and a reranker by an index of ours, and rNN over vectors or a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyterrier

from rnnreranker.base.errors import InputError, array_of, count_of, require
from rnnreranker.base.files import DESCRIPTION
from rnnreranker.base.method import as_list, choose
from rnnreranker.index.opening import Index, open_index
from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.parts.neighbours.graph import PART
from rnnreranker.parts.vectors import QueryVectors, VectorSource
from rnnreranker.parts.vectors.ids import Ids
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.hits import params_of
from rnnreranker.runs import Run

COLUMNS = ["qid", "docno", "score"]
VECTORS = ["query_vec", "doc_vec"]


class RnnIndex(pyterrier.Artifact):
    """An index of `python -m rnnreranker.index`; `pyterrier.Artifact.load(FOLDER)` returns it too.

    path: the folder, or a name for `open_index`, as "pydoc".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(path))
        self.index: Index = open_index(os.fspath(path))

    def retriever(self, *given: Any, **others: Any) -> RnnRetriever:
        """A retriever; arguments as in `RnnRetriever`."""
        return RnnRetriever(self.index, *given, **others)

    def reranker(self, *given: Any, **others: Any) -> RnnIndexReranker:
        """A reranker; arguments as in `RnnIndexReranker`."""
        return RnnIndexReranker(self.index, *given, **others)

    def corpus_graph(self, k: int | None = None) -> Any:
        """The graph of the index, with k neighbours of a document, for pyterrier_adaptive (GAR) and pyterrier_dr
        (LADR).
        """
        adaptive = require("pyterrier_adaptive", "a corpus graph of PyTerrier", "'rnnreranker[pyterrier]'")
        return adaptive.NpTopKCorpusGraph(Path(str(self.path)) / PART, k)


class _OfIndex(pyterrier.Transformer):
    """A transformer with an index, an `Index` or a name for `open_index`, and the arguments of its search."""

    def __init__(self, index: Index | str | os.PathLike[str], **asked: Any) -> None:
        super().__init__()
        self.index = index if isinstance(index, Index) else open_index(os.fspath(index))
        self.asked = asked

    def __repr__(self) -> str:
        asked = "".join(f", {name}={value!r}" for name, value in self.asked.items())
        return f"{type(self).__name__}({self.index.name!r}{asked})"


class RnnRetriever(_OfIndex):
    """Searches an index of ours: one row a query in, its hits out; arguments as in `Index.search`."""

    def __init__(
        self, index: Any, retrieve: Any = "auto", rerank: Any = "rnn", hits: int = 1000, **others: Any
    ) -> None:
        super().__init__(index, retrieve=retrieve, rerank=rerank, hits=count_of(hits, "hits"), **others)

    def transform_inputs(self) -> list[str]:
        return ["qid", "query"]

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The hits of every query, with `score` and `rank` (from 0), and the columns of the query; errors as
        `Index.search`.
        """
        pyterrier.validate.query_frame(inp, extra_columns=["query"], context=self)
        topics = _topics(inp)
        return _frame_of(self.index.search(topics, **self.asked) if topics else Run.from_dict({}), inp)


class RnnIndexReranker(_OfIndex):
    """Reranks any results by an index of ours; arguments as in `Index.rerank`."""

    def __init__(self, index: Any, rerank: Any = "rnn", **others: Any) -> None:
        super().__init__(index, rerank=rerank, **others)
        first = next((choose("reranker", form, "rerank") for form in as_list(rerank)), None)
        self._context = getattr(first and first.params, "context", None)
        self._reads = first is None or ("run scores" in first.needs and getattr(first.params, "uses_run", True))

    def transform_inputs(self) -> list[str]:
        """The needed columns; no score if the first method reads none."""
        return [*(COLUMNS if self._reads else COLUMNS[:2]), "query"]

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The rows in their new order, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError, UnavailableError: as `Index.rerank`; a qid without a query, a row without a score.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        frame, topics = _scored(inp, self._context), _topics(inp)
        most = int(frame.groupby("qid").size().max()) if topics else 1
        run = self.index.rerank(_run_of(frame), topics=topics, hits=most, **self.asked) if topics else None
        filled = frame.assign(query=[topics[qid] for qid in frame["qid"].astype(str)])
        return _in_order_of(run or Run.from_dict({}), filled)


class RnnTransformer(pyterrier.Transformer):
    """Reranks results by reciprocal nearest neighbours.

    Follows transformers that add `query_vec` and `doc_vec`, such as those of pyterrier_dr's dense indexes:
    `retriever >> index.vec_loader() >> RnnTransformer()`.

    Args:
        params: rNN parameters, or a mapping; reranks the first `params.context` rows of a query, by score.
        threads: None = one per core.
    """

    def __init__(self, params: RnnParams | Mapping[str, Any] | None = None, *, threads: int | None = None) -> None:
        super().__init__()
        self.params, self.threads = params_of(params), threads

    def transform_inputs(self) -> list[str]:
        """The needed columns; a score only if `params` use it."""
        return [*(COLUMNS if self.params.uses_run else COLUMNS[:2]), *VECTORS]

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The frame in its new order, queries in the order they come, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError: a row without qid, docno or score; vectors of different lengths.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        frame = _scored(inp, self.params.context)
        if not len(frame):
            return _in_order_of(Run.from_dict({}), frame)
        source, queries = _vectors_of(frame)
        reranker = RnnReranker(source, self.params, threads=self.threads)
        return _in_order_of(reranker.rerank(_run_of(frame), queries), frame)


def described(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """What PyTerrier knows an index of ours by."""
    return {"type": "rnnreranker", "format": "index"} if DESCRIPTION in listing else None


def _topics(frame: pandas.DataFrame) -> dict[str, str]:
    """qid → query; `+` drops the query from the rows that only its right side retrieved."""
    known = frame.dropna(subset=["query"]).drop_duplicates("qid")
    topics = dict(zip(known["qid"].astype(str), known["query"].astype(str), strict=True))
    if lost := [qid for qid in frame["qid"].astype(str) if qid not in topics]:
        raise InputError(
            f"frame: no row of qid {lost[0]} has a query, as behind + where its left side retrieved nothing; put the "
            "other side first"
        )
    return topics


def _scored(frame: pandas.DataFrame, context: int | None) -> pandas.DataFrame:
    """The frame with a score in every row: `|` drops them.

    context: number of candidates that are reranked, None = all. InputError: no score, and more candidates than that.
    """
    if "score" in frame.columns:
        return frame
    most = int(frame.groupby("qid").size().max()) if len(frame) else 0
    if context is not None and most > context:
        raise InputError(
            f"frame: no score, as behind |, and a query has {most} candidates, of which {context} take part; give a "
            f"context of {most}, or put a transformer before that scores them"
        )
    return frame.assign(score=0.0)


def _run_of(frame: pandas.DataFrame) -> Run:
    """The run of a frame; InputError: a missing qid, docno or score, a docno that is repeated for a query."""
    lost = frame[frame[COLUMNS].isna().any(axis=1)]
    if len(lost):
        first = lost[COLUMNS].iloc[0].to_dict()
        raise InputError(f"frame: a value is missing in {len(lost)} rows (first: {first}); drop those or fill it in")
    return Run.from_columns(frame["qid"].astype(str).tolist(), frame["docno"].astype(str).tolist(), [*frame["score"]])


def _vectors_of(frame: pandas.DataFrame) -> tuple[VectorSource, QueryVectors]:
    """The vectors of the documents and of the queries; InputError: vectors of different lengths, NaN."""
    documents, queries = frame.drop_duplicates("docno"), frame.drop_duplicates("qid")
    of_queries = array_of([*queries["query_vec"]], "frame: query_vec").astype(np.float32)
    of_documents = np.ascontiguousarray(array_of([*documents["doc_vec"]], "frame: doc_vec"), dtype=np.float32)
    ids = Ids(documents["docno"].astype(str).tolist(), "frame")
    source = VectorSource(Path("frame"), ids, of_documents)
    return source, QueryVectors(tuple(queries["qid"].astype(str)), of_queries)


def _frame_of(run: Run, queries: pandas.DataFrame) -> pandas.DataFrame:
    """The hits of a run, `rank` from 0, with the other columns of a frame of queries, whose qids may be numbers."""
    rows = [
        (qid, docno, score, rank)
        for qid in queries["qid"]
        if str(qid) in run
        for rank, (docno, score) in enumerate(run[str(qid)])
    ]
    hits = pandas.DataFrame(rows, columns=[*COLUMNS, "rank"])
    hits = hits.astype({"qid": queries["qid"].dtype, "docno": object, "score": np.float64, "rank": np.int64})
    return queries.merge(hits, on="qid", how="inner")


def _in_order_of(run: Run, frame: pandas.DataFrame) -> pandas.DataFrame:
    """The rows of a frame in the order of a run of them, with its scores and ranks, queries in the order they come."""
    others = [name for name in frame.columns if name not in ("score", "rank")]
    ranked = _frame_of(run, frame[["qid"]].drop_duplicates())
    ranked["docno"] = ranked["docno"].map(dict(zip(frame["docno"].astype(str), frame["docno"], strict=True)))
    ranked = ranked.astype({"docno": frame["docno"].dtype})  # also of an empty frame
    return ranked.merge(frame[others], on=["qid", "docno"], how="left")[[*others, "score", "rank"]]
