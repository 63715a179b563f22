"""A document, as every source of documents gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, array_of


@dataclass(frozen=True, slots=True)
class Document:
    """A docid (no white space) and the indexed text.

    where: file:line for messages, or ""; vector: (d,) float32 of the source, or None.
    """

    docid: str
    text: str
    where: str = field(default="", compare=False, repr=False)
    vector: Any = field(default=None, compare=False, repr=False)


def vector_of(given: Any, where: str) -> np.ndarray:
    """(d,) float32: the given vector of a document.

    Raises:
        InputError: no list or array of finite numbers, as a dict of words with weights.
    """
    try:
        vector = array_of(given, where)
    except InputError:  # lists of other lengths in it, words, booleans, a dict
        vector = np.empty(0)
    with np.errstate(over="ignore"):  # an infinite value is refused below
        vector = vector.astype(np.float32)  # a copy: a generator may use its array again
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise InputError(f"{where}: a vector that is no list of finite numbers; expected [0.1, -0.2, …]")
    return vector


def of_one_length(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents.

    Raises:
        InputError: the vectors differ in length, or some documents lack one.
    """
    first = None  # length of a vector; 0 = no vector
    for document in documents:
        size = 0 if document.vector is None else len(document.vector)
        first = size if first is None else first
        if size != first:
            raise InputError(
                f"{document.where}: {f'a vector of {size} numbers' if size else 'no vector'}, those before have "
                f"{first or 'none'}; expected vectors of one length for all documents, or for none"
            )
        yield document
