"""From YAML to a spec: everything that is wrong with a file and its parts at once, each with file:line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from rnnreranker.base.errors import InputError, RnnrerankerError, nearest
from rnnreranker.base.files import read_text
from rnnreranker.base.files.yaml_files import KeyPath, parse_yaml
from rnnreranker.base.method import methods, names
from rnnreranker.parts.base import part, parts_of
from rnnreranker.regress.specs.methods import (
    MODEL_OPTIONS,
    beside_parts,
    beside_uses,
    check_labels,
    models_in,
    parts_read,
)
from rnnreranker.regress.specs.spec import (
    NOWHERE,
    WORKS,
    Condition,
    Entry,
    IndexEntry,
    Model,
    QuerySet,
    Spec,
    Work,
    spec_names,
)

SCHEMA = 3  # of specs and papers
KINDS: dict[str, type[Entry]] = {
    "indexes": IndexEntry,
    "models": Model,
    "conditions": Condition,
    "query_sets": QuerySet,
}
IN_PARTS = ("indexes", "models", "conditions")
OF_RERANKER = {"cross-encoder": "cross", "ensemble": "cross"}  # what models of the spec they take
LEVELS = ("query set", "condition", "protocol", "measure")  # of `expected`
T = TypeVar("T", bound=BaseModel)


class SpecDocument:
    """A parsed YAML file that knows the line of every key and gathers the problems in it.

    Raises:
        InputError: no such file, or not a YAML mapping.
    """

    def __init__(self, path: Path) -> None:
        content, self._lines, strange = parse_yaml(read_text(path, "spec"), path)
        if not isinstance(content, dict):
            raise InputError(f"{path}:1: expected a mapping with schema, name, …")
        self.path = path
        self.content: dict[str, Any] = content  # shared by all documents of the same text: not to be changed
        self.wrong: set[KeyPath] = set()  # entries that are wrong by themselves
        self._problems = [(line, text) for text, line in strange]

    def problem(self, keys: KeyPath, text: str) -> None:
        """Note a problem at a path of keys; of a key that is missing, at what should hold it."""
        self._problems.append((self.line(keys), text))

    def line(self, keys: KeyPath) -> int:
        """The line of a path of keys; of a key that is missing, that of what should hold it."""
        while keys not in self._lines:
            keys = keys[:-1]
        return self._lines[keys]

    def read(self, kind: type[T], content: Any, keys: KeyPath = (), data: bool = False) -> T | None:
        """The entry that a mapping makes; after noting what is wrong with it, what the rest makes, or None.

        Args:
            kind: of entry.
            content: the mapping; keys: where it is.
            data: look up the names of data sets.
        """
        context: dict[str, Any] = {"data": data}
        try:
            return kind.model_validate(content, context=context)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                where: KeyPath = (*keys, *one["loc"])
                name = next((key for key in reversed(where) if isinstance(key, str)), "the file")
                if one["type"] == "missing":
                    self.problem(where[:-1], f"key {name} is missing")
                elif one["type"] == "extra_forbidden":
                    self.problem(where, f"unknown key {name}; {context.get(name, 'leave it out')}")
                elif one["type"] == "value_error":
                    self.problem(where, str(one["ctx"]["error"]))
                else:
                    expected = one["msg"].replace("Input should be", "expected").replace("valid dictionary", "mapping")
                    self.problem(where, f"{name}: {one['input']!r}; {expected}")
            self.wrong.add(keys)
            bad = {str(one["loc"][0]): one["type"] for one in error.errors() if one["loc"]}
            rest = {key: value for key, value in content.items() if key not in bad}
            with contextlib.suppress(ValidationError):
                return kind.model_validate(rest | {key: "" for key, why in bad.items() if why == "missing"})
        except RnnrerankerError as error:
            self.problem(keys, str(error))
        return None

    def mapping(self, key: str) -> dict[str, Any]:
        """The mapping under a key of the file; an empty one where the key is missing, or after noting another value."""
        value = self.content.get(key, {})
        if isinstance(value, dict):
            return value
        self.problem((key,), f"{key}: expected a mapping")
        return {}

    def check_schema(self) -> dict[str, Any]:
        """The content without its schema, after noting one that this version does not read."""
        if self.content.get("schema") != SCHEMA:
            self.problem(("schema",), f"schema {self.content.get('schema')!r}; this version reads schema {SCHEMA}")
        return {key: value for key, value in self.content.items() if key != "schema"}

    def problems(self) -> list[str]:
        """All problems, by line."""
        return [f"{self.path}:{line}: {text}" for line, text in sorted(self._problems, key=lambda one: one[0])]

    def finish(self) -> None:
        """Raise an InputError of all problems, if any was noted."""
        if problems := self.problems():
            raise InputError("; ".join(problems))


def query_set_names(folder: Path) -> dict[str, str]:
    """Query set → the spec that it is of, for all specs of a folder.

    Raises:
        InputError: an id that two specs have, or that is the name of another spec.
    """
    spec_of: dict[str, str] = {}
    specs = spec_names(folder)
    for spec in specs:
        for name in SpecDocument(folder / f"{spec}.yaml").mapping("query_sets"):
            other = spec_of.get(name) or (name if name in specs and name != spec else "")
            if other:
                raise InputError(f"{folder / spec}.yaml: query set {name} stands in {other} too; choose another id")
            spec_of[name] = spec
    return spec_of


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
    """The spec in a file, with its parts. Conditions without an index get the only one of the spec.

    Args:
        path: of the YAML file.
        data: look up the names of data sets too.

    Raises:
        InputError: everything that is wrong with the file and its parts, each with file:line.
    """
    own = SpecDocument(path)
    files = [*_parts(own), own]
    ids: dict[str, list[str]] = {key: [] for key in (*KINDS, *WORKS)}
    entries: dict[str, dict[str, _Read]] = {key: {} for key in ids}
    for key in ids:
        for file in [own] if key in WORKS else files:
            for name, content in file.mapping(key).items():
                if name in ids[key]:
                    file.problem((key, name), f"{name} stands a second time among the {key}, here or in the parts")
                ids[key].append(str(name))
                if not isinstance(content, dict):
                    file.problem((key, name), f"{name}: expected a mapping, got {type(content).__name__}")
                    continue
                if "id" in content:
                    file.problem((key, name, "id"), "unknown key id; leave it out")
                if key in WORKS:
                    options = {option: its for option, its in content.items() if option != "needs"}
                    content = {"kind": WORKS[key], "options": options, "needs": content.get("needs", {})}
                entry = file.read(KINDS.get(key, Work), {**content, "id": str(name)}, (key, name), data)
                if entry is not None:
                    entries[key][str(name)] = _Read(file, (key, name), entry)
    if len(ids["indexes"]) == 1:
        for name, (file, keys, entry) in entries["conditions"].items():
            if (entry.retrieve or entry.expand or entry.rerank) and not entry.index:
                alone = entry.model_copy(update={"index": ids["indexes"][0]})
                entries["conditions"][name] = _Read(file, keys, alone)
    good = {key: {name: one.entry for name, one in kept.items()} for key, kept in entries.items()}
    plain = {key: value for key, value in own.check_schema().items() if key not in ids}
    by_kind = {key: tuple(good[key].values()) for key in KINDS}
    works = tuple(work for key in WORKS for work in good[key].values())
    if "works" in plain:
        own.problem(("works",), f"unknown key works; expected {', '.join(WORKS)}")
    spec = own.read(Spec, {**plain, **by_kind, "works": works}, (), data)
    _check_links([one for kept in entries.values() for one in kept.values()], ids, good)
    if own.content.get("name") not in (None, path.stem):
        name = own.content["name"]
        own.problem(("name",), f"name {name}: this file is {path.name}; the two must be the same")
    if not ids["conditions"] and not works:
        own.problem(("conditions",), "conditions: none here and none in the parts")
    for keys, said in _spec_faults(spec) if spec else ():
        own.problem(keys, said)
    problems = [problem for file in (own, *files[:-1]) for problem in file.problems()]
    if problems or spec is None:
        raise InputError("; ".join(problems))
    return spec


class _Read(NamedTuple):
    """An entry, and where it is."""

    file: SpecDocument
    keys: KeyPath
    entry: Any


def _parts(own: SpecDocument) -> Iterator[SpecDocument]:
    """The files that a spec names as its parts."""
    listed = own.content.get("parts")
    for number, name in enumerate(listed if isinstance(listed, list) else ()):
        path = own.path.parent / "parts" / f"{name}.yaml"
        if not path.is_file():
            known = spec_names(path.parent)
            hint = nearest(str(name), known) if known else "there are none"
            own.problem(("parts", number), f"parts {name}: no such file; {hint}")
            continue
        file = SpecDocument(path)
        for key in set(file.content) - set(IN_PARTS):
            file.problem((key,), f"unknown key {key}; parts have {', '.join(IN_PARTS)}")
        yield file


def _check_links(entries: list[_Read], ids: dict[str, list[str]], good: dict[str, dict[str, Any]]) -> None:
    """Note what entries must not say, alone and of each other: unknown names, missing parts of indexes, cycles."""
    needing: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for file, keys, entry in entries:
        needed = needing.setdefault((str(keys[0]), entry.id), [])
        for key, name, group, kind in links(entry):
            needed.append((group, name))
            if name not in ids[group]:
                hint = nearest(name, ids[group]) if ids[group] else "there are none"
                file.problem((*keys, key), f"{key} {name}: not in {group}; {hint}")
            elif kind and name in good[group] and (trained := good[group][name].train.name) not in kind.split(" or "):
                file.problem((*keys, key), f"{key} {name}: is trained as {trained}; expected a model of `{kind}`")
        if isinstance(entry, QuerySet) or keys in file.wrong:
            continue
        for key, said in entry.faults(good["indexes"]):
            file.problem((*keys, key), said)
        for key, method, index, parts in _reads(entry):
            known = good["indexes"].get(index)
            if lacking := sorted(parts - {*(known.parts if known else parts if index else ())}):
                of = f"index {index} has no part" if index else "give an `index` with the part"
                file.problem((*keys, key), f"{method}: {of} {' and no part '.join(lacking)}")
    try:
        TopologicalSorter(needing).prepare()
    except CycleError as error:
        cycle = error.args[1]
        at = next(one for one in entries if (one.keys[0], one.entry.id) == cycle[0])
        at.file.problem(at.keys, f"cyclic steps: {' → '.join(name for _, name in reversed(cycle))}")


def links(entry: Any) -> Iterator[tuple[str, str, str, str]]:
    """The names of other entries in an entry: its key, the name, where that must be, the kind of a model ("" = any)."""
    if isinstance(entry, Condition):
        yield from (("of", name, "conditions", "") for name in entry.of)
        yield from (("against", name, "conditions", "") for name in filter(None, [entry.against]))
        yield from (("query_sets", name, "query_sets", "") for name in entry.query_sets if entry.query_sets != NOWHERE)
        yield from (("needs", name, "query_sets", "") for name in entry.needs)
        yield from (("model", name, "models", "query") for name in filter(None, [entry.model]))
        yield from (("retrieve", name, "models", "sparse") for name in models_in(entry.retrieve))
        for use in entry.rerank:
            yield from (("rerank", name, "models", OF_RERANKER.get(use.name, "")) for name in models_in(use))
    elif isinstance(entry, IndexEntry):
        for name, its in entry.parts.items():
            yield from (("parts", model, "models", _models_for(name)) for model in models_in(its))
    elif isinstance(entry, Model):
        yield from (("start", name, "models", "") for name in entry.starts)
        for key in ("first", "labels", "negatives"):
            yield from ((key, name, "models", "") for name in models_in(getattr(entry, key)))
    elif isinstance(entry, Work):
        named = (("of", "conditions"), ("query_set", "query_sets"))
        yield from ((key, str(entry.options[key]), group, "") for key, group in named if key in entry.options)
        for use in _teachers(entry):
            yield from (("beside", name, "models", OF_RERANKER.get(use.name, "")) for name in models_in(use))
        arms = entry.options.get("arms")
        labels = [
            arm.get("labels")
            for arm in (arms.values() if isinstance(arms, dict) else arms or ())
            if isinstance(arm, dict)
        ]
        crossed = [*models_in([one.get("cross-encoders") for one in labels if isinstance(one, dict)])]
        for key in MODEL_OPTIONS:
            for name in models_in(entry.options.get(key)):
                yield key, name, "models", "cross" if name in crossed else ""
    for key in ("index", "candidates"):
        yield from ((key, name, "indexes", "") for name in filter(None, [getattr(entry, key, "")]))


def _reads(entry: Any) -> Iterator[tuple[str, str, str, set[str]]]:
    """What an entry reads of indexes: its key, the method, the index, the parts."""
    if isinstance(entry, Condition):
        for key, kind, use in entry.uses():
            yield key, f"{kind} {use.name}", entry.index, parts_read(kind, use)
    elif isinstance(entry, Model):
        if entry.labels:
            yield "labels", f"labels {entry.labels.name}", entry.index, parts_of(check_labels(entry.labels).needs)
        index = entry.candidates or entry.index
        if index and not entry.reads_texts_alone:
            yield "first", f"retriever {entry.first.name}", index, parts_read("retriever", entry.first)
    elif isinstance(entry, Work) and "index" in entry.options and _teachers(entry):
        yield "beside", "beside", str(entry.options["index"]), beside_parts(entry.options)


def _teachers(work: Work) -> list[Any]:
    """What a recovery names; empty where that is no list of teachers, as `Work.faults` says."""
    try:
        beside_parts(work.options)
        return beside_uses(work.options)
    except InputError:
        return []


def _models_for(name: str) -> str:
    """The kinds of model whose encoder makes a part; "" = any."""
    encoder = part(name).encoder if name in names("part") else ""
    return " or ".join(kind for kind, one in methods("trained-model").items() if encoder and one.trains == encoder)


def _spec_faults(spec: Spec) -> Iterator[tuple[KeyPath, str]]:
    """What a spec must not say as a whole: measures, compared ones, the index of redundancy, expected values."""
    if not spec.measures and not all(entry.measures for entry in spec.query_sets):
        yield ("measures",), "measures: expected a list with at least one name"
    for name in spec.compare:
        if name not in spec.measures:
            yield ("compare",), f"compare {name}: not among the measures; {nearest(name, spec.measures)}"
    parts = {entry.id: entry.parts for entry in spec.indexes}
    if spec.redundancy and "dense" not in parts.get(spec.redundancy, ()):
        name = spec.redundancy
        wrong = f"index {name} has no part dense" if name in parts else f"{name}: no such index"
        yield ("redundancy",), f"redundancy: {wrong}; expected an index of the spec with vectors"
    sets = {entry.id: entry for entry in spec.query_sets}
    runs = [name for entry in spec.conditions for name in entry.run_names]

    def unknown(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[KeyPath, str]]:
        own = sets.get(keys[0]) if keys else None
        known = [[*sets], runs, own and [*own.protocols], own and [*spec.measures_of(own)]][len(keys)] or []
        for name, inner in (value or {}).items():
            if name not in known:
                hint = nearest(str(name), known) if known else "there are none"
                yield ("expected", *keys, name), f"expected {name}: no such {LEVELS[len(keys)]}; {hint}"
            elif len(keys) < 3:
                yield from unknown(inner, (*keys, str(name)))

    yield from unknown(spec.expected, ())
