"""The base of all encoders: loaded by name, computed by torch or by a graph, identified by a digest."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params
from rnnreranker.encode.graph import FORM, GraphModel, KeptGraph, kept_graph, make_graph, rows_of
from rnnreranker.encode.in_batches import Computed, encode_texts
from rnnreranker.encode.model_folder import KINDS, PROMPTS, ModelFolder, TextKind, find_model, loading
from rnnreranker.encode.named import TextModel


class TextEncoder(ABC):
    """An encoder of texts or pairs; `load` makes it by torch, `open` by its graph.

    Args:
        folder: of the model; params: the settings of the caller.
        models: a `TorchModel` for each device, or one `GraphModel`.

    Attributes:
        name, digest: of the folder; model: the first of `models`; graph: its files, if it is one.
        dimension: numbers of a row; prompts: text before texts, by `TextKind`.
        fingerprint: of all that its numbers depend on besides texts and `devices`.
    """

    KIND: ClassVar[str]  # a key of KINDS, and of method, whose names are known
    Params: ClassVar[type[Params]]
    fingerprint: str
    devices: Devices | None = None

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
        Float32 models with a known pooling and one type of tokens have graphs.
        """
        params, folder = cls.Params(**given), cls.files(name)
        if devices is not None or (key := cls.graph_key(folder, params)) is None:
            return cls.load(name, devices=devices, **given)
        if (graph := kept_graph(key)) is None:
            made = cls.load(name, **given)
            if (graph := make_graph(key, made.model, made.digest)) is None:
                return made
        return cls(folder, params, GraphModel(graph))

    @classmethod
    def digest_of(cls, name: str) -> str:
        """A digest of all files of a model; loads nothing; errors as `load`."""
        return cls.files(name).content

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        return find_model(name, cls.KIND)

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str, dtype: str) -> Any:
        from rnnreranker.encode.transformer import TorchModel

        return TorchModel(cls.KIND, folder.path, device, dtype)

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any, *parts: Any) -> str | None:
        """The name of a model's graph, None without one; parts: settings in the graph."""
        return f"{cls.KIND}-{fingerprint(FORM, folder.content, *parts)}"

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d): the output for documents, row by row; of a late-interaction encoder all tokens."""
        raise NotImplementedError

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """Encoded queries, by name."""
        raise NotImplementedError

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts that are not blank exceed the model's length."""
        return sum(one.cut for one in self._read(what, [text for text in texts if text.strip()]))

    def _read(self, what: TextKind, texts: list[Any]) -> list[Any]:
        prompt = self.prompts[what]
        prompted = [prompt + one if isinstance(one, str) else (prompt + one[0], *one[1:]) for one in texts]
        read: list[Any] = self.model.read(prompted, what)
        return read

    def _compute(self, texts: Sequence[Any], what: TextKind, made: Any = None, **options: Any) -> Computed:
        """The model's output for texts or pairs; made: applied to each batch; options: of `encode_texts`.

        Raises:
            InputError: a text that is not a string; output that is NaN or infinite.
        """

        def forward(model: Any, batch: list[Any]) -> Any:
            if isinstance(model, TextModel):
                output: Any = model.forward([one.text for one in batch])
            else:
                output = model.forward(batch, what)
            if not np.isfinite(rows_of(output)).all():
                raise InputError(f"{self.name}: gives NaN or infinite values; try float32, or get the model again")
            return made(output) if made else output

        forwards = [partial(forward, model) for model in self.models]
        return encode_texts(texts, partial(self._read, what), forwards, devices=self.devices, **options)


def cut_texts(models: Sequence[Any], path: Path, **given: int | None) -> list[int]:
    """Cut texts at settings of lengths, one for both kinds or two; returns the lengths of queries and documents.

    None = the model's own, 0 without a limit. InputError: a length beyond the limit of the models.
    """
    limit, own = models[0].about["limit"], models[0].about["lengths"]
    for name, length in given.items():
        if length is not None and length > (limit or 0):
            takes = f"takes at most {limit} tokens" if limit else "cuts no texts; leave it out"
            raise InputError(f"{name}={length}: {path} {takes}")
    lengths = [length or own[side] for side, length in zip(PROMPTS, [*given.values()] * 2, strict=False)]
    for model in models:
        model.cut_at(*lengths)
    return lengths if limit else [0, 0]
