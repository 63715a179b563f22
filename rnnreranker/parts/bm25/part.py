"""Lucene indexes for BM25, made by Anserini through Pyserini's Java."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.checksums import check_files
from rnnreranker.base.errors import InputError, UnavailableError, no_space
from rnnreranker.base.files import fingerprint, folder_written_whole
from rnnreranker.base.java import library_output, start_java, whole_logging
from rnnreranker.base.process.phases import phase
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
    packages = ("pyserini",)

    @classmethod
    def make(cls, params: Bm25IndexParams, beside: Mapping[str, Any]) -> Bm25Part:
        return cls(params)

    @classmethod
    def inputs(cls, params: Bm25IndexParams) -> str | None:
        return None if params == ENGLISH else fingerprint(params.to_dict())

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> Bm25IndexParams:
        return Bm25IndexParams(**described)

    @classmethod
    def at(cls, path: Path) -> Path | None:
        own = path / cls.folder
        return own if own.is_dir() else path if any(path.glob("segments_*")) else None

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> Path:
        if at.name == cls.folder:
            check_files(at.parent, cls.name)
        if not any(at.glob("segments_*")):
            raise InputError(f"{at}: no Lucene index in this folder (no file segments_*); make it again")
        return at

    def __init__(self, params: Bm25IndexParams = ENGLISH) -> None:
        self._language = params.language
        self.marks = () if params == ENGLISH else (params.to_dict(),)

    def check(self) -> None:
        start_java()

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        build_bm25(corpus, folder / "bm25", self._language)
        return {} if self._language == "en" else {"language": self._language}


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
    expected = ".jsonl files of id and contents, plain or gzip"
    corpus, output = Path(corpus).expanduser(), Path(output).expanduser()
    if not corpus.is_dir():
        raise InputError(f"{corpus}: no such folder; expected one with {expected}")
    start_java()
    import jnius

    with folder_written_whole(output) as folder:
        arguments = ["-collection", "JsonCollection", "-storePositions", "-storeDocvectors"]
        arguments += [] if language == "en" else ["-language", language]
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
        if failure:
            raise UnavailableError(f"{corpus}: Anserini could not index it ({failure})")
        if not any(folder.glob("segments_*")):
            raise InputError(f"{corpus}: Anserini made no index of it; expected {expected}")
    return output
