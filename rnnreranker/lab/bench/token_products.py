"""MaxSim beside the bare product of the same tokens, which no implementation can do without."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rnnreranker.lab.bench.kernel_ratios import a_query
from rnnreranker.lab.bench.summaries import cells, judged
from rnnreranker.lab.bench.synthetic import contexts
from rnnreranker.rnn import maxsim

QUERY, DOCUMENT, DIMENSION = 32, 180, 128  # tokens and size of ColBERT's
BOUND, AIM = 1.3, 1.0


def products(documents: int, pairs: int) -> list[dict[str, Any]]:
    """MaxSim of a query with documents in memory, of float32 and float16, each beside the product of float32 alone.

    Args:
        documents: of 180 tokens each; their sum over a query's 32 tokens of the largest of 128 products.
        pairs: how many times both are measured.
    """
    tokens = contexts("clustered", documents, DOCUMENT - 1, DIMENSION).reshape(-1, DIMENSION)
    query = contexts("clustered", 1, QUERY - 1, DIMENSION, seed=1)[0]
    offsets = np.arange(documents + 1) * DOCUMENT
    out = np.empty((len(tokens), QUERY), dtype=np.float32)
    rows = []
    for typed in (tokens, tokens.astype(np.float16)):
        work = partial(maxsim, query, typed, offsets=offsets, threads=1)
        ratio = a_query((partial(np.matmul, tokens, query.T, out=out), work), 1, pairs)
        row = {"q": QUERY, "documents": documents, "tokens": DOCUMENT, "d": DIMENSION, "stored": typed.dtype.name}
        rows.append(judged(row | cells(ratio, "product_us", "maxsim_us"), "ratio", BOUND, AIM))
    return rows
