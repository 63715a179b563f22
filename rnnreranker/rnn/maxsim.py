"""MaxSim of late interaction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError, count_of
from rnnreranker.rnn import checks
from rnnreranker.rnn.contexts import in_threads

LARGEST = 1e17  # length of all tokens of a text: no inner product of two tokens overflows


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
        count, width, dimension = padded.shape
        tokens, bounds = padded.reshape(count * width, dimension), np.arange(count + 1) * width
        if mask is not None:
            real = np.asarray(mask).astype(bool)
            if real.shape != (count, width):
                raise InputError(f"mask has shape {real.shape}: expected {(count, width)}, one for each token")
            tokens, bounds = padded[real], np.append(0, np.cumsum(real.sum(axis=1)))
    checks.same_dimension(query, "query_tokens", tokens, "document_tokens")
    return ragged_maxsim(query, np.array([0, len(query)]), tokens, bounds, threads=threads)[0]


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused
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
    asked = _finite(queries, "query_tokens has").T
    factors = np.ones(len(queries)) if weights is None else weights
    bounds = [*itertools.pairwise(query_offsets.tolist())]
    chosen = np.arange(len(offsets) - 1) if rows is None else rows
    out, coming = np.zeros((len(bounds), len(chosen)), dtype=np.float32), iter(enumerate(chosen.tolist()))

    @np.errstate(over="ignore", invalid="ignore")  # of this thread
    def work() -> None:
        for at, row in coming:  # each thread takes the next document, and each pair a product of its own
            own = _finite(tokens[offsets[row] : offsets[row + 1]], f"document {row} has")
            for number, (first, last) in enumerate(bounds if len(own) else ()):
                if first < last:
                    best = np.maximum.reduce(own @ asked[:, first:last], axis=0)
                    out[number, at] = best @ factors[first:last]

    in_threads(work, min(cores() if threads is None else count_of(threads, "threads"), len(chosen)))
    return out


def _finite(tokens: np.ndarray, whose: str) -> np.ndarray:
    """(t, d) float32, in C order; InputError: NaN, infinite or so large that products overflow."""
    own = np.ascontiguousarray(tokens, dtype=np.float32)
    values = own.reshape(-1)
    if not np.dot(values, values) <= LARGEST**2:
        raise InputError(f"{whose} NaN or infinite values, or values beyond {LARGEST:g}; expected finite ones")
    return own


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
    query_offsets, flat = np.append(0, np.cumsum(sizes)), np.concatenate([one.astype(np.float32) for one in asked])
    scores = ragged_maxsim(flat, query_offsets, tokens, offsets, rows=rows, threads=threads).astype(np.float64)
    scores /= np.maximum(sizes, 1)[:, None]
    similarities = np.empty((len(sizes), len(sizes)))
    similarities[0, 1:] = similarities[1:, 0] = scores[0]
    similarities[1:, 1:] = (scores[1:] + scores[1:].T) / 2
    similarities[0, 0] = (query.astype(np.float64) ** 2).sum(axis=1).mean() if len(query) else 0.0
    return similarities.astype(np.float32)
