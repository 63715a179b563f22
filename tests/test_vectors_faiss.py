"""Every type of Faiss index against the matrix it was made from, and the errors of those without vectors."""

from __future__ import annotations

import warnings
from pathlib import Path

import faiss
import numpy as np
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.faiss_folder import faiss_vectors

COUNT, DIMENSION = 400, 16
VECTORS = np.random.default_rng(11).standard_normal((COUNT, DIMENSION)).astype(np.float32)
ROWS = np.array([3, 399, 0, 3, 217])
EXACT = ("Flat", "HNSW8,Flat", "NSG8,Flat", "IVF8,Flat", "IVF8_HNSW8,Flat", "SQ8,RFlat", "IVF8,PQ4x4,RFlat")


def write(folder: Path, index: faiss.Index, vectors: np.ndarray = VECTORS) -> Path:
    faiss.write_index(index, str(folder / "index"))
    (folder / "docid").write_text("".join(f"d{row}\n" for row in range(len(vectors))))
    return folder


def made(spec: str, ids: np.ndarray | None = None, vectors: np.ndarray = VECTORS) -> faiss.Index:
    index = faiss.index_factory(vectors.shape[1], spec, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    if ids is None:
        index.add(vectors)
    else:
        index.add_with_ids(vectors, ids)
    return index


@pytest.mark.parametrize("spec", [*EXACT, "SQ8"])
def test_large_files_are_mapped_and_read_by_several_threads(
    tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(2).permutation(COUNT)
    vectors = np.random.default_rng(3).standard_normal((COUNT, 32)).astype(np.float32)
    folder = write(tmp_path, made(spec, None, vectors))
    in_memory = open_vectors(folder)
    monkeypatch.setattr("rnnreranker.parts.vectors.faiss_folder.MAPPED", 0)
    monkeypatch.setattr("rnnreranker.parts.vectors.faiss_folder.LARGE", 0)
    monkeypatch.setattr("rnnreranker.parts.vectors.stored.LARGE", 0)
    mapped = faiss_vectors(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert mapped.fetch(rows).tobytes() == in_memory.fetch(rows).tobytes()
        if mapped.exact:
            np.testing.assert_array_equal(mapped.fetch(rows), vectors[rows])
    queries = vectors[:3]
    for one, two in zip(mapped.search(queries, 5), in_memory.search(queries, 5), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("spec", "first", "reason"),
    [
        ("IVF8,Flat", 10**6, "direct map supported only for sequential ids"),
        ("IVF8,Flat", -1, "direct map supported only for sequential ids"),
        ("RR16,IDMap2,Flat", 5, "key 3 not found"),
    ],
)
def test_lists_whose_ids_are_no_lines_are_refused(tmp_path: Path, spec: str, first: int, reason: str) -> None:
    source = open_vectors(write(tmp_path, made(spec, np.arange(COUNT) + first)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match=rf"no vectors can be read from a Index\w+ \({reason}\); use a") as caught:
            source.fetch(ROWS)
    assert "\n" not in str(caught.value)
