"""Encoded queries in the cache folder: the processes of a plan encode the same topics once."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint, write_atomically
from rnnreranker.encode.graph import LIBRARIES as OF_GRAPHS
from rnnreranker.encode.graph import KeptGraph, kept_graph

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder

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

    if graph is None and devices is None and (key := of.graph_key(of.files(name), of.Params(**settings))):
        graph = kept_graph(key)
    if (kept := _read(path(graph))) is None:
        encoder = load() if load else of.open(name, devices=devices, **settings)
        kept = encoder.query_arrays(texts, threads)
        if max(array.nbytes for array in kept.values()) <= LARGEST:
            _keep(path(encoder.graph), kept)
    return kept


def kept_at(path: Path, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The arrays in a cache file, which `compute` fills on first use."""
    if (kept := _read(path)) is None:
        kept = compute()
        _keep(path, kept)
    return kept


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of an .npz file, None if it is missing or damaged."""
    with contextlib.suppress(Exception):  # numpy and zipfile raise whatever their parsers do
        return dict(np.load(path, allow_pickle=False))
    return None


def _keep(path: Path, arrays: dict[str, Any]) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)
    with contextlib.suppress(OSError, InputError):  # a cache folder that cannot be written costs time alone
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content.getvalue())
