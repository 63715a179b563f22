"""YAML read strictly: mappings into dataclasses, and every problem with its file and line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rnnreranker.base.errors import InputError, RnnrerankerError, nearest
from rnnreranker.base.files import read_text
from rnnreranker.base.files.yaml_files import KeyPath, parse_yaml

T = TypeVar("T")

_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str | None": (str, type(None)),
    "dict[str, Any]": dict,
    "list[Any]": list,
}


class SpecDocument:
    """A parsed YAML file that knows the line of every key and gathers the problems in it.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        content, self._lines, strange = parse_yaml(read_text(path, "spec"), path)
        if not isinstance(content, dict):
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.source = str(path)
        self.content: dict[str, Any] = content  # shared by all documents of the same text: not to be changed
        self.problems = [f"{path}:{line}: {text}" for text, line in strange]

    def problem(self, path: KeyPath, text: str) -> None:
        """Note a problem at the path of keys; of a key that is not there, at what should hold it."""
        self.problems.append(f"{self.source}:{self.line(path)}: {text}")

    def line(self, path: KeyPath) -> int:
        """The line of the path of keys; of a key that is not there, that of what should hold it."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def fields(
        self, kind: Any, content: Any, path: KeyPath, skip: tuple[str, ...] = (), beside: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """The values of a dataclass, or None after noting unknown, missing and mistyped keys.

        path: where the content stands; skip: fields that are no keys; beside: keys that are read elsewhere, for hints.
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

    def sequence(self, content: dict[str, Any], key: str, path: KeyPath = ()) -> list[Any]:
        """The list under a key; none, after noting it, where there is none or an empty one."""
        value = content.get(key)
        if not isinstance(value, list) or not value:
            self.problem((*path, key), f"{key}: expected a list with at least one entry")
            return []
        return value

    def mapping(self, content: dict[str, Any], key: str, path: KeyPath = ()) -> dict[str, Any]:
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

    def optional(self, content: dict[str, Any], key: str, path: KeyPath = ()) -> list[Any]:
        """The list under a key; an empty one where the key is missing or holds nothing."""
        return self.sequence(content, key, path) if content.get(key) not in (None, []) else []

    def note(self, path: KeyPath, call: Callable[..., T], *arguments: Any) -> T | None:
        """What a call gives, or None after noting the error that it raises."""
        try:
            return call(*arguments)
        except RnnrerankerError as error:
            self.problem(path, str(error))
            return None
