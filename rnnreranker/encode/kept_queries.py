"""Small sets of queries, encoded, in the cache folder: the processes of a plan encode the same topics once."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import cache_home, fingerprint, write_atomically

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.encoder import Encoder

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

    path = _path("vectors", digest_of(name), settings, texts)
    return _vectors(path, lambda: load_encoder(name, **settings), texts, threads)


def queries_by_graph(folder: Path, texts: Sequence[str], threads: int | None) -> np.ndarray:
    """(n, d) float32: the vectors of n queries, as `open_query_graph(folder).encode` gives them, in their order.

    They are found again as those of `encoded_queries`, by the graph's files and the versions of what runs them.

    Raises:
        InputError, MissingDependencyError: as `open_query_graph` and `Encoder.encode`.
    """
    from rnnreranker.encode.query_graph import LIBRARIES as OF_GRAPHS
    from rnnreranker.encode.query_graph import described, open_query_graph

    path = _path("graph", described(folder)["sha256"], described(folder)["settings"], texts, OF_GRAPHS)
    return _vectors(path, lambda: open_query_graph(folder), texts, threads)


def _vectors(path: Path, load: Callable[[], Encoder], texts: Sequence[str], threads: int | None) -> np.ndarray:
    """What is kept at a path, else what an encoder makes of the texts, which is kept there."""
    if (kept := read_kept(path, {"vectors"})) is not None:
        return kept["vectors"]
    vectors = load().encode(texts, threads=threads, what="queries")
    if vectors.nbytes <= LARGEST:
        keep(path, vectors=vectors)
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

    path = _path("weights", sparse_digest_of(name), settings, texts)
    if (kept := read_kept(path, {"weights", "terms", "offsets", "size", "words"})) is not None:
        shape = (len(texts), int(kept["size"]))
        return csr_matrix((kept["weights"], kept["terms"], kept["offsets"]), shape), str(kept["words"])
    encoder = load_sparse_encoder(name, **settings)
    found = encoder.encode_queries(texts, threads=threads)
    if found.data.nbytes <= LARGEST:
        described = {"size": found.shape[1], "words": encoder.words}
        keep(path, weights=found.data, terms=found.indices, offsets=found.indptr, **described)
    return found, encoder.words


def encoded_token_queries(
    name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors (T, d) float32 of the tokens of n queries, and (n + 1,) int64 where those of each begin.

    They are as `load_late_encoder(name, **settings).encode_queries` gives them, and found again as the vectors of
    `encoded_queries`.

    Raises:
        InputError, UnavailableError: as `load_late_encoder` and `LateEncoder.encode`.
    """
    from rnnreranker.encode.late import late_digest_of, load_late_encoder

    path = _path("tokens", late_digest_of(name), settings, texts)
    if (kept := read_kept(path, {"vectors", "offsets"})) is not None:
        return kept["vectors"], kept["offsets"]
    found = load_late_encoder(name, **settings).encode_queries(texts, threads=threads)
    if found.vectors.nbytes <= LARGEST:
        keep(path, vectors=found.vectors, offsets=found.offsets)
    return found.vectors, found.offsets


def read_kept(path: Path, names: set[str]) -> dict[str, np.ndarray] | None:
    """The arrays of these names in an .npz file, None where it is not there, not whole, or not of these.

    Such a file has a checksum of every array: what is damaged is not taken for vectors, but made again.
    """
    try:
        found = dict(np.load(path, allow_pickle=False))
    except Exception:  # numpy and zipfile raise whatever their parsers do
        return None
    return found if set(found) == names else None


def _path(
    kind: str, digest: Any, settings: dict[str, Any], texts: Sequence[str], libraries: Sequence[str] = LIBRARIES
) -> Path:
    versions = [metadata.version(library) for library in libraries]
    key = fingerprint("queries", kind, digest, settings, list(texts), versions)
    return cache_home() / "queries" / f"{key}.npz"


def keep(path: Path, **arrays: Any) -> None:
    """Write a file of the cache; one that cannot be written costs time, not correctness."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content.getvalue())
    except (OSError, InputError):
        return
