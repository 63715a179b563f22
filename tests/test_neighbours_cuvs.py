"""Graphs by cuVS: what a stand-in with its functions proposes is weighed as by exact search."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnreranker.base.errors import InputError, MissingDependencyError
from rnnreranker.index.__main__ import main
from rnnreranker.parts.neighbours import approximate, cuvs, open_neighbours
from rnnreranker.parts.neighbours.cuvs import by_cuvs
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.neighbours.part import graph_source
from rnnreranker.parts.vectors import open_vectors

COUNT = 600
GPU = (HalfProducts("cuda", 10**9),)


class StandIn:
    """The functions of cuVS that are called, by NumPy; only their names and arguments are its own.

    lost: so many of the nearest it does not propose; calls: (k, parameters) of each.
    """

    def __init__(self) -> None:
        self.lost, self.calls = 0, list[tuple[int, Any]]()

    def build(self, dataset: Any, k: int, params: Any, *, indices: Any = None, resources: Any = None) -> Any:
        assert (dataset.dtype, dataset.flags.c_contiguous, params.nn_descent_params.graph_degree >= k) == (
            np.float32, True, True,
        )  # fmt: skip
        self.calls.append((k, params))
        order = np.argsort(-(np.asarray(dataset) @ np.asarray(dataset).T), axis=1, kind="stable")
        proposed = np.roll(order, -self.lost, axis=1)[:, :k].astype(np.int64)
        proposed[::7, -1] = -1  # of a document in too small a cluster
        return SimpleNamespace(copy_to_host=lambda: proposed)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn()
    modules: dict[str, Any] = {
        "cuvs": ModuleType("cuvs"),
        "cuvs.neighbors": ModuleType("cuvs.neighbors"),
        "cuvs.neighbors.nn_descent": SimpleNamespace(IndexParams=lambda **given: SimpleNamespace(**given)),
        "cuvs.neighbors.all_neighbors": SimpleNamespace(
            AllNeighborsParams=lambda **given: SimpleNamespace(**given), build=made.build
        ),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


@pytest.fixture
def index(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((12, 16))[rng.integers(0, 12, COUNT)] + 0.5 * rng.standard_normal((COUNT, 16))
    folder = tmp_path / "index"
    folder.mkdir()
    np.save(folder / "vectors.npy", vectors.astype(np.float32))
    (folder / "docid").write_text("".join(f"d{row}\n" for row in range(COUNT)))
    return folder


def test_what_cuvs_proposes_is_weighed_and_ordered_as_exact_search_does(
    stand_in: StandIn, index: Path, tmp_path: Path
) -> None:
    exact, rows = DenseNeighbours(open_vectors(index), index), np.arange(COUNT)
    source = by_cuvs(exact, 8, tmp_path / "work", GPU)
    for got, expected in zip(source.nearest(rows, 8), exact.nearest(rows, 8), strict=True):
        np.testing.assert_array_equal(got, expected)
    [(width, params)] = stand_in.calls
    assert (width, params.metric, params.n_clusters, params.algo) == (64, "inner_product", 1, "nn_descent")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).nearest(rows, 8)[0], source.nearest(rows, 8)[0])
    by_cuvs(exact, 8, tmp_path / "work", GPU)  # what was proposed stays
    assert len(stand_in.calls) == 1
    assert not list((tmp_path / "work").glob("cuvs-vectors*"))


def test_more_are_proposed_until_the_goal_is_reached(stand_in: StandIn, index: Path, tmp_path: Path) -> None:
    exact = DenseNeighbours(open_vectors(index), index)
    stand_in.lost = COUNT - 100  # the nearest come behind the last hundred
    source = by_cuvs(exact, 8, tmp_path / "work", GPU)
    assert [width for width, _ in stand_in.calls] == [64, 128]
    assert source.width == 128
    stand_in.lost = 300
    with pytest.raises(InputError, match=r"neighbours:search=cuvs: 0.0% of the 8 nearest of 256 documents are among"):
        by_cuvs(exact, 8, tmp_path / "other", GPU)


def test_vectors_that_a_gpu_does_not_hold_are_put_into_clusters(stand_in: StandIn, index: Path, tmp_path: Path) -> None:
    exact = DenseNeighbours(open_vectors(index), index)
    by_cuvs(exact, 8, tmp_path / "work", (HalfProducts("cuda", COUNT * 16 * 4),))
    [(_, params)] = stand_in.calls
    assert (params.n_clusters, params.overlap_factor) == (8, 2)


def test_a_graph_says_that_it_is_of_cuvs(
    stand_in: StandIn, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rnnreranker.parts.neighbours.files import write_graph

    monkeypatch.setattr(approximate, "SAMPLE", 100)
    source = graph_source(index, "dense", tmp_path / "work", "cuvs", 8, GPU)
    write_graph(source, index / "neighbours", 8, work=tmp_path / "work")
    graph = open_neighbours(index)
    assert (graph.origin.search, graph.origin.recall, graph.origin.sampled) == ("cuvs", 1.0, 100)
    write_graph(DenseNeighbours(open_vectors(index), index), tmp_path / "exact", 8)
    edges = "edges.u32.np"
    assert (index / "neighbours" / edges).read_bytes() == (tmp_path / "exact" / edges).read_bytes()


@pytest.mark.usefixtures("as_command")
def test_what_is_refused(index: Path, tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"neighbours:search=cuvs: computes on a GPU of CUDA; expected --device cuda"):
        main(["--output", str(index), "--parts", "neighbours:search=cuvs"])
    assert not (index / "neighbours").exists()
    exact = DenseNeighbours(open_vectors(index), index)
    monkeypatch.setattr(cuvs, "MOST", 64)
    monkeypatch.setattr(stand_in, "build", None)
    monkeypatch.setitem(sys.modules, "cuvs.neighbors.all_neighbors", SimpleNamespace(
        AllNeighborsParams=lambda **given: None, build=lambda *given: np.zeros((COUNT, 3), dtype=np.int64)
    ))  # fmt: skip
    with pytest.raises(
        InputError, match=r"cuVS gave int64 of shape \(600, 3\); expected row numbers of shape \(600, 64"
    ):
        by_cuvs(exact, 8, tmp_path / "work", GPU)
    monkeypatch.setitem(sys.modules, "cuvs", None)
    for name in [name for name in sys.modules if name.startswith("cuvs.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingDependencyError, match="cuvs is needed for neighbours:search=cuvs"):
        by_cuvs(exact, 8, tmp_path / "work", GPU)
    with pytest.raises(InputError, match="neighbours:search=cuvs: computes on a GPU"):  # before anything is encoded
        main(["--documents", "pydoc", "--output", str(tmp_path / "new"), "--parts", "dense,neighbours:search=cuvs"])
    assert not (tmp_path / "new").exists()
