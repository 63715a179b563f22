"""Numbers as people type them: ASCII digits, a sign, a point, an exponent; not all that Python takes for a number."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


def whole(text: str) -> int:
    """The whole number that a text is.

    Raises:
        ValueError: any other text, among them `1_0` and digits of other scripts, which `int` takes.

    >>> whole("-12")
    -12
    >>> whole("1_0")
    Traceback (most recent call last):
    ValueError: '1_0': expected a whole number
    """
    if not _WHOLE.fullmatch(text) or len(text) > 4000:
        raise ValueError(f"{text[:40]!r}: expected a whole number")
    return int(text)


def number(text: str) -> float:
    """The number that a text is; whether it may be infinite is for those who use it.

    Raises:
        ValueError: any other text, among them `1_0` and digits of other scripts, which `float` takes.

    >>> number("1e-3")
    0.001
    >>> number("1_0.5")
    Traceback (most recent call last):
    ValueError: '1_0.5': expected a number
    """
    if not _NUMBER.fullmatch(text) and not _WORDS.fullmatch(text):
        raise ValueError(f"{text[:40]!r}: expected a number")
    return float(text)


READERS = {int: whole, float: number}
whole.__name__, number.__name__ = "int", "float"  # messages on flags name them
