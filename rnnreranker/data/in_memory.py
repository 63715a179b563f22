"""Documents that Python hands over, in place of a name or a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.document import Document, of_one_length
from rnnreranker.data.fields import TITLE_AND_TEXT
from rnnreranker.data.records import document_of

EXPECTED = "expected a name, a file, (docid, text) pairs, {docid: text}, or records with id and text"
NAME = "given in Python"  # what a description calls them


@dataclass(frozen=True)
class GivenDocuments:
    """Documents with their texts, in memory."""

    documents: tuple[Document, ...]

    @classmethod
    def of(cls, given: Any, fields: Sequence[str] = TITLE_AND_TEXT) -> GivenDocuments:
        """Those of (docid, text) or (docid, text, vector), of {docid: text}, of records, or of a data frame of them.

        A record has the keys that `load_documents` reads; a mapping may have records in place of texts, as BEIR's.

        Args:
            given: an iterable, a mapping or a data frame; fields: of the texts of records.

        Raises:
            InputError: something else, an entry of another form.
        """
        if hasattr(given, "columns"):  # pandas has NaN for a text that is not there
            rows = given.to_dict("records")
            given = [{key: None if _is_nan(one) else one for key, one in row.items()} for row in rows]
        if isinstance(given, Mapping):
            given = [{"id": key, **(one if isinstance(one, Mapping) else {"text": one})} for key, one in given.items()]
        if not isinstance(given, Iterable) or isinstance(given, bytes) or getattr(given, "shape", None) == ():
            raise InputError(f"documents: a {type(given).__name__}; {EXPECTED}")
        documents = []
        for number, entry in enumerate(given, 1):
            if isinstance(entry, tuple | list) and len(entry) in (2, 3):
                entry = dict(zip(("id", "text", "vector"), entry, strict=False))
            if not isinstance(entry, Mapping):
                raise InputError(f"documents: entry {number} is {entry!r:.60}; {EXPECTED}")
            documents.append(document_of(entry, f"documents: entry {number}", fields))
        return cls(tuple(of_one_length(documents)))

    @property
    def fingerprint(self) -> str:
        """What tells them from others."""
        vectors = [b"" if one.vector is None else one.vector.tobytes() for one in self.documents]
        return fingerprint([[one.docid, one.text] for one in self.documents], *filter(None, vectors))

    def __str__(self) -> str:
        return NAME


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
