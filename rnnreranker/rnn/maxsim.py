"""MaxSim of late interaction."""

from __future__ import annotations

import itertools
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
    tokens, bounds = _ragged(document_tokens, mask, offsets)
    if query.shape[1] != tokens.shape[1]:
        raise InputError(
            f"the dimension of query_tokens is {query.shape[1]}, that of document_tokens {tokens.shape[1]}: "
            "expected the same; were both made by the same encoder?"
        )
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
    lengths = np.diff(offsets)[chosen]
    whole = np.zeros((_whole(len(asked)), asked.shape[1]), dtype=np.float32)
    whole[: len(asked)] = asked
    filled = np.flatnonzero(np.diff(query_offsets))
    out = np.zeros((len(query_offsets) - 1, len(chosen)))
    parts = _parts(lengths, max(WHOLE, PRODUCTS // len(whole))) if len(filled) else []
    least, coming = _whole(LEAST // whole.size + 1) if len(filled) else 0, iter(parts)
    largest = max(least, *(_whole(int(lengths[first:last].sum())) for first, last in parts)) if parts else 0

    @np.errstate(all="ignore")  # infinities are seen in the result
    def work() -> None:
        block = np.empty((largest, asked.shape[1]), dtype=np.float32)
        room = np.empty((largest, len(whole)), dtype=np.float32)
        for first, last in coming:  # each thread takes the next part
            own = first + np.flatnonzero(lengths[first:last])  # those that have tokens
            starts = np.concatenate([[0], np.cumsum(lengths[own])])
            for row, start, end in zip(chosen[own].tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                block[start:end] = tokens[offsets[row] : offsets[row + 1]]
            count = int(starts[-1])
            padded = max(least, _whole(count))
            block[count:padded] = 0.0
            products = np.matmul(block[:padded], whole.T, out=room[:padded])[:count]
            maxima = np.maximum.reduceat(products, starts[:-1], axis=0)[:, : len(asked)]
            if not np.isfinite(products).all():
                maxima += 0 * np.add.reduceat(products, starts[:-1], axis=0)[:, : len(asked)]  # NaN for whom it is
            terms = maxima.astype(np.float64) * factors
            out[np.ix_(filled, own)] = np.add.reduceat(terms, query_offsets[filled], axis=1).T

    checks.in_threads(work, min(checks.threads_of(threads) or cores(), len(parts)))
    if (wrong := np.flatnonzero(~np.isfinite(out).all(axis=0))).size:
        raise InputError(
            f"document {chosen[wrong[0]]} has NaN or infinite tokens, or products beyond float32; expected finite ones"
        )
    return out.astype(np.float32)


def _whole(count: int) -> int:
    return -(-count // WHOLE) * WHOLE


def _parts(lengths: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Ranges of documents with at most `most` tokens together, or one longer document."""
    of = np.cumsum(lengths) // most if len(lengths) else lengths
    bounds = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(lengths)]
    return [(first, last) for first, last in itertools.pairwise(bounds) if lengths[first:last].any()]


def _ragged(
    document_tokens: np.ndarray, mask: np.ndarray | None, offsets: np.ndarray | Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens (T, d) of all documents and where each begins, (N + 1,) int64."""
    if offsets is not None:
        if mask is not None:
            raise InputError("mask beside offsets, which say where documents end; give one of the two")
        tokens = checks.vectors(document_tokens, "document_tokens", "(T, d)")
        bounds, count = checks.integers(offsets, "offsets"), len(tokens)
        if bounds.ndim != 1 or [*bounds[:1], *bounds[-1:]] != [0, count] or (np.diff(bounds) < 0).any():
            raise InputError(f"offsets: expected whole numbers that ascend from 0 to {count}, the number of tokens")
        return tokens, bounds
    tokens = checks.vectors(document_tokens, "document_tokens", "(N, t, d)")
    count, length, dimension = tokens.shape
    if mask is None:
        return tokens.reshape(-1, dimension), np.arange(count + 1) * length
    real = np.asarray(mask)
    if real.shape != (count, length):
        raise InputError(f"mask has shape {real.shape}: expected ({count}, {length}), one for each token")
    return tokens[real.astype(bool)], np.concatenate([[0], np.cumsum(real.astype(bool).sum(axis=1))]).astype(np.int64)


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
