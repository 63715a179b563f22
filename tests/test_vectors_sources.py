"""Faiss folders, matrices, FlexIndexes and encoded queries: what comes back, what is said of others."""

from __future__ import annotations

import json
import os
import pickle
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from query_sets import write_lines
from refusals import refusal

from rnnreranker import RnnParams, RnnReranker, Run
from rnnreranker.base.errors import MissingDependencyError
from rnnreranker.parts.vectors import QueryVectors, open_vectors
from rnnreranker.parts.vectors.faiss_folder import FaissVectors
from rnnreranker.parts.vectors.source import load_encoded_queries

COUNT, DIMENSION = 300, 8
DOCIDS = [f"d{row}" for row in range(COUNT)]
VECTORS = np.random.default_rng(7).standard_normal((COUNT, DIMENSION)).astype(np.float32)
QUERIES = np.random.default_rng(8).standard_normal((45, DIMENSION)).astype(np.float32)


def faiss_folder(
    folder: Path, spec: str = "Flat", docids: list[str] | None = None, ids: np.ndarray | None = None
) -> Path:
    index = faiss.index_factory(DIMENSION, spec, faiss.METRIC_INNER_PRODUCT)
    index.train(VECTORS)
    if ids is not None:
        index.add_with_ids(VECTORS, ids)
    else:
        index.add(VECTORS)
    faiss.write_index(index, str(folder / "index"))
    write_lines(folder / "docid", docids or DOCIDS)
    return folder


def matrix_folder(folder: Path, dtype: str = "float32") -> Path:
    np.save(folder / "vectors.npy", VECTORS.astype(dtype))
    (folder / "docid").write_text("\n".join(DOCIDS))  # without a newline at the end, as some tools write it
    return folder


@pytest.mark.parametrize(
    ("spec", "ids", "said"),
    [
        ("IDMap,Flat", np.arange(COUNT), "by line of `docid` from a IndexIDMap"),
        ("IVF4,PQ2x4fs", None, "from a IndexIVFPQFastScan"),
        ("PCA4,IVF4,PQ2x4fs", None, "from a IndexPreTransform"),
    ],
)
def test_faiss_types_without_vectors_are_refused(tmp_path: Path, spec: str, ids: np.ndarray | None, said: str) -> None:
    with refusal(said):
        open_vectors(faiss_folder(tmp_path, spec, ids=ids))


@pytest.mark.parametrize("made", [faiss_folder, matrix_folder, "index in memory"])
def test_sources_and_rerankers_over_them_are_pickled_by_their_paths(tmp_path: Path, made: Any) -> None:
    source = open_vectors((faiss_folder if isinstance(made, str) else made)(tmp_path))
    if isinstance(made, str):
        source = FaissVectors(faiss.read_index(str(tmp_path / "index")), DOCIDS)
    reranker, params = RnnReranker(source, RnnParams(k=5)), RnnParams(k=5)
    run = Run.from_dict({"q": dict.fromkeys(DOCIDS[:50], 0.0) | {"d3": 2.0, "d9": 1.0}})
    queries = QueryVectors(["q"], QUERIES[:1])
    want = reranker.rerank(run, queries)["q"]
    written = pickle.dumps(reranker)
    assert isinstance(made, str) or len(written) < 2000
    again = pickle.loads(written)
    assert (again.rerank(run, queries)["q"], again.params) == (want, params)
    assert again.inputs.vectors.fingerprint == source.fingerprint


@pytest.mark.parametrize("spec", ["PQ2x4", "SQ8", "SQfp16", "IVF4,PQ2x4", "PCA4,Flat", "OPQ2_4,PQ2x4"])
@pytest.mark.filterwarnings("error")
def test_lossy_types_say_so_once(tmp_path: Path, spec: str) -> None:
    source = open_vectors(faiss_folder(tmp_path, spec))
    assert not source.exact
    with pytest.warns(UserWarning, match="lossy form"):
        first = source.fetch(np.arange(50))
    again = source.fetch(np.arange(50))
    np.testing.assert_array_equal(first, again)
    correlation = np.corrcoef(first.ravel(), VECTORS[:50].ravel())[0, 1]
    assert 0.3 < correlation < 1.0 - 1e-9


@pytest.mark.parametrize("spec", ["Flat", "matrix", "HNSW8,Flat", "IVF4,Flat", "SQ8"])
def test_search_does_not_depend_on_batch_or_threads(tmp_path: Path, spec: str) -> None:
    source = open_vectors(matrix_folder(tmp_path) if spec == "matrix" else faiss_folder(tmp_path, spec))
    scores, rows = source.search(QUERIES, 20, 1)
    for first in range(0, len(QUERIES), 7):
        part_scores, part_rows = source.search(QUERIES[first : first + 7], 20, 2)
        for i, (one, two) in enumerate(zip(part_scores, part_rows, strict=True)):
            assert one.tobytes() == scores[first + i].tobytes()
            assert two.tolist() == rows[first + i].tolist()


@pytest.mark.parametrize("length", [0, 3, 30, 44, 45, 5000])
@pytest.mark.parametrize("spec", ["Flat", "HNSW8,Flat"])
def test_cut_off_faiss_files_are_one_line_errors(tmp_path: Path, spec: str, length: int) -> None:
    path = faiss_folder(tmp_path, spec) / "index"
    path.write_bytes(path.read_bytes()[:length])
    with refusal(r"not (a )?whole") as caught:
        open_vectors(tmp_path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_l2_is_refused(tmp_path: Path) -> None:
    index = faiss.IndexFlatL2(DIMENSION)
    index.add(VECTORS)
    faiss.write_index(index, str(tmp_path / "index"))
    (tmp_path / "docid").write_text("\n".join(DOCIDS))
    with refusal("its metric is L2 distance; expected inner product"):
        open_vectors(tmp_path)


def test_other_places_are_named(tmp_path: Path) -> None:
    with refusal("no such index"):
        open_vectors(tmp_path / "nowhere")
    np.save(tmp_path / "mine.npy", VECTORS)
    with refusal(r"mine\.ids: no such file"):
        open_vectors(tmp_path / "mine.npy")
    (tmp_path / "mine.npy").unlink()
    (tmp_path / "notes.txt").write_text("x")
    with refusal(r"no vectors in this folder \(it has notes\.txt\); expected `index` and `docid`"):
        open_vectors(tmp_path)
    with refusal("not a matrix of vectors"):
        open_vectors(tmp_path / "notes.txt")
    (tmp_path / "segments_1").write_text("x")
    with refusal("a Lucene index"):
        open_vectors(tmp_path)


def test_queries_of_another_dimension_are_refused(tmp_path: Path) -> None:
    source = open_vectors(faiss_folder(tmp_path))
    with refusal(r"shape \(2, 9\), the index has 8 dimensions"):
        source.search(np.zeros((2, 9), np.float32), 5)
    with refusal("hits=0: expected an integer >= 1"):
        source.search(QUERIES, 0)
    with refusal("query vector 1 has NaN"):
        source.search(np.array([[0] * 8, [np.inf] * 8], np.float32), 5)


@pytest.mark.parametrize("rows", [2, COUNT])
def test_a_matrix_that_is_written_again_in_place_is_refused(tmp_path: Path, rows: int) -> None:
    """A shorter file under a mapping would end the process; one of the same size would give other rows."""
    path, last = matrix_folder(tmp_path) / "vectors.npy", np.array([COUNT - 1])
    before = open_vectors(tmp_path)
    np.save(tmp_path / "other.npy", -VECTORS)
    (tmp_path / "other.npy").replace(path)  # as files are written whole: what is mapped stays
    np.testing.assert_array_equal(before.fetch(last), VECTORS[-1:])
    os.utime(path, ns=(1, 1))
    opened = open_vectors(tmp_path)
    np.testing.assert_array_equal(opened.fetch(last), -VECTORS[-1:])
    np.save(path, VECTORS[:rows])
    for read in (lambda: opened.fetch(last), lambda: opened.search(QUERIES[:1], 3)):
        with refusal(r"vectors\.npy: was written again while it was in use"):
            read()


def test_query_vectors_stay_when_their_file_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "queries.npy"
    np.save(path, QUERIES)
    loaded = load_encoded_queries(path, [f"q{number}" for number in range(len(QUERIES))])
    np.save(path, -QUERIES[:1])
    np.testing.assert_array_equal(loaded.vectors, QUERIES)


def test_encoded_queries(tmp_path: Path) -> None:
    path = tmp_path / "queries.npy"
    np.save(path, QUERIES[:3])
    with refusal("has 3 rows, and there are 0 topics"):
        load_encoded_queries(path)
    with refusal("has 3 rows, and there are 2 topics"):
        load_encoded_queries(path, ["q1", "q2"])
    in_order = load_encoded_queries(path, ["q1", "q2", "q3"])
    assert in_order.qids == ("q1", "q2", "q3")
    np.testing.assert_array_equal(in_order.vectors, QUERIES[:3])
    (tmp_path / "queries.ids").write_text("q3\nq2\nq1\n")
    by_name = load_encoded_queries(path, ["q1", "q2"])
    np.testing.assert_array_equal(by_name.vectors, QUERIES[[2, 1]])
    with refusal(r"1 of 2 queries have no vector \(first: q9\)"):
        load_encoded_queries(path, ["q1", "q9"])
    (tmp_path / "queries.ids").write_text("q3\nq2\n")
    with refusal("has 3 rows, and there are 2 query ids in"):
        load_encoded_queries(path)


@pytest.mark.parametrize(
    "spec",
    ["Flat", "HNSW8,Flat", "NSG8,Flat", "IVF8,Flat", "IVF8_HNSW8,Flat", "SQ8,RFlat", "IVF8,PQ4x4,RFlat", "SQ8"],
)
def test_large_files_are_mapped_and_read_by_several_threads(
    tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rows = faiss_folder(tmp_path, spec), np.random.default_rng(2).permutation(COUNT)
    in_memory = open_vectors(folder)
    for name in ("faiss_folder.MAPPED", "faiss_folder.LARGE", "stored.LARGE"):
        monkeypatch.setattr(f"rnnreranker.parts.vectors.{name}", 0)
    mapped = open_vectors(folder)
    assert mapped.fetch(rows).tobytes() == in_memory.fetch(rows).tobytes()
    if mapped.exact:
        np.testing.assert_array_equal(mapped.fetch(rows), VECTORS[rows])
    for one, two in zip(mapped.search(QUERIES, 5), in_memory.search(QUERIES, 5), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("spec", "first", "reason"),
    [
        ("IVF8,Flat", 10**6, "direct map supported only for sequential ids"),
        ("RR16,IDMap2,Flat", 5, "key 3 not found"),
    ],
)
def test_lists_whose_ids_are_no_lines_are_refused(tmp_path: Path, spec: str, first: int, reason: str) -> None:
    folder = faiss_folder(tmp_path, spec, ids=np.arange(COUNT) + first)
    with refusal(rf"no vectors can be read from a Index\w+ \({reason}\); use a [^\n]+$"):
        open_vectors(folder).fetch(np.array([3]))


def test_lists_are_ready_for_several_threads_once_opened(tmp_path: Path) -> None:
    source: Any = open_vectors(faiss_folder(tmp_path, "IVF4,Flat"))
    assert source._lists.direct_map.type == 1  # an array, 0 is none


def flex(folder: Path, **changed: object) -> Path:
    VECTORS.tofile(folder / "vecs.f4")
    meta = {"type": "dense_index", "format": "flex", "vec_size": DIMENSION, "doc_count": COUNT} | changed
    (folder / "pt_meta.json").write_text(json.dumps(meta))
    (folder / "docnos").write_text("\n".join(DOCIDS))
    return folder


def test_vectors_of_a_flex_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_vectors(flex(tmp_path))
    rows = source.rows(["d299", "d0", "nowhere", "d60", "d60"])
    assert rows.tolist() == [299, 0, -1, 60, 60]
    np.testing.assert_array_equal(source.fetch(rows[rows >= 0]), VECTORS[[299, 0, 60, 60]])
    for row in (-1, COUNT):
        with refusal(rf"row {row}: expected 0\.\.299"):
            source.fetch(np.array([0, row]))
    (tmp_path / "docnos").unlink()
    with refusal(r"docnos.npids: no such file; expected its docids there"):
        open_vectors(tmp_path)
    npids = pytest.importorskip("npids", reason="npids is not installed")
    npids.Lookup.build(DOCIDS, str(tmp_path / "docnos.npids"))
    assert open_vectors(tmp_path).rows(["d9", "d229"]).tolist() == [9, 229]
    (tmp_path / "docnos.npids").write_bytes(b"x" * 99)
    with refusal(r"docnos.npids: npids cannot read it \("):
        open_vectors(tmp_path)
    monkeypatch.setitem(sys.modules, "npids", None)
    with pytest.raises(MissingDependencyError, match="npids is needed for reading"):
        open_vectors(tmp_path)


@pytest.mark.parametrize("changed", [{"doc_count": COUNT + 1}, {"vec_size": "six"}])
def test_flex_folders_that_are_not_whole(tmp_path: Path, changed: dict[str, object]) -> None:
    with refusal(r"vecs.f4: 9600 bytes are not the doc_count and vec_size of"):
        open_vectors(flex(tmp_path, **changed))


def test_a_matrix_stored_by_columns_is_read_without_copying_it(tmp_path: Path) -> None:
    matrix = np.asfortranarray(np.random.default_rng(5).standard_normal((50_000, 16)).astype(np.float32))
    np.save(tmp_path / "vectors.npy", matrix)
    write_lines(tmp_path / "docid", (f"d{row}" for row in range(len(matrix))))
    source, rows = open_vectors(tmp_path), np.array([49_999, 0, 7])
    tracemalloc.start()
    np.testing.assert_array_equal(source.fetch(rows), matrix[rows])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < matrix.nbytes / 10
