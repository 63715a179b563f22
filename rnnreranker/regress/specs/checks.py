"""From YAML to a spec: everything that is wrong with a file and its parts at once, each with file:line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.written_form import Written
from rnnreranker.regress.specs.reading import KeyPath, SpecDocument
from rnnreranker.regress.specs.rules import Entries, check
from rnnreranker.regress.specs.spec import (
    WORKS,
    Condition,
    IndexEntry,
    Model,
    QuerySet,
    Spec,
    Work,
    query_set_names,
    spec_names,
)

SCHEMA = 3
KINDS: dict[str, Any] = {"indexes": IndexEntry, "models": Model, "conditions": Condition, "query_sets": QuerySet}
IN_PARTS = ("indexes", "models", "conditions")
EXAMPLES = {  # of methods in messages
    **{"retrieve": "bm25", "fuse": "rrf", "aggregate": "maxp", "expand": "neighbours", "labels": "evidence"},
    **{"negatives": "none", "train": "query", "first": "dense"},
}
LISTS = ("tuple[str, ...]", "tuple[int, ...]")  # types of fields that are lists in YAML


def find_spec(name: str, folder: Path, data: bool = False) -> tuple[Spec, tuple[QuerySet, ...]]:
    """The spec that a name stands for, and its query sets that are asked for: all, or the one of that name.

    Args:
        name: of a spec or of a query set, or the path of a YAML file.
        folder: of the specs.
        data: look up the names of data sets too (which loads ir_datasets).

    Raises:
        InputError: no such spec (with the nearest names); as `read_spec`.
    """
    sets = query_set_names(folder)
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if path.is_file():
        spec = read_spec(path, data)
        return spec, spec.query_sets
    if name not in sets:
        raise InputError(f"{name}: no such spec in {folder}; {nearest(name, [*spec_names(folder), *sets])}")
    spec = read_spec(folder / f"{sets[name]}.yaml", data)
    return spec, (spec.query_set(name),)


def read_spec(path: Path, data: bool = False) -> Spec:
    """The spec in a file, with its parts.

    Raises:
        InputError: everything that is wrong with the file and its parts, each with file:line.
    """
    return _Checker(path, data).spec()


class _Checker:
    """Turns YAML into a Spec and gathers every problem with its line."""

    def __init__(self, path: Path, data: bool) -> None:
        self.path, self.data = path, data
        self.document = SpecDocument(path)
        self.files = [*self._parts(), self.document]
        self.entries: Entries = {key: [] for key in KINDS}

    def _parts(self) -> Iterable[SpecDocument]:
        for number, name in enumerate(self.document.optional(self.document.content, "parts")):
            file = self.path.parent / "parts" / f"{name}.yaml"
            if not file.is_file():
                known = [path.stem for path in (self.path.parent / "parts").glob("*.yaml")]
                hint = nearest(str(name), known) if known else "there are none"
                self.document.problem(("parts", number), f"parts {name}: no such file; {hint}")
                continue
            part = SpecDocument(file)
            for key in set(part.content) - set(IN_PARTS):
                part.problem((key,), f"unknown key {key}; parts have {', '.join(IN_PARTS)}")
            yield part

    def spec(self) -> Spec:
        entries = (*KINDS, *WORKS)
        content = {key: value for key, value in self.document.content.items() if key not in entries}
        if content.get("schema") != SCHEMA:
            self.document.problem(("schema",), f"schema {content.get('schema')!r}; this version reads schema {SCHEMA}")
        values = self.document.fields(Spec, content, (), skip=(*KINDS, "works", "source"), beside=entries) or {}
        if values.get("name") not in (None, self.path.stem):
            self.document.problem(
                ("name",), f"name {values['name']}: this file is {self.path.name}; the two must be the same"
            )
        for key in KINDS:
            self._entries(key)
        works = [work for key in WORKS for work in self._works(key)]
        if not self.entries["conditions"] and not works:
            self.document.problem(("conditions",), "conditions: none here and none in the parts")
        check(self.document, self.entries, works, self.data)
        self._redundancy(values.get("redundancy", ""))
        problems = [problem for source in (self.document, *self.files[:-1]) for problem in source.in_order()]
        if problems:
            raise InputError("; ".join(problems))
        plain: dict[str, Any] = {key: tuple(map(str, values[key])) for key in _lists(Spec) if key in values}
        by_kind: dict[str, Any] = {key: tuple(entry for entry, _, _ in kept) for key, kept in self.entries.items()}
        return Spec(**{**values, **plain, **by_kind, "works": tuple(works), "source": str(self.path)})

    def _redundancy(self, name: str) -> None:
        """Note an index of `redundancy` that is none, or has no vectors."""
        parts = {entry.id: entry.parts for entry, _, _ in self.entries["indexes"]}
        if name and "dense" not in parts.get(name, ()):
            wrong = f"index {name} has no part dense" if name in parts else f"{name}: no such index"
            self.document.problem(("redundancy",), f"redundancy: {wrong}; expected an index of the spec with vectors")

    def _entries(self, key: str) -> None:
        """The good entries of a mapping id → entry, of the parts and of the file itself; ids stand once."""
        for source in self.files:
            for name, content in source.mapping(source.content, key).items():
                keys = (key, name)
                if any(entry.id == name for entry, _, _ in self.entries[key]):
                    source.problem(keys, f"{name} stands a second time among the {key}, here or in the parts")
                entry = self._entry(KINDS[key], str(name), content, source, keys)
                if entry is not None:
                    self.entries[key].append((entry, source, keys))

    def _entry(self, kind: Any, name: str, content: Any, source: SpecDocument, keys: KeyPath) -> Any:
        values = source.fields(kind, content, keys, skip=("id",))
        if values is None:
            return None
        before = len(source.problems)
        for key in _lists(kind):
            if key in values and key != "of":
                values[key] = tuple(source.optional(values, key, keys))
                if key != "contexts" and not all(isinstance(one, str) for one in values[key]):
                    source.problem((*keys, key), f"{key}: expected texts")
        for key in ("retrieve", "prf", "fuse", "aggregate", "expand", "labels", "negatives", "train", "first"):
            if key in values:
                values[key] = self._use(values[key], source, (*keys, key))
        if "rerank" in values:
            uses = values["rerank"] if isinstance(values["rerank"], list) else [values["rerank"]]
            values["rerank"] = tuple(self._use(use, source, (*keys, "rerank")) for use in uses)
        if "of" in values:
            values["of"] = tuple(
                [values["of"]] if isinstance(values["of"], str) else source.optional(values, "of", keys)
            )
        if "count" in values:
            values["count"] = self._count(values["count"], source, (*keys, "count"))
        return kind(id=name, **values) if len(source.problems) == before else None

    def _use(self, value: Any, source: SpecDocument, keys: KeyPath) -> Written | None:
        """`{name: settings}`, settings empty or a mapping that may hold `preset`."""
        if not isinstance(value, dict) or len(value) != 1:
            got = ", ".join(map(str, value)) if isinstance(value, dict) else repr(value)
            example = EXAMPLES.get(str(keys[-1]), "rnn")
            source.problem(keys, f"{keys[-1]}: {got}; expected one method with its settings, as {{{example}: {{}}}}")
            return None
        ((name, settings),) = value.items()
        if not isinstance(settings, dict | None):
            source.problem((*keys, name), f"{name}: {settings!r}; expected a mapping of settings, as {{}}")
            return None
        params = dict(settings or {})
        return Written(str(name), params, str(params.pop("preset", "") or ""))

    def _count(self, value: Any, source: SpecDocument, keys: KeyPath) -> tuple[int, int] | None:
        bounds = value if isinstance(value, list) else [value, value]
        if len(bounds) == 2 and all(type(bound) is int and bound > 0 for bound in bounds):
            return (bounds[0], bounds[1])
        source.problem(keys, f"count: {value!r}; expected a number of documents, or [fewest, most]")
        return None

    def _works(self, key: str) -> list[Work]:
        works = []
        for name, content in self.document.mapping(self.document.content, key).items():
            if not isinstance(content, dict):
                self.document.problem((key, name), f"{name}: expected options of the command")
                continue
            options = {option: value for option, value in content.items() if option != "needs"}
            works.append(Work(str(name), WORKS[key], options, content.get("needs", {})))
        return works


def _lists(kind: Any) -> list[str]:
    """The fields of a dataclass that are lists of plain values."""
    return [entry.name for entry in dataclasses.fields(kind) if entry.type in LISTS]
