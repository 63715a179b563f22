"""YAML read strictly: mappings into dataclasses, and every problem with its file and line."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from rnnreranker.errors import InputError, RnnrerankerError, nearest
from rnnreranker.files import not_yaml, read_text

T = TypeVar("T")
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
            content, self._lines, strange = _parse(text)
        except yaml.YAMLError as error:
            raise not_yaml(path, error) from None
        if not isinstance(content, dict):
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.source = str(path)
        self.content: dict[str, Any] = content  # shared by all documents of the same text: not to be changed
        self.problems = [f"{path}:{line}: {text}" for text, line in strange]

    def problem(self, path: Place, text: str) -> None:
        """Note a problem at a place; of a key that is not there, at what should hold it."""
        self.problems.append(f"{self.source}:{self.line(path)}: {text}")

    def line(self, path: Place) -> int:
        """The line of a place; of a key that is not there, that of what should hold it."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def fields(
        self, kind: Any, content: Any, path: Place, skip: tuple[str, ...] = (), beside: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """The values of a dataclass, or None after noting unknown, missing and mistyped keys.

        Args:
            kind: the dataclass.
            content: what should be its values.
            path: where that stands.
            skip: fields that are no keys.
            beside: keys that are read elsewhere, for hints.
        """
        before = len(self.problems)
        if not isinstance(content, dict):
            self.problem(path, f"expected a mapping, got {type(content).__name__}")
            return None
        declared = {entry.name: entry for entry in dataclasses.fields(kind) if entry.name not in skip}
        for key in content:
            if key not in declared:
                self.problem((*path, key), f"unknown key {key}; {nearest(str(key), (*declared, *beside))}")
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

    def optional(self, content: dict[str, Any], key: str, path: Place = ()) -> list[Any]:
        """The list under a key; an empty one where the key is missing or holds nothing."""
        return self.sequence(content, key, path) if content.get(key) not in (None, []) else []

    def note(self, path: Place, call: Callable[..., T], *arguments: Any) -> T | None:
        """What a call gives, or None after noting the error that it raises."""
        try:
            return call(*arguments)
        except RnnrerankerError as error:
            self.problem(path, str(error))
            return None


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is eight times as fast
_OCTAL = re.compile(r"[-+]?0[0-9_]+")  # YAML 1.1 makes 15 of 017, and a text of 018


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> tuple[Any, dict[Place, int], list[tuple[str, int]]]:
    """Content, the line of every place, and what no reader would expect of YAML, with its line.

    A text is parsed once: parts are named by many specs.
    """
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        lines: dict[Place, int] = {(): 1}
        strange: list[tuple[str, int]] = []
        if root is not None:
            _note_lines(root, (), lines, strange)
        return (None if root is None else loader.construct_document(root)), lines, strange
    finally:
        loader.dispose()


def _note_lines(node: yaml.Node, path: Place, lines: dict[Place, int], strange: list[tuple[str, int]]) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                strange.append((f"key {key.value} stands here a second time", line))
            seen.add(key.value)
            _note_lines(value, (*path, key.value), lines, strange)
            lines[(*path, key.value)] = line
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            _note_lines(value, (*path, position), lines, strange)
    elif isinstance(node, yaml.ScalarNode) and not node.style and _OCTAL.fullmatch(node.value):
        strange.append((f"{node.value}: a number does not begin with 0; expected a text in quotes", lines[path]))
