"""The part `terms`: word counts of documents, for TF-IDF and BM25 without Java."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.encode.words.analysis import Analyser, TermParams
from rnnreranker.parts.base import described_part
from rnnreranker.parts.encoded import Block, EncodedPart
from rnnreranker.parts.postings import write_postings
from rnnreranker.parts.terms.source import FOLDER, VOCABULARY, TermSource, arrays_of, count_words, joined


class TermsPart(EncodedPart):
    """Word counts of all documents, in the folder `terms`."""

    name, gives, folder, rank = "terms", "terms", FOLDER, 40
    Params = TermParams
    packages = ("scipy",)

    @classmethod
    def make(cls, params: TermParams, beside: Mapping[str, Any]) -> TermsPart:
        return cls(params)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> TermSource:
        return TermSource(at, described)

    def __init__(self, params: TermParams) -> None:
        self._analyser = Analyser(params)
        super().__init__(self._analyser.fingerprint)
        self._params = params
        self.marks = (self._analyser.fingerprint,)

    def extend(self, index: Path) -> None:
        described = described_part(index, self.name)
        if described.get("analysis") != self._analyser.fingerprint:
            raise InputError(
                f"{index}: another version of the analyser cut the words of its part {self.name}; make the index again"
            )
        self._old = TermSource(index, described)

    def encoded(self, texts: list[str]) -> Block:
        return arrays_of(count_words(self._analyser.words(texts)))

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        return arrays_of(self._old.counted(rows))

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        words, matrices = joined(self._files)
        if not words:
            raise InputError(f"no document has a word; expected texts in the language {self._params.language}")
        large = any(one.data.max(initial=0) >= 2**16 for one in matrices())
        postings = int(write_postings(folder / FOLDER, matrices, len(words), exact=large).sum())
        lines = "".join(f"{word}\n" for word in words)
        (folder / FOLDER / VOCABULARY).write_text(lines, encoding="utf-8", newline="\n")
        say(f"terms: {counted(len(words), 'word')}, {postings / count:.1f} different ones a document")
        return {
            "settings": self._params.to_dict(),
            "analysis": self._analyser.fingerprint,
            "package": self._analyser.package,
            "words": len(words),
            "postings": postings,
        }
