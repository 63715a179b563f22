"""Specs: what a regression runs on and under which conditions, read strictly from YAML."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rnnreranker.errors import InputError, RnnrerankerError, nearest
from rnnreranker.files import read_text
from rnnreranker.rerank.registry import PARAMS, make_params
from rnnreranker.search.retrieve import RETRIEVERS

Place = tuple[str | int, ...]  # keys and positions from the root of a YAML document


@dataclass(frozen=True)
class QuerySet:
    """Topics with their judgements."""

    id: str
    topics: str
    qrels: str
    protocol: str = "trec"


@dataclass(frozen=True)
class Condition:
    """One row of the table: a retriever, or a reranking of another condition's run."""

    id: str
    title: str
    retrieve: str | None = None  # dense, bm25, hybrid
    base: str | None = None  # the id of the condition that is reranked
    rerank: str | None = None  # a name of rnnreranker.rerank, such as rnn
    preset: str | None = None  # published parameters
    params: dict[str, Any] = field(default_factory=dict)  # fields of that reranker's parameters, before the preset's


@dataclass(frozen=True)
class Spec:
    """A regression: documents, query sets, measures and conditions."""

    schema: int
    name: str
    title: str
    about: str
    documents: str
    count: tuple[int, int]  # fewest and most documents; another count is another collection
    query_sets: tuple[QuerySet, ...]
    measures: tuple[str, ...]
    conditions: tuple[Condition, ...]
    compare: tuple[str, ...] = ()  # the measures in which reranked runs are compared with their base; none = all
    encoder: str = "minilm"
    hits: int = 1000
    tolerance: float = 0.0005  # absolute, on every measure
    notes: str = ""  # printed under the results
    source: str = ""  # the file it was read from

    def condition(self, name: str) -> Condition:
        """The condition of that id.

        Raises:
            InputError: no such condition (with the nearest ids).
        """
        for condition in self.conditions:
            if condition.id == name:
                return condition
        known = [condition.id for condition in self.conditions]
        raise InputError(f"{name}: no such condition in {self.name}; {nearest(name, known)}")


def specs_folder(named: str | None = None) -> Path:
    """The folder of specs: the one named, else the checkout's `regressions/`, else the copy inside the package.

    Raises:
        InputError: the named folder does not exist.
    """
    if named is not None:
        folder = Path(named)
        if not folder.is_dir():
            raise InputError(f"{named}: no such folder of specs; leave --specs out to use those of the package")
        return folder
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "regressions"
    return checkout if checkout.is_dir() else package / "regressions"


def spec_names(folder: Path) -> list[str]:
    """The names of all specs in a folder, in order."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def read_spec(name: str, folder: Path) -> Spec:
    """The spec of a name, or of a YAML file's path.

    Raises:
        InputError: no such spec (with the nearest names), or everything that is wrong with it, each with file:line.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"{name}: no such spec in {folder}; {nearest(name, spec_names(folder))}")
    text = read_text(path, "spec")
    try:
        content = yaml.safe_load(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InputError(f"{where}: not YAML ({getattr(error, 'problem', None) or 'unreadable'})") from None
    if not isinstance(content, dict) or root is None:
        raise InputError(f"{path}:1: expected a mapping with schema, name, documents, …")
    checker = _Checker(str(path), root)
    spec = checker.spec(content)
    if checker.problems:
        raise InputError("; ".join(checker.problems))
    return spec


class _Checker:
    """Turns parsed YAML into a Spec and gathers every problem with its line."""

    def __init__(self, source: str, root: yaml.Node) -> None:
        self.source = source
        self.problems: list[str] = []
        self.lines: dict[Place, int] = {}
        self._note_lines(root, ())

    def _note_lines(self, node: yaml.Node, path: Place) -> None:
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._note_lines(value, (*path, key.value))
                self.lines[(*path, key.value)] = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode):
            for position, value in enumerate(node.value):
                self._note_lines(value, (*path, position))

    def problem(self, path: Place, text: str) -> None:
        while path not in self.lines:
            path = path[:-1]
        self.problems.append(f"{self.source}:{self.lines[path]}: {text}")

    def fields(self, kind: type, content: Any, path: Place, skip: tuple[str, ...] = ()) -> dict[str, Any]:
        """The known keys of a mapping, after reporting unknown, missing and mistyped ones."""
        if not isinstance(content, dict):
            self.problem(path, f"expected a mapping, got {type(content).__name__}")
            content = {}
        declared = {entry.name: entry for entry in dataclasses.fields(kind) if entry.name not in skip}
        for key in content:
            if key not in declared:
                self.problem((*path, key), f"unknown key {key}; {nearest(str(key), declared)}")
        values = {}
        for key, entry in declared.items():
            required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
            if key not in content:
                if required:
                    self.problem(path, f"key {key} is missing")
                    values[key] = _BLANK.get(str(entry.type), "")
                continue
            values[key] = content[key]
            wanted = _TYPES.get(str(entry.type))
            if wanted is not None and (not isinstance(content[key], wanted) or isinstance(content[key], bool)):
                self.problem((*path, key), f"{key}: {content[key]!r}; expected {entry.type}")
                values[key] = _BLANK.get(str(entry.type), "")
        return values

    def spec(self, content: dict[str, Any]) -> Spec:
        values = self.fields(Spec, content, (), skip=("source",))
        if values["schema"] != 1:
            self.problem(("schema",), f"schema {values['schema']!r}; this version reads schema 1")
        values["count"] = self.count(content.get("count"))
        values["query_sets"] = tuple(
            QuerySet(**self.fields(QuerySet, entry, ("query_sets", position)))
            for position, entry in enumerate(self.sequence(content, "query_sets"))
        )
        values["conditions"] = tuple(
            Condition(**self.fields(Condition, entry, ("conditions", position)))
            for position, entry in enumerate(self.sequence(content, "conditions"))
        )
        values["measures"] = tuple(map(str, self.sequence(content, "measures")))
        compared = self.sequence(content, "compare") if "compare" in content else content.get("measures", [])
        values["compare"] = tuple(map(str, compared))
        spec = Spec(**values, source=self.source)
        self.references(spec)
        return spec

    def sequence(self, content: dict[str, Any], key: str) -> list[Any]:
        value = content.get(key)
        if not isinstance(value, list) or not value:
            self.problem((key,), f"{key}: expected a list with at least one entry")
            return []
        return value

    def count(self, value: Any) -> tuple[int, int]:
        bounds = value if isinstance(value, list) else [value, value]
        if len(bounds) != 2 or not all(isinstance(bound, int) and bound > 0 for bound in bounds):
            self.problem(("count",), f"count: {value!r}; expected a number of documents, or [fewest, most]")
            return (0, 0)
        return (bounds[0], bounds[1])

    def references(self, spec: Spec) -> None:
        """Names that must be known, and ids that must be there once and before they are used."""
        from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures

        try:
            parse_measures(" ".join(spec.measures))
        except RnnrerankerError as error:
            self.problem(("measures",), str(error))
        for name in set(spec.compare) - set(spec.measures):
            self.problem(("compare",), f"compare {name}: not among the measures; {nearest(name, spec.measures)}")
        for key, entries in (("query_sets", spec.query_sets), ("conditions", spec.conditions)):
            seen: set[str] = set()
            for position, name in enumerate(entry.id for entry in entries):
                if name in seen:
                    self.problem((key, position), f"id {name} stands here a second time")
                seen.add(name)
        for position, query_set in enumerate(spec.query_sets):
            if query_set.protocol not in PROTOCOLS:
                hint = nearest(query_set.protocol, PROTOCOLS)
                self.problem(("query_sets", position, "protocol"), f"protocol {query_set.protocol}; {hint}")
        earlier: list[str] = []
        for position, condition in enumerate(spec.conditions):
            self.condition(condition, ("conditions", position), earlier)
            earlier.append(condition.id)

    def condition(self, condition: Condition, path: Place, earlier: list[str]) -> None:
        if (condition.retrieve is None) == (condition.base is None):
            self.problem(path, f"{condition.id}: give either `retrieve` or `base` with `rerank`")
        if condition.retrieve is not None and condition.retrieve not in RETRIEVERS:
            hint = nearest(condition.retrieve, RETRIEVERS)
            self.problem((*path, "retrieve"), f"retrieve {condition.retrieve}; {hint}")
        if condition.base is not None and condition.base not in earlier:
            hint = nearest(condition.base, earlier) if earlier else "no condition stands before it"
            self.problem((*path, "base"), f"base {condition.base}: no such condition above; {hint}")
        if condition.base is not None and condition.rerank not in PARAMS:
            hint = nearest(str(condition.rerank), PARAMS)
            self.problem((*path, "rerank"), f"rerank {condition.rerank}; {hint}")
        elif condition.base is not None:
            try:
                make_params(str(condition.rerank), condition.params, condition.preset)
            except RnnrerankerError as error:
                self.problem((*path, "params"), str(error))
        elif condition.params or condition.preset:
            self.problem(path, f"{condition.id}: `params` and `preset` are for a reranking, with `base` and `rerank`")


_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "str | None": (str, type(None)),
    "dict[str, Any]": dict,
}
_BLANK: dict[str, Any] = {"int": 0, "float": 0.0, "dict[str, Any]": {}, "str | None": None}
