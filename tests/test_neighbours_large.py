"""Graphs of large collections: approximate search and its recall, blocks made by others, what is said beforehand."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from query_sets import files_of, write_index
from refusals import refusal

from rnnreranker.index.__main__ import main
from rnnreranker.parts.neighbours import nearest as nearest_module
from rnnreranker.parts.neighbours import on_device, open_neighbours
from rnnreranker.parts.neighbours import part as graph_files
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import graph_source, write_graph
from rnnreranker.parts.vectors import open_vectors


def clustered(count: int = 600, seed: int = 0) -> np.ndarray:
    """Unit vectors around 12 centres."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((12, 16))[rng.integers(0, 12, count)] + 0.5 * rng.standard_normal((count, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return write_index(tmp_path / "index", clustered())


def test_what_faiss_proposes_is_weighed_and_ordered_as_exact_search_does(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, exact = clustered().astype(np.float64), DenseNeighbours(open_vectors(index))
    source = graph_source(index, "dense", tmp_path / "work", "ivf", 8)
    edges, scores = source.nearest(np.arange(600), 8)
    found = edges != np.arange(600)[:, None]
    products = np.take_along_axis(vectors @ vectors.T, edges, axis=1)
    np.testing.assert_allclose(products[found], scores[found], rtol=1e-12)
    assert (np.diff(scores, axis=1) <= 0).all()
    nearest, best = exact.nearest(np.arange(600), 8)
    shared = np.mean([len(set(a) & set(b)) / 8 for a, b in zip(edges.tolist(), nearest.tolist(), strict=True)])
    assert 0.9 <= shared <= 1
    assert (scores <= best + 1e-12).all()
    assert graph_source(index, "dense", tmp_path / "work").search == "exact"
    monkeypatch.setattr(graph_files, "EXACT", 599)
    assert graph_source(index, "dense", tmp_path / "work").search == "ivf"
    monkeypatch.setattr(nearest_module, "GOAL", 1.0)
    wide = graph_source(index, "dense", tmp_path / "work", "ivf", 8)
    assert wide.width > source.width or shared == 1
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.nearest(np.arange(600), 8)[0], edges)


@pytest.mark.usefixtures("as_command")
def test_recall_is_measured_and_kept(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes depend neither on threads nor on the folder of the work."""
    monkeypatch.setattr(nearest_module, "SAMPLE", 100)
    monkeypatch.setattr(graph_files, "ROWS", 128)
    for name, threads in (("plain", 1), ("other", 3)):
        source = graph_source(index, "dense", tmp_path / f"work-{name}", "ivf", 8)
        write_graph(source, tmp_path / name, 8, threads=threads, work=tmp_path / f"work-{name}")
    assert files_of(tmp_path / "plain") == files_of(tmp_path / "other")
    assert not (tmp_path / "work-plain").exists()
    monkeypatch.undo()
    shutil.copy(index / "docid", tmp_path / "docid")
    graph = open_neighbours(tmp_path / "plain")
    assert (graph.origin.search, graph.origin.sampled) == ("ivf", 100)
    rows = np.sort(np.random.default_rng(0).choice(600, 100, replace=False))
    nearest = DenseNeighbours(open_vectors(index)).nearest(rows, 8)[0]
    shared = [len(set(a) & set(b)) for a, b in zip(graph.edges[rows].tolist(), nearest.tolist(), strict=True)]
    assert graph.origin.recall == pytest.approx(np.mean(shared) / 8, abs=1e-12)
    said = capsys.readouterr().err.splitlines()
    assert f"neighbours: ivf has found {graph.origin.recall:.1%} of the 8 nearest of 100 documents that" in said[-1]


@pytest.mark.parametrize(("size", "columns"), [(1e-3, 2**16), (1, 704), (300, 96)])
def test_products_in_half_precision_propose_the_same(
    size: float, columns: int, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By torch on the processor, as on a GPU; some vectors are alike in half precision, and lengths differ."""
    pytest.importorskip("torch")
    vectors = np.tile(clustered(), (4, 1)) * np.float32(size)
    vectors[600:] += np.random.default_rng(2).standard_normal((1800, 16)).astype(np.float32) * np.float32(size / 20)
    vectors[1000:1040] = vectors[1000] * (1 + np.arange(40, dtype=np.float32)[:, None] / 100_000)
    vectors[50] *= 0
    vectors[51:] *= np.linspace(0.5, 1, 2349, dtype=np.float32)[:, None]
    vectors *= np.float32(min(1, 200 / np.linalg.norm(vectors, axis=1).max()))
    write_index(index, vectors)
    plain = DenseNeighbours(open_vectors(index))
    monkeypatch.setattr(on_device, "COLUMNS", columns)
    monkeypatch.setattr(on_device, "READ", 704)
    there = DenseNeighbours(open_vectors(index), ("cpu", "cpu"))
    for first in (0, 800, 1600):
        rows = np.arange(first, first + 800)
        for found, expected in zip(there.nearest(rows, 3), plain.nearest(rows, 3), strict=True):
            np.testing.assert_array_equal(found, expected)
    scores, proposed = on_device.OnDevice("cpu", open_vectors(index)).propose(vectors[:50], 30)
    true = vectors[:50].astype(float) @ vectors.astype(float).T
    found = np.take_along_axis(true, proposed, axis=1)
    assert (scores >= found).all()
    assert (scores - found).max() <= 4e-3 * np.linalg.norm(vectors, axis=1).max() ** 2
    assert (scores[:, -1] >= np.sort(true, axis=1)[:, -31]).all()
    np.testing.assert_array_equal(scores, -np.sort(-scores, axis=1))


def test_an_approximate_graph_has_no_shares(index: Path) -> None:
    before = sorted(index.iterdir())
    flags = ["--shard-id", "0", "--shard-num", "3", "--parts", "neighbours:search=ivf"]
    with refusal("a graph with search=ivf is made by one process; leave it out"):
        main(["--output", str(index), *flags])
    assert sorted(index.iterdir()) == before
