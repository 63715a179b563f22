"""A part that encodes texts: blocks of documents, each kept as a file that survives a kill."""

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

DEVICE_BLOCKS = 32  # that a GPU encodes together
TRIED = 16  # texts that a GPU and the processor encode


class EncodedPart(Part):
    """Encodes blocks of documents and keeps each as a file, named by encoder and documents, for an interrupted build.

    Args:
        mark: fingerprint of the encoder.
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
        """The same from `_old`; rows: (n,) int64."""

    @abstractmethod
    def save(self, stream: IO[bytes], block: Any) -> None:
        """Write a block."""

    def start(self, work: Path, threads: int | None) -> None:
        self._folder = work / (self.blocks or self.folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._threads = threads

    def begin(self, texts: list[str]) -> None:
        """Open what encodes, before the first block, which has these texts."""

    def _begin(self, texts: list[str]) -> None:
        if not self._begun:
            self.begin(texts)
            self._begun = True

    def file_of(self, number: int, documents: Sequence[Document]) -> Path:
        """The file of a block, by its number, which may be there from before."""
        texts = [document.text for document in documents]
        self._begin(texts)
        name = fingerprint(self._mark, [document.docid for document in documents], texts)
        return self._folder / f"{number:06d}-{name}{self.ending}"

    def encode_into(self, file: Path, texts: list[str], threads: int | None) -> None:
        """Make the file of a block of these texts, wherever this is called; the bytes do not depend on threads."""
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
    """A part that an encoder makes, which its setting `encoder` names; `kept` of its settings is all else.

    Documents are encoded by the encoder's graph, where it has one; what was begun by the model itself goes on by it.

    Args:
        encoder: on the processor; params: of the part.

    Attributes:
        of_documents: what encodes documents: from the first block on that on `devices`, where there are some.
    """

    def __init__(self, encoder: Any, params: Any) -> None:
        super().__init__("")
        self._encoder = self.of_documents = encoder
        self._params = params
        self._computed: dict[str, Any] = {}  # where, as the index says
        self.marks = (encoder.fingerprint, params.kept)

    @property
    def blocks_at_once(self) -> int:
        """More on a GPU, where more texts of one length can be encoded together."""
        return DEVICE_BLOCKS if self.devices is not None and self.devices.elsewhere else 1

    @property
    def options(self) -> dict[str, Any]:
        """What the encoder is loaded with."""
        options: dict[str, Any] = self._encoder.params.to_dict()
        return options

    def begin(self, texts: list[str]) -> None:
        """Load the encoder on devices; blocks of a graph and of other arithmetic are not taken for those of the model.

        Raises:
            InputError: as `encoder_on`.
        """
        marks: Sequence[Any] = () if self.of_documents.graph is None else ("graph",)
        if self.devices is not None:
            self.of_documents, self._computed = encoder_on(self.devices, self._encoder, self.options, texts)
            marks = self.devices.marks
        self._mark = fingerprint(self._encoder.fingerprint, *marks) if marks else str(self._encoder.fingerprint)

    def extend(self, index: Path) -> None:
        """Take blocks of documents that the index has from there; one that is new in part is encoded whole.

        New documents are encoded as these were, by graph or model: the bytes are those of an index made at once.

        Raises:
            InputError: another encoder made them.
        """
        described = part_made_by(index, self.name, self._encoder.fingerprint)
        self._old, made_by = self.open(index, described), described["encoder"]
        self._computed = made_by.get("computed", {})
        if self._encoder.graph is not None and made_by.get("documents") != "graph" and not self._computed:
            self.of_documents = type(self._encoder).load(self._encoder.name, **self.options)

    def made_by(self, about: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """What an index says of the encoder; about, more: what the part says besides."""
        said = {"name": self._encoder.name, **about, "fingerprint": self._encoder.fingerprint, **more}
        if self._computed:
            return {**said, "computed": self._computed}
        return said if self.of_documents.graph is None else {**said, "documents": "graph"}

    @classmethod
    @abstractmethod
    def encoders(cls) -> type[TextEncoder]:
        """The class of such encoders, imported when it is asked for."""

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        """By the encoder, which is loaded."""
        of: Any = cls
        part: Part = of(cls.opened_encoder(params), params)
        return part

    @classmethod
    def opened_encoder(cls, params: Any) -> Any:
        """The encoder that the settings name."""
        name, given = read_encoder(cls, params)
        return cls.encoders().open(name, **given.to_dict())

    @classmethod
    def inputs(cls, params: Any) -> str:
        """The files of the encoder, its settings, and how what it makes is kept."""
        name, given = read_encoder(cls, params)
        return fingerprint(cls.encoders().digest_of(name), given.to_dict(), params.kept)

    @classmethod
    def form_of(cls, described: Mapping[str, Any]) -> str:
        """The written form of the encoder of a part that rnnreranker.json describes."""
        made_by = described.get("encoder", {})
        of: Any = cls.OfEncoder
        return encoder_form(made_by.get("name", vars(cls.Params())["encoder"]), of(**made_by.get("settings", {})))


class CountedPart(PartByEncoder):
    """A part whose blocks are `.npz` files that say, as `cut`, how many texts were cut; empty ones are counted, too."""

    ending = ".npz"
    automatic = False  # takes most of the time or room, and gains little beside BM25 and vectors
    _cut = _empty = 0

    def encoded(self, texts: list[str]) -> Any:
        """What the encoder gives of texts: arrays, the last of which says how many texts were cut."""
        return self.of_documents.encode(texts, "document", threads=self._threads)

    def add(self, documents: Sequence[Document]) -> None:
        super().add(documents)
        with np.load(self._files[-1], allow_pickle=False) as block:
            self._cut += int(block["cut"])
        self._empty += sum(not document.text.strip() for document in documents)

    def lost(self, length: int) -> list[str]:
        """What to say of the texts that were cut at a length, and of empty ones."""
        said = [f"{counted(self._cut, 'text')} cut at {length} tokens"] if self._cut else []
        return [*said, f"{counted(self._empty, 'text')} empty, never found"] if self._empty else said


def part_made_by(index: Path, part: str, mark: str) -> dict[str, Any]:
    """What an index says of a part that the encoder of a fingerprint made; InputError: another one made it."""
    described: dict[str, Any] = describe(index)["parts"][part]
    if described["encoder"].get("fingerprint") != mark:
        raise InputError(
            f"{index}: its part {part} was made by {described['encoder'].get('name')} as it was then, which is another "
            "encoder now; make the index again"
        )
    return described


def encoder_on(
    devices: Devices, usual: TextEncoder, settings: dict[str, Any], texts: Sequence[str]
) -> tuple[TextEncoder, dict[str, Any]]:
    """An encoder on devices, and what an index says of it: device, type, the lowest cosine to the processor's rows.

    Args:
        usual: the same on the processor; settings: what it is loaded with.
        texts: of documents, from the shortest to the longest of which `TRIED` are encoded by both.

    Raises:
        InputError: a cosine below `least_cosine`; as `TextEncoder.load`.
    """
    from rnnreranker.encode.graph import cosine_of

    encoder = type(usual).load(usual.name, devices=devices, **settings)
    tried = _sample(texts)
    lowest = cosine_of(encoder.rows(tried), usual.rows(tried)) if tried else 1.0
    least = least_cosine(devices.dtype, settings.get("dtype"))
    if not lowest >= least:
        raise InputError(
            f"{usual.name} on {devices}: the lowest cosine of {counted(len(tried), 'text')} to what the processor "
            f"computes is {lowest:.5f}; expected {least:g} or more: compute in float32, or on the processor"
        )
    say(f"{usual.name} on {devices}: lowest cosine of {counted(len(tried), 'text')} to the processor's {lowest:.6f}")
    return encoder, {"device": ",".join(devices.names), "dtype": devices.dtype, "cosine": round(lowest, 6)}


def _sample(texts: Sequence[str]) -> list[str]:
    ordered = sorted({text for text in texts if text.strip()}, key=lambda text: (len(text), text))
    if len(ordered) <= TRIED:
        return ordered
    return [ordered[number * (len(ordered) - 1) // (TRIED - 1)] for number in range(TRIED)]
