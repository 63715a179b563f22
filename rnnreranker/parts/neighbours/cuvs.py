"""The nearest other documents as cuVS, NVIDIA's library of searches on GPUs, proposes them; float64 decides.

Written by the documentation of cuVS 26.02 (`cuvs.neighbors.all_neighbors.build`), and untried: there was no such GPU.
Its graphs of neighbours are made by NN-descent, cluster by cluster where a GPU does not hold all vectors. They differ
from one build to the next, so what was proposed is kept as a file until the graph is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.parts.neighbours import approximate
from rnnreranker.parts.neighbours.approximate import SPARE, ProposedNeighbours, recall_of, sample_of
from rnnreranker.parts.neighbours.nearest import COLUMNS, DenseNeighbours
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.vectors.npy_files import map_array, put_array

LEAST, MOST = 64, 256  # documents proposed of each: at first, and when more are asked for
CLUSTERS = 2  # that a document is put into, where there are several: the default of cuVS
ROOM = 4  # times the vectors of a cluster, what making its graph takes of a GPU's memory: assumed


class CuvsNeighbours(ProposedNeighbours):
    """A `GraphSource` of N vectors whose nearest are proposed by a file.

    Args:
        exact: the vectors; file: (N, width) documents, uint32.
    """

    search = "cuvs"

    def __init__(self, exact: DenseNeighbours, file: Path) -> None:
        self._proposed = map_array(file)
        super().__init__(exact, self._proposed.shape[1])
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens vectors and file itself."""
        return CuvsNeighbours, (self.exact, self.file)

    def proposed(self, rows: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
        return self._proposed[rows].astype(np.int64)


def library(half: tuple[HalfProducts, ...]) -> tuple[Any, Any]:
    """The modules of cuVS for all neighbours, and for NN-descent.

    Raises:
        InputError: no GPU of CUDA was given; MissingDependencyError: cuVS is not installed.
    """
    if not half or not half[0].device.startswith("cuda"):
        raise InputError(f"neighbours:search=cuvs: computes on a GPU of CUDA; expected {argument('device', 'cuda')}")
    needed = "neighbours:search=cuvs", "cuvs-cu12 (of pypi.nvidia.com, for GPUs of CUDA 12)"
    return require("cuvs.neighbors.all_neighbors", *needed), require("cuvs.neighbors.nn_descent", *needed)


def by_cuvs(exact: DenseNeighbours, k: int, work: Path, half: tuple[HalfProducts, ...]) -> CuvsNeighbours:
    """What cuVS proposes, in the folder `work`: twice as many of each document until the goal of a sample is reached.

    Args:
        half: GPUs, on the first of which it computes, and how much of their memory is for this.

    Raises:
        InputError, MissingDependencyError: as `library`; the goal is not reached by `MOST`.
    """
    modules = library(half)
    work.mkdir(parents=True, exist_ok=True)
    rows, nearest = sample_of(exact, k, work)
    width, most = max(LEAST, k + 1 + SPARE), len(exact.docids) - 1
    while True:
        file = work / f"cuvs-{fingerprint(exact.fingerprint, min(width, most))}.npy"
        if not file.is_file():
            put_array(file, _all_neighbors(modules, exact, min(width, most), work, half[0].room()))
        source = CuvsNeighbours(exact, file)
        recall = recall_of(source.nearest(rows, k)[0], nearest)
        if recall >= approximate.GOAL:
            return source
        if width >= min(MOST, most):
            raise InputError(
                f"neighbours:search=cuvs: {recall:.1%} of the {k} nearest of {len(rows)} documents are among the "
                f"{min(width, most)} that cuVS proposes of each; expected {approximate.GOAL:.0%}: give ivf or exact"
            )
        width *= 2


def _all_neighbors(modules: tuple[Any, Any], exact: DenseNeighbours, width: int, work: Path, memory: int) -> np.ndarray:
    """(N, width) uint32: the documents that cuVS takes for the nearest of each; memory: bytes of the GPU.

    Vectors are read from a file in float32, which is mapped: more clusters than one are of vectors outside the GPU.
    """
    all_neighbors, nn_descent = modules
    count, dimension = len(exact.docids), exact.vectors.dimension
    clusters = -(-count * dimension * 4 * CLUSTERS * ROOM // memory)
    clusters = 1 if clusters <= CLUSTERS else max(CLUSTERS + 1, clusters)
    made_of = work / "cuvs-vectors.npy"
    vectors = np.lib.format.open_memmap(made_of, mode="w+", dtype=np.float32, shape=(count, dimension))
    for first in range(0, count, COLUMNS):
        rows = np.arange(first, min(first + COLUMNS, count))
        vectors[rows] = exact.vectors.fetch(rows)
    metric = "inner_product"
    descent = nn_descent.IndexParams(metric=metric, graph_degree=width, intermediate_graph_degree=2 * width)
    params = all_neighbors.AllNeighborsParams(
        algo="nn_descent", overlap_factor=CLUSTERS, n_clusters=clusters, metric=metric, nn_descent_params=descent
    )
    indices = all_neighbors.build(vectors, width, params)
    indices = np.asarray(indices.copy_to_host() if hasattr(indices, "copy_to_host") else indices)
    made_of.unlink()
    if indices.shape != (count, width) or indices.dtype.kind not in "iu":
        raise InputError(
            f"neighbours:search=cuvs: cuVS gave {indices.dtype} of shape {indices.shape}; expected row numbers of "
            f"shape {(count, width)}: it was written for cuVS 26.02; give ivf or exact"
        )
    own = np.arange(count)[:, None]
    return np.where((indices >= 0) & (indices < count), indices, own).astype(np.uint32)
