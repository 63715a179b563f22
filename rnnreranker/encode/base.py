"""The base of all encoders: loaded by name, computed by torch or by a graph, identified by a digest."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params
from rnnreranker.encode.graph import FORM, GraphModel, KeptGraph, Refused, kept_graph, make_graph
from rnnreranker.encode.in_batches import Computed, encode_texts
from rnnreranker.encode.model_folder import KINDS, ModelFolder, TextKind, check_kind, find_model, loading
from rnnreranker.encode.named import TextModel

ALONE = "a graph is known of float32 models with a known pooling and one type of tokens"


class TextEncoder(ABC):
    """An encoder of texts or pairs; `load` makes it by torch, `open` by its graph.

    Args:
        folder: of the model; params: the settings of the caller.
        models: a `TorchModel` for each device, or one `GraphModel`.

    Attributes:
        name, digest: of the folder; model: the first of `models`; graph: its files, if it is one.
        dimension: numbers of a row; prompts: text before texts, by `TextKind`.
        fingerprint: of all that its numbers depend on besides texts and `devices`; refused: why it has no graph.
    """

    KIND: ClassVar[str]  # a key of KINDS, and of method, whose names are known
    Params: ClassVar[type[Params]]
    arrays: ClassVar[frozenset[str]] = frozenset()  # that `query_arrays` gives
    fingerprint: str
    devices: Devices | None = None
    refused: str = ""

    def __init__(self, folder: ModelFolder, params: Any, *models: Any) -> None:
        self.folder, self.name, self.params, self.models = folder, folder.name, params, models
        self.model, self.digest = models[0], folder.digest or folder.content
        self.graph: KeptGraph | None = self.model.graph
        self.dimension = int(self.model.about["dimension"])
        self.prompts: dict[str, str] = self.model.about["prompts"]

    @classmethod
    def load(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """The encoder of a name, computed by torch.

        Args:
            name: of a model of this or another package, a hub id `org/model`, a folder.
            devices: devices and arithmetic; None = the processor, float32.
            given: fields of `Params`; the model's own files say the rest.

        Raises:
            InputError: no such model, one of another kind, settings out of range.
            UnavailableError: a model that is not here and cannot be downloaded.
        """
        params, folder = cls.Params(**given), cls.files(name)
        where, dtype = (("cpu",), EXACT) if devices is None else (devices.names, devices.dtype)
        with loading(folder.path, KINDS[cls.KIND].what):
            made = cls(folder, params, *(cls.by_torch(folder, params, device, dtype) for device in where))
        made.devices = devices
        return made

    @classmethod
    def open(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """The encoder of `load`; on the processor computed by its graph in the home folder, made on first use.

        A graph takes half to nine tenths of the model's time, without torch; its numbers differ in the last bits.
        """
        if devices is None and (graph := cls.graph_of(name, **given)) is not None:
            return cls(cls.files(name), cls.Params(**given), GraphModel(graph))
        made = cls.load(name, devices=devices, **given)
        if devices is not None:
            return made
        try:
            return made.by_graph()
        except Refused:
            return made

    @classmethod
    def graph_of(cls, name: str, **given: Any) -> KeptGraph | None:
        key = cls.graph_key(cls.files(name), cls.Params(**given))
        return None if key is None else kept_graph(key)

    @classmethod
    def digest_of(cls, name: str) -> str:
        """A digest of all files of a model; loads nothing; errors as `load`."""
        return cls.files(name).content

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        folder = find_model(name, cls.KIND)
        check_kind(folder.path, cls.KIND)
        return folder

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str, dtype: str) -> Any:
        from rnnreranker.encode.transformer import TorchModel

        return TorchModel(cls.KIND, folder.path, device, dtype)

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any, *parts: Any) -> str | None:
        """The name of a model's graph, None without one; parts: settings in the graph."""
        return f"{cls.KIND}-{fingerprint(FORM, folder.content, *parts)}"

    def by_graph(self) -> Self:
        """This encoder by its graph, made on first use; Refused: it has none."""
        if self.graph is not None:
            return self
        try:
            if self.refused or (key := self.graph_key(self.folder, self.params)) is None:
                raise Refused(self.refused or ALONE)
            return self.with_graph(make_graph(key, self))
        except Refused as refused:
            self.refused = str(refused)
            raise

    def with_graph(self, graph: KeptGraph) -> Self:
        return type(self)(self.folder, self.params, GraphModel(graph))

    def compared(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self.rows(texts)]

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d): the output for documents, row by row; of a late-interaction encoder all tokens."""
        raise NotImplementedError

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """Encoded queries, by the names of `arrays`."""
        raise NotImplementedError

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts that are not blank exceed the model's length."""
        return sum(one.cut for one in self._read(what, [text for text in texts if text.strip()]))

    def _cut_at(self, given: int | None) -> int | None:
        """Cut texts at a length, by default the model's limit; InputError: more, or a model without a limit."""
        limit, path = self.model.about["limit"], self.folder.path
        if limit is None:
            if given is not None:
                raise InputError(f"{path}: its length of texts is fixed; leave max_length out")
            return None
        if given is not None and given > limit:
            raise InputError(f"max_length={given}: {path} takes at most {limit} tokens")
        for model in self.models:
            model.cut_at(given or limit, given or limit)
        return int(given or limit)

    def _read(self, what: TextKind, texts: list[Any]) -> list[Any]:
        prompt = self.prompts[what]
        prompted = [prompt + one if isinstance(one, str) else (prompt + one[0], *one[1:]) for one in texts]
        read: list[Any] = self.model.read(prompted, what)
        return read

    def _compute(self, texts: Sequence[Any], what: TextKind, made: Any = None, **options: Any) -> Computed[Any]:
        """The model's output for texts or pairs; made: applied to each batch; options: of `encode_texts`."""

        def forward(model: Any, batch: list[Any]) -> Any:
            output = model.forward(batch) if isinstance(model, TextModel) else model.forward(batch, what)
            return made(output) if made else output

        forwards = [partial(forward, model) for model in self.models]
        return encode_texts(texts, partial(self._read, what), forwards, devices=self.devices, **options)
