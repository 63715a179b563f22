"""MaxSim of late interaction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.rnn import checks

PRODUCTS = 1 << 17  # of query and document tokens at a time: they stay in the cache
WHOLE = 32  # tokens are padded to multiples, so that BLAS sums each product in the same way, wherever it is in a block
LEAST = 1 << 20  # multiplications of a block: BLAS takes another way for few, which sums long rows in other parts


def maxsim(
    query_tokens: np.ndarray,
    document_tokens: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    offsets: np.ndarray | Sequence[int] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """(N,) float32: the sum over a query's tokens i of max_j q_i . d_j over a document's tokens j (paper 002, eq. 1).

    A document without tokens scores 0. A score depends on query and document alone, to the last bit. Tokens are not
    normalised.

    Args:
        query_tokens: (q, d); cast to float32.
        document_tokens: (N, t, d), or (T, d) with `offsets`; cast to float32.
        mask: (N, t), which tokens are real; None = all.
        offsets: (N + 1,) ascending from 0 to T: document r has document_tokens[offsets[r]:offsets[r + 1]].
        threads: at most; None = one per core.

    Raises:
        InputError: shapes that do not fit, NaN or infinity in a token.

    >>> query = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> documents = np.array([[0.6, 0.8], [0.8, 0.6], [0.0, 1.0]])
    >>> maxsim(query, documents, offsets=[0, 2, 2, 3]).round(3).tolist()
    [1.600000023841858, 0.0, 1.0]
    """
    query = checks.vectors(query_tokens, "query_tokens", "(q, d)")
    if offsets is not None:
        if mask is not None:
            raise InputError("mask beside offsets, which say where documents end; give one of the two")
        tokens, bounds = (
            checks.vectors(document_tokens, "document_tokens", "(T, d)"),
            checks.integers(offsets, "offsets"),
        )
        if bounds.ndim != 1 or [*bounds[:1], *bounds[-1:]] != [0, len(tokens)] or (np.diff(bounds) < 0).any():
            raise InputError(
                f"offsets: expected whole numbers that ascend from 0 to {len(tokens)}, the number of tokens"
            )
    else:
        padded = checks.vectors(document_tokens, "document_tokens", "(N, t, d)")
        real = np.ones(padded.shape[:2], dtype=bool) if mask is None else np.asarray(mask).astype(bool)
        if real.shape != padded.shape[:2]:
            raise InputError(f"mask has shape {real.shape}: expected {padded.shape[:2]}, one for each token")
        tokens, bounds = padded[real], np.append(0, np.cumsum(real.sum(axis=1)))
    checks.same_dimension(query, "query_tokens", tokens, "document_tokens")
    scores: np.ndarray = ragged_maxsim(query, np.array([0, len(query)]), tokens, bounds, threads=threads)[0]
    return scores


def ragged_maxsim(
    queries: np.ndarray,
    query_offsets: np.ndarray,
    tokens: np.ndarray,
    offsets: np.ndarray,
    *,
    rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """(Q, n) float32: MaxSim of queries of any lengths, weighted by their tokens' weights, (P,) float64.

    queries: (P, d), query i is queries[query_offsets[i]:query_offsets[i + 1]]; rows: (n,) int64, documents, None = all;
    others as in `maxsim`.
    """
    asked = np.ascontiguousarray(queries, dtype=np.float32)
    factors = np.ones(len(asked)) if weights is None else weights
    if not np.isfinite(asked).all():
        raise InputError("query_tokens has NaN or infinite values; expected finite ones")
    chosen = np.arange(len(offsets) - 1) if rows is None else rows
    lengths, filled = np.diff(offsets)[chosen], np.flatnonzero(np.diff(query_offsets))
    whole = np.zeros((max(_whole(len(asked)), WHOLE), asked.shape[1]), dtype=np.float32)
    whole[: len(asked)] = asked
    out, least = np.zeros((len(query_offsets) - 1, len(chosen))), _whole(LEAST // whole.size + 1)
    own = np.flatnonzero(lengths) if len(filled) else filled  # those that have tokens
    block = np.cumsum(lengths[own]) // max(WHOLE, PRODUCTS // len(whole))
    parts = np.split(own, np.flatnonzero(np.diff(block)) + 1) if len(own) else []
    coming = iter(parts)

    @np.errstate(all="ignore")  # infinities are seen in the result
    def work() -> None:
        for part in coming:  # each thread takes the next part
            ends = np.cumsum(lengths[part])
            starts, count = ends - lengths[part], int(ends[-1])
            block = np.zeros((max(least, _whole(count)), asked.shape[1]), dtype=np.float32)
            for row, start, end in zip(chosen[part].tolist(), starts.tolist(), ends.tolist(), strict=True):
                block[start:end] = tokens[offsets[row] : offsets[row + 1]]
            products = (block @ whole.T)[:count, : len(asked)]
            maxima = np.maximum.reduceat(products, starts, axis=0)
            if not np.isfinite(products).all():
                maxima += 0 * np.add.reduceat(products, starts, axis=0)  # NaN for whom it is
            out[np.ix_(filled, part)] = np.add.reduceat(maxima * factors, query_offsets[filled], axis=1).T

    checks.in_threads(work, min(checks.threads_of(threads) or cores(), len(parts)))
    if (wrong := np.flatnonzero(~np.isfinite(out).all(axis=0))).size:
        raise InputError(
            f"document {chosen[wrong[0]]} has NaN or infinite tokens, or products beyond float32; expected finite ones"
        )
    return out.astype(np.float32)


def _whole(count: int) -> int:
    return -(-count // WHOLE) * WHOLE


def token_similarities(
    query: np.ndarray,
    tokens: np.ndarray,
    offsets: np.ndarray,
    *,
    rows: np.ndarray,
    threads: int | None = None,
) -> np.ndarray:
    """(m, m) float32, symmetric: similarities of a query, element 0, and n = m - 1 documents by their tokens.

    With |x| the number of tokens of x, s_0i = MaxSim(q, d_i) / |q| and s_ij = (MaxSim(d_i, d_j) / |d_i| + MaxSim(d_j,
    d_i) / |d_j|) / 2; 0 without tokens.
    """
    asked = [query, *(tokens[offsets[row] : offsets[row + 1]] for row in rows.tolist())]
    sizes = np.array([len(one) for one in asked])
    query_offsets = np.concatenate([[0], np.cumsum(sizes)])
    flat = np.concatenate([one.astype(np.float32) for one in asked])
    scores = ragged_maxsim(flat, query_offsets, tokens, offsets, rows=rows, threads=threads).astype(np.float64)
    scores /= np.maximum(sizes, 1)[:, None]
    similarities = np.empty((len(sizes), len(sizes)))
    similarities[0, 1:] = similarities[1:, 0] = scores[0]
    similarities[1:, 1:] = (scores[1:] + scores[1:].T) / 2
    similarities[0, 0] = (query.astype(np.float64) ** 2).sum(axis=1).mean() if len(query) else 0.0
    return similarities.astype(np.float32)
