"""Contexts whose similarities come from a graph of neighbours, as the engines take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import refusals
from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.smoothing import Closest

LARGEST = float(np.finfo(np.float32).max)


class GraphContexts(NamedTuple):
    """A graph, and queries with the rows of their candidates in it.

    edges: (D, K) uint32; weights: (D, K) float16; rows: (B, N) int64, distinct within a context, which is the first
    sizes - 1 of its row; query: (B, N) float32, finite, or None; sizes: (B,) int64, elements of a context.
    """

    edges: np.ndarray
    weights: np.ndarray
    rows: np.ndarray
    query: np.ndarray | None
    sizes: np.ndarray

    def part(self, of: slice) -> GraphContexts:
        """Some of the contexts, no wider than they are."""
        sizes = self.sizes[of]
        width = int(sizes.max()) - 1
        query = None if self.query is None else self.query[of, :width]
        return GraphContexts(self.edges, self.weights, self.rows[of, :width], query, sizes)


class GraphEngine(Protocol):
    """What turns a chunk of contexts of a graph into Jaccard similarities: the compiled kernel or numpy."""

    def __call__(
        self,
        contexts: GraphContexts,
        setting: EngineSetting,
        probes: np.ndarray,
        out: np.ndarray,
        problem: np.ndarray,
        closest: Closest | None = None,
    ) -> None:
        """Fill the first entries of each row of `out`, and `closest` where it is given.

        setting, probes, out, problem, closest: as `chunks.Engine`, closest of known
        candidates alone; NaN in `problem`: a similarity of two documents of the context is not finite.
        """


def as_mapped(edges: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(D, K) uint32 and (D, K) uint16, the bits of the weights, read-only as a mapped graph is.

    numba compiles once for each kind of array that it is handed.
    """
    near = np.ascontiguousarray(edges).view(np.ndarray)
    similar = np.ascontiguousarray(weights).view(np.ndarray).view(np.uint16)
    near.flags.writeable = similar.flags.writeable = False
    return near, similar


def checked(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    query: np.ndarray | None,
    lengths: np.ndarray | Sequence[int] | None,
) -> GraphContexts:
    """What `graph_similarity` is handed, as contexts; products with the query are 0 at padding.

    Raises:
        InputError: shapes or types that do not fit, rows beyond the graph, products that are not finite.
    """
    for name, given in (("edges", edges), ("weights", weights)):
        if not isinstance(given, np.ndarray):
            raise InputError(f"{name} is a {type(given).__name__}: expected an array (D, K)")
    if edges.ndim != 2 or edges.shape != weights.shape or not edges.size:
        raise InputError(f"edges has shape {edges.shape} and weights {weights.shape}: expected (D, K) both")
    if edges.dtype != np.uint32 or weights.dtype != np.float16:
        raise InputError(f"edges has type {edges.dtype} and weights {weights.dtype}: expected uint32 and float16")
    refusals.rows_of_graph(params)
    rows = refusals.integers(rows, "rows")
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"rows has shape {rows.shape}: expected (B, N), at least one candidate per query")
    real = refusals.lengths_of(lengths, len(rows), rows.shape[1])
    columns = np.arange(rows.shape[1]) < real[:, None]
    if (beyond := columns & ((rows < 0) | (rows >= len(edges)))).any():
        row, column = np.argwhere(beyond)[0].tolist()
        raise InputError(
            f"rows[{row}, {column}]={rows[row, column]}: expected 0 to {len(edges) - 1}, those of the graph"
        )
    rows = np.ascontiguousarray(np.where(columns, rows, 0))
    if query is None:
        return GraphContexts(edges, weights, rows, None, real + 1)
    products = refusals.base_scores(query, real, rows.shape[1], "query")
    assert products is not None
    if np.abs(products).max(initial=0) > LARGEST:
        raise InputError(f"query: inner products beyond {LARGEST:g}; scale the vectors down")
    return GraphContexts(edges, weights, rows, products.astype(np.float32), real + 1)
