"""The public functions on vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import checks, reference
from rnnreranker.rnn.contexts import ContextBatch, engine_for, padded, scored, similarities
from rnnreranker.rnn.params import RnnParams

Load = Callable[[int, np.ndarray], np.ndarray]  # returns a context's vectors: the given array, filled, or a view
Lengths = np.ndarray | Sequence[int] | None
Base = np.ndarray | Sequence[Sequence[float]] | None


def rnn_similarity(
    queries: np.ndarray,
    candidates: np.ndarray,
    params: RnnParams,
    *,
    base: Base = None,
    lengths: Lengths = None,
    threads: int | None = None,
    reciprocal: bool = True,
) -> np.ndarray:
    """s* of every candidate: (B, N) float32, in candidate order; -inf for padding.

    s* mixes first stage, inner product with the query and Jaccard similarity of reciprocal neighbours; see `RnnParams`,
    whose `context` is ignored. Scale "none" gives lambda s(q, c) + (1 - lambda) J(q, c) (Zerveas et al. eq. 1);
    "minmax" gives [0, 1].

    queries: (B, d); candidates: (B, N, d), N >= 1; cast to float32.
    base: (B, N) first-stage scores; candidates are in first-stage order. None = inner products, with candidates in
    any order.
    lengths: (B,) real candidates of each row, 0..N (None = all). threads: maximum (None = one per core), with the
    same results. reciprocal: False = the neighbours of an element need not have it among theirs.

    Raises:
        InputError: no `RnnParams`, shapes that do not fit, NaN or infinity in a vector or in base, lengths outside
            0..N, an exponential weight that would overflow.

    >>> import numpy as np
    >>> query = np.array([[1.0, 0.0]], dtype=np.float32)
    >>> near_and_far = np.array([[[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]], dtype=np.float32)
    >>> rnn_similarity(query, near_and_far, RnnParams(k=1)).argsort().tolist()
    [[2, 1, 0]]
    """
    queries = checks.vectors(queries, "queries", "(B, d)")
    candidates = checks.vectors(candidates, "candidates", "(B, N, d)")
    if len(queries) != len(candidates):
        raise InputError(f"queries has {len(queries)} rows and candidates {len(candidates)}: expected as many")
    checks.same_dimension(queries, "queries", candidates, "candidates")
    width = candidates.shape[1]
    if width == 0:
        raise InputError(f"candidates has shape {candidates.shape}: expected at least one candidate per query")
    real = checks.lengths_of(lengths, len(queries), width)

    def load(row: int, into: np.ndarray) -> np.ndarray:
        into[0] = queries[row]
        into[1:] = candidates[row, : len(into) - 1]
        return into

    contexts, known = of_vectors(load, real, queries.shape[1]), checks.scores_of(base, real, width)
    return similarities(contexts, params, known, width, threads=threads, reciprocal=reciprocal)


def jaccard_similarity(
    vectors: np.ndarray,
    params: RnnParams,
    *,
    probes: Sequence[int] = (0,),
    lengths: Lengths = None,
    threads: int | None = None,
    reciprocal: bool = True,
) -> np.ndarray:
    """Jaccard similarity of each probe to every element: (B, len(probes), m) float32; -inf for padding.

    J = sum_j min(v_pj, v_ij) / sum_j max(v_pj, v_ij) over the expanded weights (paper 000, eq. 11, as a similarity). J
    is finite, in [0, 1] for weights >= 0, and 0 for elements without neighbours.

    vectors: (B, m, d), row 0 = query, m >= 2; cast to float32.
    probes: row numbers of `vectors`; 0 = the query.
    lengths: (B,) real candidates, without the query (None = all). threads, reciprocal: as in `rnn_similarity`.

    Raises:
        InputError: as `rnn_similarity`, and a probe outside 0..m-1.

    >>> import numpy as np
    >>> same = np.ones((1, 3, 2), dtype=np.float32)
    >>> jaccard_similarity(same, RnnParams(k=2, scale="none"), probes=(0, 1)).tolist()
    [[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]]
    """
    with np.errstate(over="ignore"):  # infinities are refused below
        vectors = np.ascontiguousarray(checks.vectors(vectors, "vectors", "(B, m, d)"), dtype=np.float32)
    batch, width, dimension = vectors.shape
    if width < 2:
        raise InputError(f"vectors has shape {vectors.shape}: expected row 0 (the query) and at least one candidate")
    rows = checks.integers(probes, "probes")
    if rows.ndim != 1 or not rows.size or rows.min() < 0 or rows.max() >= width:
        raise InputError(f"probes={probes!r}: expected row numbers of vectors, 0 (the query) to {width - 1}")
    real = checks.lengths_of(lengths, batch, width - 1)
    contexts = of_vectors(lambda row, into: vectors[row, : len(into)], real, dimension, "vector")
    return jaccard_of(contexts, params, np.tile(rows, (batch, 1)), width, threads=threads, reciprocal=reciprocal)


def jaccard_of(contexts: ContextBatch, params: RnnParams, probes: np.ndarray, width: int, **how: Any) -> np.ndarray:
    """(B, P, width) float32: the Jaccard similarities of probes, (B, P), -inf at padding; a row of 0 for probe -1.

    how: threads and reciprocal, as in `rnn_similarity`.
    """
    sizes = contexts.sizes[:, None]
    jaccard, *_ = scored(contexts, params, np.ascontiguousarray(probes), engine_for(contexts.sizes), **how)
    return padded(jaccard, np.where((probes < sizes) & (sizes > 1), sizes, 0), width)


def given_similarity(similarity: np.ndarray, params: RnnParams, *, base: np.ndarray | None = None) -> np.ndarray:
    """(N,) float32: as `rnn_similarity` for one query, but from a matrix of similarities.

    similarity: (N + 1, N + 1), symmetric, row 0 the query; base: (N,) scores of a first stage, None = row 0.

    Raises:
        InputError: another shape, NaN or infinity, an exponential weight that would overflow.
    """
    matrix = checks.vectors(similarity, "similarities", "(m, m)").astype(np.float32)
    m = len(matrix)
    if matrix.shape != (m, m) or m < 2 or not np.isfinite(matrix).all():
        raise InputError(
            f"similarities has shape {matrix.shape}, or NaN or infinite values: expected (m, m) finite ones, of the "
            "query and at least one candidate"
        )
    known = checks.scores_of(None if base is None else np.asarray(base)[None], np.array([m - 1]), m - 1)

    def fill(part: slice, gram: np.ndarray, shift_free: bool) -> None:
        gram[0, :m, :m] = matrix

    return similarities(ContextBatch(np.array([m]), fill, str), params, known, m - 1)[0]


def of_vectors(load: Load, real: np.ndarray, dimension: int, what: str = "candidate") -> ContextBatch:
    """The contexts of vectors: their matrices are products X Xᵀ."""
    sizes = real + 1

    def fill(part: slice, gram: np.ndarray, shift_free: bool) -> None:
        rows = np.empty((int(sizes[part].max()), dimension), dtype=np.float32)
        for sims, m, b in zip(gram, sizes[part].tolist(), range(part.start, part.stop), strict=True):
            if m > 1:
                context, products = load(b, rows[:m]), sims[:m, :m]
                if shift_free:
                    reference.inner_products(context, shift_free=True, out=products)
                else:  # both operands the same array: NumPy calls syrk
                    np.matmul(context, context.T, out=products)

    def broken(row: int) -> str:
        with np.errstate(all="ignore"):
            vectors = load(row, np.empty((int(sizes[row]), dimension), dtype=np.float32))
        for wrong in np.flatnonzero(~np.isfinite(vectors).all(axis=1))[:1].tolist():
            element = f"{what} {wrong - (what == 'candidate')}" if wrong else "the query"
            return f"{element} has NaN or infinite entries (as float32); expected finite vectors"
        return "inner products beyond the range of float32; scale the vectors down"

    return ContextBatch(sizes, fill, broken, products=True)
