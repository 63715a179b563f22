"""Checksums of an index: what opening it notices, what an index without them does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base import files
from rnnreranker.base.files import DESCRIPTION, check_files
from rnnreranker.data.document import Document
from rnnreranker.encode.words.analysis import TermParams
from rnnreranker.index.build import write_index
from rnnreranker.index.opening import open_index
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.part import NeighboursPart
from rnnreranker.parts.postings.part import TermsPart
from rnnreranker.parts.texts import texts_of
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.part import DensePart
from tests.test_index import LetterEncoder


def without_checksums(index: Path) -> None:
    """Take the checksums of an index away, so that its readers see what is damaged."""
    described = json.loads((index / DESCRIPTION).read_text())
    del described["files"]
    (index / DESCRIPTION).write_text(json.dumps(described))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    texts = [Document(f"d{row}", "ab" * (row % 7) + "cd" * (row % 5)) for row in range(30)]
    parts = [DensePart(LetterEncoder()), TermsPart.make(TermParams(), {}), NeighboursPart()]  # type: ignore[arg-type]
    return write_index(texts, tmp_path / "index", parts).path


OPENED: dict[str, Callable[[Path], object]] = {
    "docid": open_vectors,
    "index": open_vectors,
    "corpus/documents.jsonl.gz": lambda index: texts_of(index, ["d1"]),
    "corpus/offsets.npy": lambda index: texts_of(index, ["d1"]),
    "neighbours/edges.u32.np": open_neighbours,
    "neighbours/weights.f16.np": lambda index: open_index(str(index)).graph,
    "terms/terms.npy": lambda index: open_index(str(index)).term_source,
    "terms/weights.npy": lambda index: open_index(str(index)).term_source,
}


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("name", OPENED)
def test_a_bit_that_flips_is_noticed_by_whoever_opens_the_file(index: Path, name: str) -> None:
    OPENED[name](index)
    flipped(index / name)
    said = rf"{name}: its bytes are not those that were written; copy the index again, or make it again"
    with refusal(said):
        OPENED[name](index)
    (index / name).write_bytes(b"short")
    with refusal(rf"{name}: has 5 bytes, but was written with \d+; copy the index again"):
        OPENED[name](index)
    (index / name).unlink()
    with refusal(rf"{name}: (cannot be read \(No such file|no such file)"):
        OPENED[name](index)


def test_digests_are_kept_until_a_file_changes(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SETTLED", -1)
    check_files(index, "dense")
    monkeypatch.setattr(files.hashlib, "file_digest", None)
    check_files(index, "dense")
    monkeypatch.undo()
    flipped(index / "index")
    with refusal("index/index: its bytes are not those that were written"):
        check_files(index, "dense")


@pytest.mark.parametrize("noted", [[], {"dense": {"index": {"bytes": 1}}}])
def test_other_notes_are_refused(index: Path, noted: object) -> None:
    described = json.loads((index / DESCRIPTION).read_text())
    (index / DESCRIPTION).write_text(json.dumps(described | {"files": noted}))
    with refusal(r"rnnreranker.json: files are not noted as this version does"):
        open_vectors(index)


def test_a_pipe_in_place_of_a_file_is_refused(index: Path) -> None:
    (index / "docid").unlink()
    os.mkfifo(index / "docid")
    with refusal(r"docid: has \d+ bytes, but was written with"):
        check_files(index)
