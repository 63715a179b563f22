"""Recipes: specs whose systems need large indexes and trained models (schema 2), read strictly from YAML.

A recipe says on which topics and judgements its conditions are measured. Indexes, models and conditions that several
recipes have in common stand in `regressions/parts/NAME.yaml`, which a recipe names under `parts`.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError, nearest
from rnnreranker.regress.strict import Document, Place


@dataclass(frozen=True)
class IndexSource:
    """Where an index comes from: a prebuilt one of Pyserini, or documents and an encoder."""

    id: str
    prebuilt: str = ""
    documents: str = ""
    encoder: str = ""  # for its queries, and for documents that are indexed here
    pooling: str = ""  # mean or cls, where the files of the encoder do not say
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

    @property
    def run_names(self) -> list[str]:
        """The names of its runs: its id, or one for each context of a sweep."""
        return [f"{self.id}-{context}" for context in self.contexts] or [self.id]


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


def read_recipe(path: Path, data: bool = False) -> Recipe:
    """The recipe in a file, with its parts.

    Args:
        path: of the YAML file.
        data: look up the names of data sets too (which loads ir_datasets).

    Raises:
        InputError: everything that is wrong with the file and its parts, each with file:line.
    """
    from rnnreranker.regress.recipe_check import check

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
    if values.get("name") not in (None, path.stem):
        document.problem(("name",), f"name {values['name']}: this file is {path.name}; the two must be the same")
    check(document, found, data)
    problems = [problem for source in (document, *parts) for problem in source.in_order()]
    if problems:
        raise InputError("; ".join(problems))
    lists = {key: tuple(entry for entry, _, _ in entries) for key, entries in found.items()}
    for key in ("measures", "protocols"):
        if key in values:
            lists[key] = tuple(values[key])
    return Recipe(**{**values, **lists, "source": str(path)})


def planned(recipe: Recipe, condition: Condition) -> str:
    """What the toolkit lacks for a condition or one that it needs; empty when every step is there."""
    if condition.planned:
        return condition.planned
    if condition.model and importlib.util.find_spec("rnnreranker.train") is None:
        return "training of query encoders (python -m rnnreranker.train)"
    return planned(recipe, recipe.condition(condition.base)) if condition.base else ""


def recipes(folder: Path) -> dict[str, Recipe]:
    """All recipes of a folder by name."""
    return {path.stem: read_recipe(path) for path in sorted(folder.glob("*.yaml")) if is_recipe(path)}
