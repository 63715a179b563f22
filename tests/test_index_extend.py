"""`index --append` and `--from-index`: the bytes of an index made at once, and what is there is not encoded."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from query_sets import write_documents
from refusals import refusal
from scipy.sparse import csr_matrix

from rnnreranker.base.errors import InputError
from rnnreranker.encode.kinds import Encoded
from rnnreranker.index import build
from rnnreranker.index.__main__ import main
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import describe
from rnnreranker.parts.neighbours import part as graph_files
from rnnreranker.parts.vectors.part import DensePart
from rnnreranker.search.__main__ import main as search

TEXTS = [" ".join(f"w{(number * step) % 23}" for step in (1, 3, 7, 11)) for number in range(1, 61)]


class WordEncoder:
    """Vectors and weights from the numbers of a text's words, and from how many texts are encoded with it."""

    name, dimension, fingerprint, max_length, vocabulary, words = "words", 6, "words-1", 3, 23, "numbers"
    options: dict[str, Any] = {}  # noqa: RUF012
    model = path = graph = None  # of transformers
    encoded = 0
    fail_after: int | None = None

    def _count(self, texts: Sequence[str]) -> np.ndarray:
        WordEncoder.encoded += len(texts)
        if WordEncoder.fail_after is not None and WordEncoder.encoded > WordEncoder.fail_after:
            raise KeyboardInterrupt
        found = np.zeros((len(texts), self.vocabulary), dtype=np.float32)
        for row, text in enumerate(texts):
            for place, word in enumerate(text.split()):
                found[row, int(word[1:])] += 1 / (1 + place)
        return found * np.float32(1 + len(texts) / 1000)  # other texts change the last digits, as batches do


class DenseWords(WordEncoder):
    def encode(self, texts: Sequence[str], **options: Any) -> np.ndarray:
        mixed = np.random.default_rng(0).standard_normal((self.vocabulary, self.dimension))
        return (self._count(texts) @ mixed).astype(np.float32)


class SparseWords(WordEncoder):
    def encode(self, texts: Sequence[str], what: str, **options: Any) -> Encoded:
        return Encoded(csr_matrix(self._count(texts)), self.count_cut(texts, what))  # type: ignore[arg-type]

    def count_cut(self, texts: Sequence[str], what: str) -> int:
        return sum("w5" in text.split() for text in texts)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, and encoders that take no model."""
    monkeypatch.setattr(build, "BLOCK", 8)
    monkeypatch.setattr(graph_files, "ROWS", 7)
    monkeypatch.setattr(WordEncoder, "encoded", 0)
    monkeypatch.setattr(WordEncoder, "fail_after", None)
    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.open", lambda name, **given: DenseWords())
    monkeypatch.setattr("rnnreranker.encode.kinds.SparseEncoder.open", lambda name, **given: SparseWords())
    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.digest_of", lambda name: "digest")
    monkeypatch.setattr("rnnreranker.encode.kinds.SparseEncoder.digest_of", lambda name: "digest")


def documents(path: Path, rows: range) -> str:
    return str(write_documents(path, {f"d{row}": TEXTS[row] for row in rows}))


def content(folder: Path) -> dict[str, bytes]:
    """All files; of the description not where the documents come from, nor what the files of Lucene are."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "rnnreranker.json"]
    described = {name: value for name, value in describe(folder).items() if name not in ("documents", "inputs")}
    described["files"].pop("bm25", None)
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return found | {"rnnreranker.json": json.dumps(described).encode()}


def made(tmp_path: Path, name: str, rows: range, flags: Sequence[str]) -> Path:
    folder = tmp_path / name
    assert main(["--documents", documents(tmp_path / f"{name}.jsonl", rows), "--output", str(folder), *flags]) == 0
    return folder


def added(tmp_path: Path, folder: Path, rows: range, *flags: str) -> None:
    assert main(["--append", documents(tmp_path / "more.jsonl", rows), "--output", str(folder), *flags]) == 0


ALL = ["--parts", "dense,impact,neighbours:k=3"]


@pytest.mark.parametrize(
    "flags",
    [
        ALL,
        ["--parts", "dense,neighbours:k=5", "--dtype", "float16"],
        ["--parts", "dense,impact:weights=float,neighbours:k=3,by=impact"],
        ["--parts", "dense,impact,neighbours:k=3,search=ivf"],
        ["--parts", "terms,neighbours:k=3"],  # BM25's weights change with the number of documents
    ],
)
@pytest.mark.parametrize("first", [40, 5])
def test_it_is_the_index_of_all_documents(first: int, flags: list[str], tmp_path: Path) -> None:
    """Of whole and of begun blocks; documents that have vectors are not encoded again but in the block that goes on."""
    whole = made(tmp_path, "whole", range(60), flags)
    index = made(tmp_path, "index", range(first), flags)
    before = WordEncoder.encoded
    added(tmp_path, index, range(first, 60))
    parts = sum(part in flags[1] for part in ("dense", "impact"))
    assert WordEncoder.encoded - before == (60 - first // 8 * 8) * parts
    assert content(index) == content(whole)
    assert describe(index)["documents"] == f"{tmp_path / 'index.jsonl'} + {tmp_path / 'more.jsonl'}"
    assert not (tmp_path / "index.partial").exists()


@pytest.mark.parametrize("link", ["link", "dangling"])
def test_a_link_stays_a_link_and_its_folder_gets_the_index(tmp_path: Path, link: str) -> None:
    whole = made(tmp_path, "whole", range(60), ALL)
    (tmp_path / "disk").mkdir()
    target = tmp_path / "disk" / "index"
    if link == "link":
        target.mkdir()
    (tmp_path / link).symlink_to(target)
    made(tmp_path, link, range(40), ["--parts", "dense"])
    made(tmp_path, link, range(40), [*ALL, "--overwrite"])
    added(tmp_path, tmp_path / link, range(40, 60))
    assert (tmp_path / link).is_symlink()
    assert content(target) == content(whole)
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["index"]
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(("part", "name"), [("dense", "index"), ("neighbours", "neighbours")])
def test_a_copy_without_a_part_is_refused_and_made_whole_as_the_message_says(
    tmp_path: Path, part: str, name: str
) -> None:
    index = made(tmp_path, "index", range(40), ALL)
    lost = index / name
    lost.unlink() if lost.is_file() else shutil.rmtree(lost)
    with pytest.raises(InputError) as refused:
        search(["--index", str(index), "--query", "w1", "--retriever", "impact", "--rerank", "none"])
    said = f"{index}: this copy of an index is not complete, {part} missing; copy it again, or give python -m"
    assert str(refused.value).startswith(said)
    words = shlex.split(str(refused.value).rpartition("python -m rnnreranker.index ")[2])
    assert main([*words, *(["--parts", "neighbours:k=3"] if part == "neighbours" else [])]) == 0
    assert open_index(str(index)).has("impacts")


def test_a_killed_addition_goes_on_and_the_index_stays_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, index = made(tmp_path, "whole", range(60), ALL), made(tmp_path, "index", range(20), ALL)
    before = content(index)
    monkeypatch.setattr(WordEncoder, "fail_after", WordEncoder.encoded + 60)
    with pytest.raises(KeyboardInterrupt):
        added(tmp_path, index, range(20, 60))
    assert content(index) == before
    assert (tmp_path / "index.partial").is_dir()
    monkeypatch.setattr(WordEncoder, "fail_after", None)
    begun = WordEncoder.encoded
    added(tmp_path, index, range(20, 60))
    assert WordEncoder.encoded - begun < 88
    assert content(index) == content(whole)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = made(tmp_path, "index", range(20), ["--parts", "dense"])
    before = content(index)
    more = documents(tmp_path / "more.jsonl", range(18, 25))
    for flags, said in (
        (
            ["--append", more],
            r"more\.jsonl:1: docid d18 repeats document 19; every document needs",
        ),
        (["--append", more, "--documents", more], "--documents beside --append; leave it out"),
        (["--append", more, "--parts", "bm25", "--dtype", "float16"], "--parts and --dtype beside --append"),
        (["--append", more, "--address", "x"], "--address x goes with --backend dask or ray"),
        (["--append", more, "--compute-dtype", "bfloat16"], "computed in float32; give --compute-dtype float32"),
        (["--append", str(tmp_path / "none.jsonl")], r"none\.jsonl"),
        (["--append", documents(tmp_path / "empty.jsonl", range(0))], r"empty\.jsonl: no documents to add; expected"),
        ([], "give --documents, what to make an index of, --append, what to add to the one in --output, or parts"),
    ):
        with refusal(said) as refused:
            main([*flags, "--output", str(index)])
        assert "\n" not in str(refused.value)
    with refusal(r"no index to add to; make one with --documents"):
        main(["--append", more, "--output", str(tmp_path / "nowhere")])
    monkeypatch.setattr(WordEncoder, "fingerprint", "words-2")
    with refusal("the files of the encoder words of its part dense have changed since"):
        added(tmp_path, index, range(20, 25))
    assert content(index) == before


def test_another_index_takes_what_is_encoded(tmp_path: Path) -> None:
    """Of all documents, the last block of which is not whole; the graph is its own."""
    wide = ["--parts", "dense,impact,neighbours:k=9"]
    index, whole = made(tmp_path, "index", range(37), ALL), made(tmp_path, "whole", range(37), wide)
    begun = WordEncoder.encoded
    other = made(tmp_path, "other", range(37), [*wide, "--from-index", str(index)])
    assert WordEncoder.encoded == begun
    assert content(other) == content(whole)


def test_a_killed_build_leaves_no_numbers_of_another_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounded, exact = ["--parts", "dense,impact", "--dtype", "float16"], ["--parts", "dense,impact:weights=float"]
    index, whole = made(tmp_path, "index", range(20), rounded), made(tmp_path, "whole", range(20), exact)
    with monkeypatch.context() as killed:
        killed.setattr(DensePart, "write", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            made(tmp_path, "other", range(20), [*rounded, "--from-index", str(index)])
    assert content(made(tmp_path, "other", range(20), exact)) == content(whole)


def test_what_cannot_be_taken(tmp_path: Path) -> None:
    index = made(tmp_path, "index", range(20), ["--parts", "dense"])
    for flags, said in {
        ("--parts", "impact"): "has none of dense, impact, tokens that --parts names",
        ("--dtype", "float16"): "holds an index of other dense",
    }.items():
        with refusal(rf"--from-index {index}: {said}"):
            made(tmp_path, "other", range(20), [*flags, "--from-index", str(index)])
    with refusal(r"holds an index of other documents"):
        made(tmp_path, "other", range(20, 30), ["--from-index", str(index)])
    with refusal(r"nowhere: has none of dense, impact, tokens that --parts names"):
        made(tmp_path, "other", range(20), ["--from-index", str(tmp_path / "nowhere")])
    assert not (tmp_path / "other").exists()
