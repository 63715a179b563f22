"""From YAML to a spec: all mistakes of a file and its parts at once, each with file:line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.files import KeyPath, parse_yaml, read_text
from rnnreranker.regress.specs.entries import NOWHERE, Entry, QuerySet, Spec, models_in

E = TypeVar("E", bound=Entry)
YAML = (".yaml", ".yml")
WORKS = {"studies": "study", "tunings": "tune", "recoveries": "recover", "diagnoses": "diagnose"}  # key → command
GROUPS = ("indexes", "models", "conditions", "query_sets", *WORKS)  # keys of a spec whose entries have ids
NAMED: dict[str, dict[str, str]] = {  # group → key of its entries → the group whose ids it has
    "models": {"index": "indexes", "candidates": "indexes"},
    "conditions": {
        **{"of": "conditions", "against": "conditions", "index": "indexes", "model": "models"},
        **{"query_sets": "query_sets", "needs": "query_sets"},
    },
    **{group: {"of": "conditions", "query_set": "query_sets"} for group in WORKS},
}


class SpecFile:
    """A YAML file, perhaps with its parts.

    Attributes:
        content: the mapping, which must not be changed; lines: path of keys → file and line.
        problems: (file, line) and message of each mistake.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        content, lines = parse_yaml(read_text(path, "spec"), path)
        refuse((not isinstance(content, dict), f"{path}:1: expected a mapping with schema, name, …"))
        self.path = path
        self.content: dict[str, Any] = content
        self.lines = {keys: (path, line) for keys, line in lines.items()}
        self.problems: list[tuple[Any, str]] = []

    def where(self, keys: KeyPath) -> tuple[Path, int]:
        """File and line of a path of keys, or of its nearest parent."""
        while keys not in self.lines:
            keys = keys[:-1]
        return self.lines[keys]

    def problem(self, keys: KeyPath, text: str) -> None:
        """Note a problem at a path of keys."""
        self.problems.append((self.where(keys), text))

    def add(self, path: Path) -> None:
        """Put the entries of a part before those of this file."""
        part = SpecFile(path)
        for key, entries in part.content.items():
            own = self.content.get(key, {})
            if not (isinstance(own, dict) and isinstance(entries, dict)):
                self.problems.append((part.where((key,)), f"{key}: expected entries by id, as in a part"))
                continue
            for name in {*own} & {*entries}:
                self.problem((key, name), f"{name} stands a second time among the {key}, here or in the parts")
            self.content = {**self.content, key: {**entries, **own}}
        self.lines = {**part.lines, **self.lines}

    def made(self, kind: type[E], context: object = None) -> E:
        """The entry of the content; InputError: all mistakes, each with file:line."""
        try:
            made = kind.model_validate(self.content, context=context)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                text = _said(one)
                if one["type"] != "default_factory_not_called":  # because of another error
                    self.problem((*one["loc"], text.partition(":")[0]), text)  # which may begin with a key
        if self.problems:
            said = sorted(dict.fromkeys(self.problems), key=lambda one: (one[0][0] != self.path, *one[0]))
            raise InputError("; ".join(f"{path}:{line}: {text}" for (path, line), text in said))
        return made


def _said(error: Any) -> str:
    """An error of pydantic in our words."""
    keys, kind = error["loc"], error["type"]
    name = next((key for key in reversed(keys) if isinstance(key, str) and key != "[key]"), "the file")
    if kind == "missing":
        return f"key {name} is missing"
    if kind == "extra_forbidden":
        known = {field.alias or one for of in Entry.__subclasses__() for one, field in of.model_fields.items()}
        return f"unknown key {name}; {nearest(name, known)}"
    if kind == "value_error":
        return f"{f'{name}: ' if len(keys) == 2 and keys[0] in GROUPS else ''}{error['ctx']['error']}"
    expected = error["msg"].replace("Input should be", "expected").replace("valid dictionary", "mapping")
    return f"{name}: {error['input']!r}; {expected.partition(' or instance')[0]}"


def read_spec(path: Path, data: bool = False) -> Spec:
    """The spec of a file with its parts. Conditions without an index get the only one of the spec.

    data: look up the names of data sets too, which loads ir_datasets.

    Raises:
        InputError: all mistakes, each with file:line.
    """
    file = SpecFile(path)
    listed = file.content.get("parts")
    for given in reversed(listed if isinstance(listed, list) else []):
        of_part = path.parent / "parts" / f"{given}.yaml"
        if of_part.is_file():
            file.add(of_part)
        else:
            file.problem(("parts",), f"parts {given}: no such file; {nearest(str(given), spec_names(of_part.parent))}")
    if (name := file.content.get("name")) not in (None, path.stem):
        file.problem(("name",), f"name {name}: this file is {path.name}; the two must be the same")
    groups: dict[str, dict[str, Any]] = {}
    for group in (group for group in GROUPS if isinstance(file.content.get(group), dict)):
        usual = {"index": next(iter(groups["indexes"]))} if len(groups.get("indexes", ())) == 1 else {}
        own = {"module": WORKS[group]} if group in WORKS else usual if group == "conditions" else {}
        groups[group] = {
            str(name): own | its | {"id": str(name)} if isinstance(its, dict) else its
            for name, its in file.content[group].items()
        }
    file.content = file.content | groups
    needing: dict[Any, Any] = {}
    for keys, said in link_faults(groups, needing):
        file.problem(keys, said)
    file.content = file.content | {"links": needing}
    return file.made(Spec, data)


def links(entry: Mapping[str, Any], named: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The names of others in an entry of a file: key, group and name; named: keys that have ids → their group."""
    for key, value in entry.items():
        several = value if isinstance(value, list | dict) else [value] if value else []
        yield from ((key, named[key], str(name)) for name in several if key in named and name != NOWHERE)
        yield from ((key, "models", name) for name in models_in(value))


def link_faults(groups: Mapping[str, Mapping[str, Any]], needing: Any) -> Iterator[tuple[KeyPath, str]]:
    """Unknown names of entries, and cycles.

    groups: group → id → entry in the file; needing: gets what each entry stands on.
    """
    for group, name, entry in ((group, name, its) for group, by_id in groups.items() for name, its in by_id.items()):
        needing[group, name] = []
        for key, of, other in links(entry, NAMED.get(group, {})) if isinstance(entry, dict) else ():
            needing[group, name] += [(of, other)] if of in ("indexes", "models") or key == "of" else []
            if other not in (known := groups.get(of, {})):
                yield (group, name, key), f"{key} {other}: not in {of}; {nearest(other, known)}"
    try:
        TopologicalSorter(needing).prepare()
    except CycleError as error:
        cycle = error.args[1]
        yield cycle[0], f"cyclic steps: {' → '.join(name for _, name in reversed(cycle))}"


def find_spec(name: str, folder: Path, data: bool = False) -> tuple[Spec, tuple[QuerySet, ...]]:
    """The spec of a name, a query set's name or a YAML file, and its query sets: all, or the named one.

    Raises:
        InputError: an unknown name; as `read_spec`.
    """
    sets, specs = query_set_names(folder), spec_names(folder)
    path = Path(name) if name.endswith(YAML) else folder / f"{name if name in specs else sets.get(name, name)}.yaml"
    spec = read_spec(path, data)
    named = {name} if name in sets and name not in specs else spec.query_sets.keys()
    return spec, tuple(one for one in spec.query_sets.values() if one.id in named)


def query_set_names(folder: Path) -> dict[str, str]:
    """Query set → its spec, of all specs of a folder; InputError: an id of two specs.

    A query set may have the name of its own spec, but of no other.
    """
    spec_of: dict[str, str] = {}
    specs = spec_names(folder)
    for spec in specs:
        sets = SpecFile(folder / f"{spec}.yaml").content.get("query_sets")
        for name in sets if isinstance(sets, dict) else ():
            other = spec_of.setdefault(name, name if name in specs else spec)
            refuse((other != spec, f"{folder / spec}.yaml: query set {name} stands in {other} too; choose another id"))
    return spec_of


def specs_folder(named: str | None = None) -> Path:
    """The named folder of specs, else the checkout's `regressions/`, else the package's; InputError: none."""
    package = Path(__file__).resolve().parents[2]
    known = [package.parent / "regressions", package / "regressions"] if named is None else [Path(named)]
    for folder in filter(Path.is_dir, known):
        return folder
    raise InputError(f"{named}: no such folder of specs; leave --specs out to use those of the package")


def spec_names(folder: Path) -> list[str]:
    """The sorted names of all specs in a folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))
