"""The Faiss index of quantised token vectors, written beside them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.base.process.faiss_threads import one_thread

FILE = "neighbours.faiss"
LISTS, TRAINED = 32_768, 64  # at most; tokens that a list is trained with
BYTES = 16  # of a quantised token, at most
FEWEST = 39 * 256  # tokens that the quantiser is trained with
BLOCK = 1 << 16  # tokens that are added at a time


def write_neighbours(vectors: np.ndarray, folder: Path) -> None:
    """Write the Faiss index of tokens, IVF-PQ by inner product; one thread makes it, always to the same bytes.

    4 √T lists, at most 32,768; 16 bytes a token, of 8 bits for as many equal parts of a vector, or of fewer parts where
    16 do not divide it. Trained on tokens drawn by a fixed seed.

    Args:
        vectors: (T, d) float16.

    Raises:
        InputError: too few tokens to train it.
    """
    faiss = require("faiss", "tokens:search=ivf-pq", "faiss-cpu")
    count, dimension = vectors.shape
    if count < FEWEST:
        raise InputError(f"tokens:search=ivf-pq: {count} tokens; expected at least {FEWEST}: leave it out")
    lists = max(1, min(LISTS, int(4 * np.sqrt(count)), count // TRAINED))
    parts = next(parts for parts in range(min(BYTES, dimension), 0, -1) if dimension % parts == 0)
    index: Any = faiss.IndexIVFPQ(faiss.IndexFlatIP(dimension), dimension, lists, parts, 8, faiss.METRIC_INNER_PRODUCT)
    wanted = min(count, max(TRAINED * lists, 2 * FEWEST))
    chosen = np.sort(np.random.default_rng(0).choice(count, wanted, replace=False))
    begun = folder / f"{FILE}.begun"
    with one_thread(faiss), one_blas_thread():
        index.train(vectors[chosen].astype(np.float32))
        for first in progress(range(0, count, BLOCK), unit="blocks", what="tokens"):
            index.add(vectors[first : first + BLOCK].astype(np.float32))
        faiss.write_index(index, str(begun))
    os.replace(begun, folder / FILE)
