"""Names of the columns of a run as integers; and words of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.runs.arrow import as_numpy, numbers, strings

if TYPE_CHECKING:
    import pyarrow


class Docids:
    """V distinct docids, as Python's or Arrow's strings; the other form is made on first use."""

    def __init__(self, docids: np.ndarray | pyarrow.Array) -> None:
        if isinstance(docids, np.ndarray):
            self.objects = docids
        else:
            self.names = docids

    def __len__(self) -> int:
        return len(self.names if "names" in vars(self) else self.objects)

    @cached_property
    def objects(self) -> np.ndarray:
        return self.names.to_numpy(zero_copy_only=False)

    @cached_property
    def names(self) -> pyarrow.Array:
        return strings(self.objects)

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """(n,) object array: the docids of some rows."""
        if "objects" in vars(self) or len(rows) > len(self):
            chosen: np.ndarray = self.objects[rows]
        else:
            chosen = np.array(self.names.take(numbers(rows)).to_pylist(), dtype=object)
        return chosen


def encode(names: Sequence[str] | np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct names, (V,) object in order of first appearance, and the number of each entry's name, int32.

    Integers become their digits.

    Raises:
        InputError: more than one dimension, a name that is neither a string nor an integer.
    """
    if isinstance(names, str | bytes) or getattr(names, "ndim", 1) != 1:
        raise InputError(f"{what}: got {getattr(names, 'shape', repr(names))}; expected one column of strings")
    codes: dict[str, int] = {}
    texts = (name if isinstance(name, str) else _digits(name, what) for name in names)
    rows = np.fromiter((codes.setdefault(text, len(codes)) for text in texts), dtype=np.int32, count=len(names))
    return np.array(list(codes), dtype=object), rows


def _digits(name: object, what: str) -> str:
    if isinstance(name, bool | np.bool_) or not isinstance(name, Integral):
        raise InputError(f"{what}: {name!r} is of type {type(name).__name__}; expected strings")
    return str(int(name))


def numbered(column: pyarrow.ChunkedArray) -> tuple[pyarrow.Array, np.ndarray]:
    """`encode` for a column of Arrow strings; plain decimals are numbered by a table, several times faster than by
    hashes.
    """
    import pyarrow

    whole = column.combine_chunks()
    if (values := _decimals(whole)) is not None:
        count = len(values)
        at = np.empty(int(values.max()) + 1, dtype=np.int32)
        at[values[::-1]] = np.arange(count - 1, -1, -1, dtype=np.int32)  # the last assignment stays: the first entry
        first = np.flatnonzero(at[values] == np.arange(count, dtype=np.int32))
        at[values[first]] = np.arange(len(first), dtype=np.int32)
        return whole.take(numbers(first)), at[values]
    encoded = whole.dictionary_encode()
    if isinstance(encoded, pyarrow.DictionaryArray):
        return encoded.dictionary, as_numpy(encoded.indices)
    # more than 2 GiB of text: all chunks have the dictionary of the whole column
    return encoded.chunk(0).dictionary, np.concatenate([as_numpy(chunk.indices) for chunk in encoded.chunks])


def _decimals(column: pyarrow.Array | pyarrow.ChunkedArray) -> np.ndarray | None:
    """(n,) int64: the values of plain decimals; None if one is not, or too large for a table."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray) or not len(column):
        return None
    try:
        values = as_numpy(column.cast(pyarrow.int64()))
    except pyarrow.ArrowInvalid:
        return None
    if values.min() < 0 or values.max() > 4 * len(values):
        return None
    return values if numbers(values).cast(pyarrow.string()).equals(column) else None  # zeros or a sign in front


# control characters, byte order marks, and white space of Unicode at which some programs split a line and others do not
_ODD = "\x00-\x08\x0e-\x1f\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_WORD = re.compile(rf"[{_ODD}\s]")
_SEPARATES = re.compile(rf"[{_ODD}]")


def check_id(text: str, what: str, where: str) -> None:
    """Raise InputError for an id that is empty, or has white space or a control character."""
    if not text or _NO_WORD.search(text):
        raise InputError(
            f"{where}: {what} {shown_word(text)}; expected one that is not empty and has no white space or control "
            "character"
        )


def are_words(ids: Iterable[str]) -> bool:
    """Whether `check_id` accepts all of these non-empty ids."""
    joined = "".join(ids)
    return (joined.isprintable() and " " not in joined) or not _NO_WORD.search(joined)


def hold_words(*columns: pyarrow.Array) -> bool:
    """Whether `check_id` accepts all strings of columns."""
    for column in columns:
        _, ends, text = column.buffers()
        bounds = np.frombuffer(ends, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
        if not np.diff(bounds).all():
            return False
        letters = np.frombuffer(text, dtype=np.uint8)[bounds[0] : bounds[-1]]
        if not ((letters > ord(" ")) & (letters < 0x7F)).all() and not are_words(column.to_pylist()):
            return False
    return True


def shown_word(text: str) -> str:
    """A word in quotes for messages; only the beginning of a long one.

    >>> shown_word("x" * 50)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'... of 50 characters"
    """
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}... of {len(text)} characters"


def columns_of(line: str, where: str) -> list[str]:
    """The words of a line between blanks and tabs; InputError: a control character, other white space."""
    if odd := _SEPARATES.search(line):
        raise InputError(f"{where}: the character {odd[0]!r}; expected columns with blanks or tabs between them")
    return line.split()
