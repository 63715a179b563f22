"""What every encoder is: loaded by its name, computed by torch or by its graph, identified by a digest."""

from __future__ import annotations

import contextlib
from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError, RnnrerankerError
from rnnreranker.base.settings import Params
from rnnreranker.encode.graphs.store import GraphModel, KeptGraph, Refused, kept_graph, key_of
from rnnreranker.encode.in_batches import Computed, encode_texts
from rnnreranker.encode.model_folder import ModelFolder, TextKind, content_of, find_model

ALONE = "a graph is known of float32 models with a known pooling and one type of tokens"


class TextEncoder(ABC):
    """An encoder of texts, or of pairs of them; made by `load`, or by its graph by `open`.

    Attributes:
        name: hub id or path.
        params: the settings that the caller gives.
        model: what computes: a `TorchModel` or `GraphModel`; graph: its files, where it is a graph.
        digest: of the model's files.
        prompts: what is put before texts.
        fingerprint: of everything that its numbers depend on besides the texts and `devices`.
        devices: where it computes; None = the processor.
        on_devices: this encoder, and the same on the others of several devices.
        refused: why it has no graph, once `by_graph` has tried.
    """

    KIND: ClassVar[str]  # of method, whose names are known
    Params: ClassVar[type[Params]]
    what: ClassVar[str]  # it is, in errors
    graph_kind: ClassVar[str]  # the first word of the names of its graphs
    arrays: ClassVar[frozenset[str]] = frozenset()  # that `query_arrays` gives
    fingerprint: str
    devices: Devices | None = None
    refused: str = ""
    _folder: Any
    _others: tuple[Self, ...] = ()

    def __init__(self, folder: ModelFolder, params: Any, model: Any, graph: KeptGraph | None = None) -> None:
        self.name, self._folder, self.params, self.model, self.graph = folder.name, folder, params, model, graph
        self.prompts: dict[str, str] = model.about["prompts"]
        self.digest = content_of(folder.path)

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
            InputError: no such model, one of another kind, settings out of range.
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
            own = cls.load(name, **given)
            try:
                return own.by_graph()
            except Refused:
                return own
        return cls.by_graph_of(cls.files(name), cls.Params(**given), graph)

    @classmethod
    def graph_of(cls, name: str, **given: Any) -> KeptGraph | None:
        """The graph of an encoder, None where it is not in the home folder; nothing is loaded; errors as `load`."""
        key = cls.graph_key(cls.files(name), cls.Params(**given))
        return None if key is None else kept_graph(key)

    @classmethod
    def digest_of(cls, name: str) -> str:
        """A digest of all files of the model of a name, whatever the settings; no weights are loaded.

        Raises:
            InputError, UnavailableError: as `load`.
        """
        return content_of(cls.files(name).path)

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        """The files of the encoder of a name, whose kind is checked: another model would get random weights.

        Raises:
            InputError, UnavailableError: as `load`.
        """
        return find_model(name, cls.KIND)

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str = "cpu", dtype: str = EXACT) -> Self:
        """The encoder of some files on a device; `load` turns the errors of libraries into its own."""
        from rnnreranker.encode.transformer import TorchModel

        return cls(folder, params, TorchModel(cls.KIND, folder.path, device, dtype))

    @classmethod
    def by_graph_of(cls, folder: ModelFolder, params: Any, graph: KeptGraph) -> Self:
        """The encoder of some files by its graph; InputError: a damaged graph, settings out of range."""
        return cls(folder, params, GraphModel(graph), graph)

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any) -> str | None:
        """The name of the graph of some files in the home folder; None where they have none."""
        return key_of(cls.graph_kind, content_of(folder.path))

    def by_graph(self) -> Self:
        """This encoder by its graph in the home folder, made where it is not there yet; Refused: it has none."""
        from rnnreranker.encode.graphs.export import make_graph

        if self.graph is not None:
            return self
        try:
            if self.refused or (key := self.graph_key(self._folder, self.params)) is None:
                raise Refused(self.refused or ALONE)
            return self.with_graph(make_graph(key, self))
        except Refused as refused:
            self.refused = str(refused)
            raise

    @property
    def beside_graph(self) -> dict[str, Any]:
        """What the description of its graph says besides what the model says."""
        return {}

    def with_graph(self, graph: KeptGraph) -> Self:
        """This encoder by its graph."""
        return self.by_graph_of(self._folder, self.params, graph)

    def compared(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Matrices of what it makes of texts, row by row, to be compared with what another makes of them."""
        return [self.rows(texts)]

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d): what it makes of documents, row by row.

        Raises:
            InputError: as the encoder itself.
        """
        raise NotImplementedError

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """What is kept of encoded queries, by the names of `arrays`; InputError: as the encoder itself."""
        raise NotImplementedError

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts are longer than the model reads, without those of white space alone."""
        return sum(one.cut for one in self._reader(what)([text for text in texts if text.strip()]))

    def _reader(self, what: TextKind) -> Callable[[list[Any]], list[Any]]:
        """The function that reads texts or pairs with their prompt."""

        def read(texts: list[Any]) -> list[Any]:
            prompt = self.prompts[what]
            prompted = [prompt + one if isinstance(one, str) else (prompt + one[0], *one[1:]) for one in texts]
            read_texts: list[Any] = self.model.read(prompted, what)
            return read_texts

        return read

    def _compute(self, texts: Sequence[Any], what: TextKind, forward: Any = None, **options: Any) -> Computed[Any]:
        """What the model computes of texts or pairs; forward: called with a model and a batch; options: of batches."""
        forward = forward or (lambda model, batch: model.forward(batch, what))
        forwards = [partial(forward, one.model) for one in self.on_devices]
        return encode_texts(texts, self._reader(what), forwards, devices=self.devices, **options)


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
