"""Ids as words of a line: what a run file can hold, checked where ids are read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rnnreranker.base.errors import InputError

# control characters, and white space of Unicode at which some programs split a line and others do not
_ODD = "\x00-\x08\x0e-\x1f\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NO_WORD = re.compile(rf"[{_ODD}\s]")
_SEPARATES = re.compile(rf"[{_ODD}]")


def check_id(text: str, what: str, where: str) -> None:
    """Refuse an id that is no word of a run file.

    Raises:
        InputError: an id that is empty, or has white space or a control character.
    """
    if not text or _NO_WORD.search(text):
        raise InputError(
            f"{where}: {what} {shown_word(text)}; expected one that is not empty and has no white space or control "
            "character"
        )


def are_words(ids: Iterable[str]) -> bool:
    """Whether `check_id` lets all of these ids pass that are not empty; quick where there are millions."""
    joined = "".join(ids)
    return (joined.isprintable() and " " not in joined) or not _NO_WORD.search(joined)


def shown_word(text: str) -> str:
    """A word in quotes as messages show it: the beginning of a long one.

    >>> shown_word("x" * 50)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'... of 50 characters"
    """
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}... of {len(text)} characters"


def columns_of(line: str, where: str) -> list[str]:
    """The words of a line, which blanks and tabs separate.

    Raises:
        InputError: a control character, or other white space, at which only some programs split.
    """
    if odd := _SEPARATES.search(line):
        raise InputError(f"{where}: the character {odd[0]!r}; expected columns with blanks or tabs between them")
    return line.split()
