"""YAML read strictly: mappings into dataclasses, and every problem with its file and line."""

from __future__ import annotations

import dataclasses
import functools
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
    """A parsed YAML file that knows the line of every key and gathers the problems found in it.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        text = read_text(path, "spec")
        try:
            content, self._lines, twice = _parse(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{path}:{mark.line + 1}" if mark else str(path)
            raise InputError(f"{where}: not YAML ({getattr(error, 'problem', None) or 'unreadable'})") from None
        if not isinstance(content, dict):
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.source = str(path)
        self.content: dict[str, Any] = content  # shared by all documents of the same text: not to be changed
        self.problems = [f"{path}:{line}: key {key} stands here a second time" for key, line in twice]

    def problem(self, path: Place, text: str) -> None:
        """Note a problem at a place; of a key that is not there, at what should hold it."""
        self.problems.append(f"{self.source}:{self.line(path)}: {text}")

    def line(self, path: Place) -> int:
        """The line of a place; of a key that is not there, that of what should hold it."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

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
            raise InputError("; ".join(self.in_order()))

    def in_order(self) -> list[str]:
        """The problems by line."""
        return sorted(self.problems, key=lambda problem: int(problem[len(self.source) + 1 :].split(":")[0]))


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is eight times as fast


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> tuple[Any, dict[Place, int], list[tuple[str, int]]]:
    """Content, the line of every place, and the keys that stand twice in a mapping with their line.

    A text is parsed once: parts are named by many recipes.
    """
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        lines: dict[Place, int] = {(): 1}
        twice: list[tuple[str, int]] = []
        if root is not None:
            _note_lines(root, (), lines, twice)
        return (None if root is None else loader.construct_document(root)), lines, twice
    finally:
        loader.dispose()


def _note_lines(node: yaml.Node, path: Place, lines: dict[Place, int], twice: list[tuple[str, int]]) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                twice.append((str(key.value), line))
            seen.add(key.value)
            _note_lines(value, (*path, key.value), lines, twice)
            lines[(*path, key.value)] = line
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            _note_lines(value, (*path, position), lines, twice)
