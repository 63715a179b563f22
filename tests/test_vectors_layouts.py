"""Layouts beside Faiss and one matrix: FlexIndex, packed docids, a matrix by columns."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from rnnreranker.base.errors import InputError, MissingDependencyError
from rnnreranker.parts.vectors import open_vectors

COUNT, DIMENSION = 230, 6
DOCIDS = [f"d{row}" for row in range(COUNT)]
VECTORS = np.random.default_rng(3).standard_normal((COUNT, DIMENSION)).astype(np.float32)
QUERIES = np.random.default_rng(4).standard_normal((3, DIMENSION)).astype(np.float32)


def write_ids(path: Path) -> None:
    path.write_text("".join(f"{docid}\n" for docid in DOCIDS))


def flex(folder: Path, **changed: object) -> Path:
    VECTORS.tofile(folder / "vecs.f4")
    meta = {"type": "dense_index", "format": "flex", "vec_size": DIMENSION, "doc_count": COUNT} | changed
    (folder / "pt_meta.json").write_text(json.dumps(meta))
    write_ids(folder / "docnos")
    return folder


def test_vectors_come_back_exactly_and_are_found(tmp_path: Path) -> None:
    source = open_vectors(flex(tmp_path))
    assert source.exact
    rows = source.rows(["d229", "d0", "nowhere", "d60", "d61", "d60"])
    assert rows.tolist() == [229, 0, -1, 60, 61, 60]
    np.testing.assert_array_equal(source.fetch(rows[rows >= 0]), VECTORS[[229, 0, 60, 61, 60]])
    for row in (-1, COUNT):
        with pytest.raises(InputError, match=rf"row {row}: expected 0\.\.229"):
            source.fetch(np.array([0, row]))
    scores, found = source.search(QUERIES, 7)
    exact = QUERIES.astype(np.float64) @ VECTORS.astype(np.float64).T
    for query in range(len(QUERIES)):
        assert found[query].tolist() == np.argsort(-exact[query])[:7].tolist()
        np.testing.assert_allclose(scores[query], np.sort(exact[query])[::-1][:7], rtol=1e-6)


@pytest.mark.parametrize("changed", [{"doc_count": COUNT + 1}, {"vec_size": 7}, {"vec_size": "six"}])
def test_flex_folders_that_are_not_whole(tmp_path: Path, changed: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"vecs.f4: 5520 bytes are not the doc_count and vec_size of"):
        open_vectors(flex(tmp_path, **changed))


def test_packed_docnos_of_a_flex_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flex(tmp_path)
    (tmp_path / "docnos").unlink()
    with pytest.raises(InputError, match=r"docnos.npids: no such file; expected its docids there"):
        open_vectors(tmp_path)
    npids = pytest.importorskip("npids", reason="npids is not installed")
    npids.Lookup.build(DOCIDS, str(tmp_path / "docnos.npids"))
    assert open_vectors(tmp_path).rows(["d9", "d229"]).tolist() == [9, 229]
    (tmp_path / "docnos.npids").write_bytes(b"x" * 99)
    with pytest.raises(InputError, match=r"docnos.npids: npids cannot read it \("):
        open_vectors(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "npids", None)
    with pytest.raises(MissingDependencyError, match="npids is needed for reading"):
        open_vectors(tmp_path)


def test_a_matrix_stored_by_columns_is_read_without_copying_it(tmp_path: Path) -> None:
    matrix = np.asfortranarray(np.random.default_rng(5).standard_normal((50_000, 16)).astype(np.float32))
    np.save(tmp_path / "vectors.npy", matrix)
    (tmp_path / "docid").write_text("".join(f"d{row}\n" for row in range(len(matrix))))
    source, rows = open_vectors(tmp_path), np.array([49_999, 0, 7])
    tracemalloc.start()
    found = source.fetch(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(found, matrix[rows])
    assert peak < matrix.nbytes / 10
