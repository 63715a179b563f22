"""Docstrings as reStructuredText: they are plain text, in which backticks hold code."""

from __future__ import annotations

import re
from typing import Any


def process(app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """What Sphinx calls with the lines of each docstring, to be changed where they are."""
    if re.match(r"(Abstract base class|Base class for protocol)", lines[0] if lines else ""):
        lines.clear()
    code = False
    for row, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            lines[row] = plain(line)


def plain(line: str) -> str:
    """A line in which nothing but code in backticks has a meaning.

    >>> print(plain("of `x_`: w_i * *kwargs, |q|, name_"))
    of ``x_``: w_i \\* \\*kwargs, \\|q\\|, name\\_
    """
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(f"`{part}`" if part[:1] == "`" else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return re.sub(r"_(?!\w)", r"\\_", re.sub(r"([\\*|`])", r"\\\1", text))
