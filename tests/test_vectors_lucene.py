"""Lucene's dense indexes, built by Anserini here: flat and HNSW, full floats and int8, against the exact matrix."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from rnnreranker.parts.vectors import open_vectors

COUNT, DIMENSION = 60, 8
DOCIDS = [f"d{row}" for row in range(COUNT)]
RAW = np.random.default_rng(1).standard_normal((COUNT, DIMENSION))
VECTORS = (RAW / np.linalg.norm(RAW, axis=1, keepdims=True)).astype(np.float32)
QUANTIZED = "-quantize.int8" if version("pyserini").startswith("1.") else "-quantize.sqv"
KINDS = {
    "flat": ("IndexFlatDenseVectors", []),
    "hnsw-int8": ("IndexHnswDenseVectors", ["-M", "8", "-efC", "50", QUANTIZED]),
}


@pytest.fixture(scope="module")
def indexes(jvm: None, module_path: Path) -> Path:
    import jnius

    (module_path / "documents").mkdir()
    lines = [json.dumps({"docid": docid, "vector": v.tolist()}) for docid, v in zip(DOCIDS, VECTORS, strict=True)]
    (module_path / "documents" / "part.jsonl").write_text("\n".join(lines) + "\n")
    for name, (kind, more) in KINDS.items():
        flags = ["-collection", "JsonDenseVectorCollection", "-input", str(module_path / "documents"), "-threads", "1"]
        flags += ["-generator", "DenseVectorDocumentGenerator", "-index", str(module_path / name), *more]
        jnius.autoclass(f"io.anserini.index.{kind}").main(flags)
    return module_path


@pytest.mark.parametrize("kind", list(KINDS))
def test_vectors_come_back_exactly(indexes: Path, kind: str) -> None:
    source = open_vectors(indexes / kind)
    assert source.exact
    assert (source.dimension, len(source.docids)) == (DIMENSION, COUNT)
    rows = source.rows(["d59", "nowhere", "d0", "d7", "d59"])
    assert rows[1] == -1
    assert [source.docids[row] for row in rows[[0, 2, 3]]] == ["d59", "d0", "d7"]
    np.testing.assert_array_equal(source.fetch(rows[[0, 2, 3, 4]]), VECTORS[[59, 0, 7, 59]])


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "segments_1").write_text("nothing")
    with refusal("cannot be opened as a Lucene index"):
        open_vectors(tmp_path)


def test_an_index_for_bm25_has_no_vectors(indexes: Path, tmp_path: Path) -> None:
    import jnius

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": "a", "contents": "some words"}\n')
    flags = ["-collection", "JsonCollection", "-input", str(tmp_path / "in"), "-index", str(tmp_path / "bm25")]
    flags += ["-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
    jnius.autoclass("io.anserini.index.IndexCollection").main(flags)
    with refusal("a Lucene index without dense vectors of all documents, as for BM25"):
        open_vectors(tmp_path / "bm25")
