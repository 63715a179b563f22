"""Query vectors from files: a `.npy` matrix whose ids stand beside it or are those of the topics."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors.ids import read_ids
from rnnreranker.parts.vectors.mapped import LARGE, map_matrix
from rnnreranker.parts.vectors.source import QueryVectors


def load_encoded_queries(path: str | os.PathLike[str], qids: Sequence[str] | None = None) -> QueryVectors:
    """The query vectors in a `.npy` file.

    Args:
        path: (Q, d) float32 or float16; the ids of its rows are in the file of the same name ending in `.ids`, one a
            line. Without that file the rows are those of the topics, in their order.
        qids: the ids of the topics; with an `.ids` file, each of them must be in it, and the others are left out.

    Raises:
        InputError: files that are missing or cannot be used, ids that do not match.
    """
    path = Path(path).expanduser()
    matrix = map_matrix(path)
    if matrix.nbytes < LARGE:
        matrix = np.array(matrix)  # a file that is written again later changes nothing
    beside = path.with_suffix(".ids")
    if beside.is_file():
        ids = read_ids(beside)
        if len(ids.names) != len(matrix):
            raise InputError(
                f"{beside}: has {len(ids.names)} query ids but {path} has {len(matrix)} rows; expected as many"
            )
        return _of(path, ids.names, matrix, qids)
    if qids is None:
        raise InputError(
            f"{path}: which query is which row? write the query ids to {beside}, one a line, or give the topics"
        )
    if len(qids) != len(matrix):
        raise InputError(
            f"{path}: has {len(matrix)} rows for {len(qids)} topics; expected one row per topic in their order, "
            f"or the query ids in {beside}, one a line"
        )
    return _of(path, qids, matrix)


def _of(path: Path, qids: Sequence[str], vectors: np.ndarray, wanted: Sequence[str] | None = None) -> QueryVectors:
    try:
        queries = QueryVectors(tuple(qids), vectors)
        return queries if wanted is None else queries.of(wanted)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
