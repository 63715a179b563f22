"""Recipes: specs whose systems need large indexes and trained models (schema 2), read strictly from YAML.

A recipe says on which topics and judgements its conditions are measured. Indexes, models and conditions that several
recipes have in common stand in `regressions/parts/NAME.yaml`, which a recipe names under `parts`.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError, RnnrerankerError, nearest
from rnnreranker.regress.strict import Document, Place
from rnnreranker.rerank.registry import PARAMS, make_params

NEEDS = ("disk_gb", "ram_gb", "gpu_hours", "download_gb", "hours", "agreement", "files")
RETRIEVE = ("bm25", "dense")


@dataclass(frozen=True)
class IndexSource:
    """Where an index comes from: a prebuilt one of Pyserini, or documents and an encoder."""

    id: str
    prebuilt: str = ""
    documents: str = ""
    encoder: str = ""  # for its queries, and for documents that are indexed here
    dtype: str = "float32"
    needs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A query encoder trained against the vectors of an index: candidates, labels, training."""

    id: str
    index: str
    candidates: str  # the index whose best documents are the candidates of the training queries
    labels: dict[str, Any]  # options of `python -m rnnreranker.labels`
    train: dict[str, Any]  # options of `python -m rnnreranker.train`
    topics: str
    qrels: str
    from_model: str = ""  # the model that the training starts at; "" = the encoder of the index
    needs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Condition:
    """One system: a retrieval, or a reranking of another condition's run."""

    id: str
    title: str
    retrieve: str = ""  # bm25, dense
    base: str = ""  # the condition that is reranked
    index: str = ""  # of the retrieval, and of the vectors of a reranking
    model: str = ""  # encodes the queries; "" = the encoder of the index
    rerank: str = ""
    preset: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    contexts: list[Any] = field(default_factory=list)  # a sweep: a run for each number of reranked candidates
    planned: str = ""  # what the toolkit lacks
    runs: list[Any] = field(default_factory=list)  # name patterns of published run files of this system
    figure: str = ""  # of the paper that the sweep draws
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    """A data set with its conditions."""

    schema: int
    name: str
    title: str
    about: str
    topics: str
    qrels: str
    measures: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    indexes: tuple[IndexSource, ...] = ()
    models: tuple[Model, ...] = ()
    parts: list[Any] = field(default_factory=list)  # names in `parts/`, whose entries come first
    protocols: tuple[str, ...] = ("trec",)
    hits: int = 1000
    runs: str = ""  # pattern of the folder or file names of published runs for these topics
    needs: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)  # condition: protocol: measure: value measured by us
    notes: str = ""
    source: str = ""

    def condition(self, name: str) -> Condition:
        """The condition of that id.

        Raises:
            InputError: no such condition (with the nearest ids).
        """
        return _named(self.conditions, name, "condition", self.name)

    def index(self, name: str) -> IndexSource:
        """The index of that id."""
        return _named(self.indexes, name, "index", self.name)

    def model(self, name: str) -> Model:
        """The model of that id."""
        return _named(self.models, name, "model", self.name)


def _named(entries: Any, name: str, kind: str, where: str) -> Any:
    for entry in entries:
        if entry.id == name:
            return entry
    raise InputError(f"{name}: no such {kind} in {where}; {nearest(name, [entry.id for entry in entries])}")


def is_recipe(path: Path) -> bool:
    """Whether the YAML file says `schema: 2`."""
    return path.is_file() and Document(path).content.get("schema") == 2


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file, with its parts.

    Raises:
        InputError: everything that is wrong with the file and its parts, each with file:line.
    """
    document = Document(path)
    values = document.fields(Recipe, document.content, (), skip=("source",)) or {}
    parts = []
    for number, name in enumerate(document.content.get("parts") or ()):
        file = path.parent / "parts" / f"{name}.yaml"
        if not file.is_file():
            known = [found.stem for found in (path.parent / "parts").glob("*.yaml")]
            document.problem(("parts", number), f"parts {name}: no such file; {nearest(str(name), known)}")
            continue
        part = Document(file)
        for key in set(part.content) - {"indexes", "models", "conditions"}:
            part.problem((key,), f"unknown key {key}; parts have indexes, models, conditions")
        parts.append(part)
    found: dict[str, list[tuple[Any, Document, Place]]] = {}
    for key, kind in (("indexes", IndexSource), ("models", Model), ("conditions", Condition)):
        found[key] = []
        for source in (*parts, document):
            if key not in source.content:
                continue
            for number, entry in enumerate(source.sequence(source.content, key)):
                fields = source.fields(kind, entry, (key, number))
                if fields is not None:
                    found[key].append((kind(**fields), source, (key, number)))
    _check(document, found)
    problems = [problem for source in (document, *parts) for problem in source.problems]
    if problems:
        raise InputError("; ".join(problems))
    lists = {key: tuple(entry for entry, _, _ in entries) for key, entries in found.items()}
    for key in ("measures", "protocols"):
        if key in values:
            lists[key] = tuple(values[key])
    return Recipe(**{**values, **lists, "source": str(path)})


def _check(document: Document, found: dict[str, list[tuple[Any, Document, Place]]]) -> None:
    """Names that must be known, ids that stand once, and no step that needs itself."""
    from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures

    try:
        parse_measures(document.content.get("measures") or [])
    except (RnnrerankerError, TypeError) as error:
        document.problem(("measures",), str(error))
    for protocol in document.content.get("protocols", ()):
        if protocol not in PROTOCOLS:
            document.problem(("protocols",), f"protocol {protocol}; {nearest(str(protocol), PROTOCOLS)}")
    if not found["conditions"]:
        document.problem(("conditions",), "conditions: none here and none in the parts")
    ids: dict[str, list[str]] = {}
    for key, entries in found.items():
        ids[key] = []
        for entry, source, place in entries:
            if entry.id in ids[key]:
                source.problem(place, f"id {entry.id} stands here a second time")
            ids[key].append(entry.id)
    needing: dict[str, list[str]] = {}
    places: dict[str, tuple[Document, Place]] = {}
    for key, links in _LINKS.items():
        for entry, source, place in found[key]:
            node = f"{key} {entry.id}"
            places[node] = (source, place)
            needing[node] = []
            for name, target in links:
                value = getattr(entry, name)
                if value and value not in ids[target]:
                    source.problem((*place, name), f"{name} {value}: not in {target}; {nearest(value, ids[target])}")
                elif value:
                    needing[node].append(f"{target} {value}")
            for need in getattr(entry, "needs", {}):
                if need not in NEEDS:
                    source.problem((*place, "needs", need), f"needs {need}; {nearest(str(need), NEEDS)}")
    for node, cycle in _cycles(needing).items():
        source, place = places[node]
        source.problem(place, f"cyclic steps: {' → '.join(cycle)}")
    for entry, source, place in found["conditions"]:
        _check_condition(entry, source, place)


_LINKS = {
    "conditions": (("base", "conditions"), ("index", "indexes"), ("model", "models")),
    "models": (("index", "indexes"), ("candidates", "indexes"), ("from_model", "models")),
    "indexes": (),
}


def _cycles(needing: dict[str, list[str]]) -> dict[str, list[str]]:
    """The first node of every cycle with the way around; a cycle stands once."""
    cycles: dict[str, list[str]] = {}
    told: set[str] = set()
    for start in needing:
        way = [start]
        while way and start not in told:
            following = [node for node in needing.get(way[-1], ()) if node in needing]
            ahead = next((node for node in following if node == start or node not in way), None)
            if ahead is None:
                break
            way.append(ahead)
            if ahead == start:
                cycles[start] = [node.split(" ", 1)[1] for node in way]
                told.update(way)
                break
    return cycles


def _check_condition(entry: Condition, source: Document, place: Place) -> None:
    ways = [key for key in ("retrieve", "base") if getattr(entry, key)]
    if len(ways) != 1 and not entry.planned:
        source.problem(place, f"{entry.id}: give either `retrieve`, or `base` with `rerank`, or `planned`")
    if entry.retrieve and entry.retrieve not in RETRIEVE:
        source.problem((*place, "retrieve"), f"retrieve {entry.retrieve}; {nearest(entry.retrieve, RETRIEVE)}")
    if ways and not entry.index:
        source.problem(place, f"{entry.id}: key index is missing")
    if entry.base and entry.rerank not in PARAMS:
        source.problem((*place, "rerank"), f"rerank {entry.rerank}; {nearest(entry.rerank, PARAMS)}")
    elif entry.base:
        try:
            make_params(entry.rerank, entry.params, entry.preset or None)
        except RnnrerankerError as error:
            source.problem((*place, "params"), str(error))


def planned(recipe: Recipe, condition: Condition) -> str:
    """What the toolkit lacks for a condition or one that it needs; empty when every step is there."""
    if condition.planned:
        return condition.planned
    if condition.model and importlib.util.find_spec("rnnreranker.train") is None:
        return "training of query encoders (python -m rnnreranker.train)"
    return planned(recipe, recipe.condition(condition.base)) if condition.base else ""
