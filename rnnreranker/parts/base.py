"""A part of an index: one representation of all documents, how it is made, described and opened.

An encoded part keeps each block of documents as a file of arrays, which survives a kill.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import counted, say
from rnnreranker.base.device import EXACT, Devices, devices_of, least_cosine
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import DESCRIPTION, check_files, fingerprint, noted_files, read_json
from rnnreranker.base.method import find, methods, names
from rnnreranker.base.settings import Share, Written, hints_of
from rnnreranker.data.document import Document
from rnnreranker.parts.vectors.npy_files import put_array

if TYPE_CHECKING:
    from rnnreranker.encode.kinds import TextEncoder

BLOCK = 512  # documents processed together
TRIED = 16  # texts that a GPU and the processor encode
SCHEMA = 3  # of the layout of rnnreranker.json
Block = Mapping[str, Any]  # name → array


class Part(ABC):
    """One representation of the documents of an index; each `part.py` has one subclass, whose objects make the part.

    Attributes:
        name: in `--parts`, YAML and rnnreranker.json. rank: order among the parts.
        Params: settings; one with `setting(flag=…)` is also a flag of `index`.
        gives, gives_queries: method inputs it provides, of documents and queries.
        made_of: the part is made of one of these; empty = of the texts.
        source: the class that `open` makes of index and description.
        encoder: kind of the encoder that the setting `encoder` names. OfEncoder: settings of that encoder.
        folder: of its files, by default its name. automatic: whether `--parts auto` makes it.
        marks: parts of the index's fingerprint. reused: documents that an interrupted build has finished.
        backend, address, devices: as in `do_parts`; devices None = the processor.
    """

    name: ClassVar[str]
    Params: ClassVar[type[settings.Params]] = settings.Params
    gives: ClassVar[str] = ""
    gives_queries: ClassVar[str] = ""
    made_of: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[Any]
    encoder: ClassVar[str] = ""
    OfEncoder: ClassVar[type[settings.Params]] = settings.Params
    folder: ClassVar[str] = ""  # "" = its name
    automatic: ClassVar[bool] = True
    rank: ClassVar[int] = 100
    marks: tuple[Any, ...] = ()
    params: Any = settings.Params()
    reused: int = 0
    backend: str = "threads"
    address: str | None = None
    devices: Devices | None = None

    def __init__(self, params: Any = None) -> None:
        self.params: Any = self.Params() if params is None else params

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        """The object that makes the part; beside: settings of the index's other parts.

        Raises:
            InputError, UnavailableError, MissingDependencyError: settings that conflict; something is missing.
        """
        return cls(params)

    @classmethod
    def settings_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of the part; those of its encoder go into the encoder's written form."""
        own = hints_of(cls.Params)
        beside = {key: value for key, value in values.items() if key not in own and key in hints_of(cls.OfEncoder)}
        others = {key: value for key, value in values.items() if key not in beside}
        if not beside and "encoder" not in others:
            return others
        written = Written.read(others.get("encoder", vars(cls.Params())["encoder"])).beside(beside, "encoder")
        given, usual = cls.OfEncoder.of(written.given, f"encoder {written}"), cls.OfEncoder().to_dict()
        changed = {key: value for key, value in given.to_dict().items() if value != usual[key]}
        return {**others, "encoder": str(Written(written.name, changed))}

    @classmethod
    def origins(cls, params: Any) -> tuple[str, ...]:
        """The parts of `made_of` that these settings allow, in order of preference."""
        return cls.made_of

    @classmethod
    def inputs(cls, params: Any) -> str | None:
        """A fingerprint of the settings, without loading anything; None = settings do not distinguish indexes."""
        return fingerprint(params.to_dict()) if hints_of(cls.Params) and not cls.made_of else None

    @classmethod
    def at(cls, path: Path) -> Path | None:
        """The path for `open` if it is a folder or file of the part; else None."""
        return path if (path / (cls.folder or cls.name)).is_dir() else None

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        """Whether an index has the part, with these settings if made of others; None = any."""
        if cls.at(index) is None or params is None or not cls.made_of:
            return cls.at(index) is not None
        return bool(described_part(index, cls.name).get("settings") == params.to_dict())

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> Any:
        """What methods read; described: the part in rnnreranker.json, or empty.

        Raises:
            InputError: files that are missing or damaged.
        """
        return cls.source(at, described)

    @classmethod
    def queries(
        cls, source: Any, topics: Mapping[str, str], threads: int | None = None, devices: Devices | None = None
    ) -> Any:
        """What methods that need `gives_queries` read; source: the opened part."""
        raise NotImplementedError

    def check(self) -> None:  # noqa: B027  not every part needs something
        """Raise an error before hours of work if something is missing, such as Java."""

    def extend(self, index: Path) -> None:  # noqa: B027  not every part can
        """Take an index's first documents of this part; InputError: something else made them."""

    def start(self, work: Path, threads: int | None) -> None:  # noqa: B027  not every part works block by block
        """Begin; an interrupted build resumes from the folder `work`."""

    def add(self, documents: Sequence[Document]) -> None:  # noqa: B027  nor reads the stream
        """Take the next block of documents."""

    def write_share(self, index: Path, share: Share) -> str:
        """Make one process's share of what `write` needs, and return a line about it; InputError: only one process
        can.
        """
        raise InputError(f"{argument('shard_id', share[0])}: {self.name} is made by one process; leave it out")

    @abstractmethod
    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write the files of the part into the folder of the index; returns its description, besides `settings`.

        Args:
            corpus: the folder of the texts, in the index that has all other parts; count: number of documents.
        """


class EncodedPart(Part):
    """Encodes blocks of documents; each block is a file named by encoder and documents.

    Args:
        encoder: with a `fingerprint`; `kept` of the settings is all else that counts.

    Attributes:
        encoders: the class of the encoders, if `encoder` names one.
        of_documents: encodes documents: the encoder's graph, or the model on `devices` or where it began the part.
    """

    automatic = False  # takes most of the time or room, and gains little beside BM25 and vectors
    encoders: ClassVar[type[TextEncoder]]

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
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        name, given = cls._read(params.encoder)
        return cls(cls.encoders.open(name, **given), params)

    @classmethod
    def inputs(cls, params: Any) -> str | None:
        if not cls.encoder:
            return super().inputs(params)
        name, given = cls._read(params.encoder)
        return fingerprint(cls.encoders.digest_of(name), given, params.kept)

    @classmethod
    def _read(cls, form: str) -> tuple[str, dict[str, Any]]:
        """The name and all settings of an encoder in its written form."""
        written = Written.read(form)
        return written.name, cls.OfEncoder.of(written.given, f"encoder {written}").to_dict()

    def extend(self, index: Path) -> None:
        """Take whole blocks of documents from an index; InputError: another encoder made them.

        New documents are encoded as the old ones, by graph or model and in the same type, so that bytes equal those of
        an index made at once.
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
        devices, dtype = self.devices or Devices(), self._computed.get("dtype", EXACT)
        if devices.dtype != dtype:  # of another part
            self.devices = devices_of(",".join(devices.names) if devices.elsewhere else None, dtype)
        if self._encoder.graph is not None and made_by.get("documents") != "graph" and not self._computed:
            self.of_documents = type(self._encoder).load(self._encoder.name, **self._encoder.options)

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
            taken = [] if self._old is None else [self.params.to_dict(), dict(self._computed)]  # perhaps rounded
            marks: Sequence[Any] = () if self.of_documents.graph is None else ("graph",)
            if self.devices is not None and self.encoder:
                self.of_documents, self._computed = encoder_on(self.devices, self._encoder, texts)
                marks = self.devices.marks
            self._mark = fingerprint(self._encoder.fingerprint, *marks, *taken)
        return self._mark

    def encode_into(self, file: Path, documents: Sequence[Document], threads: int | None) -> None:
        """Write the file of a block; its bytes do not depend on threads."""
        self._threads = threads
        self.mark_of([document.text for document in documents])
        put_array(file, self.encoded(documents))

    def add(self, documents: Sequence[Document]) -> None:
        file, rows = self.file_of(len(self._files), documents), np.arange(self._count, self._count + len(documents))
        self._count += len(documents)
        old = self._old is not None and self._count <= len(self._old.docids)
        if old or file.is_file():
            self.reused += len(documents)
        if not file.is_file():
            texts = [document.text for document in documents]
            put_array(file, self.taken(rows, texts) if old else self.encoded(documents))
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


def describe(index: Path) -> dict[str, Any]:
    """The content of `rnnreranker.json` in an index folder, {} without one; InputError: another schema or form."""
    path = index / DESCRIPTION
    if not path.is_file():
        return {}
    about = read_json(path, repair="make the index again")
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise InputError(f"{path}: another schema; this version reads schema {SCHEMA}; make the index again")
    about = {"parts": None, "inputs": {}, "versions": {}, **about}
    groups = [about["parts"], about["inputs"], about["versions"]]
    groups += groups[0].values() if isinstance(groups[0], dict) else ()
    if not all(isinstance(one, dict) for one in groups):
        raise InputError(f"{path}: parts, inputs and versions are no objects of objects; make the index again")
    return {**about, "files": noted_files(about, path)}


def described_part(index: Path, name: str) -> dict[str, Any]:
    """A part in the description of an index, {} without one; errors as `describe`."""
    return describe(index).get("parts", {}).get(name, {})


def parts() -> dict[str, type[Part]]:
    return methods("part")


@functools.cache
def givers(queries: bool = False) -> dict[str, str]:
    """Needs of methods for documents → the part that fills each; with `queries` also needs for queries."""
    documents = {one.gives: name for name, one in parts().items() if one.gives}
    own = {one.gives_queries: name for name, one in parts().items() if one.gives_queries}
    return documents | own if queries else documents


def parts_of(needs: Iterable[str]) -> set[str]:
    """The parts of an index that fill the needs of methods.

    >>> sorted(parts_of({"vectors", "query vectors", "topics", "words"}))
    ['bm25', 'dense']
    """
    return {giver for need in needs if (giver := givers(queries=True).get(need))}


def part(name: str) -> type[Part]:
    return find("part", name)


def parts_at(path: Path) -> dict[str, Path]:
    """The parts in a folder, or of a file: name → the path for `open`."""
    there = {name: at for name, one in parts().items() if (at := one.at(path)) is not None}
    return there if any(not part(name).made_of for name in there) else {}


def stored_parts(index: Path) -> list[str]:
    """The described parts of an index, or without a description those whose files exist."""
    described = describe(index)
    return [name for name in (described["parts"] if described else parts_at(index)) if name in names("part")]


def stored_settings(index: Path, named: Iterable[str]) -> dict[str, Any]:
    """The settings of described parts; InputError: an unknown part, or another form."""
    described = describe(index)["parts"]
    try:
        return {name: part(name).Params(**described[name]["settings"]) for name in named}
    except (TypeError, KeyError, InputError):
        raise InputError(
            f"{index / DESCRIPTION}: does not describe parts as this version does; make the index again"
        ) from None


def encoder_on(devices: Devices, usual: TextEncoder, texts: Sequence[str]) -> tuple[TextEncoder, dict[str, Any]]:
    """An encoder on devices, and its description: device, type, lowest cosine to the processor's rows.

    Args:
        usual: the encoder on the processor; texts: both encode `TRIED` of them.

    Raises:
        InputError: a cosine below `least_cosine`; as `TextEncoder.load`.
    """
    from rnnreranker.encode.graph import cosine_of

    encoder = type(usual).load(usual.name, devices=devices, **usual.options)
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
