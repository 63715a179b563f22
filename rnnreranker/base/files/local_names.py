"""Paths as files for others may have them: without the folders of this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_ELSEWHERE = re.compile(r"^(/|~|\.\.(/|$)|[A-Za-z]:\\)")


def is_elsewhere(text: str) -> bool:
    """Whether a text is a path that is not below the working folder."""
    return _ELSEWHERE.match(text) is not None


def local_name(value: Any) -> Any:
    """A value as it may stand in a file for others: of a path that is not below the working folder the last name.

    >>> local_name("/home/ada/bm25.txt"), local_name("runs/bm25.txt"), local_name("BAAI/bge-small-en"), local_name(5)
    ('bm25.txt', 'runs/bm25.txt', 'BAAI/bge-small-en', 5)
    """
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not is_elsewhere(value):
        return value
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1]
