"""Lucene indexes for BM25, made by Anserini through Pyserini's Java."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, UnavailableError, no_space
from rnnreranker.base.files import folder_written_whole
from rnnreranker.base.java import library_output, start_java, whole_logging
from rnnreranker.base.settings import Params, setting
from rnnreranker.parts.base import Part


@dataclass(frozen=True)
class Bm25IndexParams(Params):
    """The analyser of Lucene, for documents and queries; InputError: another language."""

    language: Literal["en", "zh"] = setting(
        "en", "language of documents: en, Porter's stems; zh, pairs of Chinese characters"
    )


ENGLISH = Bm25IndexParams()


class Bm25Part(Part):
    """A Lucene index of the texts, in the folder `bm25`."""

    name, gives, folder, rank = "bm25", "words", "bm25", 10
    Params = Bm25IndexParams

    @classmethod
    def at(cls, path: Path) -> Path | None:
        own = path / cls.folder
        return own if own.is_dir() else path if any(path.glob("segments_*")) else None

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> Path:
        if not any(at.glob("segments_*")):
            raise InputError(f"{at}: no Lucene index in this folder (no file segments_*); make it again")
        return at

    def __init__(self, params: Bm25IndexParams = ENGLISH) -> None:
        super().__init__(params)
        self.marks = () if params == ENGLISH else (params.to_dict(),)

    def check(self) -> None:
        start_java()

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        build_bm25(corpus, folder / "bm25", self.params.language)
        return {}


@phase("making the index of words")
def build_bm25(
    corpus: str | os.PathLike[str], output: str | os.PathLike[str], language: Literal["en", "zh"] = "en"
) -> Path:
    """Make a Lucene index as Pyserini does, in place of an old one; returns its folder.

    It has positions and document vectors, no texts; one thread and one segment, so that ties never change. Anserini
    leaves out documents without text.

    Args:
        corpus: a folder with files of JSON documents {"id", "contents"}, one a line, plain or gzip.
        output: the folder of the index; language: as Pyserini's `--language`.

    Raises:
        InputError, UnavailableError: no folder, or one of which Anserini makes no index; no Java 21 or newer.
    """
    corpus, output = Path(corpus).expanduser(), Path(output).expanduser()
    if not corpus.is_dir():
        raise InputError(f"{corpus}: no such folder; expected one with .jsonl files of id and contents, plain or gzip")
    start_java()
    import jnius

    with folder_written_whole(output) as folder:
        arguments = ["-collection", "JsonCollection", "-storePositions", "-storeDocvectors", "-language", language]
        arguments += ["-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-optimize", "-quiet"]
        arguments += ["-input", str(corpus.resolve()), "-index", str(folder.resolve())]
        failure = ""
        with library_output() as lines, whole_logging():
            try:
                jnius.autoclass("io.anserini.index.IndexCollection").main(arguments)
            except Exception as error:  # pyjnius has one class for all of Java's
                failure = str(error).splitlines()[0]
        if reason := no_space("\n".join([failure, *lines])):
            raise InputError(f"{output}: cannot be written ({reason}); make room or choose another disk")
        if failure or not any(folder.glob("segments_*")):
            raise UnavailableError(f"{corpus}: Anserini could not index it ({failure or 'no .jsonl files'})")
    return output
