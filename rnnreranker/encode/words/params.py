"""What counts as a word of documents and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting


@dataclass(frozen=True)
class TermParams(Params):
    """Settings of counted words; queries are read as the documents were.

    Raises:
        InputError: values out of range, a stemmer of another language.
    """

    language: Literal["en", "zh"] = setting(
        "en", "words of documents: en, runs of letters and digits; zh, Chinese words by jieba"
    )
    stemmer: Literal["none", "porter"] = setting("none", "stemmer of English words: none or Porter's")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stemmer != "none" and self.language != "en":
            raise InputError(f"stemmer {self.stemmer}: of English words, not of language {self.language}")
