"""An index folder from a stream of documents: resumable, complete or absent, the same bytes every time.

`DIR/index` (float32, Faiss) or `DIR/vectors.npy` (float16), `DIR/docid`; `DIR/corpus/` the texts; `DIR/bm25/` a Lucene
index; `DIR/impacts/` word weights; `DIR/rnnreranker.json` describes them. Unfinished work is in `DIR.partial/`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker._version import __version__
from rnnreranker.base.command import cores, counted, notice, progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import (
    DESCRIPTION,
    DOCIDS,
    TEXTS,
    behind_links,
    fingerprint,
    names_in,
    note_files,
    put_folder,
    write_json,
)
from rnnreranker.base.jobs import CLUSTERS, alone, do_parts
from rnnreranker.base.settings import Share
from rnnreranker.data.document import Document
from rnnreranker.parts import base
from rnnreranker.parts.base import BLOCK, SCHEMA, EncodedPart, Part, describe
from rnnreranker.parts.texts import FOLDER, CorpusWriter, documents_of

if TYPE_CHECKING:
    from rnnreranker.index.request import IndexRequest

Job = tuple[str, Any, Devices | None, int | None, list[Document], Path]  # what `encode_block` takes

PACKAGES = ("numpy", "scipy", "torch", "transformers", "sentence-transformers", "onnxruntime", "faiss-cpu", "pyserini")
DEVICE_BLOCKS = 32  # blocks that a GPU encodes together
_as_json = json.JSONEncoder().encode


@dataclass(frozen=True)
class Built:
    """The folder of a build, its number of documents, how many of them were encoded before, and the new parts."""

    path: Path
    documents: int
    reused: int
    made: list[str]


def write_index(
    documents: Iterable[Document],
    output: str | os.PathLike[str],
    parts: Sequence[Part],
    *,
    threads: int | None = None,
    name: str = "",
    inputs: dict[str, Any] | None = None,
    texts: bool = True,
) -> Built:
    """Write a complete index in `output`, in place of an old one; takes the blocks of an interrupted build.

    Args:
        documents: streamed once; different docids without white space; texts may be empty.
        parts: at least one, each after those that it is made of; threads: None = one per core, do not change the
            result.
        name: of the documents; inputs: both for the description.
        texts: whether the texts are kept; False for vectors alone.

    Raises:
        InputError: no documents or parts, a bad or repeated docid (with its position), a text that is no string, a
            folder that is no index.
        UnavailableError: a BM25 part without Java 21 or newer.
    """
    output = Path(output).expanduser()
    if not parts:
        raise InputError("nothing to make: expected at least one part of an index")
    check_replaceable(output)
    with partial_folder(output, parts, threads) as result:
        count, content = _stream(documents, result, parts, texts)
        of_texts = {name for name in names_in(result) if name.startswith(FOLDER)}
        described: dict[str, Any] = {
            "schema": SCHEMA,
            "documents": name,
            "count": count,
            "content": content,
            "parts": {},
            "fingerprint": "",
            "inputs": inputs or {},
            "versions": {},
            "files": {DOCIDS: note_files(result, names_in(result) - of_texts), TEXTS: note_files(result, of_texts)},
        }
        return _written(parts, result, output, described)


def add_parts(
    output: Path,
    parts: Sequence[Part],
    documents: Iterable[Document] | None = None,
    *,
    threads: int | None = None,
    inputs: dict[str, Any] | None = None,
    count: int = 0,
) -> Built:
    """Add parts to an index, in place of parts of the same names and of those made of them.

    Args:
        documents: those of the index, in order; None = from its texts.
        inputs: replace those of the same names in the description; count: of the documents, if nothing describes it.

    Raises:
        InputError, UnavailableError: an index without texts for a part of texts; as `write_index`.
    """
    with partial_folder(output, parts, threads) as result:
        described = describe(output) or {"count": count, "parts": {}, "files": {}, "inputs": {}, "versions": {}}
        if not all(part.made_of for part in parts):
            documents = documents_of(output) if documents is None else documents
            _pass(progress(documents, unit="documents", what="index"), parts)
        replaced = {part.name for part in parts}
        gone = [name for name, one in described["parts"].items() if {name, one.get("of")} & replaced]
        lost = {name for part in gone for name in described["files"].pop(part, ())}
        folders = {part.folder or part.name for part in parts}
        hidden = {path.name for path in output.glob(".*") if path.is_file()}  # of others, as the notes of a plan
        for name in hidden | names_in(output) - lost:
            if name.partition("/")[0] not in folders:
                _link(output / name, result / name)
        described["parts"] = {name: one for name, one in described["parts"].items() if name not in gone}
        described["inputs"] |= inputs or {}
        return _written(parts, result, output, described)


def _link(file: Path, other: Path) -> None:
    other.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, other)
    except OSError:  # a file system without hard links
        shutil.copy2(file, other)


def _written(parts: Sequence[Part], result: Path, output: Path, described: dict[str, Any]) -> Built:
    """Write and describe parts in a folder with all else of the index, which becomes `output`."""
    marks = [mark for part in parts for mark in part.marks]
    if "content" in described and (marks or not described["fingerprint"]):
        described["fingerprint"] = fingerprint(described["content"], *marks)
    described["versions"] |= {"rnnreranker": __version__, **{package: installed(package) for package in PACKAGES}}
    if "content" in described:  # parts that are made of others read it
        write_json(result / DESCRIPTION, described)
    for part in parts:
        settings, there = {"settings": part.params.to_dict()}, names_in(result)
        described["parts"][part.name] = settings | part.write(result, result / FOLDER, described["count"])
        described["files"][part.name] = note_files(result, names_in(result) - there)
        if "content" in described:
            write_json(result / DESCRIPTION, described)
    put_folder(result, output)
    reused = min(described["count"], max(part.reused for part in parts))
    return Built(output, described["count"], reused, [part.name for part in parts])


def encode_ahead(
    documents: Iterable[Document], parts: Iterable[Part], request: IndexRequest, work: Path, share: Share = (0, 1)
) -> tuple[int, int]:
    """Make files of blocks for `write_index` and `add_parts`; returns how many it made, and how many it has.

    It takes no lock: several processes, each with a share, work in the folder `work` of `Part.start`.

    Args:
        documents: all of the index; parts: only those with an encoder count.
        request: their settings, the backend, and threads: blocks at a time; of the backend `threads`, of one block.

    Raises:
        InputError, UnavailableError: as `Part.make` and `do_parts`.
    """
    makers = [one for one in parts if isinstance(one, EncodedPart) and one.encoder]
    for maker in makers:
        maker.start(work, request.threads)
    made, own = 0, 0
    alone = request.backend == "threads"  # one block after the other, on all cores
    elsewhere = request.devices is not None and request.devices.elsewhere

    def jobs() -> Iterator[Job]:
        nonlocal made, own
        for number, block in enumerate(blocks_of(documents, makers)):
            for maker in makers if number % share[1] == share[0] else ():
                own += 1
                if not (file := maker.file_of(number, block)).is_file():
                    made += 1
                    params, threads = request.chosen[maker.name].params, request.threads if alone else 1
                    yield maker.name, params, maker.devices, threads, block, file

    do_parts(
        encode_block,
        jobs() if makers else (),
        workers=1 if alone else request.threads or cores(),
        backend=request.backend,
        address=request.address,
        gpus=1 if elsewhere and request.backend in CLUSTERS else 0,
        shown=partial(progress, unit="blocks", what="index"),
    )
    return made, own


def encode_block(
    name: str, params: Any, devices: Devices | None, threads: int | None, documents: list[Document], file: Path
) -> None:
    _maker(name, params, devices, base.part(name).inputs(params)).encode_into(file, documents, threads)


@lru_cache(maxsize=4)
def _maker(name: str, params: Any, devices: Devices | None, _content: str | None) -> EncodedPart:
    maker: Any = base.part(name).make(params, {})
    maker.devices = devices
    return maker


def check_replaceable(output: Path) -> None:
    """Raise InputError if `output` is a file, or a folder with other things than an index."""
    if output.is_dir():
        is_index = (output / DESCRIPTION).is_file() or ((output / "index").is_file() and (output / "docid").is_file())
        if not is_index and any(output.iterdir()):
            raise InputError(f"{output}: a folder with other things than an index; choose an empty or new one")
    elif output.exists():
        raise InputError(f"{output}: is a file, expected the name of a folder for the index")


def work_of(output: Path) -> Path:
    output = behind_links(output)
    return output.with_name(output.name + ".partial")


def building(output: Path) -> AbstractContextManager[bool]:
    """A block in which no other process builds this index."""
    work = work_of(output)
    return alone(work, f"{work}: another process is building this index; waiting for it")


@contextmanager
def partial_folder(output: Path, parts: Sequence[Part], threads: int | None) -> Iterator[Path]:
    """An empty folder for results in `<output>.partial`, where the parts begin; locked, and removed after success."""
    folder, done = work_of(output), False
    result = folder / "result"
    with building(output):
        try:
            shutil.rmtree(result, ignore_errors=True)
            result.mkdir(parents=True)
            for part in parts:
                part.check()
            for part in parts:
                part.start(folder, threads)
            yield result
            done = True
        finally:
            shutil.rmtree(result, ignore_errors=True)
            if done or not any(folder.glob("*/*.np[yz]")):  # nothing to go on from
                shutil.rmtree(folder, ignore_errors=True)


def _stream(documents: Iterable[Document], result: Path, parts: Sequence[Part], texts: bool) -> tuple[int, str]:
    """Pass all documents to the corpus, the docids and the parts; returns their number and digest."""
    digest, count = hashlib.sha256(), 0
    with (
        CorpusWriter(result) if texts else nullcontext() as corpus,
        open(result / "docid", "w", encoding="utf-8", newline="\n") as docids,
    ):

        def written() -> Iterator[Document]:
            nonlocal count
            for document in progress(_checked(documents, texts), unit="documents", what="index"):
                if corpus is not None:
                    corpus.add(document)
                docids.write(document.docid + "\n")
                digest.update(f"[{_as_json(document.docid)}, {_as_json(document.text)}]".encode())
                count += 1
                yield document

        _pass(written(), parts)
    if not count:
        raise InputError("no documents to index; expected at least one")
    return count, digest.hexdigest()[:16]


def _pass(documents: Iterable[Document], parts: Sequence[Part]) -> None:
    for block in blocks_of(documents, parts):
        for part in parts:
            part.add(block)


def blocks_of(documents: Iterable[Document], parts: Sequence[Part]) -> Iterator[list[Document]]:
    elsewhere = any(part.encoder and part.devices is not None and part.devices.elsewhere for part in parts)
    waiting = iter(documents)
    while block := list(itertools.islice(waiting, BLOCK * (DEVICE_BLOCKS if elsewhere else 1))):
        yield block


def _checked(documents: Iterable[Document], texts: bool) -> Iterator[Document]:
    seen: dict[str, None] = {}  # in their order
    empty, first_empty = 0, ""
    for position, document in enumerate(documents, 1):
        docid = document.docid
        where = document.where or f"document {position}"
        if not docid or docid.split() != [docid]:
            raise InputError(f"{where}: docid {docid!r}; expected one that is not empty and has no white space")
        if docid in seen:
            first = f"document {list(seen).index(docid) + 1}"
            raise InputError(f"{where}: docid {docid} repeats {first}; every document needs its own")
        seen[docid] = None
        try:
            _ = str.isascii(document.text) or document.text.encode()
            docid.encode()
        except (UnicodeEncodeError, TypeError):
            raise InputError(f"{where} ({docid!r}): its text is not a string that UTF-8 can hold") from None
        if texts and not document.text.strip():
            empty, first_empty = empty + 1, first_empty or f"{docid}, {where}"
        yield document
    if empty:
        notice(f"{empty} of {counted(len(seen), 'document')} have no text (first: {first_empty}); no word finds them")


def installed(package: str) -> str:
    """The version of a Python package, "unknown" if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
