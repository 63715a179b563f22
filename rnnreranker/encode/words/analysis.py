"""Texts to the words that are counted: segmented, in small letters, stemmed where asked for."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

from rnnreranker.base.errors import require
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.words.params import TermParams
from rnnreranker.encode.words.segmentation import Spans, word_spans, words


class Analyser:
    """What gives texts their words.

    Args:
        params: language and stemmer.

    Attributes:
        params: as given.
        package: what the words depend on, with its version, as "jieba 0.42.1"; "" where that is nothing.
        fingerprint: of the settings and the package.

    Raises:
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """

    def __init__(self, params: TermParams) -> None:
        self.params = params
        self._stemmer: Any = None
        package = ""
        if params.language == "zh":
            from rnnreranker.encode.words.jieba_words import load_jieba

            load_jieba()
            package = "jieba"
        if params.stemmer != "none":
            stemmers = require("Stemmer", "stems of words", "'rnnreranker[terms]'")
            self._stemmer = stemmers.Stemmer(params.stemmer)
            package = "PyStemmer"
        self.package = f"{package} {importlib.metadata.version(package)}" if package else ""
        self.fingerprint = fingerprint("terms", params.to_dict(), self.package)

    def spans(self, text: str) -> Spans:
        """Where the words of a text stand: (start, end) characters, in their order."""
        return word_spans(text, self.params.language)

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of every text, in their order."""
        words_of_texts = [words(text, self.params.language) for text in texts]
        return [self._stemmer.stemWords(own) for own in words_of_texts] if self._stemmer is not None else words_of_texts
