"""From YAML to a spec: all mistakes of a file and its parts at once, each with file:line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import read_text
from rnnreranker.base.files.yaml_files import KeyPath, parse_yaml
from rnnreranker.regress.specs.spec import (
    KINDS,
    Entry,
    QuerySet,
    Spec,
    spec_names,
)

IN_PARTS = ("indexes", "models", "conditions")
E = TypeVar("E", bound=Entry)


class SpecFile:
    """A YAML file, perhaps with its parts.

    Attributes:
        content: the mapping, which must not be changed; problems: (file, line) and message of each mistake.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        content, lines, strange = parse_yaml(read_text(path, "spec"), path)
        if not isinstance(content, dict):
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.path = path
        self.content: dict[str, Any] = content
        self._lines = {keys: (path, line) for keys, line in lines.items()}
        self.problems = [((path, line), text) for text, line in strange]

    def problem(self, keys: KeyPath, text: str) -> None:
        """Note a problem at a path of keys."""
        self.problems.append((self.where(keys), text))

    def where(self, keys: KeyPath) -> tuple[Path, int]:
        """File and line of a path of keys, or of its nearest parent."""
        while keys not in self._lines:
            keys = keys[:-1]
        return self._lines[keys]

    def add(self, part: SpecFile) -> None:
        """Put the entries of a part before those of this file."""
        self.problems += part.problems
        for key, entries in part.content.items():
            own = self.content.get(key, {})
            if key not in IN_PARTS:
                part.problem((key,), f"unknown key {key}; parts have {', '.join(IN_PARTS)}")
                self.problems.append(part.problems[-1])
            elif isinstance(own, dict) and isinstance(entries, dict):
                for name in set(own) & set(entries):
                    self.problem((key, name), f"{name} stands a second time among the {key}, here or in the parts")
                self.content = {**self.content, key: {**entries, **own}}
        self._lines = {**part._lines, **self._lines}

    def read(self, kind: type[E], data: bool = False) -> E:
        """The entry of the content; data: look up the names of data sets.

        Raises:
            InputError: all mistakes, each with file:line.
        """
        made, errors = _validated(kind, self.content, {"data": data})
        bad = {one["loc"][:3] for one in errors}
        if errors:  # the rest may have wrong links too
            _, more = _validated(kind, _without(self.content, errors), {"rest": True})
            errors += [one for one in more if one not in errors and not bad & {one["loc"][:n] for n in (1, 2, 3)}]
        for one in errors:
            self.problem(*_said(one))
        if self.problems or made is None:
            said = sorted(dict.fromkeys(self.problems), key=lambda one: (one[0][0] != self.path, *one[0]))
            raise InputError("; ".join(f"{path}:{line}: {text}" for (path, line), text in said))
        return made


def _validated(kind: type[E], content: Any, context: dict[str, Any]) -> tuple[E | None, list[Any]]:
    """The entry of a mapping, or None; and pydantic's errors, with hints for unknown keys."""
    try:
        return kind.model_validate(content, context=context), []
    except ValidationError as error:
        errors: list[Any] = error.errors(include_url=False)
        return None, [{**one, "hint": context.get(str(one["loc"][-1]) if one["loc"] else "", "")} for one in errors]


def _said(error: dict[str, Any]) -> tuple[KeyPath, str]:
    """The keys of an error of pydantic, and its message in our words."""
    keys, kind = error["loc"], error["type"]
    name = next((key for key in reversed(keys) if isinstance(key, str)), "the file")
    if kind == "missing":
        return keys[:-1], f"key {name} is missing"
    if kind == "extra_forbidden":
        return keys, f"unknown key {name}; {error['hint']}"
    if kind == "value_error":
        of_entry = f"{name}: " if len(keys) == 2 and keys[0] in KINDS else ""
        return keys, f"{of_entry}{error['ctx']['error']}"
    expected = error["msg"].replace("Input should be", "expected").replace("valid dictionary", "mapping")
    return keys, f"{name}: {error['input']!r}; {expected.partition(' or instance')[0]}"


def _without(content: Any, errors: list[Any]) -> Any:
    """A content without the values that have errors."""
    kept = {key: {**value} if key in KINDS and isinstance(value, dict) else value for key, value in content.items()}
    for one in errors:
        keys = one["loc"][: 3 if one["loc"] and one["loc"][0] in KINDS else 1]
        group = kept
        for key in keys[:-1]:
            group[key] = {**group[key]} if isinstance(group.get(key), dict) else {}
            group = group[key]
        if keys and (one["type"] != "value_error" or len(keys) != 2):
            group.pop(keys[-1], None)
    return kept


def query_set_names(folder: Path) -> dict[str, str]:
    """Query set → its spec, of all specs of a folder.

    Raises:
        InputError: an id of two specs, or equal to the name of another spec.
    """
    spec_of: dict[str, str] = {}
    specs = spec_names(folder)
    for spec in specs:
        sets = SpecFile(folder / f"{spec}.yaml").content.get("query_sets")
        for name in sets if isinstance(sets, dict) else ():
            other = spec_of.get(name) or (name if name in specs and name != spec else "")
            if other:
                raise InputError(f"{folder / spec}.yaml: query set {name} stands in {other} too; choose another id")
            spec_of[name] = spec
    return spec_of


def find_spec(name: str, folder: Path, data: bool = False) -> tuple[Spec, tuple[QuerySet, ...]]:
    """The spec of a name, a query set's name or a YAML file, and its query sets: all, or the named one.

    Raises:
        InputError: an unknown name; as `read_spec`.
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
    """The spec of a file with its parts. Conditions without an index get the only one of the spec.

    data: look up the names of data sets too, which loads ir_datasets.

    Raises:
        InputError: all mistakes, each with file:line.
    """
    document = SpecFile(path)
    for part in list(_parts(document))[::-1]:
        document.add(part)
    content = document.content
    if content.get("name") not in (None, path.stem):
        said = f"name {content['name']}: this file is {path.name}; the two must be the same"
        document.problem(("name",), said)
    indexes, conditions = content.get("indexes"), content.get("conditions")
    if isinstance(indexes, dict) and len(indexes) == 1 and isinstance(conditions, dict):
        usual = {"index": next(iter(indexes))}
        of_index = {"retrieve", "expand", "rerank"}
        conditions = {
            name: usual | its if isinstance(its, dict) and of_index & set(its) else its
            for name, its in conditions.items()
        }
        document.content = {**content, "conditions": conditions}
    return document.read(Spec, data)


def _parts(own: SpecFile) -> Iterator[SpecFile]:
    """The files of the parts that a spec names."""
    listed = own.content.get("parts")
    for number, name in enumerate(listed if isinstance(listed, list) else ()):
        path = own.path.parent / "parts" / f"{name}.yaml"
        if path.is_file():
            yield SpecFile(path)
        else:
            known = spec_names(path.parent)
            own.problem(("parts", number), f"parts {name}: no such file; {nearest(str(name), known)}")
