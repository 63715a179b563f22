"""What an objective depends on, as short names: trials in a storage are gone on from with the same alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.files import fingerprint

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


def of_run(run: Run) -> str:
    """16 hexadecimal digits that name queries, candidates and scores."""
    docids = run.docids[run.rows].tolist()
    return fingerprint(list(run.qids), run.offsets.astype("<i8").tobytes(), docids, run.scores.astype("<f8").tobytes())


def of_queries(queries: QueryVectors) -> str:
    """16 hexadecimal digits that name query ids and vectors."""
    vectors = np.ascontiguousarray(queries.vectors, dtype="<f4")
    return fingerprint(list(queries.qids), list(vectors.shape), vectors.tobytes())


def of_qrels(qrels: pandas.DataFrame) -> str:
    """16 hexadecimal digits that name judgements, in whatever order they stand."""
    return fingerprint(sorted(map(list, qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist())))
