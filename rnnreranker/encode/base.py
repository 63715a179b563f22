"""What every encoder is: found by its name, computed by torch or by its graph, and told from others by a digest."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError, RnnrerankerError
from rnnreranker.base.settings import Params
from rnnreranker.encode.graphs.store import KeptGraph, Refused, kept_graph, key_of
from rnnreranker.encode.model_folder import ModelFolder, content_of, find_model


class TextEncoder(ABC):
    """An encoder of texts, or of pairs of them; made by `load`, or by its graph by `open`.

    A subclass says what its files are, what computes by torch and what by a graph.

    Attributes:
        name: hub id or path.
        params: what the caller says of it.
        model: what computes; graph: its files, where that is a graph.
        fingerprint: of everything that its numbers depend on besides the texts; where they are computed is told by
            `devices`, None = on the processor as is usual there.
        on_devices: this encoder, and the same on the others of several devices.
    """

    KIND: ClassVar[str]  # of method, whose names are known
    Params: ClassVar[type[Params]]
    what: ClassVar[str]  # it is, in errors
    graph_kind: ClassVar[str]  # the first word of the names of its graphs
    arrays: ClassVar[frozenset[str]] = frozenset()  # that `query_arrays` gives
    name: str
    params: Any
    model: Any
    graph: KeptGraph | None
    fingerprint: str
    devices: Devices | None = None
    _others: tuple[Self, ...] = ()

    @property
    def on_devices(self) -> tuple[Self, ...]:
        return (self, *self._others)

    @classmethod
    def load(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """The encoder of a name, hub id or folder, computed by torch.

        Args:
            name: of a model that this or another package brings, a hub id `org/model`, a folder.
            devices: where it computes, and in which arithmetic; None = the processor, float32.
            given: fields of `Params`; what is not given is what the model's own files say.

        Raises:
            InputError: no such model, one of another kind, settings that cannot be.
            UnavailableError: a model that is not installed, or neither in the cache of the hub nor reachable.
        """
        params, folder = cls.Params(**given), cls.files(name)
        with loading(folder.path, cls.what):
            if devices is None:
                return cls.by_torch(folder, params)
            first, *others = (cls.by_torch(folder, params, device, devices.dtype) for device in devices.names)
        first.devices, first._others = devices, tuple(others)
        return first

    @classmethod
    def open(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """The encoder of `load`; on the processor by its graph in the home folder, which is made on first use.

        On processors the graph takes half to nine tenths of the model's time, and neither torch nor transformers is
        imported; its numbers are those of the model but for the last bits. An encoder that has no graph (another kind
        of model, other arithmetic than float32) is that of `load`.

        Args and Raises: as `load`.
        """
        if devices is not None:
            return cls.load(name, devices=devices, **given)
        if (graph := cls.graph_of(name, **given)) is None:
            own = cls.load(name, **cls.in_graph(given))
            try:
                graph = own.make_graph()
            except Refused:
                whole = cls.Params(**cls.in_graph(given)) == cls.Params(**given)
                return own if whole else cls.load(name, **given)
        return cls.by_graph_of(cls.files(name), cls.Params(**given), graph)

    @classmethod
    def graph_of(cls, name: str, **given: Any) -> KeptGraph | None:
        """The graph of an encoder, None where it is not in the home folder; nothing is loaded; errors as `load`."""
        key = cls.graph_key(cls.files(name), cls.Params(**given))
        return None if key is None else kept_graph(key)

    @classmethod
    def digest_of(cls, name: str) -> str:
        """What tells the model of a name from others, whatever the settings: of all its files; no weights are loaded.

        Raises:
            InputError, UnavailableError: as `load`.
        """
        return content_of(cls.files(name).path)

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        """The files of the encoder of a name, which are looked at: another model would get random weights.

        Raises:
            InputError, UnavailableError: as `load`.
        """
        return find_model(name, cls.KIND)

    @classmethod
    def in_graph(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Those of the settings that a graph is made with: it serves for any value of the others."""
        return {}

    @classmethod
    @abstractmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str = "cpu", dtype: str = EXACT) -> Self:
        """The encoder of some files on a device; whatever libraries raise becomes an error of `load`."""

    @classmethod
    @abstractmethod
    def by_graph_of(cls, folder: ModelFolder, params: Any, graph: KeptGraph) -> Self:
        """The encoder of some files by its graph; InputError: a graph that is damaged, settings that cannot be."""

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any) -> str | None:
        """The name of the graph of some files in the home folder; None where they have none."""
        return key_of(cls.graph_kind, content_of(folder.path))

    @abstractmethod
    def make_graph(self) -> KeptGraph:
        """The graph of an encoder that was loaded with the settings of `in_graph`, made where it is not there.

        Raises:
            Refused: it has none.
        """

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d): what it makes of documents, row by row, to be compared with what another makes of them.

        Raises:
            InputError: as the encoder itself.
        """
        raise NotImplementedError

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """What is kept of encoded queries, by the names of `arrays`; InputError: as the encoder itself."""
        raise NotImplementedError


@contextlib.contextmanager
def loading(path: Path, what: str, remedy: str = "get the model again", tried: str = "loaded") -> Iterator[None]:
    """A block that loads a model: whatever libraries raise in it becomes one line.

    Args:
        path: of the model; what: it is to be; remedy: what to do; tried: with it.

    Raises:
        InputError: a model that cannot be loaded.
    """
    try:
        yield
    except RnnrerankerError:
        raise
    except Exception as error:  # what libraries raise on settings and weights of another form has no bounds
        reason = f"{type(error).__name__} {error}".strip().split("\n")[0][:200]
        raise InputError(f"{path}: cannot be {tried} as {what} ({reason}); {remedy}") from None
