"""A part that encodes texts: blocks of documents, each kept as a file that survives a kill."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.command import counted
from rnnreranker.base.files import fingerprint, write_atomically
from rnnreranker.data.document import Document
from rnnreranker.parts.base import Part, encoder_form, part_made_by, read_encoder

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder

DEVICE_BLOCKS = 32  # that a GPU encodes together


class EncodedPart(Part):
    """Encodes blocks of documents and keeps each as a file, named by what it was made from.

    Blocks of an earlier, interrupted build are used again where encoder and documents agree; what `extend` has set as
    `_old` is not encoded again.

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

    Args:
        mark: what blocks are named by; encoder: on the processor.

    Attributes:
        of_documents: what encodes documents: from the first block on that on `devices`, where there are some.
    """

    def __init__(self, mark: str, encoder: Any) -> None:
        super().__init__(mark)
        self._encoder = self.of_documents = encoder
        self._computed: dict[str, Any] = {}  # where, as the index says

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
        """Load the encoder on devices; blocks of other arithmetic are not taken for its.

        Raises:
            InputError: as `encoder_on`.
        """
        if self.devices is None:
            return
        from rnnreranker.parts.on_devices import encoder_on

        self.of_documents, self._computed = encoder_on(self.devices, self._encoder, self.options, texts)
        if marks := self.devices.marks:
            self._mark = fingerprint(self._mark, *marks)

    @classmethod
    @abstractmethod
    def encoders(cls) -> type[TextEncoder]:
        """The class of such encoders, imported when it is asked for."""

    @classmethod
    def opened_encoder(cls, params: Any) -> Any:
        """The encoder that the settings name."""
        name, given = read_encoder(cls, params)
        return cls.encoders().open(name, **given.to_dict())

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        """By the encoder, which is loaded."""
        of: Any = cls
        part: Part = of(cls.opened_encoder(params), params)
        return part

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
    """A part whose blocks are `.npz` files that say, as `cut`, how many texts were cut; empty ones are counted, too.

    Documents are encoded by the encoder's graph, where it has one; what was begun by the model itself goes on by it.

    Args:
        encoder: with name and fingerprint.
        params: of the part.
    """

    ending = ".npz"
    automatic = False  # takes most of the time or room, and gains little beside BM25 and vectors

    def __init__(self, encoder: Any, params: Any) -> None:
        super().__init__(_mark(encoder), encoder)
        self._params = params
        self.marks = (encoder.fingerprint, params.kept)
        self._cut = self._empty = 0

    def encoded(self, texts: list[str]) -> Any:
        """What the encoder gives of texts: arrays, the last of which says how many texts were cut."""
        return self.of_documents.encode(texts, "document", threads=self._threads)

    def begin(self, texts: list[str]) -> None:
        """As `PartByEncoder`; blocks of a graph are not taken for those of the model, nor the other way round."""
        if self.devices is not None:
            self._mark = str(self._encoder.fingerprint)
        super().begin(texts)

    def extend(self, index: Path) -> None:
        """Take blocks of documents that the index has from there; one that is new in part is encoded whole.

        Raises:
            InputError: they were made by another encoder.
        """
        described = part_made_by(index, self.name, self._encoder.fingerprint)
        self._old, made_by = self.open(index, described), described["encoder"]
        self._computed = made_by.get("computed", {})
        if self._encoder.graph is not None and made_by.get("documents") != "graph" and not self._computed:
            self._encoder = self.of_documents = type(self._encoder).load(self._encoder.name, **self.options)
            self._mark = _mark(self._encoder)

    def made_by(self, **more: Any) -> dict[str, Any]:
        """What an index says of the encoder; more: what the part says besides."""
        encoder = self._encoder
        said = {"name": encoder.name, **more, "fingerprint": encoder.fingerprint}
        if self._computed:
            return {**said, "computed": self._computed}
        return said if encoder.graph is None else {**said, "documents": "graph"}

    def add(self, documents: Sequence[Document]) -> None:
        super().add(documents)
        with np.load(self._files[-1], allow_pickle=False) as block:
            self._cut += int(block["cut"])
        self._empty += sum(not document.text.strip() for document in documents)

    def lost(self, length: int) -> list[str]:
        """What to say of the texts that were cut at a length, and of empty ones."""
        said = [f"{counted(self._cut, 'text')} cut at {length} tokens"] if self._cut else []
        return [*said, f"{counted(self._empty, 'text')} empty, never found"] if self._empty else said


def _mark(encoder: Any) -> str:
    """What blocks are named by: those of a graph are not taken for those of the model."""
    return str(encoder.fingerprint) if encoder.graph is None else fingerprint(encoder.fingerprint, "graph")
