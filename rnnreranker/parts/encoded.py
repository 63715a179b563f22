"""Parts that encode texts: blocks of documents, each kept as a file that survives a kill."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.command import counted, say
from rnnreranker.base.device import Devices, least_cosine
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, write_atomically
from rnnreranker.data.document import Document
from rnnreranker.parts.base import Part, describe, encoder_form, read_encoder

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder

TRIED = 16  # texts that a GPU and the processor encode


class EncodedPart(Part):
    """Encodes blocks of documents; each block is a file named by encoder and documents. mark: fingerprint of the
    encoder.
    """

    blocks: ClassVar[str] = ""  # folder of the blocks while the index is made; "" = as that of the part
    ending: ClassVar[str]  # of their files

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._files: list[Path] = []
        self._begun = False
        self._threads: int | None = None
        self._old: Any = None  # with docids: what an index has
        self._count = 0
        self.reused = 0

    @abstractmethod
    def encoded(self, texts: list[str]) -> Any:
        """The block of some texts."""

    @abstractmethod
    def taken(self, rows: np.ndarray, texts: list[str]) -> Any:
        """The block of (n,) int64 rows of `_old`."""

    @abstractmethod
    def save(self, stream: IO[bytes], block: Any) -> None:
        """Write a block."""

    def start(self, work: Path, threads: int | None) -> None:
        self._folder = work / (self.blocks or self.folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._threads = threads

    def begin(self, texts: list[str]) -> None:
        """Prepare for encoding; called with the texts of the first block."""

    def _begin(self, texts: list[str]) -> None:
        if not self._begun:
            self.begin(texts)
            self._begun = True

    def file_of(self, number: int, documents: Sequence[Document]) -> Path:
        texts = [document.text for document in documents]
        self._begin(texts)
        name = fingerprint(self._mark, [document.docid for document in documents], texts)
        return self._folder / f"{number:06d}-{name}{self.ending}"

    def encode_into(self, file: Path, texts: list[str], threads: int | None) -> None:
        """Write the file of a block; its bytes do not depend on threads."""
        self._threads = threads
        self._begin(texts)
        self._keep(file, self.encoded(texts))

    def add(self, documents: Sequence[Document]) -> None:
        texts = [document.text for document in documents]
        file = self.file_of(len(self._files), documents)
        rows = np.arange(self._count, self._count + len(documents))
        self._count += len(documents)
        old = self._old is not None and self._count <= len(self._old.docids)
        if old or file.is_file():
            self.reused += len(documents)
        if not file.is_file():
            self._keep(file, self.taken(rows, texts) if old else self.encoded(texts))
        self._files.append(file)

    def _keep(self, file: Path, block: Any) -> None:
        with write_atomically(file) as stream:
            self.save(stream, block)
            stream.flush()
            os.fsync(stream.fileno())


class PartByEncoder(EncodedPart):
    """A part that its setting `encoder` makes; `kept` of its settings is all else that counts.

    Attributes:
        of_documents: encodes documents: the encoder's graph, or the model on `devices` or where it began the part.
    """

    def __init__(self, encoder: Any, params: Any) -> None:
        super().__init__("")
        self._encoder = self.of_documents = encoder
        self._params = params
        self._computed: dict[str, Any] = {}  # where, as the index says
        self.marks = (encoder.fingerprint, params.kept)

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = self._encoder.params.to_dict()
        return options

    def begin(self, texts: list[str]) -> None:
        marks: Sequence[Any] = () if self.of_documents.graph is None else ("graph",)
        if self.devices is not None:
            self.of_documents, self._computed = encoder_on(self.devices, self._encoder, self.options, texts)
            marks = self.devices.marks
        self._mark = fingerprint(self._encoder.fingerprint, *marks) if marks else str(self._encoder.fingerprint)

    def extend(self, index: Path) -> None:
        """Take whole blocks of documents from an index; InputError: another encoder made them.

        New documents are encoded as the old ones, by graph or model, so that bytes equal those of an index made at
        once.
        """
        described = describe(index)["parts"][self.name]
        made_by = described["encoder"]
        if made_by.get("fingerprint") != self._encoder.fingerprint:
            raise InputError(
                f"{index}: the files of the encoder {made_by.get('name')} of its part {self.name} have changed since; "
                "make the index again"
            )
        self._old = self.open(index, described)
        self._computed = made_by.get("computed", {})
        if self._encoder.graph is not None and made_by.get("documents") != "graph" and not self._computed:
            self.of_documents = type(self._encoder).load(self._encoder.name, **self.options)

    def made_by(self, about: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        said = {"name": self._encoder.name, **about, "fingerprint": self._encoder.fingerprint, **more}
        if self._computed:
            return {**said, "computed": self._computed}
        return said if self.of_documents.graph is None else {**said, "documents": "graph"}

    @classmethod
    @abstractmethod
    def encoders(cls) -> type[TextEncoder]:
        """The class of the encoders."""

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        of: Any = cls
        part: Part = of(cls.opened_encoder(params), params)
        return part

    @classmethod
    def opened_encoder(cls, params: Any) -> Any:
        name, given = read_encoder(cls, params)
        return cls.encoders().open(name, **given.to_dict())

    @classmethod
    def inputs(cls, params: Any) -> str:
        name, given = read_encoder(cls, params)
        return fingerprint(cls.encoders().digest_of(name), given.to_dict(), params.kept)

    @classmethod
    def form_of(cls, described: Mapping[str, Any]) -> str:
        made_by = described.get("encoder", {})
        of: Any = cls.OfEncoder
        return encoder_form(made_by.get("name", vars(cls.Params())["encoder"]), of(**made_by.get("settings", {})))


class CountedPart(PartByEncoder):
    """A part with `.npz` blocks whose entry `cut` counts the texts that were cut."""

    ending = ".npz"
    automatic = False  # takes most of the time or room, and gains little beside BM25 and vectors
    _cut = 0

    def encoded(self, texts: list[str]) -> Any:
        return self.of_documents.encode(texts, "document", threads=self._threads)

    def add(self, documents: Sequence[Document]) -> None:
        super().add(documents)
        with np.load(self._files[-1], allow_pickle=False) as block:
            self._cut += int(block["cut"])


def encoder_on(
    devices: Devices, usual: TextEncoder, settings: dict[str, Any], texts: Sequence[str]
) -> tuple[TextEncoder, dict[str, Any]]:
    """An encoder on devices, and its description: device, type, lowest cosine to the processor's rows.

    Args:
        usual: the encoder on the processor; settings: for loading it; texts: both encode `TRIED` of them.

    Raises:
        InputError: a cosine below `least_cosine`; as `TextEncoder.load`.
    """
    from rnnreranker.encode.graph import cosine_of

    encoder = type(usual).load(usual.name, devices=devices, **settings)
    ordered = sorted({text for text in texts if text.strip()}, key=lambda text: (len(text), text))
    last = len(ordered) - 1
    tried = ordered if last < TRIED else [ordered[number * last // (TRIED - 1)] for number in range(TRIED)]
    lowest = cosine_of(encoder.rows(tried), usual.rows(tried)) if tried else 1.0
    least = least_cosine(devices.dtype)
    if not lowest >= least:
        raise InputError(
            f"{usual.name} on {devices}: the lowest cosine of {counted(len(tried), 'text')} to what the processor "
            f"computes is {lowest:.5f}; expected {least:g} or more: compute in float32, or on the processor"
        )
    say(f"{usual.name} on {devices}: lowest cosine of {counted(len(tried), 'text')} to the processor's {lowest:.6f}")
    return encoder, {"device": ",".join(devices.names), "dtype": devices.dtype, "cosine": round(lowest, 6)}
