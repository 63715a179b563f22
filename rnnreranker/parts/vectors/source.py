"""Query vectors, their files, and the source of vectors at a path."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, array_of, ids_of, path_of
from rnnreranker.base.files import cache_home, check_files, file_digest, fingerprint, folder_written_whole, read_json
from rnnreranker.base.java import start_java
from rnnreranker.parts.vectors.faiss_folder import faiss_vectors
from rnnreranker.parts.vectors.ids import docnos_of, read_ids
from rnnreranker.parts.vectors.npy_files import map_matrix, write_header
from rnnreranker.parts.vectors.stored import LARGE, VectorSource

INNER_PRODUCT = ("DOT_PRODUCT", "MAXIMUM_INNER_PRODUCT")
FIELD, ID = "vector", "id"  # Anserini's names for the vector and for the docid
LAYOUTS = (
    "`index` and `docid` (Faiss folder of Pyserini), `vectors.npy` and `docid`, or `vecs.f4` and `docnos` (FlexIndex)"
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
        vectors, qids = array_of(self.vectors, "query vectors"), ids_of(self.qids, "qids")
        if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(qids):
            raise InputError(
                f"query vectors have shape {vectors.shape} and type {vectors.dtype}; expected (queries, dimensions) "
                f"floats for {len(qids)} query ids"
            )
        if twice := [qid for qid, count in Counter(qids).items() if count > 1]:
            raise InputError(f"query id {twice[0]} is given twice; every query needs its own id")
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        if not (finite := np.isfinite(vectors).all(axis=1)).all():
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
        path: a Faiss folder of Pyserini (`index` and `docid`); a folder with a matrix `vectors.npy` and `docid` (or
            `ids`); a file `X.npy` with its ids in `X.ids`, one a line; a FlexIndex folder of pyterrier_dr (`vecs.f4`);
            a Lucene index with dense vectors (needs Java).

    Raises:
        InputError: nothing there, none of these layouts, or files that cannot be used.
    """
    path = path_of(path, "an index folder or a .npy file")
    source = _opened(path)
    source.opened = open_vectors, (path.absolute(),)
    return source


def _opened(path: Path) -> VectorSource:
    if path.is_file():
        if path.suffix == ".npy":
            return _matrix(path, path.with_suffix(".ids"))
        if path.name != "index":
            raise InputError(f"{path}: not a matrix of vectors; expected a .npy file or an index folder")
        path = path.parent
    if not path.is_dir():
        raise InputError(f"{path}: no such index; expected a folder with `index` and `docid`, or X.npy with X.ids")
    check_files(path, "dense")
    if (path / "index").is_file():
        return faiss_vectors(path)
    whole, flex, named = path / "vectors.npy", path / "vecs.f4", path / "ids"
    docids = named if named.is_file() else path / "docid"
    if whole.is_file():
        return _matrix(whole, docids)
    if flex.is_file():
        rows, (ids, origin) = _flex_rows(flex), docnos_of(path)
        return VectorSource(flex, ids, rows, files=[flex, origin])
    if any(path.glob("segments_*")):
        return _opened(lucene_matrix(path))
    names = ", ".join(sorted(entry.name for entry in path.iterdir())[:6])
    raise InputError(f"{path}: no vectors in this folder (it has {names or 'nothing'}); expected {LAYOUTS}")


def _matrix(path: Path, ids: Path) -> VectorSource:
    matrix = map_matrix(path)
    if not ids.is_file():
        raise InputError(f"{ids}: no such file; {path} needs its docids there, one a line")
    return VectorSource(path, read_ids(ids), matrix, files=[path, ids])


def _flex_rows(path: Path) -> np.ndarray:
    """The rows of a FlexIndex: raw float32, described by `pt_meta.json`; InputError: missing or cut files."""
    about = path.with_name("pt_meta.json")
    meta = read_json(about, "description of a FlexIndex")
    size: list[Any] = [meta.get("doc_count"), meta.get("vec_size")] if isinstance(meta, dict) else []
    if not size or not all(type(one) is int and one > 0 for one in size) or 4 * math.prod(size) != path.stat().st_size:
        raise InputError(
            f"{path}: {path.stat().st_size} bytes are not the doc_count and vec_size of {about} in float32; copy the "
            "folder again"
        )
    return np.memmap(path, np.float32, "r", shape=tuple(size))


def lucene_matrix(path: Path) -> Path:
    """A folder with the dense vectors of a Lucene index of versions 9 or 10, in the order of its document numbers.

    `vectors.npy` has full floats, of an int8 index too, and `docid` the ids. Java needs tens of microseconds a vector;
    the cache folder keeps the copy.

    Raises:
        InputError: no readable index, no float vectors (such as one for BM25), a metric other than inner product,
            deleted documents or documents without a vector.
        UnavailableError, MissingDependencyError: no Java 21 or newer; no Pyserini.
    """
    newest = max(path.glob("segments_*"), key=lambda file: (len(file.name), file.name))
    copy = cache_home() / "lucene" / fingerprint(str(path.resolve()), file_digest(newest))
    if copy.is_dir():
        return copy
    start_java()
    import jnius

    try:
        folder = jnius.autoclass("java.nio.file.Paths").get(str(path.absolute()))
        directory = jnius.autoclass("org.apache.lucene.store.FSDirectory").open(folder)
        opened = jnius.autoclass("org.apache.lucene.index.DirectoryReader").open(directory)
        reader: Any = jnius.cast("org.apache.lucene.index.IndexReader", opened)
    except jnius.JavaException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: cannot be opened as a Lucene index ({reason}); copy or build it again") from None
    count, leaves = int(reader.maxDoc()), [leaf.reader() for leaf in reader.leaves().toArray()]
    values = [leaf.getFloatVectorValues(FIELD) for leaf in leaves]
    if any(one is None for one in values) or reader.hasDeletions() or sum(int(one.size()) for one in values) != count:
        raise InputError(
            f"{path}: a Lucene index without dense vectors of all documents, as for BM25; expected one made by "
            "Anserini's IndexFlatDenseVectors or IndexHnswDenseVectors, a Faiss folder or a matrix"
        )
    field = leaves[0].getFieldInfos().fieldInfo(FIELD)
    if (metric := str(field.getVectorSimilarityFunction().name())) not in INNER_PRODUCT:
        raise InputError(f"{path}: its metric is {metric}; expected an inner product")
    stored = reader.storedFields()
    with (
        folder_written_whole(copy) as whole,
        open(whole / "vectors.npy", "wb") as matrix,
        open(whole / "docid", "w", encoding="utf-8", newline="\n") as docids,
    ):
        write_header(matrix, "<f4", (count, int(values[0].dimension())))
        rows = ((one, number) for one in values for number in range(int(one.size())))
        for row, (one, number) in enumerate(progress(rows, unit="vectors", total=count, what=f"copy of {path.name}")):
            if hasattr(one, "nextDoc"):  # in Lucene 9 the values are the iterator
                one.nextDoc()
            vector = one.vectorValue() if hasattr(one, "nextDoc") else one.vectorValue(number)
            matrix.write(np.array(vector, dtype="<f4").tobytes())
            docids.write(f"{stored.document(row).get(ID)}\n")
    reader.close()
    return copy


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
    named = beside.is_file()
    own = read_ids(beside).names if named else qids
    if own is None or len(own) != len(matrix):
        raise InputError(
            f"{path}: has {len(matrix)} rows, and there are {0 if own is None else len(own)} "
            f"{f'query ids in {beside}' if named else 'topics'}; expected one row per topic in their order, or the "
            f"query ids of the rows in {beside}, one a line"
        )
    try:
        queries = QueryVectors(tuple(own), np.array(matrix) if matrix.nbytes < LARGE else matrix)
        return queries.of(qids) if named and qids is not None else queries
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
