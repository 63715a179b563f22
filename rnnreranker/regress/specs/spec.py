"""Specs: collections with their indexes, query sets, models, conditions and works; `link_faults` checks their links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import methods, names
from rnnreranker.base.strict import KeyPath
from rnnreranker.index.request import USUAL
from rnnreranker.parts.base import part, parts_of
from rnnreranker.regress.specs.entries import (
    NOWHERE,
    WORKS,
    Condition,
    Entry,
    Faults,
    IndexEntry,
    Model,
    QuerySet,
    Work,
)
from rnnreranker.regress.specs.methods import Measures, Names, Needs, choose_labels, models_in, parts_read, teacher
from rnnreranker.train.models import NOTHING

E = TypeVar("E", bound=Entry)
KINDS: dict[str, type[Entry]] = {
    **{"indexes": IndexEntry, "models": Model, "conditions": Condition, "query_sets": QuerySet},
    **dict.fromkeys(WORKS, Work),
}
LEVELS = ("query set", "condition", "protocol", "measure")  # of `expected`
MODELS_FOR = {"model": "query", "retrieve": "sparse", "rerank": "cross"}  # key of a condition → kind of model


class Spec(Entry):
    """What is measured on a collection."""

    schema_: Literal[3] = Field(alias="schema")
    name: str
    title: str
    about: str
    query_sets: tuple[QuerySet, ...] = ()
    measures: Measures = Field([])
    compare: Names = Field([])  # with their base (none = all); their values are kept by topic
    by_topic: bool = True  # whether they are
    tolerance: float = 0.0005  # absolute, on every measure
    hits: int = 1000
    redundancy: str = ""  # the index whose vectors say how alike the first documents of a run are; "" = nothing does
    notes: str = ""  # printed under the results
    parts: Names = Field([])  # names in `parts/`, whose entries come first
    indexes: tuple[IndexEntry, ...] = ()
    models: tuple[Model, ...] = ()
    conditions: tuple[Condition, ...] = ()
    studies: tuple[Work, ...] = ()
    tunings: tuple[Work, ...] = ()
    recoveries: tuple[Work, ...] = ()
    diagnoses: tuple[Work, ...] = ()
    expected: dict[str, dict[str, dict[str, dict[str, float | None]]]] = Field({})
    needs: Needs = Field({})

    @property
    def works(self) -> tuple[Work, ...]:
        """All studies, tunings, recoveries and diagnoses."""
        return (*self.studies, *self.tunings, *self.recoveries, *self.diagnoses)

    @property
    def published(self) -> bool:
        """Whether one of its conditions is a published run."""
        return any(condition.published for condition in self.conditions)

    @property
    def dense_encoder(self) -> str:
        """The encoder of its first index with vectors, or the start of a trained one, or ""."""
        encoder: Any = next(
            ((entry.parts[USUAL] or {})["encoder"] for entry in self.indexes if USUAL in entry.parts), ""
        )
        while named := models_in(encoder):
            encoder = self.model(named[0]).start
        return str(encoder) if encoder != NOTHING else "a model trained from nothing"

    def _named(self, group: Sequence[E], name: str, kind: str) -> E:
        for entry in group:
            if entry.id == name:
                return entry
        raise InputError(f"{name}: no such {kind} in {self.name}; {nearest(name, [entry.id for entry in group])}")

    def condition(self, name: str) -> Condition:
        """The condition of an id; InputError: unknown."""
        return self._named(self.conditions, name, "condition")

    def index(self, name: str) -> IndexEntry:
        return self._named(self.indexes, name, "index")

    def model(self, name: str) -> Model:
        return self._named(self.models, name, "model")

    def query_set(self, name: str) -> QuerySet:
        return self._named(self.query_sets, name, "query set")

    def measures_of(self, query_set: QuerySet) -> Sequence[str]:
        """The measures of a query set."""
        return query_set.measures or self.measures

    def conditions_of(self, query_set: QuerySet) -> tuple[Condition, ...]:
        """The conditions that are measured on a query set."""
        return tuple(entry for entry in self.conditions if entry.measured_on(query_set))

    def faults(self) -> Faults:
        if not self.conditions and not self.works:
            yield ("conditions",), "conditions: none here and none in the parts"
        if not self.measures and not all(entry.measures for entry in self.query_sets):
            yield ("measures",), "measures: expected a list with at least one name"
        for name in {*self.compare} - {*self.measures}:
            yield ("compare",), f"compare {name}: not among the measures; {nearest(name, self.measures)}"
        if self.redundancy and not any(self.redundancy == one.id and USUAL in one.parts for one in self.indexes):
            said = f"redundancy: {self.redundancy}: no such index with a part {USUAL}"
            yield ("redundancy",), f"{said}; expected an index of the spec with vectors"
        runs = [name for entry in self.conditions for name in entry.run_names]
        known = {
            one.id: {run: {name: dict.fromkeys(self.measures_of(one)) for name in one.protocols} for run in runs}
            for one in self.query_sets
        }
        yield from _unknown(self.expected, known, ("expected",))


def _unknown(value: Mapping[str, Any], known: Mapping[str, Any], keys: KeyPath) -> Faults:
    """Unknown names in `expected`; known: those of each level."""
    for name, inner in value.items():
        if name not in known:
            yield (*keys, name), f"expected {name}: no such {LEVELS[len(keys) - 1]}; {nearest(name, known)}"
        elif isinstance(inner, Mapping):
            yield from _unknown(inner, known[name], (*keys, name))


def link_faults(groups: Mapping[str, Mapping[str, Any]], ids: Mapping[str, Collection[str]]) -> Faults:
    """Wrong links between entries, missing parts of indexes, and cycles.

    groups: group → id → entry, without those that have mistakes of their own; ids: group → all ids.
    """
    needing: dict[KeyPath, list[KeyPath]] = {}
    for group, entries in groups.items():
        for entry in entries.values():
            needing[group, entry.id] = [(of, name) for _, name, of, _ in links(entry)]
            for key, name, of, kind in links(entry):
                model = groups["models"].get(name) if of == "models" and kind else None
                if name not in ids[of]:
                    yield (group, entry.id, key), f"{key} {name}: not in {of}; {nearest(name, ids[of])}"
                elif model and model.train.name not in kind.split(" or "):
                    said = f"is trained as {model.train.name}; expected a model of `{kind}`"
                    yield (group, entry.id, key), f"{key} {name}: {said}"
            for key, method, name, parts in _reads(entry):
                index = groups["indexes"].get(name)
                if lacking := sorted(parts - {*(index.parts if index else parts if name else ())}):
                    of = f"index {name} has no part" if name else "give an `index` with the part"
                    yield (group, entry.id, key), f"{method}: {of} {' and no part '.join(lacking)}"
    try:
        TopologicalSorter(needing).prepare()
    except CycleError as error:
        cycle = error.args[1]
        yield cycle[0], f"cyclic steps: {' → '.join(name for _, name in reversed(cycle))}"


def links(entry: Any) -> Iterator[tuple[str, str, str, str]]:
    """The names of other entries in an entry: key, name, group, kind of a model ("" = any)."""
    given = dict(entry) | (entry.model_extra or {})
    of_condition = MODELS_FOR if isinstance(entry, Condition) else {}
    for key, group in entry.named.items():
        value = given.get(key) or ()
        for name in [value] if isinstance(value, str) else value:
            if (key, name) != ("query_sets", NOWHERE):
                yield key, str(name), group, of_condition.get(key, "")
    for key, value in given.items():
        of_part = isinstance(entry, IndexEntry) and key == "parts"
        for part_name, its in value.items() if of_part else [("", list(value) if isinstance(value, tuple) else value)]:
            kind = _models_for(part_name) if of_part else of_condition.get(key, "")
            yield from ((key, name, "models", kind) for name in models_in(its))


def _models_for(name: str) -> str:
    """The kinds of model whose encoder makes a part; "" = any."""
    encoder = part(name).encoder if name in names("part") else ""
    return " or ".join(kind for kind, one in methods("trained-model").items() if encoder and one.trains == encoder)


def _reads(entry: Any) -> Iterator[tuple[str, str, str, set[str]]]:
    """The parts of indexes that an entry reads: key, method, index, parts."""
    if isinstance(entry, Condition):
        for key, kind, use in entry.uses():
            yield key, f"{kind} {use.name}", entry.index, parts_read(kind, use)
    elif isinstance(entry, Model) and not entry.reads_texts_alone:
        if entry.labels:
            yield "labels", f"labels {entry.labels.name}", entry.index, parts_of(choose_labels(entry.labels).needs)
        if entry.filters:
            yield "negatives", f"filter {entry.filters}", entry.index, {USUAL}
        if entry.train.name == "query":
            yield "train", "model query", entry.index, {USUAL}
        if index := entry.candidates or entry.index:
            yield "first", f"retriever {entry.first.name}", index, parts_read("retriever", entry.first)
    elif isinstance(entry, Work) and "index" in entry.options:
        for use in entry.beside:
            yield "beside", f"teacher {use.name}", str(entry.options["index"]), parts_of(teacher(use).chosen.needs)


def planned(spec: Spec, condition: Condition) -> str:
    """What the toolkit lacks for a condition or one that it needs, or ""."""
    lacking = (planned(spec, spec.condition(name)) for name in condition.of)
    return condition.planned or next(filter(None, lacking), "")


def specs_folder(named: str | None = None) -> Path:
    """The named folder of specs, else the checkout's `regressions/`, else the package's.

    Raises:
        InputError: the named folder does not exist.
    """
    if named is not None:
        folder = Path(named)
        if not folder.is_dir():
            raise InputError(f"{named}: no such folder of specs; leave --specs out to use those of the package")
        return folder
    package = Path(__file__).resolve().parents[2]
    checkout = package.parent / "regressions"
    return checkout if checkout.is_dir() else package / "regressions"


def spec_names(folder: Path) -> list[str]:
    """The sorted names of all specs in a folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))
