"""Specs: what a regression runs on and under which conditions, read strictly from YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError, RnnrerankerError, nearest
from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures
from rnnreranker.method import make_params, names
from rnnreranker.regress.strict import Document, Place
from rnnreranker.search.retrieve import RETRIEVERS


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
    return _Checker(path).spec()


class _Checker(Document):
    """Turns parsed YAML into a Spec and gathers every problem with its line."""

    def entries(self, kind: Any, key: str) -> list[tuple[Place, Any]]:
        """The good entries of a list with their places; ids stand once."""
        found: list[tuple[Place, Any]] = []
        for number, content in enumerate(self.sequence(self.content, key)):
            values = self.fields(kind, content, (key, number))
            if values is None:
                continue
            if any(entry.id == values["id"] for _, entry in found):
                self.problem((key, number), f"id {values['id']} stands here a second time")
            found.append(((key, number), kind(**values)))
        return found

    def spec(self) -> Spec:
        """The spec.

        Raises:
            InputError: all problems.
        """
        content = self.content
        if content.get("schema") != 1:
            self.problem(("schema",), f"schema {content.get('schema')!r}; this version reads schema 1")
        values = self.fields(Spec, content, (), skip=("source",)) or {}
        values["count"] = self.count(content.get("count"))
        query_sets = self.entries(QuerySet, "query_sets")
        conditions = self.entries(Condition, "conditions")
        values["query_sets"] = tuple(entry for _, entry in query_sets)
        values["conditions"] = tuple(entry for _, entry in conditions)
        values["measures"] = tuple(map(str, self.sequence(content, "measures")))
        compared = self.sequence(content, "compare") if "compare" in content else content.get("measures", ())
        values["compare"] = tuple(map(str, compared))
        self.known_measures(values["measures"], values["compare"])
        for place, query_set in query_sets:
            if query_set.protocol not in PROTOCOLS:
                self.problem(
                    (*place, "protocol"), f"protocol {query_set.protocol}; {nearest(query_set.protocol, PROTOCOLS)}"
                )
        earlier: list[str] = []
        for place, condition in conditions:
            self.condition(condition, place, earlier)
            earlier.append(condition.id)
        self.finish()
        return Spec(**values, source=self.source)

    def count(self, value: Any) -> tuple[int, int]:
        bounds = value if isinstance(value, list) else [value, value]
        if len(bounds) != 2 or not all(isinstance(bound, int) and bound > 0 for bound in bounds):
            self.problem(("count",), f"count: {value!r}; expected a number of documents, or [fewest, most]")
            return (0, 0)
        return (bounds[0], bounds[1])

    def known_measures(self, measures: tuple[str, ...], compare: tuple[str, ...]) -> None:
        """Notes measures that ir-measures does not know, and compared ones that are not measured."""
        try:
            parse_measures(measures)
        except RnnrerankerError as error:
            self.problem(("measures",), str(error))
        for name in set(compare) - set(measures):
            self.problem(("compare",), f"compare {name}: not among the measures; {nearest(name, measures)}")

    def condition(self, condition: Condition, path: Place, earlier: list[str]) -> None:
        if (condition.retrieve is None) == (condition.base is None):
            self.problem(path, f"{condition.id}: give either `retrieve` or `base` with `rerank`")
        if condition.retrieve is not None and condition.retrieve not in RETRIEVERS:
            hint = nearest(condition.retrieve, RETRIEVERS)
            self.problem((*path, "retrieve"), f"retrieve {condition.retrieve}; {hint}")
        if condition.base is not None and condition.base not in earlier:
            hint = nearest(condition.base, earlier) if earlier else "no condition stands before it"
            self.problem((*path, "base"), f"base {condition.base}: no such condition above; {hint}")
        if condition.base is not None and condition.rerank not in names("reranker"):
            hint = nearest(str(condition.rerank), names("reranker"))
            self.problem((*path, "rerank"), f"rerank {condition.rerank}; {hint}")
        elif condition.base is not None:
            try:
                make_params("reranker", str(condition.rerank), condition.params, condition.preset)
            except RnnrerankerError as error:
                self.problem((*path, "params"), str(error))
        elif condition.params or condition.preset:
            self.problem(path, f"{condition.id}: `params` and `preset` are for a reranking, with `base` and `rerank`")
