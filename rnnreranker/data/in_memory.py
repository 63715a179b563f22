"""Documents that Python hands over, in place of a name or a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.document import Document

NAME = "given in Python"  # what a description calls them


@dataclass(frozen=True)
class GivenDocuments:
    """Documents with their texts, in memory."""

    documents: tuple[Document, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> GivenDocuments:
        """Those of pairs (docid, text); InputError: entries that are no such pairs."""
        documents = []
        for number, pair in enumerate(pairs, 1):
            good = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
            if not good:
                raise InputError(f"documents: entry {number} is {pair!r:.60}; expected (docid, text), both texts")
            documents.append(Document(pair[0], pair[1]))
        return cls(tuple(documents))

    @property
    def fingerprint(self) -> str:
        """What tells them from others."""
        return fingerprint([[one.docid, one.text] for one in self.documents])

    def __str__(self) -> str:
        return NAME
