"""An index folder from a stream of documents: resumable, complete or absent, the same bytes every time.

`DIR/index` and `DIR/docid` (float32, a Faiss folder of Pyserini) or `DIR/vectors.npy` and `DIR/docid` (float16);
`DIR/corpus/` the texts; `DIR/bm25/` a Lucene index; `DIR/rnnreranker.json` what all this was made from. Work in
progress stands in `DIR.partial/`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker import __version__
from rnnreranker.command import progress, say
from rnnreranker.data.document import Document
from rnnreranker.encode.encoder import Encoder
from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint, read_text, write_json
from rnnreranker.index.bm25 import build_bm25
from rnnreranker.index.dense import BLOCK, VectorBlocks
from rnnreranker.index.texts import FOLDER, CorpusWriter

DESCRIPTION = "rnnreranker.json"
DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class Built:
    """What a build did: the folder, how many documents are in it, how many of them an earlier try had encoded."""

    path: Path
    documents: int
    reused: int


def build_index(
    documents: Iterable[Document],
    output: str | os.PathLike[str],
    *,
    encoder: Encoder | None,
    bm25: bool = False,
    dtype: str = "float32",
    threads: int | None = None,
    name: str = "",
    inputs: dict[str, Any] | None = None,
) -> Built:
    """A complete index in `output`; an index that is there already is replaced.

    A build that was interrupted goes on where it was: blocks of documents that are done are not encoded again.

    Args:
        documents: streamed once, in blocks; docids without white space, each once; texts may be empty.
        output: the folder; it appears when everything is done.
        encoder: None = no vectors, only BM25.
        bm25: make the Lucene index too (needs Java).
        dtype: "float32" = Faiss folder; "float16" = `vectors.npy`, half the size, cosines change by less than 1e-3.
        threads: None = one per core; the result does not depend on it.
        name: of the documents, for the description.
        inputs: kept in the description, to tell later whether the index is that of the same inputs.

    Raises:
        InputError: no documents, a docid that is empty, has white space or comes twice (with its position), a text that
            is not a string of characters, a folder that is not an index, `dtype` unknown, neither encoder nor bm25.
        UnavailableError: `bm25` without Java 21 or newer.
    """
    output = Path(output).expanduser()
    if dtype not in DTYPES:
        raise InputError(f"dtype={dtype}: expected {' or '.join(DTYPES)}")
    if encoder is None and not bm25:
        raise InputError("nothing to make: expected an encoder for dense vectors, or bm25, or both")
    check_replaceable(output)
    if bm25:  # fail before hours of encoding, not after
        from rnnreranker.java import start_java

        start_java()
    with partial_folder(output) as (partial, waited):
        described = describe(output) if waited and inputs else {}
        if described.get("inputs") == inputs and (not bm25 or (output / "bm25").is_dir()) and described:
            shutil.rmtree(partial)  # another process has just made the same
            return Built(output, described["count"], described["count"])
        result = partial / "result"
        shutil.rmtree(result, ignore_errors=True)
        result.mkdir()
        blocks = None if encoder is None else VectorBlocks(partial / "vectors", encoder, threads)
        count, content = _stream(documents, result, blocks)
        if blocks is not None:
            if dtype == "float32":
                blocks.write_flat(result / "index", count)
            else:
                blocks.write_matrix(result / "vectors.npy", count)
        if bm25:
            build_bm25(result / FOLDER, result / "bm25")
        write_json(result / DESCRIPTION, _description(name, count, content, encoder, dtype, bm25, inputs))
        if output.exists():
            shutil.rmtree(output)
        os.replace(result, output)
        shutil.rmtree(partial)
    return Built(output, count, 0 if blocks is None else min(count, blocks.reused * BLOCK))


def add_bm25(index: Path) -> None:
    """Give an index that has texts but no Lucene index one.

    Raises:
        UnavailableError: no Java 21 or newer.
    """
    build_bm25(index / FOLDER, index / "bm25")
    described = describe(index)
    write_json(index / DESCRIPTION, {**described, "bm25": True})


def describe(index: Path) -> dict[str, Any]:
    """What `rnnreranker.json` in an index folder says; empty when there is none.

    Raises:
        InputError: a file that is not a JSON object.
    """
    path = index / DESCRIPTION
    if not path.is_file():
        return {}
    try:
        described = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg}); make the index again") from None
    if not isinstance(described, dict):
        raise InputError(f"{path}: expected a JSON object; make the index again")
    return described


def check_replaceable(output: Path) -> None:
    """Look that what stands at `output` is an index or nothing, so that replacing it loses nothing else.

    Raises:
        InputError: a file, or a folder with other things.
    """
    if output.is_dir():
        is_index = (output / DESCRIPTION).is_file() or ((output / "index").is_file() and (output / "docid").is_file())
        if not is_index and any(output.iterdir()):
            raise InputError(f"{output}: a folder with other things than an index; choose an empty or new one")
    elif output.exists():
        raise InputError(f"{output}: is a file, expected the name of a folder for the index")
    above = next(folder for folder in output.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise InputError(f"{output}: cannot be written ({above} is no folder of yours); choose one that is")


@contextmanager
def partial_folder(output: Path) -> Iterator[tuple[Path, bool]]:
    """`<output>.partial`, held by this process alone (another that wants it waits), and whether it had to wait."""
    partial = output.with_name(output.name + ".partial")
    waited = False
    while True:
        try:
            partial.mkdir(parents=True, exist_ok=True)
            lock = open(partial / "lock", "w")  # noqa: SIM115  closed below
        except OSError as error:
            raise InputError(
                f"{partial}: cannot be written ({error.strerror or error}); choose a folder that is yours"
            ) from None
        with lock:
            waited = _hold(lock.fileno(), partial) or waited
            try:
                same = os.stat(partial / "lock").st_ino == os.fstat(lock.fileno()).st_ino
            except FileNotFoundError:
                same = False  # the one that held it has finished and removed the folder
            if not same:
                continue
            try:
                yield partial, waited
            except BaseException:
                shutil.rmtree(partial / "result", ignore_errors=True)
                if not any((partial / "vectors").glob("*.npy")):  # nothing to go on from
                    shutil.rmtree(partial, ignore_errors=True)
                raise
            return


def _hold(file: int, partial: Path) -> bool:
    """Lock an open file until it is closed, and say whether that took waiting; without fcntl (Windows) no lock."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"{partial}: another process is building this index; waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    return False


def _stream(documents: Iterable[Document], result: Path, blocks: VectorBlocks | None) -> tuple[int, str]:
    """Pass all documents to the corpus, the list of docids and the encoder; their number and a digest of them."""
    digest = hashlib.sha256()
    waiting: list[Document] = []
    count = 0
    with CorpusWriter(result) as corpus, open(result / "docid", "w", encoding="utf-8", newline="\n") as docids:
        for document in progress(_checked(documents), unit="documents", what="index"):
            corpus.add(document)
            docids.write(document.docid + "\n")
            digest.update(json.dumps([document.docid, document.text]).encode())
            count += 1
            waiting.append(document)
            if len(waiting) == BLOCK:
                if blocks is not None:
                    blocks.add(waiting)
                waiting = []
        if waiting and blocks is not None:
            blocks.add(waiting)
    if not count:
        raise InputError("no documents to index; expected at least one")
    return count, digest.hexdigest()[:16]


def _checked(documents: Iterable[Document]) -> Iterator[Document]:
    seen: dict[str, None] = {}  # in their order, as `lines`: numbers of their lines, or places where they have none
    lines = array("q")
    for position, document in enumerate(documents, 1):
        docid = document.docid
        where = document.where or f"document {position}"
        if not docid or docid.split() != [docid]:
            raise InputError(f"{where}: docid {docid!r}; expected one that is not empty and has no white space")
        if docid in seen:
            first = lines[list(seen).index(docid)]
            kind = "on line" if document.where else "document"
            raise InputError(f"{where}: docid {docid} was there before ({kind} {first}); every document needs its own")
        seen[docid] = None
        lines.append(int(document.where.rpartition(":")[2]) if document.where else position)
        try:
            document.text.encode()
            docid.encode()
        except (UnicodeEncodeError, AttributeError):
            raise InputError(f"{where} ({docid!r}): its text is not a string that UTF-8 can hold") from None
        yield document


def _description(
    name: str,
    count: int,
    content: str,
    encoder: Encoder | None,
    dtype: str,
    bm25: bool,
    inputs: dict[str, Any] | None,
) -> dict[str, Any]:
    dense: dict[str, Any] = {}
    if encoder is not None:
        described = {"name": encoder.name, "settings": encoder.options, "fingerprint": encoder.fingerprint}
        dense = {"dimension": encoder.dimension, "dtype": dtype, "encoder": described}
    packages = ["numpy", *(["torch", "transformers", "faiss-cpu"] if dense else []), *(["pyserini"] if bm25 else [])]
    return {
        "schema": 1,
        "documents": name,
        "count": count,
        "content": content,
        **dense,
        "bm25": bm25,
        "fingerprint": fingerprint(content, encoder.fingerprint if encoder else None, dtype),
        "inputs": inputs or {},
        "versions": {"rnnreranker": __version__, **{package: _installed(package) for package in packages}},
    }


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
