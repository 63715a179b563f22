"""Small sets of queries, encoded, in the cache folder: the processes of a plan encode the same topics once."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint, write_atomically
from rnnreranker.encode.graphs.session import LIBRARIES as OF_GRAPHS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.dense.encoder import Encoder
    from rnnreranker.encode.graphs.store import KeptGraph

LARGEST = 16 * 2**20  # bytes of encoded queries that are kept
LIBRARIES = ("torch", "transformers")  # another version may give other last bits


def encoded_queries(name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None) -> np.ndarray:
    """(n, d) float32: the vectors of n queries, as `open_encoder(name, **settings).encode` gives them, in their order.

    They are found again by what computes, the settings, all texts in their order and the versions of the libraries;
    where they are, none of it is loaded.

    Raises:
        InputError, UnavailableError: as `open_encoder` and `Encoder.encode`.
    """
    from rnnreranker.encode.dense.encoder import digest_of, encoder_graph, open_encoder

    graph = encoder_graph(name, **settings)
    path = _path("vectors", digest_of(name), settings, texts, graph[1] if graph else None)
    if (kept := read_kept(path, {"vectors"})) is not None:
        return kept["vectors"]
    encoder = open_encoder(name, **settings)
    path = _path("vectors", digest_of(name), settings, texts, encoder.graph)
    return _vectors(path, encoder, texts, threads)


def queries_by_graph(
    graph: KeptGraph, settings: dict[str, Any], texts: Sequence[str], threads: int | None, load: Callable[[], Encoder]
) -> np.ndarray:
    """(n, d) float32: the vectors of n queries by a graph, as `load().encode` gives them, in their order.

    They are found again as those of `encoded_queries`.

    Raises:
        InputError, MissingDependencyError: as `load` and `Encoder.encode`.
    """
    path = _path("graph", None, settings, texts, graph)
    kept = read_kept(path, {"vectors"})
    return _vectors(path, load(), texts, threads) if kept is None else kept["vectors"]


def _vectors(path: Path, encoder: Encoder, texts: Sequence[str], threads: int | None) -> np.ndarray:
    """What an encoder makes of the texts, which is kept at a path."""
    vectors = encoder.encode(texts, threads=threads, what="queries")
    if vectors.nbytes <= LARGEST:
        keep(path, vectors=vectors)
    return vectors


def encoded_sparse_queries(
    name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None
) -> tuple[csr_matrix, str]:
    """(n, V) float32: the words' weights of n queries in their order, and the fingerprint of the words.

    They are as `open_sparse_encoder(name, **settings).encode_queries` gives them, and found again as the vectors of
    `encoded_queries`.

    Raises:
        InputError, UnavailableError: as `open_sparse_encoder` and `SparseEncoder.encode`.
    """
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.sparse.encoder import open_sparse_encoder, sparse_digest_of, sparse_graph

    def path(graph: KeptGraph | None) -> Path:
        return _path("weights", sparse_digest_of(name), settings, texts, graph)

    if (kept := read_kept(path(sparse_graph(name)), {"weights", "terms", "offsets", "size", "words"})) is not None:
        shape = (len(texts), int(kept["size"]))
        return csr_matrix((kept["weights"], kept["terms"], kept["offsets"]), shape), str(kept["words"])
    encoder = open_sparse_encoder(name, **settings)
    weights = encoder.encode_queries(texts, threads=threads)
    if weights.data.nbytes <= LARGEST:
        described = {"size": weights.shape[1], "words": encoder.words}
        keep(path(encoder.graph), weights=weights.data, terms=weights.indices, offsets=weights.indptr, **described)
    return weights, encoder.words


def encoded_token_queries(
    name: str, settings: dict[str, Any], texts: Sequence[str], threads: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors (T, d) float32 of the tokens of n queries, and (n + 1,) int64 where those of each begin.

    They are as `open_late_encoder(name, **settings).encode_queries` gives them, and found again as the vectors of
    `encoded_queries`.

    Raises:
        InputError, UnavailableError: as `open_late_encoder` and `LateEncoder.encode`.
    """
    from rnnreranker.encode.late.encoder import late_digest_of, late_graph, open_late_encoder

    def path(graph: KeptGraph | None) -> Path:
        return _path("tokens", late_digest_of(name), settings, texts, graph)

    if (kept := read_kept(path(late_graph(name)), {"vectors", "offsets"})) is not None:
        return kept["vectors"], kept["offsets"]
    encoder = open_late_encoder(name, **settings)
    encoded = encoder.encode_queries(texts, threads=threads)
    if encoded.vectors.nbytes <= LARGEST:
        keep(path(encoder.graph), vectors=encoded.vectors, offsets=encoded.offsets)
    return encoded.vectors, encoded.offsets


def read_kept(path: Path, names: set[str]) -> dict[str, np.ndarray] | None:
    """The arrays of these names in an .npz file, None where it is not there, not whole, or not of these.

    Such a file has a checksum of every array: what is damaged is not taken for vectors, but made again.
    """
    try:
        arrays = dict(np.load(path, allow_pickle=False))
    except Exception:  # numpy and zipfile raise whatever their parsers do
        return None
    return arrays if set(arrays) == names else None


def _path(kind: str, digest: Any, settings: dict[str, Any], texts: Sequence[str], graph: KeptGraph | None) -> Path:
    """Where the queries of a model of this digest are, or of the graph that stands for it."""
    versions = [metadata.version(library) for library in (OF_GRAPHS if graph else LIBRARIES)]
    by = graph.content if graph else "model"
    key = fingerprint("queries", kind, digest, by, settings, list(texts), versions)
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
