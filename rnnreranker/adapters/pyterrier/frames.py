"""PyTerrier's result frames, reranked by vectors or by a graph, and converted from and to runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.graph import graph_similarity
from rnnreranker.runs import Run
from rnnreranker.runs.head import order_by_score, reordered, scores_of_use

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.neighbours import NeighbourGraph

COLUMNS = ("qid", "docno", "score")
VECTORS = ("query_vec", "doc_vec")
BATCH_BYTES = 32 * 2**20  # of candidate vectors stacked at a time


class FrameReranker:
    """Reranks frames for `RnnTransformer`, with the same arguments."""

    def __init__(self, params: RnnParams, graph: NeighbourGraph | None, threads: int | None) -> None:
        self.params = params
        self.graph = graph
        self.threads = threads

    def reranked(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """The frame in its new order, queries in the order they come, with new `score` and `rank` (from 0).

        Args:
            frame: with the columns `COLUMNS` and, without a graph, `VECTORS`; others are kept.

        Raises:
            InputError: a missing qid, docno or score, a docno that is repeated or not in the graph, vectors of
                different
                lengths or not finite.
        """
        if not len(frame):
            return frame.assign(rank=np.empty(0, dtype=np.int64))
        _refuse_missing(frame)
        if frame.duplicated(["qid", "docno"]).any():
            row = frame[frame.duplicated(["qid", "docno"])].iloc[0]
            raise InputError(f"frame: docno {row['docno']} stands twice for query {row['qid']}; expected each once")
        scores, docnos = frame["score"].to_numpy(np.float64), frame["docno"].astype(str).to_numpy(object)
        groups = [np.asarray(rows) for rows in frame.groupby("qid", sort=False).indices.values()]
        groups = [rows[order_by_score(scores[rows], docnos[rows])] for rows in groups]
        groups.sort(key=lambda rows: int(rows.min()))  # in the order in which queries come
        in_groups = np.concatenate(groups)
        offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in groups])])
        ranks = np.concatenate([np.arange(len(rows)) for rows in groups])
        chosen = ranks < self.params.context
        similarities = self._similarities if self.graph is None else self._from_graph
        known = scores[in_groups]
        if self.params.uses_run and self.params.run_weight:
            known = scores_of_use(known, offsets)
        similar = np.concatenate(similarities(frame, groups, known))
        order, new = reordered(offsets, docnos[in_groups[chosen]], scores[in_groups], chosen, similar)
        return frame.iloc[in_groups[order]].reset_index(drop=True).assign(score=new, rank=ranks)

    def _similarities(self, frame: pandas.DataFrame, groups: list[np.ndarray], scores: np.ndarray) -> list[np.ndarray]:
        """(n,) float64 for each group: s* of its first rows; scores: of the rows of all groups, one after the other."""
        starts = np.cumsum([0, *(len(rows) for rows in groups)])
        queries, documents = frame["query_vec"].to_numpy(object), frame["doc_vec"].to_numpy(object)
        dimension = int(np.size(queries[0]))
        widest = max(min(len(rows), self.params.context) for rows in groups)
        at_once = max(1, BATCH_BYTES // (4 * dimension * widest))
        similar_of_groups: list[np.ndarray] = []
        for first in range(0, len(groups), at_once):
            part = [rows[: self.params.context] for rows in groups[first : first + at_once]]
            lengths = np.array([len(rows) for rows in part])
            base = np.zeros((len(part), int(lengths.max())))
            candidates = np.zeros((len(part), int(lengths.max()), dimension), dtype=np.float32)
            probes = np.empty((len(part), dimension), dtype=np.float32)
            for query, rows in enumerate(part):
                probes[query] = _vector(queries[rows[0]], dimension, "query_vec")
                base[query, : len(rows)] = scores[starts[first + query] :][: len(rows)]
                for column, row in enumerate(rows.tolist()):
                    candidates[query, column] = _vector(documents[row], dimension, "doc_vec")
            similar = rnn_similarity(probes, candidates, self.params, base=base, lengths=lengths, threads=self.threads)
            similar_of_groups += [
                row[:length].astype(np.float64) for row, length in zip(similar, lengths.tolist(), strict=True)
            ]
        return similar_of_groups

    def _from_graph(self, frame: pandas.DataFrame, groups: list[np.ndarray], scores: np.ndarray) -> list[np.ndarray]:
        """As `_similarities`, from the graph."""
        assert self.graph is not None
        starts = np.cumsum([0, *(len(rows) for rows in groups)])
        part = [rows[: self.params.context] for rows in groups]
        lengths = np.array([len(rows) for rows in part])
        docnos = frame["docno"].astype(str).to_numpy(object)
        known, base = np.zeros((2, len(part), int(lengths.max())))
        for query, rows in enumerate(part):
            graph_rows = self.graph.rows(docnos[rows].tolist())
            if (graph_rows < 0).any():
                lost = docnos[rows[np.flatnonzero(graph_rows < 0)[0]]]
                raise InputError(f"frame: docno {lost} is not in the graph {self.graph.path}; give that of its index")
            known[query, : len(rows)], base[query, : len(rows)] = graph_rows, scores[starts[query] :][: len(rows)]
        graph, at = self.graph, known.astype(np.int64)
        graph.fetch(np.unique(at))
        similar = graph_similarity(
            graph.edges, graph.weights, at, self.params, base=base, lengths=lengths, threads=self.threads
        )
        return [row[:length].astype(np.float64) for row, length in zip(similar, lengths.tolist(), strict=True)]


def _refuse_missing(frame: pandas.DataFrame) -> None:
    """Raises InputError for a row without query, document or score."""
    for name in ("qid", "docno", "score"):
        if (rows := np.flatnonzero(frame[name].isna())).size:
            row = frame.iloc[int(rows[0])]
            about = ", ".join(f"{other} {row[other]}" for other in ("qid", "docno") if other != name)
            raise InputError(
                f"frame: {name} is missing in {len(rows)} of {len(frame)} rows (first: row {rows[0]}, {about}); "
                "expected one in every row: drop those or fill it in"
            )


def _vector(value: Any, dimension: int, column: str) -> np.ndarray:
    vector = np.asarray(value, dtype=np.float32)
    if vector.shape != (dimension,):
        raise InputError(f"frame: a {column} has shape {vector.shape}; expected ({dimension},) as the first query_vec")
    return vector


def with_queries(frame: pandas.DataFrame, topics: pandas.DataFrame | None = None) -> pandas.DataFrame:
    """The frame with `query` in every row: `+` drops it from the rows that only its right side retrieved.

    topics: further rows with qid and query.

    Raises:
        InputError: a qid without a query in any row.
    """
    import pandas

    rows = frame if topics is None else pandas.concat([frame[["qid", "query"]], topics[["qid", "query"]]])
    known = rows.dropna(subset=["query"]).drop_duplicates("qid")
    texts = dict(zip(known["qid"].astype(str), known["query"].astype(str), strict=True))
    queries: list[Any] = [texts.get(qid) for qid in frame["qid"].astype(str)]
    filled = frame.assign(query=queries)
    if filled["query"].isna().any():
        qid = filled["qid"][filled["query"].isna()].iloc[0]
        raise InputError(
            f"frame: no row of qid {qid} has a query, as behind + where its left side retrieved nothing; put the other "
            "side first, or give topics= to the reranker"
        )
    return filled


def with_scores(frame: pandas.DataFrame, context: int | None) -> pandas.DataFrame:
    """The frame with a score in every row: `|` drops them.

    context: number of candidates that are reranked; None = all.

    Raises:
        InputError: no score, and a query has more candidates than the context.
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


def run_of(frame: pandas.DataFrame) -> Run:
    """The run of a frame with the columns `COLUMNS`.

    Raises:
        InputError: missing values or repeated docnos, as `FrameReranker.reranked`.
    """
    _refuse_missing(frame)
    if frame.duplicated(["qid", "docno"]).any():
        row = frame[frame.duplicated(["qid", "docno"])].iloc[0]
        raise InputError(f"frame: docno {row['docno']} stands twice for query {row['qid']}; expected each once")
    columns = {name: frame[name].astype(str) for name in ("qid", "docno")}
    hits: dict[str, dict[str, float]] = {}
    for qid, docno, score in zip(columns["qid"], columns["docno"], frame["score"], strict=True):
        hits.setdefault(qid, {})[docno] = float(score)
    return Run.from_dict(hits)


def frame_of(run: Run, queries: pandas.DataFrame) -> pandas.DataFrame:
    """The hits of a run as a frame, `rank` from 0, with the other columns of a frame of queries.

    queries: a row a query; its qids may be numbers.
    """
    import pandas

    known = {str(qid): qid for qid in queries["qid"]} if len(run) else {}
    rows = [
        (known[qid], docno, score, rank) for qid in known if qid in run for rank, (docno, score) in enumerate(run[qid])
    ]
    hits = pandas.DataFrame(rows, columns=["qid", "docno", "score", "rank"])
    hits = hits.astype({"qid": queries["qid"].dtype, "docno": object, "score": np.float64, "rank": np.int64})
    return queries.merge(hits, on="qid", how="inner")
