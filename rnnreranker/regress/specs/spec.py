"""Specs: collections with their indexes, query sets, models, conditions and works; `Spec.faults` checks their links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rnnreranker.base.errors import InputError, nearest, problems_of
from rnnreranker.base.files.yaml_files import KeyPath
from rnnreranker.base.method import methods, names
from rnnreranker.index.request import USUAL
from rnnreranker.parts.base import part, parts_of
from rnnreranker.regress.specs.entries import (
    NOWHERE,
    WORKS,
    Condition,
    E,
    Entry,
    Faults,
    IndexEntry,
    Model,
    QuerySet,
    Work,
    entries,
)
from rnnreranker.regress.specs.methods import (
    MODEL_OPTIONS,
    Measures,
    Names,
    Needs,
    beside_parts,
    check_labels,
    check_work,
    models_in,
    parts_read,
)
from rnnreranker.train.request import NOTHING

OF_RERANKER = {"cross-encoder": "cross", "ensemble": "cross"}  # what models of the spec they take
LEVELS = ("query set", "condition", "protocol", "measure")  # of `expected`


class Spec(Entry):
    """What is measured on a collection."""

    in_another = False
    required = ("schema_", "name", "title", "about")
    schema_: Literal[3] = Field(3, alias="schema")
    name: str = ""
    title: str = ""
    about: str = ""
    query_sets: Annotated[tuple[QuerySet, ...], entries(QuerySet)] = ()
    measures: Measures = ()
    compare: Names = ()  # with their base (none = all); their values are kept by topic
    by_topic: bool = True  # whether they are
    tolerance: float = 0.0005  # absolute, on every measure
    hits: int = 1000
    redundancy: str = ""  # the index whose vectors say how alike the first documents of a run are; "" = nothing does
    notes: str = ""  # printed under the results
    parts: Names = ()  # names in `parts/`, whose entries come first
    indexes: Annotated[tuple[IndexEntry, ...], entries(IndexEntry)] = ()
    models: Annotated[tuple[Model, ...], entries(Model)] = ()
    conditions: Annotated[tuple[Condition, ...], entries(Condition)] = ()
    studies: Annotated[tuple[Work, ...], entries(Work)] = ()
    tunings: Annotated[tuple[Work, ...], entries(Work)] = ()
    recoveries: Annotated[tuple[Work, ...], entries(Work)] = ()
    diagnoses: Annotated[tuple[Work, ...], entries(Work)] = ()
    expected: dict[str, dict[str, dict[str, dict[str, float | None] | None] | None] | None] | None = None
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
        encoder: Any = next((entry.parts[USUAL]["encoder"] for entry in self.indexes if USUAL in entry.parts), "")
        while isinstance(encoder, dict):
            model = self.model(encoder["model"])
            encoder = model.start if model.start != NOTHING else "a model trained from nothing"
        return str(encoder)

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

    def measures_of(self, query_set: QuerySet) -> tuple[str, ...]:
        """The measures of a query set."""
        return query_set.measures or self.measures

    def conditions_of(self, query_set: QuerySet) -> tuple[Condition, ...]:
        """The conditions that are measured on a query set."""
        return tuple(entry for entry in self.conditions if entry.measured_on(query_set))

    def faults(self) -> Faults:
        yield from super().faults()
        groups = {key: {entry.id: entry for entry in getattr(self, key)} for key in KINDS}
        if not self.conditions and not self.works:
            yield ("conditions",), "conditions: none here and none in the parts"
        if not self.measures and not all(entry.measures for entry in self.query_sets):
            yield ("measures",), "measures: expected a list with at least one name"
        for name in self.compare:
            if name not in self.measures:
                yield ("compare",), f"compare {name}: not among the measures; {nearest(name, self.measures)}"
        if self.redundancy and USUAL not in getattr(groups["indexes"].get(self.redundancy), "parts", ()):
            said = f"redundancy: {self.redundancy}: no such index with a part {USUAL}"
            yield ("redundancy",), f"{said}; expected an index of the spec with vectors"
        needing: dict[KeyPath, list[KeyPath]] = {}
        for group, known in groups.items():
            for entry in known.values():
                keys = (group, entry.id)
                needing[keys] = [(of, name) for _, name, of, _ in links(entry)]
                yield from (((*keys, key), said) for key, said in self._wrong_links(entry, groups))
                if isinstance(entry, Work):
                    yield from ((keys, said) for said in problems_of(partial(check_work, entry.kind, entry.options)))
        try:
            TopologicalSorter(needing).prepare()
        except CycleError as error:
            cycle = error.args[1]
            yield cycle[0], f"cyclic steps: {' → '.join(name for _, name in reversed(cycle))}"
        runs = [name for entry in self.conditions for name in entry.run_names]
        known = {
            one.id: {run: {name: dict.fromkeys(self.measures_of(one)) for name in one.protocols} for run in runs}
            for one in self.query_sets
        }
        yield from _unknown(self.expected, known, ("expected",))

    def _wrong_links(self, entry: Any, groups: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
        """Key and message of each wrong link or missing part."""
        for key, name, group, kind in links(entry):
            known = groups[group]
            if name not in known:
                yield key, f"{key} {name}: not in {group}; {nearest(name, known)}"
            elif kind and (trained := known[name].train.name) not in kind.split(" or "):
                yield key, f"{key} {name}: is trained as {trained}; expected a model of `{kind}`"
        for key, method, name, parts in _reads(entry):
            index = groups["indexes"].get(name)
            if lacking := sorted(parts - {*(index.parts if index else parts if name else ())}):
                of = f"index {name} has no part" if name else "give an `index` with the part"
                yield key, f"{method}: {of} {' and no part '.join(lacking)}"
        index = groups["indexes"].get(entry.index) if isinstance(entry, Model) else None
        if index and USUAL not in index.parts and (entry.train.name == "query" or entry.filters):
            lack = "vectors to filter negatives by" if entry.filters else "encoder that could be trained"
            yield "index", f"index {entry.index}: has no {lack}"


KINDS: dict[str, type[Entry]] = {
    **{"indexes": IndexEntry, "models": Model, "conditions": Condition, "query_sets": QuerySet},
    **dict.fromkeys(WORKS, Work),
}


def _unknown(value: Any, known: Any, keys: KeyPath) -> Faults:
    """Unknown names in `expected`; known: those of each level."""
    for name, inner in (value or {}).items():
        if name not in known:
            yield (*keys, name), f"expected {name}: no such {LEVELS[len(keys) - 1]}; {nearest(str(name), known)}"
        elif isinstance(inner, dict):
            yield from _unknown(inner, known[name], (*keys, name))


def links(entry: Any) -> Iterator[tuple[str, str, str, str]]:
    """The names of other entries in an entry: key, name, group, kind of a model ("" = any)."""
    said = entry.options if isinstance(entry, Work) else dict(entry)
    named = {"of": "conditions", "query_sets": "query_sets", "query_set": "query_sets"}
    if isinstance(entry, Condition):
        named |= {"against": "conditions", "needs": "query_sets", "model": "models"}
    if not isinstance(entry, Work):
        named |= {"index": "indexes", "candidates": "indexes"}
    for key, group in named.items():
        value = said.get(key) or ()
        for name in [value] if isinstance(value, str) else value:
            if (key, name) != ("query_sets", *NOWHERE):
                yield key, str(name), group, "query" if key == "model" else ""
    if isinstance(entry, Model):
        yield from (("start", name, "models", "") for name in entry.starts)
    arms = said.get("arms") or ()
    labels = [arm.get("labels") for arm in (arms.values() if isinstance(arms, dict) else arms) if isinstance(arm, dict)]
    crossed = [*models_in([one.get("cross-encoders") for one in labels if isinstance(one, dict)])]
    for key in ("retrieve", "first", "labels", "negatives", *MODEL_OPTIONS):
        for name in models_in(said.get(key)):
            yield key, name, "models", "sparse" if key == "retrieve" else "cross" if name in crossed else ""
    for key, uses in (("rerank", said.get("rerank", ())), ("beside", entry.teachers() if "beside" in said else ())):
        for use in uses:
            yield from ((key, name, "models", OF_RERANKER.get(use.name, "")) for name in models_in(use))
    if isinstance(entry, IndexEntry):
        for kind, its in entry.parts.items():
            yield from (("parts", name, "models", _models_for(kind)) for name in models_in(its))


def _models_for(name: str) -> str:
    """The kinds of model whose encoder makes a part; "" = any."""
    encoder = part(name).encoder if name in names("part") else ""
    return " or ".join(kind for kind, one in methods("trained-model").items() if encoder and one.trains == encoder)


def _reads(entry: Any) -> Iterator[tuple[str, str, str, set[str]]]:
    """The parts of indexes that an entry reads: key, method, index, parts."""
    if isinstance(entry, Condition):
        for key, kind, use in entry.uses():
            yield key, f"{kind} {use.name}", entry.index, parts_read(kind, use)
    elif isinstance(entry, Model):
        if entry.labels:
            yield "labels", f"labels {entry.labels.name}", entry.index, parts_of(check_labels(entry.labels).needs)
        index = entry.candidates or entry.index
        if index and not entry.reads_texts_alone:
            yield "first", f"retriever {entry.first.name}", index, parts_read("retriever", entry.first)
    elif isinstance(entry, Work) and "index" in entry.options and entry.teachers():
        yield "beside", "beside", str(entry.options["index"]), beside_parts(entry.options)


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
