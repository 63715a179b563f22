"""A document, as every source of documents gives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its docid (no white space) and the text that is indexed, of the fields that were asked for.

    where: file:line, for messages; empty where a document has no line of its own.
    vector: (d,) float32 that the source has of it, or None.
    """

    docid: str
    text: str
    where: str = field(default="", compare=False, repr=False)
    vector: Any = field(default=None, compare=False, repr=False)
