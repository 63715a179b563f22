"""Encoded queries in the cache folder: the processes of a plan encode the same topics once."""

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
from rnnreranker.encode.graph import LIBRARIES as OF_GRAPHS

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder
    from rnnreranker.encode.graph import KeptGraph

LARGEST = 16 * 2**20  # bytes of encoded queries that are kept
LIBRARIES = ("torch", "transformers")  # another version may give other last bits


def kept_queries(
    of: type[TextEncoder],
    name: str,
    settings: dict[str, Any],
    texts: Sequence[str],
    threads: int | None,
    devices: Devices | None = None,
    *,
    graph: KeptGraph | None = None,
    load: Callable[[], TextEncoder] | None = None,
) -> dict[str, np.ndarray]:
    """The `query_arrays` of n queries, in order; loads nothing if the cache folder has them.

    The key is the model or graph, the settings, all texts in order and the versions of the libraries.

    Args:
        of, name, settings: the class of the encoder, and the arguments of its `open`.
        graph: computes, if it is known; load: opens the encoder in place of `of.open`.
    """

    def path(graph: KeptGraph | None) -> Path:
        by: Any = graph.content if graph else [of.KIND, of.digest_of(name), *(devices.marks if devices else [])]
        versions = [metadata.version(library) for library in (OF_GRAPHS if graph else LIBRARIES)]
        return cache_home() / "queries" / f"{fingerprint('queries', by, settings, list(texts), versions)}.npz"

    if graph is None and devices is None:
        graph = of.graph_of(name, **settings)
    if (kept := read_kept(path(graph), of.arrays)) is None:
        encoder = load() if load else of.open(name, devices=devices, **settings)
        kept = encoder.query_arrays(texts, threads)
        if max(array.nbytes for array in kept.values()) <= LARGEST:
            keep(path(encoder.graph), **kept)
    return kept


def read_kept(path: Path, names: Set[str]) -> dict[str, np.ndarray] | None:
    """The arrays of these names in an .npz file, None if it is missing, damaged or has other arrays."""
    try:
        arrays = dict(np.load(path, allow_pickle=False))
    except Exception:  # numpy and zipfile raise whatever their parsers do
        return None
    return arrays if set(arrays) == names else None


def kept_at(path: Path, names: Set[str], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The arrays of these names in a cache file, which `compute` fills on first use."""
    if (kept := read_kept(path, names)) is None:
        kept = compute()
        keep(path, **kept)
    return kept


def keep(path: Path, **arrays: Any) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content.getvalue())
    except (OSError, InputError):
        return
