"""Small sets of queries, encoded, in the cache folder: the processes of a plan encode the same topics once."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence, Set
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint, write_atomically
from rnnreranker.encode.graphs.session import LIBRARIES as OF_GRAPHS

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder
    from rnnreranker.encode.dense.encoder import Encoder
    from rnnreranker.encode.graphs.store import KeptGraph

LARGEST = 16 * 2**20  # bytes of encoded queries that are kept
LIBRARIES = ("torch", "transformers")  # another version may give other last bits


def kept_queries(
    of: type[TextEncoder],
    name: str,
    settings: dict[str, Any],
    texts: Sequence[str],
    threads: int | None,
    devices: Devices | None = None,
) -> dict[str, np.ndarray]:
    """What `of.open(name, **settings).query_arrays` gives of n queries, in their order.

    They are found again by what computes, the settings, all texts in their order and the versions of the libraries;
    where they are, none of it is loaded. devices: where they are encoded; None = the processor.

    Raises:
        InputError, UnavailableError: as `TextEncoder.open` and what encodes.
    """

    def path(graph: KeptGraph | None) -> Path:
        return _path(of.KIND, of.digest_of(name), settings, texts, graph, devices.marks if devices else [])

    graph = of.graph_of(name, **settings) if devices is None else None
    if (kept := read_kept(path(graph), of.arrays)) is not None:
        return kept
    encoder = of.open(name, devices=devices, **settings)
    return _encoded(path(encoder.graph), encoder, texts, threads)


def queries_by_graph(
    graph: KeptGraph, settings: dict[str, Any], texts: Sequence[str], threads: int | None, load: Callable[[], Encoder]
) -> np.ndarray:
    """(n, d) float32: the vectors of n queries by a graph, as `load().encode` gives them, in their order.

    They are found again as what `kept_queries` gives.

    Raises:
        InputError, MissingDependencyError: as `load` and `Encoder.encode`.
    """
    path = _path("graph", None, settings, texts, graph)
    return (read_kept(path, {"vectors"}) or _encoded(path, load(), texts, threads))["vectors"]


def _encoded(path: Path, encoder: TextEncoder, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
    """What an encoder makes of the texts, which is kept at a path."""
    arrays = encoder.query_arrays(texts, threads)
    if max(array.nbytes for array in arrays.values()) <= LARGEST:
        keep(path, **arrays)
    return arrays


def read_kept(path: Path, names: Set[str]) -> dict[str, np.ndarray] | None:
    """The arrays of these names in an .npz file, None where it is not there, not whole, or not of these.

    Such a file has a checksum of every array: what is damaged is not taken for vectors, but made again.
    """
    try:
        arrays = dict(np.load(path, allow_pickle=False))
    except Exception:  # numpy and zipfile raise whatever their parsers do
        return None
    return arrays if set(arrays) == names else None


def _path(
    kind: str,
    digest: Any,
    settings: dict[str, Any],
    texts: Sequence[str],
    graph: KeptGraph | None,
    marks: Sequence[str] = (),
) -> Path:
    """Where the queries of a model of this digest are, or of the graph that stands for it."""
    versions = [metadata.version(library) for library in (OF_GRAPHS if graph else LIBRARIES)]
    by = graph.content if graph else "model"
    key = fingerprint("queries", kind, digest, by, settings, list(texts), versions, *marks)
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
