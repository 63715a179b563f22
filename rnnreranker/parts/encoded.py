"""Parts that encode texts: blocks of documents, each kept as a file of arrays that survives a kill."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import counted, say
from rnnreranker.base.device import Devices, least_cosine
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import check_files, fingerprint
from rnnreranker.base.settings import Written
from rnnreranker.data.document import Document
from rnnreranker.parts.base import Part, described_part
from rnnreranker.parts.vectors.npy_files import put_arrays

if TYPE_CHECKING:
    from rnnreranker.encode.kinds import TextEncoder

TRIED = 16  # texts that a GPU and the processor encode
Block = Mapping[str, Any]  # name → array


class EncodedPart(Part):
    """Encodes blocks of documents; each block is a file named by encoder and documents.

    Args:
        encoder: with a `fingerprint`; `kept` of the settings is all else that counts.

    Attributes:
        of_documents: encodes documents: the encoder's graph, or the model on `devices` or where it began the part.
    """

    automatic = False  # takes most of the time or room, and gains little beside BM25 and vectors

    def __init__(self, encoder: Any, params: Any = None) -> None:
        super().__init__(params)
        self._encoder, self.of_documents = encoder, encoder
        self._mark, self._count, self._threads = "", 0, None  # type: tuple[str, int, int | None]
        self._files: list[Path] = []
        self._old: Any = None  # with docids: what an index has
        self._computed: dict[str, Any] = {}  # where, as the index says
        self.marks = (encoder.fingerprint, *([self.params.kept] if self.encoder else ()))

    @abstractmethod
    def encoded(self, documents: Sequence[Document]) -> Block:
        """The block of some documents."""

    @abstractmethod
    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        """The block of (n,) int64 rows of `_old`."""

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        """The class of the encoders, if `encoder` names one."""
        raise NotImplementedError

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        name, given = _read(cls, params.encoder)
        part: Part = cls(cls.encoders().open(name, **given.to_dict()), params)
        return part

    @classmethod
    def inputs(cls, params: Any) -> str | None:
        if cls.OfEncoder is None:
            return super().inputs(params)
        name, given = _read(cls, params.encoder)
        return fingerprint(cls.encoders().digest_of(name), given.to_dict(), params.kept)

    @property
    def options(self) -> dict[str, Any]:
        """The settings for loading the encoder again."""
        options: dict[str, Any] = self._encoder.params.to_dict()
        return options

    def extend(self, index: Path) -> None:
        """Take whole blocks of documents from an index; InputError: another encoder made them.

        New documents are encoded as the old ones, by graph or model, so that bytes equal those of an index made at
        once.
        """
        described = described_part(index, self.name)
        made_by = described.get("encoder", {})
        if made_by.get("fingerprint", described.get("vectors")) != self._encoder.fingerprint:
            raise InputError(
                f"{index}: the files of the encoder {made_by.get('name')} of its part {self.name} have changed since; "
                "make the index again"
            )
        check_files(index, self.name)
        self._old, self._computed = self.open(index, described), made_by.get("computed", {})
        if self._encoder.graph is not None and made_by.get("documents") != "graph" and not self._computed:
            self.of_documents = type(self._encoder).load(self._encoder.name, **self.options)

    def start(self, work: Path, threads: int | None) -> None:
        self._folder = work / (self.folder or "vectors")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._threads = threads

    def file_of(self, number: int, documents: Sequence[Document]) -> Path:
        texts = [document.text for document in documents]
        name = fingerprint(self.mark_of(texts), [document.docid for document in documents], texts)
        return self._folder / f"{number:06d}-{name}.npz"

    def mark_of(self, texts: list[str]) -> str:
        """The fingerprint of the encoder; the first call prepares it, with the texts of the first block."""
        if not self._mark:
            marks: Sequence[Any] = () if self.of_documents.graph is None else ("graph",)
            if self.devices is not None and self.encoder:
                self.of_documents, self._computed = encoder_on(self.devices, self._encoder, self.options, texts)
                marks = self.devices.marks
            self._mark = fingerprint(self._encoder.fingerprint, *marks)
        return self._mark

    def encode_into(self, file: Path, documents: Sequence[Document], threads: int | None) -> None:
        """Write the file of a block; its bytes do not depend on threads."""
        self._threads = threads
        self.mark_of([document.text for document in documents])
        put_arrays(file, self.encoded(documents))

    def add(self, documents: Sequence[Document]) -> None:
        file, rows = self.file_of(len(self._files), documents), np.arange(self._count, self._count + len(documents))
        self._count += len(documents)
        old = self._old is not None and self._count <= len(self._old.docids)
        if old or file.is_file():
            self.reused += len(documents)
        if not file.is_file():
            texts = [document.text for document in documents]
            put_arrays(file, self.taken(rows, texts) if old else self.encoded(documents))
        self._files.append(file)

    def stored(self) -> Iterator[Any]:
        """The block of each file, in the order of the documents."""
        for file in self._files:
            with np.load(file, allow_pickle=False) as block:
                yield block

    def made_by(self, about: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The description of the encoder."""
        said = {"name": self._encoder.name, **about, "fingerprint": self._encoder.fingerprint, **more}
        if self._computed:
            return {**said, "computed": self._computed}
        return said if self.of_documents.graph is None else {**said, "documents": "graph"}

    def cut(self) -> tuple[int, str]:
        """How many texts were cut, and this in words."""
        count = sum(int(block["cut"]) for block in self.stored())
        longest = getattr(self._encoder, "document_length", None) or self._encoder.max_length
        return count, f"{counted(count, 'text')} cut at {longest} tokens"


def _read(part: type[Part], form: str) -> tuple[str, Any]:
    written, of = Written.read(form), part.OfEncoder
    assert of is not None
    return written.name, of.of(written.params, f"encoder {written}")


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
    tried = ordered[:: max(1, len(ordered) // TRIED)][:TRIED]
    lowest = cosine_of(encoder.rows(tried), usual.rows(tried)) if tried else 1.0
    what = f"lowest cosine of {counted(len(tried), 'text')} to the processor's"
    if not lowest >= (least := least_cosine(devices.dtype)):
        raise InputError(
            f"{usual.name} on {devices}: {what} is {lowest:.5f}; expected {least:g} or more: compute in float32, or on "
            "the processor"
        )
    say(f"{usual.name} on {devices}: {what} {lowest:.6f}")
    return encoder, {"device": ",".join(devices.names), "dtype": devices.dtype, "cosine": round(lowest, 6)}
