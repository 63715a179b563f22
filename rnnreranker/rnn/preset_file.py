"""Preset files: settings in YAML, either of one kind or in sections named rnn, labels and train."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from rnnreranker.errors import InputError, nearest

SECTIONS = ("rnn", "labels", "train")
P = TypeVar("P")


def sections_of(path: str | Path) -> frozenset[str]:
    """The sections a preset file has: none where it holds settings of one kind.

    Raises:
        InputError: no such file, not YAML, no mapping.
    """
    return frozenset(_content(path)) & frozenset(SECTIONS)


def read_settings(path: str | Path, kind: type[P], section: str) -> P:
    """The settings of a preset file: field names with values, the rest at their defaults.

    Args:
        path: a mapping of fields to values, or a mapping of `SECTIONS` to such mappings.
        kind: the dataclass of the settings.
        section: what is read of a file with sections; a section that is not there leaves every default.

    Raises:
        InputError: no such file, not YAML, unknown keys (with the nearest names), values out of range.
    """
    content = _content(path)
    if (schema := content.pop("schema", 1)) != 1:
        raise InputError(f"{path}: schema {schema!r} is not known; this version reads schema 1")
    where = str(path)
    if set(content) & set(SECTIONS):
        if strange := [str(key) for key in content if key not in SECTIONS]:
            raise InputError(f"{path}: {', '.join(strange)} beside sections; expected only {', '.join(SECTIONS)}")
        content, where = content.get(section) or {}, f"{path}: {section}"
        if not isinstance(content, dict):
            raise InputError(f"{where}: expected a mapping of settings to values")
    hints = get_type_hints(kind)
    known = [entry.name for entry in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if unknown := [key for key in content if key not in known]:
        raise InputError(f"{where}: " + "; ".join(f"unknown key {key}, {nearest(str(key), known)}" for key in unknown))
    try:
        return kind(**{name: _value(value, hints[name]) for name, value in content.items()})
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _content(path: str | Path) -> dict[str, Any]:
    import yaml

    from rnnreranker.files import read_text

    text = read_text(path, "preset file")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InputError(f"{where}: not YAML ({getattr(error, 'problem', None) or 'unreadable'})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping such as `k: 10`")
    return content


def _value(value: Any, hint: Any) -> Any:
    """`none` as on the command line, and 1e-5, which YAML takes for a word, as a number."""
    members = get_args(hint) or (hint,)
    if not isinstance(value, str):
        return value
    if value == "none" and type(None) in members:
        return None
    if float in members:
        try:
            return float(value)
        except ValueError:
            return value
    return value
