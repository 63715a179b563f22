"""What a recipe must not say: unknown names, ids that stand twice, parameters that no command takes, cyclic steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnnreranker.errors import InputError, RnnrerankerError, UnavailableError, nearest
from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures
from rnnreranker.method import make_params, names
from rnnreranker.regress.recipe import Condition, IndexSource, Model
from rnnreranker.regress.recipe_options import check_labels, check_training
from rnnreranker.regress.strict import Document, Place

Found = dict[str, list[tuple[Any, Document, Place]]]  # key of the recipe → entry, the file it stands in, where

SIZES = ("disk_gb", "ram_gb", "gpu_hours", "download_gb", "hours")
TEXTS = ("agreement", "files")
RETRIEVE = {"bm25": ("k1", "b"), "dense": ()}  # way of retrieving: its parameters
LINKS = {
    "conditions": (("base", "conditions"), ("index", "indexes"), ("model", "models")),
    "models": (("index", "indexes"), ("candidates", "indexes"), ("from_model", "models")),
    "indexes": (),
}


def check(document: Document, found: Found, data: bool) -> None:
    """Note every problem of a recipe at its place.

    Args:
        document: the recipe's own file.
        found: indexes, models and conditions, of the parts and its own.
        data: whether the names of data sets are looked up.
    """
    _check_measures(document)
    if not found["conditions"]:
        document.problem(("conditions",), "conditions: none here and none in the parts")
    _check_needs(document, (), document.content.get("needs", {}))
    ids = _check_ids(found)
    _check_links(found, ids)
    _check_expected(document, found)
    indexes = {entry.id: entry for entry, _, _ in found["indexes"]}
    for entry, source, place in found["indexes"]:
        _check_needs(source, place, entry.needs)
        _check_index(entry, source, place)
    for entry, source, place in found["models"]:
        _check_needs(source, place, entry.needs)
        _check_model(entry, source, place, indexes)
    for entry, source, place in found["conditions"]:
        _check_condition(entry, source, place, indexes)
    if data:
        _check_data(document, found)


def _check_measures(document: Document) -> None:
    for key, look in (("measures", parse_measures), ("protocols", _known_protocols)):
        value = document.content.get(key, ["trec"] if key == "protocols" else [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value) or not value:
            document.problem((key,), f"{key}: expected a list with at least one name")
            continue
        _note(document, (key,), look, value)


def _known_protocols(names: list[str]) -> None:
    wrong = [f"protocol {name}; {nearest(name, PROTOCOLS)}" for name in names if name not in PROTOCOLS]
    if wrong:
        raise InputError("; ".join(wrong))


def _note(document: Document, place: Place, call: Callable[..., Any], *arguments: Any) -> None:
    """Note the error that a call raises, if any."""
    try:
        call(*arguments)
    except RnnrerankerError as error:
        document.problem(place, str(error))


def _check_needs(source: Document, place: Place, needs: dict[str, Any]) -> None:
    for key, value in needs.items() if isinstance(needs, dict) else ():
        where = (*place, "needs", key)
        if key not in (*SIZES, *TEXTS):
            source.problem(where, f"needs {key}; {nearest(str(key), (*SIZES, *TEXTS))}")
        elif key in SIZES and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            source.problem(where, f"needs {key}: {value!r}; expected a number >= 0")
        elif key in TEXTS and not isinstance(value, str):
            source.problem(where, f"needs {key}: {value!r}; expected a text")


def _check_ids(found: Found) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for key, entries in found.items():
        ids[key] = []
        for entry, source, place in entries:
            if entry.id in ids[key]:
                source.problem((*place, "id"), f"id {entry.id} stands a second time among the {key}")
            ids[key].append(entry.id)
    return ids


def _check_links(found: Found, ids: dict[str, list[str]]) -> None:
    """Names of other entries, and no entry that needs itself."""
    needing: dict[str, list[str]] = {}
    places: dict[str, tuple[Document, Place]] = {}
    for key, links in LINKS.items():
        for entry, source, place in found[key]:
            node = f"{key} {entry.id}"
            places.setdefault(node, (source, place))
            needing.setdefault(node, [])
            for name, target in links:
                value = getattr(entry, name)
                if value and value not in ids[target]:
                    hint = nearest(value, ids[target]) if ids[target] else "there are none"
                    source.problem((*place, name), f"{name} {value}: not in {target}; {hint}")
                elif value:
                    needing[node].append(f"{target} {value}")
    for cycle in cycles(needing):
        source, place = places[cycle[0]]
        source.problem(place, f"cyclic steps: {' → '.join(node.split(' ', 1)[1] for node in cycle)}")


def cycles(needing: dict[str, list[str]]) -> list[list[str]]:
    """The cycles that a walk through a graph meets, each from a node back to it; empty when there are none.

    >>> cycles({"a": ["b"], "b": ["c", "a"], "c": []})
    [['a', 'b', 'a']]
    """
    found: list[list[str]] = []
    done: set[str] = set()
    way: list[str] = []

    def visit(node: str) -> None:
        if node in way:
            found.append([*way[way.index(node) :], node])
        elif node not in done:
            way.append(node)
            for following in needing.get(node, ()):
                visit(following)
            done.add(way.pop())

    for node in needing:
        visit(node)
    return found


def _check_expected(document: Document, found: Found) -> None:
    """`expected` has the names of runs, protocols and measures of this recipe, and numbers or null."""
    conditions = [entry for entry, _, _ in found["conditions"]]
    runs = [name for entry in conditions for name in entry.run_names]
    known = (runs, document.content.get("protocols", ["trec"]), document.content.get("measures", []))

    def visit(value: Any, depth: int, place: Place) -> None:
        if depth == len(known):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                document.problem(
                    place, f"{place[-1]}: {value!r}; expected a number, or null where none is measured yet"
                )
        elif value is not None and not isinstance(value, dict):
            document.problem(place, f"{place[-1]}: {value!r}; expected condition: protocol: measure: value")
        else:
            for name, inner in (value or {}).items():
                if name not in known[depth]:
                    kind = ("condition", "protocol", "measure")[depth]
                    document.problem(
                        (*place, name), f"expected {name}: no such {kind}; {nearest(str(name), known[depth])}"
                    )
                else:
                    visit(inner, depth + 1, (*place, name))

    visit(document.content.get("expected"), 0, ("expected",))


def _check_index(entry: IndexSource, source: Document, place: Place) -> None:
    if bool(entry.prebuilt) == bool(entry.documents):
        source.problem(place, f"index {entry.id}: give either `prebuilt` or `documents`")
    if entry.pooling not in ("", "mean", "cls"):
        source.problem((*place, "pooling"), f"pooling {entry.pooling}; {nearest(entry.pooling, ('mean', 'cls'))}")
    if entry.dtype not in ("float32", "float16"):
        source.problem((*place, "dtype"), f"dtype {entry.dtype}; {nearest(entry.dtype, ('float32', 'float16'))}")


def _check_model(entry: Model, source: Document, place: Place, indexes: dict[str, IndexSource]) -> None:
    _note(source, (*place, "labels"), check_labels, entry.labels)
    _note(source, (*place, "train"), check_training, entry.train)
    if entry.index in indexes and not indexes[entry.index].encoder:
        source.problem((*place, "index"), f"index {entry.index}: has no encoder that could be trained")


def _check_condition(entry: Condition, source: Document, place: Place, indexes: dict[str, IndexSource]) -> None:
    ways = [key for key in ("retrieve", "base") if getattr(entry, key)]
    if len(ways) != 1 and not entry.planned:
        source.problem(place, f"{entry.id}: give either `retrieve`, or `base` with `rerank`, or `planned`")
    if ways and not entry.index:
        source.problem(place, f"{entry.id}: key index is missing")
    vectors = entry.base or entry.retrieve == "dense" or entry.model
    if vectors and entry.index in indexes and not indexes[entry.index].encoder:
        source.problem((*place, "index"), f"{entry.id}: index {entry.index} has no encoder, so no vectors")
    for number, context in enumerate(entry.contexts):
        if isinstance(context, bool) or not isinstance(context, int) or context < 1:
            source.problem((*place, "contexts", number), f"context {context!r}; expected an integer >= 1")
    if entry.contexts and not entry.base:
        source.problem((*place, "contexts"), f"{entry.id}: contexts are for a reranking, with `base`")
    for number, pattern in enumerate(entry.runs):
        if not isinstance(pattern, str) or not pattern:
            source.problem((*place, "runs", number), f"runs {pattern!r}; expected a pattern of file names, as *bm25*")
    if entry.base:
        _check_reranking(entry, source, place)
    elif entry.retrieve:
        _check_retrieval(entry, source, place)


def _check_reranking(entry: Condition, source: Document, place: Place) -> None:
    if entry.rerank not in names("reranker"):
        hint = nearest(entry.rerank, names("reranker"))
        source.problem((*place, "rerank"), f"rerank {entry.rerank}; {hint}")
        return
    where = (*place, "params") if entry.params else (*place, "preset")
    _note(source, where, make_params, "reranker", entry.rerank, entry.params, entry.preset or None)
    if entry.contexts and "context" in entry.params:
        source.problem((*place, "contexts"), f"{entry.id}: context stands in params, and contexts too; leave one out")


def _check_retrieval(entry: Condition, source: Document, place: Place) -> None:
    if entry.retrieve not in RETRIEVE:
        source.problem((*place, "retrieve"), f"retrieve {entry.retrieve}; {nearest(entry.retrieve, RETRIEVE)}")
        return
    for name, value in entry.params.items():
        if name not in RETRIEVE[entry.retrieve]:
            known = ", ".join(RETRIEVE[entry.retrieve]) or "none"
            source.problem((*place, "params", name), f"params {name}: {entry.retrieve} retrieval takes {known}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            source.problem((*place, "params", name), f"params {name}: {value!r}; expected a number >= 0")
    for key in ("rerank", "preset"):
        if getattr(entry, key):
            source.problem((*place, key), f"{entry.id}: `{key}` is for a reranking, with `base`")


def _check_data(document: Document, found: Found) -> None:
    """The names of documents, topics and judgements; files are looked for when a step needs them."""
    for part in ("topics", "qrels"):
        if isinstance(document.content.get(part), str):
            _note(document, (part,), _known_data, document.content[part], part)
    for key, parts in (("indexes", ("documents",)), ("models", ("topics", "qrels"))):
        for entry, source, place in found[key]:
            for part in parts:
                if getattr(entry, part):
                    _note(source, (*place, part), _known_data, getattr(entry, part), part)


def _known_data(name: str, part: str) -> None:
    from rnnreranker.data import irds, local
    from rnnreranker.data.names import BUILT_IN_TOPICS, FILE_ENDINGS

    if name.endswith(FILE_ENDINGS) or name.startswith((".", "/", "~")) or name in BUILT_IN_TOPICS:
        return
    try:
        if local.source(name, part) != name:
            return
    except UnavailableError:
        return  # known, and not here: said when it is needed
    irds.load(name)
