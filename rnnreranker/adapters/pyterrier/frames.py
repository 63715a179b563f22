"""PyTerrier's result frames, reranked by vectors or by a graph, and converted from and to runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.given import array_of
from rnnreranker.parts.vectors import QueryVectors, VectorSource
from rnnreranker.parts.vectors.ids import Ids
from rnnreranker.parts.vectors.mapped import MappedRows
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas

COLUMNS = ("qid", "docno", "score")
VECTORS = ("query_vec", "doc_vec")


def with_queries(frame: pandas.DataFrame, topics: pandas.DataFrame | None = None) -> pandas.DataFrame:
    """The frame with `query` in every row: `+` drops it from the rows that only its right side retrieved.

    topics: further rows with qid and query. InputError: a qid without a query in any row.
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


def run_of(frame: pandas.DataFrame) -> Run:
    """The run of a frame with the columns `COLUMNS`.

    Raises:
        InputError: a missing qid, docno or score, a docno that is repeated for a query.
    """
    for name in COLUMNS:
        if (rows := np.flatnonzero(frame[name].isna())).size:
            row = frame.iloc[int(rows[0])]
            about = ", ".join(f"{other} {row[other]}" for other in ("qid", "docno") if other != name)
            raise InputError(
                f"frame: {name} is missing in {len(rows)} of {len(frame)} rows (first: row {rows[0]}, {about}); "
                "expected one in every row: drop those or fill it in"
            )
    if (twice := frame.duplicated(["qid", "docno"])).any():
        row = frame[twice].iloc[0]
        raise InputError(f"frame: docno {row['docno']} stands twice for query {row['qid']}; expected each once")
    hits: dict[str, dict[str, float]] = {}
    for qid, docno, score in zip(frame["qid"].astype(str), frame["docno"].astype(str), frame["score"], strict=True):
        hits.setdefault(qid, {})[docno] = float(score)
    return Run.from_dict(hits)


def vectors_of(frame: pandas.DataFrame) -> tuple[VectorSource, QueryVectors]:
    """The vectors of the documents and of the queries of a frame with the columns `VECTORS`.

    Raises:
        InputError: vectors of different lengths, NaN or infinite values.
    """
    documents, queries = frame.drop_duplicates("docno"), frame.drop_duplicates("qid")
    made = [
        array_of(list(one[name]), f"frame: {name}") for one, name in ((queries, VECTORS[0]), (documents, VECTORS[1]))
    ]
    matrix = MappedRows([np.ascontiguousarray(made[1], dtype=np.float32)])
    source = VectorSource(Path("frame"), Ids(documents["docno"].astype(str).tolist(), "frame"), matrix)
    return source, QueryVectors(tuple(queries["qid"].astype(str)), made[0].astype(np.float32))


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


def in_order_of(run: Run, frame: pandas.DataFrame) -> pandas.DataFrame:
    """The rows of a frame in the order of a run of them, with its scores and ranks, queries in the order they come."""
    others = [name for name in frame.columns if name not in ("score", "rank")]
    ranked = frame_of(run, frame[["qid"]].drop_duplicates())
    ranked["docno"] = ranked["docno"].astype(frame["docno"].dtype)
    return ranked.merge(frame[others], on=["qid", "docno"], how="left")[[*others, "score", "rank"]]
