"""Vectors of small sets of queries, kept in the cache folder: the processes of a plan encode the same topics once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import cache_home, fingerprint, write_atomically

LARGEST = 16 * 2**20  # bytes of vectors that are kept
LIBRARIES = ("torch", "transformers")  # another version may give other last bits


def encoded_queries(name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None) -> np.ndarray:
    """(n, d) float32: the vectors of n queries, as `load_encoder(name, **settings).encode` gives them, in their order.

    They are found again by the weights, the settings, all texts in their order and the versions of torch and
    transformers; where they are, none of it is loaded.

    Raises:
        InputError, UnavailableError: as `load_encoder` and `Encoder.encode`.
    """
    from rnnreranker.encode.encoder import digest_of, load_encoder

    versions = [metadata.version(library) for library in LIBRARIES]
    key = fingerprint("queries", digest_of(name), settings, list(texts), versions)
    path = cache_home() / "queries" / f"{key}.npy"
    if (kept := _read(path, len(texts))) is not None:
        return kept
    vectors = load_encoder(name, **settings).encode(texts, threads=threads, what="queries")
    if vectors.nbytes <= LARGEST:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(path) as stream:
                np.save(stream, vectors)
        except (OSError, InputError):
            return vectors  # a cache folder that cannot be written costs time, not correctness
    return vectors


def _read(path: Path, count: int) -> np.ndarray | None:
    """The vectors of a file, None where it is not there or not whole."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.ndim == 2 and len(found) == count and found.dtype == np.float32 else None
