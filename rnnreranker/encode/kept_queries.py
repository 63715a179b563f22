"""Small sets of queries, encoded, in the cache folder: the processes of a plan encode the same topics once."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import cache_home, fingerprint, write_atomically

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LARGEST = 16 * 2**20  # bytes of encoded queries that are kept
LIBRARIES = ("torch", "transformers")  # another version may give other last bits


def encoded_queries(name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None) -> np.ndarray:
    """(n, d) float32: the vectors of n queries, as `load_encoder(name, **settings).encode` gives them, in their order.

    They are found again by the weights, the settings, all texts in their order and the versions of torch and
    transformers; where they are, none of it is loaded.

    Raises:
        InputError, UnavailableError: as `load_encoder` and `Encoder.encode`.
    """
    from rnnreranker.encode.encoder import digest_of, load_encoder

    path = _path(digest_of(name), settings, texts, "npy")
    kept = _read(path)
    if kept is not None and kept.ndim == 2 and len(kept) == len(texts) and kept.dtype == np.float32:
        return kept
    vectors = load_encoder(name, **settings).encode(texts, threads=threads, what="queries")
    if vectors.nbytes <= LARGEST:
        content = io.BytesIO()
        np.save(content, vectors)
        _keep(path, content)
    return vectors


def encoded_sparse_queries(
    name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None
) -> tuple[csr_matrix, str]:
    """(n, V) float32: the words' weights of n queries in their order, and the fingerprint of the words.

    They are as `load_sparse_encoder(name, **settings).encode_queries` gives them, and found again as the vectors of
    `encoded_queries`.

    Raises:
        InputError, UnavailableError: as `load_sparse_encoder` and `SparseEncoder.encode`.
    """
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.sparse import load_sparse_encoder, sparse_digest_of

    path = _path(sparse_digest_of(name), settings, texts, "npz")
    if (kept := _read(path)) is not None and set(kept) == {"weights", "terms", "offsets", "size", "words"}:
        shape = (len(texts), int(kept["size"]))
        return csr_matrix((kept["weights"], kept["terms"], kept["offsets"]), shape), str(kept["words"])
    encoder = load_sparse_encoder(name, **settings)
    found = encoder.encode_queries(texts, threads=threads)
    if found.data.nbytes <= LARGEST:
        content = io.BytesIO()
        described = {"size": found.shape[1], "words": encoder.words}
        np.savez(content, weights=found.data, terms=found.indices, offsets=found.indptr, **described)
        _keep(path, content)
    return found, encoder.words


def _path(digest: str, settings: dict[str, Any], texts: Sequence[str], ending: str) -> Path:
    versions = [metadata.version(library) for library in LIBRARIES]
    key = fingerprint("queries", digest, settings, list(texts), versions)
    return cache_home() / "queries" / f"{key}.{ending}"


def _keep(path: Path, content: io.BytesIO) -> None:
    """Write a file of the cache; one that cannot be written costs time, not correctness."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content.getvalue())
    except (OSError, InputError):
        return


def _read(path: Path) -> Any:
    """What a file of numpy holds, None where it is not there or not whole."""
    try:
        found = np.load(path, allow_pickle=False)
        return dict(found) if path.suffix == ".npz" else found
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
