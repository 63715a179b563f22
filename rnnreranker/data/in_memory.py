"""Documents that Python hands over, in place of a name or a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.document import Document, vector_of

NAME = "given in Python"  # what a description calls them


@dataclass(frozen=True)
class GivenDocuments:
    """Documents with their texts, in memory."""

    documents: tuple[Document, ...]

    @classmethod
    def of(cls, given: Iterable[tuple[str, str] | tuple[str, str, Any]]) -> GivenDocuments:
        """Those of (docid, text), or of (docid, text, vector).

        Raises:
            InputError: something else, entries that are no such tuples.
        """
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise InputError(
                f"documents: a {type(given).__name__}; expected a name, a file, or pairs of docid and text"
            )
        documents = []
        for number, entry in enumerate(given, 1):
            good = isinstance(entry, tuple | list) and len(entry) in (2, 3)
            if not good or not all(isinstance(one, str) for one in entry[:2]):
                raise InputError(f"documents: entry {number} is {entry!r:.60}; expected (docid, text), both texts")
            vector = vector_of(entry[2], f"documents: entry {number}") if len(entry) == 3 else None
            documents.append(Document(entry[0], entry[1], vector=vector))
        return cls(tuple(documents))

    @property
    def fingerprint(self) -> str:
        """What tells them from others."""
        vectors = [b"" if one.vector is None else one.vector.tobytes() for one in self.documents]
        return fingerprint([[one.docid, one.text] for one in self.documents], *filter(None, vectors))

    def __str__(self) -> str:
        return NAME
