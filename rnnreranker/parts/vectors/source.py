"""Query vectors, their files, and the source of vectors at a path."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnreranker.base.checksums import check_files
from rnnreranker.base.errors import InputError
from rnnreranker.base.given import array_of, ids_of, path_of
from rnnreranker.parts.vectors.ids import read_ids
from rnnreranker.parts.vectors.matrix_files import LARGE, docnos_of, flex_rows, map_matrix, npy_rows
from rnnreranker.parts.vectors.stored import VectorSource

LAYOUTS = (
    "`index` and `docid` (Faiss folder of Pyserini), `vectors.npy` or shards *.npy and `docid`, or `vecs.f4` and "
    "`docnos` (FlexIndex)"
)


@dataclass(frozen=True, eq=False)
class QueryVectors:
    """The vectors of queries.

    Args:
        qids: Q different query ids.
        vectors: (Q, d) float, also a tensor of torch; kept as float32 in C order.

    Raises:
        InputError: another number of ids than rows, an id twice, NaN or infinite values.
    """

    qids: tuple[str, ...]
    vectors: np.ndarray

    def __post_init__(self) -> None:
        vectors = array_of(self.vectors, "query vectors")
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise InputError(
                f"query vectors have shape {vectors.shape} and type {vectors.dtype}; "
                "expected (queries, dimensions) floats"
            )
        qids = ids_of(self.qids, "qids")
        if len(vectors) != len(qids):
            raise InputError(f"{len(qids)} query ids for {len(vectors)} query vectors; expected one id per vector")
        if len(row_of := dict(zip(qids, range(len(qids)), strict=True))) < len(qids):
            twice = next(qid for row, qid in enumerate(qids) if row_of[qid] != row)
            raise InputError(f"query id {twice} is given twice; every query needs its own id")
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            qid = qids[int(np.argmin(finite))]
            raise InputError(f"the vector of query {qid} has NaN or infinite values; encode the queries again")
        object.__setattr__(self, "qids", qids)
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.qids)

    def of(self, qids: Sequence[str]) -> QueryVectors:
        """The vectors of some queries, in that order.

        Raises:
            InputError: queries without a vector: how many, and the first three.
        """
        qids = ids_of(qids, "qids")
        row_of = {qid: row for row, qid in enumerate(self.qids)}
        if lost := [qid for qid in qids if qid not in row_of]:
            raise InputError(
                f"{len(lost)} of {len(qids)} queries have no vector (first: {', '.join(lost[:3])}); encode them too, "
                "or check that topics and run match"
            )
        return QueryVectors(qids, self.vectors[[row_of[qid] for qid in qids]])


def open_vectors(path: str | os.PathLike[str]) -> VectorSource:
    """The source of vectors at a path.

    Args:
        path: a Faiss folder of Pyserini (`index` and `docid`); a folder with `.npy` matrices (`vectors.npy`, or shards
            in the order of the numbers in their names) and `docid` (or `ids`); a file `X.npy` with its ids in `X.ids`,
            one a line; a FlexIndex folder of pyterrier_dr (`vecs.f4`); a Lucene index with dense vectors (needs Java).

    Raises:
        InputError: nothing there, none of these layouts, or files that cannot be used.
    """
    path = path_of(path, "an index folder or a .npy file")
    source = _opened(path)
    source.opened = open_vectors, (path.absolute(),)
    return source


def _opened(path: Path) -> VectorSource:
    from rnnreranker.parts.vectors.faiss_folder import faiss_vectors

    if not path.exists():
        raise InputError(f"{path}: no such index; expected a folder with `index` and `docid`, or X.npy with X.ids")
    if not path.is_dir():
        if path.suffix != ".npy" and path.name != "index":
            raise InputError(f"{path}: not a matrix of vectors; expected a .npy file or an index folder")
        return faiss_vectors(path.parent) if path.name == "index" else _npy([path], path.with_suffix(".ids"))
    check_files(path, "dense")
    if (path / "index").is_file():
        return faiss_vectors(path)
    whole, flex = path / "vectors.npy", path / "vecs.f4"
    if flex.is_file() and not whole.is_file():
        rows = flex_rows(flex)
        ids, origin = docnos_of(path)
        return VectorSource(flex, ids, rows, files=[flex, origin])
    if matrices := [whole] if whole.is_file() else sorted(path.glob("*.npy"), key=_by_numbers):
        return _npy(matrices, path / "ids" if (path / "ids").is_file() else path / "docid")
    names = sorted(entry.name for entry in path.iterdir())
    if any(name.startswith("segments_") for name in names):
        from rnnreranker.parts.vectors.lucene import LuceneVectors

        return LuceneVectors(path)
    shown = ", ".join(names[:6] + (["..."] if len(names) > 6 else [])) or "nothing"
    if any(name.endswith((".pkl", ".pickle", ".pt")) for name in names):
        raise InputError(
            f"{path}: pickled vectors (it has {shown}) are not read, as unpickling can run any code; with the tool "
            "that wrote them, save the matrix by numpy.save as `vectors.npy` and the ids, one a line, as `docid`"
        )
    raise InputError(f"{path}: no vectors in this folder (it has {shown}); expected {LAYOUTS}")


def _npy(paths: Sequence[Path], ids: Path) -> VectorSource:
    rows = npy_rows(paths)
    path = paths[0] if len(paths) == 1 else paths[0].parent
    if not ids.is_file():
        raise InputError(f"{ids}: no such file; {path} needs its {len(rows)} docids there, one a line")
    return VectorSource(path, read_ids(ids), rows, files=[*paths, ids])


def _by_numbers(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sort key that puts shard.2.npy before shard.10.npy.

    >>> sorted([Path("s10.npy"), Path("s2.npy")], key=_by_numbers)[0].name
    's2.npy'
    """
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts], path.name


def load_encoded_queries(path: str | os.PathLike[str], qids: Sequence[str] | None = None) -> QueryVectors:
    """The query vectors in a `.npy` file.

    Args:
        path: (Q, d) float32 or float16; the same name ending in `.ids` has the ids of the rows, one a line. Without it
            the rows are those of the topics.
        qids: the ids of the topics; an `.ids` file must have each of them.

    Raises:
        InputError: files that are missing or cannot be used, ids that do not match.
    """
    path = Path(path).expanduser()
    matrix, beside = map_matrix(path), path.with_suffix(".ids")
    if matrix.nbytes < LARGE:
        matrix = np.array(matrix)  # a file that is written again later changes nothing
    if named := beside.is_file():
        own: Sequence[str] = read_ids(beside).names
        said = f"{beside}: has {len(own)} query ids but {path} has {len(matrix)} rows; expected as many"
    elif qids is None:
        raise InputError(
            f"{path}: which query is which row? write the query ids to {beside}, one a line, or give the topics"
        )
    else:
        own, said = (
            qids,
            (
                f"{path}: has {len(matrix)} rows for {len(qids)} topics; expected one row per topic in their order, "
                f"or the query ids in {beside}, one a line"
            ),
        )
    if len(own) != len(matrix):
        raise InputError(said)
    try:
        queries = QueryVectors(tuple(own), matrix)
        return queries.of(qids) if named and qids is not None else queries
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
