"""MaxSim of late interaction: how well the tokens of documents answer those of a query, one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.base.process.phases import phase
from rnnreranker.rnn import refusals
from rnnreranker.rnn.engines.when_compiled import compiles

CHUNK_TOKENS = 1 << 15  # of documents that a thread takes at a time

# fills out (Q, n) with scores; queries (q, d) float32, offsets (Q + 1,), weights (q,), tokens (T, d), starts, ends (n,)
Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


def maxsim(
    query_tokens: np.ndarray,
    document_tokens: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    offsets: np.ndarray | Sequence[int] | None = None,
    rows: np.ndarray | Sequence[int] | None = None,
    weights: np.ndarray | Sequence[float] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """The sum over a query's tokens i of w_i max_j q_i . d_j over the document's tokens j (paper 002, eq. 1).

    Larger = more relevant; a document without tokens scores 0. A score depends on the query and the document alone, to
    the last bit: not on the others of the batch or on the number of threads. Tokens are not normalised here.

    Args:
        query_tokens: (q, d), or (Q, q, d) for several queries; cast to float32.
        document_tokens: (N, t, d), or (T, d) with the documents one after the other and `offsets`; float32 or float16
            in C order are read as they lie, others are cast to float32. float16 is multiplied as float32.
        mask: (N, t), which tokens are real; None = all. What is not real is never looked at.
        offsets: (N + 1,) ascending from 0 to T: document r has document_tokens[offsets[r]:offsets[r + 1]].
        rows: (n,) documents that are scored, in this order; None = all.
        weights: (q,) or (Q, q), w_i; None = 1. A token of weight 0 does not count, so that shorter queries may be
            padded with them.
        threads: how many at most; None = one per core.

    Returns:
        (n,) float32 for one query, (Q, n) for several.

    Raises:
        InputError: shapes that do not fit, NaN or infinity in a token of a document that is scored, a query or weights.

    >>> query = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> documents = np.array([[0.6, 0.8], [0.8, 0.6], [0.0, 1.0]])
    >>> maxsim(query, documents, offsets=[0, 2, 2, 3]).round(3).tolist()
    [1.600000023841858, 0.0, 1.0]
    """
    queries = np.asarray(query_tokens)
    several = queries.ndim == 3
    queries = refusals.vectors(queries, "query_tokens", "(Q, q, d)" if several else "(q, d)")
    tokens, bounds = _ragged(document_tokens, mask, offsets)
    if queries.shape[-1] != tokens.shape[1]:
        raise InputError(
            f"the dimension of query_tokens is {queries.shape[-1]}, that of document_tokens {tokens.shape[1]}: "
            "expected the same; were both made by the same encoder?"
        )
    count, length = (queries.shape[0] if several else 1), queries.shape[-2]
    factors = np.ones(count * length) if weights is None else np.asarray(weights, dtype=np.float64).reshape(-1)
    if weights is not None and np.shape(weights) != queries.shape[:-1]:
        raise InputError(f"weights has shape {np.shape(weights)}: expected {queries.shape[:-1]}, one for each token")
    scores = ragged_maxsim(
        queries.reshape(-1, queries.shape[-1]),
        np.arange(count + 1) * length,
        tokens,
        bounds,
        rows=rows,
        weights=factors,
        threads=threads,
    )
    return scores if several else scores[0]


def ragged_maxsim(
    queries: np.ndarray,
    query_offsets: np.ndarray,
    tokens: np.ndarray,
    offsets: np.ndarray,
    *,
    rows: np.ndarray | Sequence[int] | None = None,
    weights: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """(Q, n) float32: MaxSim as `maxsim` has it, of queries of any lengths; errors as `maxsim`.

    Args:
        queries: (P, d), the queries one after the other; query_offsets: (Q + 1,) int64 ascending: query i has
            queries[query_offsets[i]:query_offsets[i + 1]].
        tokens: (T, d); offsets: (N + 1,); rows, threads: as of `maxsim`; weights: (P,) float64; None = 1.
    """
    if tokens.dtype not in (np.float32, np.float16) or not tokens.flags.c_contiguous:
        tokens = np.ascontiguousarray(tokens, dtype=np.float32)
    asked = np.ascontiguousarray(queries, dtype=np.float32)
    factors = np.ones(len(asked)) if weights is None else weights
    for name, values in (("query_tokens", asked), ("weights", factors)):
        if not np.isfinite(values).all():
            raise InputError(f"{name} has NaN or infinite values; expected finite ones")
    chosen = _chosen(rows, len(offsets) - 1)
    starts, ends = offsets[:-1][chosen], offsets[1:][chosen]
    out = np.empty((len(query_offsets) - 1, len(chosen)))
    sizes = np.cumsum(ends - starts)
    number = int(sizes[-1] // CHUNK_TOKENS) + 1 if len(sizes) else 0
    bounds = np.searchsorted(sizes, np.arange(number) * CHUNK_TOKENS, side="right")
    bounds = np.unique([0, *bounds.tolist(), len(chosen)])
    run = scorer()

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        scores = np.empty((len(out), last - first))
        run(asked, query_offsets, factors, tokens, starts[part], ends[part], scores)
        out[:, part] = scores

    parts = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    workers = min(refusals.threads_of(threads) or cores(), len(parts))
    with one_blas_thread():
        if workers < 2:
            for part in parts:
                work(*part)
        else:
            with ThreadPoolExecutor(workers, thread_name_prefix="rnnreranker") as pool:
                for done in [pool.submit(work, *part) for part in parts]:
                    done.result()
    if (wrong := np.flatnonzero(~np.isfinite(out).all(axis=0))).size:
        raise InputError(
            f"document {chosen[wrong[0]]} has NaN or infinite tokens, or products beyond float32; expected finite ones"
        )
    return out.astype(np.float32)


@lru_cache(maxsize=1)
def scorer() -> Scorer:
    """The compiled engine, or numpy where numba is missing or switched off (NUMBA_DISABLE_JIT)."""
    if not compiles():
        return _with_numpy
    with phase("loading the kernel, which a first use on a machine compiles", "kernel"):
        from rnnreranker.rnn.late.kernel import score

        one, bounds = np.zeros((1, 1), dtype=np.float32), np.arange(2)
        score(one, bounds, np.ones(1), one, bounds[:1], bounds[1:], np.ones((1, 1)))
    return score


@np.errstate(all="ignore")  # infinities are seen in the result
def _with_numpy(
    queries: np.ndarray,
    query_offsets: np.ndarray,
    weights: np.ndarray,
    tokens: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    out: np.ndarray,
) -> None:
    for column, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        document = tokens[start:end].astype(np.float32)
        for query, (first, last) in enumerate(itertools.pairwise(query_offsets.tolist())):
            products = queries[first:last] @ document.T
            maxima = products.max(axis=1, initial=-np.inf) + (0 * products).sum(axis=1)
            out[query, column] = weights[first:last] @ maxima.astype(np.float64) if start < end else 0.0


def _ragged(
    document_tokens: np.ndarray, mask: np.ndarray | None, offsets: np.ndarray | Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens (T, d) of all documents and where each begins, (N + 1,) int64."""
    if offsets is not None:
        if mask is not None:
            raise InputError("mask beside offsets, which say where documents end; give one of the two")
        tokens = refusals.vectors(document_tokens, "document_tokens", "(T, d)")
        bounds, count = refusals.integers(offsets, "offsets"), len(tokens)
        if bounds.ndim != 1 or [*bounds[:1], *bounds[-1:]] != [0, count] or (np.diff(bounds) < 0).any():
            raise InputError(f"offsets: expected whole numbers that ascend from 0 to {count}, the number of tokens")
        return tokens, bounds
    tokens = refusals.vectors(document_tokens, "document_tokens", "(N, t, d)")
    count, length, dimension = tokens.shape
    if mask is None:
        return tokens.reshape(-1, dimension), np.arange(count + 1) * length
    real = np.asarray(mask)
    if real.shape != (count, length):
        raise InputError(f"mask has shape {real.shape}: expected ({count}, {length}), one for each token")
    return tokens[real.astype(bool)], np.concatenate([[0], np.cumsum(real.astype(bool).sum(axis=1))]).astype(np.int64)


def _chosen(rows: np.ndarray | Sequence[int] | None, count: int) -> np.ndarray:
    if rows is None:
        return np.arange(count)
    chosen = refusals.integers(rows, "rows")
    if chosen.ndim != 1 or (len(chosen) and (chosen.min() < 0 or chosen.max() >= count)):
        raise InputError(f"rows: expected numbers of documents, 0 to {count - 1}")
    return chosen


def token_similarities(
    query: np.ndarray,
    tokens: np.ndarray,
    offsets: np.ndarray,
    *,
    rows: np.ndarray | Sequence[int] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """(m, m) float32, symmetric: how alike a query, element 0, and n = m - 1 documents are by their tokens.

    With |x| the number of tokens of x, s_0i = MaxSim(q, d_i) / |q| and s_ij = (MaxSim(d_i, d_j) / |d_i| +
    MaxSim(d_j, d_i) / |d_j|) / 2: means of largest products, cosines where tokens have length 1. What has none has 0.

    Args:
        query: (q, d); tokens, offsets, rows, threads: as of `maxsim`.

    Raises:
        InputError: as `maxsim`.
    """
    chosen = _chosen(rows, len(offsets) - 1)
    lengths = np.diff(offsets)[chosen]
    asked = [query, *(tokens[offsets[row] : offsets[row + 1]] for row in chosen.tolist())]
    sizes = np.array([len(query), *lengths.tolist()])
    query_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat = np.concatenate([one.astype(np.float32) for one in asked])
    scores = ragged_maxsim(flat, query_offsets, tokens, offsets, rows=chosen, threads=threads).astype(np.float64)
    scores /= np.maximum(sizes, 1)[:, None]
    similarities = np.empty((len(sizes), len(sizes)))
    similarities[0, 1:] = similarities[1:, 0] = scores[0]
    similarities[1:, 1:] = (scores[1:] + scores[1:].T) / 2
    similarities[0, 0] = (query.astype(np.float64) ** 2).sum(axis=1).mean() if len(query) else 0.0
    return similarities.astype(np.float32)
