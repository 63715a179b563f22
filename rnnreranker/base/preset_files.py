"""YAML files that hold settings: what `--preset FILE` reads, of one kind or in sections."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError

SECTIONS = ("rnn", "labels", "train")  # keys of a preset file that holds settings of several kinds


def is_file_name(text: str) -> bool:
    """Whether a preset's text is a path: it ends in .yaml or .yml, has a slash, or is a file here.

    >>> is_file_name("tas-b"), is_file_name("./my"), is_file_name("my.yaml")
    (False, True, True)
    """
    return text.endswith((".yaml", ".yml")) or "/" in text or os.path.isfile(text)


def sections_of(path: str | Path) -> frozenset[str]:
    """The sections a preset file has: none where it holds settings of one kind.

    Raises:
        InputError: no such file, not YAML, no mapping.
    """
    return frozenset(_content(path)) & frozenset(SECTIONS)


def read_section(path: str | Path, section: str) -> tuple[dict[str, Any], str]:
    """What a preset file says of a section, and where, for error messages; a section that is not there is empty."""
    content = _content(path)
    if (schema := content.pop("schema", 1)) != 1:
        raise InputError(f"{path}: schema {schema!r} is not known; this version reads schema 1")
    if not set(content) & set(SECTIONS):
        return content, str(path)
    if strange := [str(key) for key in content if key not in SECTIONS]:
        raise InputError(f"{path}: {', '.join(strange)} beside sections; expected only {', '.join(SECTIONS)}")
    values = content.get(section) or {}
    if not isinstance(values, dict):
        raise InputError(f"{path}: {section}: expected a mapping of settings to values")
    return values, f"{path}: {section}"


def _content(path: str | Path) -> dict[str, Any]:
    from rnnreranker.base.files.yaml_files import read_yaml

    content = read_yaml(path, "preset file")
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping such as `k: 10`")
    return content
