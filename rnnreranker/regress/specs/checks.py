"""From YAML to a spec: all mistakes of a file and its parts at once, each with file:line."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rnnreranker.base.errors import InputError, UnavailableError, nearest, problems_of
from rnnreranker.base.files import read_text
from rnnreranker.base.strict import KeyPath, parse_yaml
from rnnreranker.data import local
from rnnreranker.data.names import BUILT_IN_TOPICS, is_path
from rnnreranker.regress.specs.methods import data_sets
from rnnreranker.regress.specs.spec import KINDS, Condition, Entry, QuerySet, Spec, link_faults, spec_names

IN_PARTS = ("indexes", "models", "conditions")
DATA = ("documents", "topics", "qrels")  # keys whose values name data sets
E = TypeVar("E", bound=Entry)


class SpecFile:
    """A YAML file, perhaps with its parts.

    Attributes:
        content: the mapping, which must not be changed; problems: (file, line) and message of each mistake.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        content, lines = parse_yaml(read_text(path, "spec"), path)
        if not isinstance(content, dict):
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.path = path
        self.content: dict[str, Any] = content
        self.lines = {keys: (path, line) for keys, line in lines.items()}
        self.problems = list[tuple[tuple[Path, int], str]]()

    def problem(self, keys: KeyPath, text: str) -> None:
        """Note a problem at a path of keys."""
        self.problems.append((self.where(keys), text))

    def where(self, keys: KeyPath) -> tuple[Path, int]:
        """File and line of a path of keys, or of its nearest parent."""
        while keys not in self.lines:
            keys = keys[:-1]
        return self.lines[keys]

    def add(self, part: SpecFile) -> None:
        """Put the entries of a part before those of this file."""
        self.problems += part.problems
        for key, entries in part.content.items():
            own = self.content.get(key, {})
            if key not in IN_PARTS:
                self.problems.append((part.where((key,)), f"unknown key {key}; parts have {', '.join(IN_PARTS)}"))
            elif isinstance(own, dict) and isinstance(entries, dict):
                for name in set(own) & set(entries):
                    self.problem((key, name), f"{name} stands a second time among the {key}, here or in the parts")
                self.content = {**self.content, key: {**entries, **own}}
        self.lines = {**part.lines, **self.lines}

    def entry(self, kind: type[E], content: Any, keys: KeyPath = ()) -> E | None:
        """The entry at a path of keys, or None; notes its mistakes."""
        try:
            made = kind.model_validate(content)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                kinds = [kind] if len(one["loc"]) == 1 else Entry.__subclasses__()
                known = [field.alias or name for of in kinds for name, field in of.model_fields.items()]
                self.problem(*_said((*keys, *one["loc"]), one, known))
            return None
        made._keys = keys
        for where, said in made.faults():
            of_entry = f"{keys[-1]}: " if keys and not where else ""
            self.problem((*keys, *where), f"{of_entry}{said}")
        return made

    def read(self, made: E | None) -> E:
        """The entry that was made of the file; InputError: all noted mistakes, each with file:line."""
        if self.problems or made is None:
            said = sorted(dict.fromkeys(self.problems), key=lambda one: (one[0][0] != self.path, *one[0]))
            raise InputError("; ".join(f"{path}:{line}: {text}" for (path, line), text in said))
        return made


def _said(keys: KeyPath, error: Any, known: list[str]) -> tuple[KeyPath, str]:
    """The keys of an error of pydantic, and its message in our words."""
    name, kind = next((key for key in reversed(keys) if isinstance(key, str)), "the file"), error["type"]
    if kind == "missing":
        return keys[:-1], f"key {name} is missing"
    if kind == "extra_forbidden":
        return keys, f"unknown key {name}; {nearest(name, known)}"
    if kind == "value_error":
        return keys, str(error["ctx"]["error"])
    expected = error["msg"].replace("Input should be", "expected").replace("valid dictionary", "mapping")
    return keys, f"{name}: {error['input']!r}; {expected.partition(' or instance')[0]}"


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
    listed = document.content.get("parts")
    for number, name in [*enumerate(listed if isinstance(listed, list) else ())][::-1]:
        file = path.parent / "parts" / f"{name}.yaml"
        if file.is_file():
            document.add(SpecFile(file))
        else:
            hint = nearest(str(name), spec_names(file.parent))
            document.problem(("parts", number), f"parts {name}: no such file; {hint}")
    content = {**document.content}
    if content.get("name") not in (None, path.stem):
        said = f"name {content['name']}: this file is {path.name}; the two must be the same"
        document.problem(("name",), said)
    groups: dict[str, dict[str, Any]] = {}
    ids = {group: content.get(group) or {} for group in KINDS}
    for group, kind in KINDS.items():
        if not isinstance(ids[group], dict):
            document.problem((group,), f"{group}: expected ids with their entries")
            ids[group] = {}
        usual = {"index": next(iter(ids["indexes"]))} if kind is Condition and len(ids["indexes"]) == 1 else {}
        groups[group] = {}
        for name, its in ids[group].items():
            of_index = isinstance(its, dict) and {"retrieve", "expand", "rerank"} & set(its)
            if entry := document.entry(kind, usual | its if of_index else its, (group, str(name))):
                groups[group][entry.id] = entry
        content[group] = tuple(groups[group].values())
    for keys, said in link_faults(groups, ids):
        document.problem(keys, said)
    for keys in [keys for keys in document.lines if data and keys and keys[0] in KINDS and keys[-1] in DATA]:
        value: Any = document.content
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        for said in problems_of(functools.partial(_look_up, value, str(keys[-1]))) if isinstance(value, str) else ():
            document.problem(keys, said)
    return document.read(document.entry(Spec, content))


def _look_up(name: str, kind: str) -> None:
    """Look up the data sets in a name; a step looks for files."""
    from rnnreranker.data import irds

    for one, of in data_sets(name, kind) if name else ():
        if not is_path(one) and one not in BUILT_IN_TOPICS:
            with contextlib.suppress(UnavailableError):  # known, and not here: the step that needs it says so
                if not local.files_of(one, of):
                    irds.load(one)
