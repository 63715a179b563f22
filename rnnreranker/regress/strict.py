"""YAML read strictly: mappings into dataclasses, and every problem with its file and line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml

from rnnreranker.errors import InputError, nearest
from rnnreranker.files import read_text

Place = tuple[str | int, ...]  # keys and positions from the root of a YAML document

_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str | None": (str, type(None)),
    "dict[str, Any]": dict,
    "list[Any]": list,
}


class Document:
    """A parsed YAML file that remembers the line of every key and gathers the problems found in it.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        text = read_text(path, "spec")
        try:
            content = yaml.safe_load(text)
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{path}:{mark.line + 1}" if mark else str(path)
            raise InputError(f"{where}: not YAML ({getattr(error, 'problem', None) or 'unreadable'})") from None
        if not isinstance(content, dict) or root is None:
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.source = str(path)
        self.content: dict[str, Any] = content
        self.problems: list[str] = []
        self._lines: dict[Place, int] = {}
        self._note_lines(root, ())

    def _note_lines(self, node: yaml.Node, path: Place) -> None:
        self._lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                if key.value in seen:
                    line = key.start_mark.line + 1
                    self.problems.append(f"{self.source}:{line}: key {key.value} stands here a second time")
                seen.add(key.value)
                self._note_lines(value, (*path, key.value))
                self._lines[(*path, key.value)] = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode):
            for position, value in enumerate(node.value):
                self._note_lines(value, (*path, position))

    def problem(self, path: Place, text: str) -> None:
        """Note a problem at a place; of a key that is not there, at what should hold it."""
        while path not in self._lines:
            path = path[:-1]
        self.problems.append(f"{self.source}:{self._lines[path]}: {text}")

    def fields(self, kind: Any, content: Any, path: Place, skip: tuple[str, ...] = ()) -> dict[str, Any] | None:
        """The values of a dataclass, or None after noting unknown, missing and mistyped keys."""
        before = len(self.problems)
        if not isinstance(content, dict):
            self.problem(path, f"expected a mapping, got {type(content).__name__}")
            return None
        declared = {entry.name: entry for entry in dataclasses.fields(kind) if entry.name not in skip}
        for key in content:
            if key not in declared:
                self.problem((*path, key), f"unknown key {key}; {nearest(str(key), declared)}")
        for key, entry in declared.items():
            required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
            if key not in content:
                if required:
                    self.problem(path, f"key {key} is missing")
                continue
            wanted = _TYPES.get(str(entry.type))
            value = content[key]
            if wanted is not None and (
                not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)
            ):
                self.problem((*path, key), f"{key}: {value!r}; expected {entry.type}")
        return dict(content) if len(self.problems) == before else None

    def sequence(self, content: dict[str, Any], key: str, path: Place = ()) -> list[Any]:
        """The list under a key; none, after noting it, where there is none or an empty one."""
        value = content.get(key)
        if not isinstance(value, list) or not value:
            self.problem((*path, key), f"{key}: expected a list with at least one entry")
            return []
        return value

    def mapping(self, content: dict[str, Any], key: str, path: Place = ()) -> dict[str, Any]:
        """The mapping under a key; an empty one where the key is missing."""
        value = content.get(key, {})
        if not isinstance(value, dict):
            self.problem((*path, key), f"{key}: expected a mapping")
            return {}
        return value

    def finish(self) -> None:
        """Nothing, when no problem was noted.

        Raises:
            InputError: all problems.
        """
        if self.problems:
            raise InputError("; ".join(self.problems))
