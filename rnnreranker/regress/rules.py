"""What entries of a spec must not say: unknown names, settings that no method takes, ids that are missing, cycles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rnnreranker.errors import InputError, UnavailableError, nearest
from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures
from rnnreranker.regress.methods import (
    PARTS,
    check_labels,
    check_prf,
    check_rerank,
    check_training,
    check_use,
    check_work,
    options_of,
)
from rnnreranker.regress.needs import TEXTS, UNITS
from rnnreranker.regress.reading import Document, Place
from rnnreranker.regress.spec import WORKS, Condition, Index, Model, Work

# flags of `python -m rnnreranker.index` besides the settings of dense vectors
NOT_DENSE = ("documents", "output", "overwrite", "no_dense", "bm25", "parts", "neighbours", "threads", "help")
OF_PART = {"dense": "", "impact": "impact_"}  # part → how the options of `index` that are its settings begin
Found = dict[str, list[tuple[Any, Document, Place]]]  # kind of entry → entries, each with its file and where it stands


def check(document: Document, found: Found, works: list[Work], data: bool) -> None:
    """Note what entries must not say of each other, and of methods, measures and data.

    Conditions without an index get the only one that there is.

    Args:
        document: the spec's own file.
        found: entries by kind, of the parts and its own.
        works: its studies and the like.
        data: whether the names of data sets are looked up.
    """
    _check_measures(document, found)
    _check_needs(document, (), document.content.get("needs", {}))
    _check_links(document, found, works)
    indexes = {entry.id: entry for entry, _, _ in found["indexes"]}
    for entry, source, place in found["indexes"]:
        _check_index(entry, source, place)
    for entry, source, place in found["models"]:
        _check_model(entry, source, place, indexes)
    for number, (entry, source, place) in enumerate(found["conditions"]):
        if (entry.retrieve or entry.expand or entry.rerank) and not entry.index and len(indexes) == 1:
            entry = dataclasses.replace(entry, index=next(iter(indexes)))
            found["conditions"][number] = (entry, source, place)
        _check_condition(entry, source, place, indexes)
    for key in ("indexes", "models", "query_sets"):
        for entry, source, place in found[key]:
            _check_needs(source, place, entry.needs)
    _check_expected(document, found)
    if data:
        _check_data(found)


def _check_measures(document: Document, found: Found) -> None:
    content = document.content
    lists: list[tuple[Place, Any, Any]] = []
    if "measures" in content:
        lists.append((("measures",), content["measures"], parse_measures))
    for entry, _, place in found["query_sets"]:
        lists.append(((*place, "protocols"), entry.protocols, _known_protocols))
        if entry.measures or "measures" not in content:
            lists.append(((*place, "measures"), entry.measures, parse_measures))
    for place, names, look in lists:
        if not names or not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            document.problem(place, f"{place[-1]}: expected a list with at least one name")
        else:
            document.note(place, look, list(names))
    for name in document.optional(content, "compare"):
        if name not in content.get("measures", ()):
            hint = nearest(str(name), content.get("measures", ()))
            document.problem(("compare",), f"compare {name}: not among the measures; {hint}")


def _check_needs(source: Document, place: Place, needs: Any) -> None:
    for key, value in needs.items() if isinstance(needs, dict) else ():
        where = (*place, "needs", key)
        if key not in (*UNITS, *TEXTS):
            source.problem(where, f"needs {key}; {nearest(str(key), (*UNITS, *TEXTS))}")
        elif key in UNITS and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            source.problem(where, f"needs {key}: {value!r}; expected a number >= 0")
        elif key in TEXTS and not isinstance(value, str):
            source.problem(where, f"needs {key}: {value!r}; expected a text")


def _check_links(document: Document, found: Found, works: list[Work]) -> None:
    """Names of other entries, and no entry that needs itself."""
    ids = {key: [entry.id for entry, _, _ in entries] for key, entries in found.items()}
    nodes: list[tuple[str, str, Document, Place, list[tuple[str, str, str]]]] = [
        (key, entry.id, source, place, list(_links(entry))) for key in found for entry, source, place in found[key]
    ]
    for work in works:
        key = next(key for key, kind in WORKS.items() if kind == work.kind)
        named = (("of", "conditions"), ("query_set", "query_sets"))
        links = [(name, work.options[name], target) for name, target in named if name in work.options]
        nodes.append((key, work.id, document, (key, work.id), links))
        document.note((key, work.id), check_work, work)
        _check_needs(document, (key, work.id), work.needs)
    needing: dict[tuple[str, str], list[tuple[str, str]]] = {}
    places: dict[tuple[str, str], tuple[Document, Place]] = {}
    for key, own, source, place, links in nodes:
        needs = needing.setdefault((key, own), [])
        places.setdefault((key, own), (source, place))
        for name, value, target in links:
            if value in ids[target]:
                needs.append((target, value))
            else:
                hint = nearest(str(value), ids[target]) if ids[target] else "there are none"
                source.problem((*place, name), f"{name} {value}: not in {target}; {hint}")
    for cycle in cycles(needing):
        source, place = places[cycle[0]]
        source.problem(place, f"cyclic steps: {' → '.join(node[1] for node in cycle)}")


def _check_index(entry: Index, source: Document, place: Place) -> None:
    if bool(entry.prebuilt) == bool(entry.documents):
        source.problem(place, f"index {entry.id}: give either `prebuilt` or `documents`")
    known = set(PARTS.values())
    if not entry.parts or set(entry.parts) - known:
        said = f"parts {', '.join(map(str, entry.parts))}: expected some of {', '.join(sorted(known))}"
        source.problem((*place, "parts"), said)
    for part in OF_PART:
        its = entry.parts.get(part) or {}
        for key in its if isinstance(its, dict) else ():
            if key not in (own := _settings_of(part)):
                source.problem((*place, "parts", part, key), f"{part} {key}; {nearest(str(key), own)}")
    if "neighbours" in entry.parts:
        _check_graph(entry, source, (*place, "parts", "neighbours"))
    dense = entry.parts.get("dense") or {}
    if "dense" in entry.parts and not (isinstance(dense, dict) and isinstance(dense.get("encoder"), str)):
        source.problem((*place, "parts"), f"index {entry.id}: dense needs an encoder, as dense: {{encoder: minilm}}")


def _settings_of(part: str) -> list[str]:
    """The settings of a part of an index, as a spec names them."""
    names, begin = [name for name in options_of("index") if name not in NOT_DENSE], OF_PART[part]
    others = tuple(filter(None, OF_PART.values()))
    own = [name for name in names if (name.startswith(begin) if begin else not name.startswith(others))]
    return [name.removeprefix(begin) for name in own]


def _check_graph(entry: Index, source: Document, place: Place) -> None:
    """`neighbours: {}` or with their number, in an index that has vectors and is made here."""
    settings = entry.parts["neighbours"] or {}
    good = isinstance(settings, dict) and set(settings) <= {"neighbours"}
    number = settings.get("neighbours", 1) if good else None
    if type(number) is not int or number < 1:
        source.problem(place, f"neighbours: {settings!r}; expected {{}} or a number, as {{neighbours: 16}}")
    if "dense" not in entry.parts or entry.prebuilt:
        source.problem(place, f"index {entry.id}: neighbours are those of a dense part that is made here")


def _check_model(entry: Model, source: Document, place: Place, indexes: dict[str, Index]) -> None:
    source.note((*place, "labels"), check_labels, entry.labels)
    source.note((*place, "train"), check_training, entry.train)
    source.note((*place, "first"), check_use, "retriever", entry.first, indexes.get(entry.candidates or entry.index))
    if entry.index in indexes and "dense" not in indexes[entry.index].parts:
        source.problem((*place, "index"), f"index {entry.index}: has no encoder that could be trained")
    if entry.validation and set(entry.validation) != {"topics", "qrels"}:
        source.problem((*place, "validation"), "validation: expected topics and qrels")


def _check_condition(entry: Condition, source: Document, place: Place, indexes: dict[str, Index]) -> None:
    ways = [key for key in ("retrieve", "fuse", "expand", "rerank") if getattr(entry, key)]
    if len(ways) != 1 and not ((entry.planned or entry.published) and not ways):
        source.problem(place, f"{entry.id}: give one of retrieve, fuse, expand and rerank, or planned, or runs alone")
    wanted = {"fuse": (2, "the conditions that are fused"), "rerank": (1, "the condition that is reranked")}
    wanted["expand"] = (1, "the condition that is expanded")
    for way in ways:
        least, what = wanted.get(way, (0, ""))
        if len(entry.of) < least or (way != "fuse" and len(entry.of) > least):
            source.problem((*place, "of"), f"{entry.id}: `of` has {len(entry.of)} entries; expected {what or 'none'}")
        if way != "fuse" and not entry.index:
            source.problem(place, f"{entry.id}: key index is missing")
    index = indexes.get(entry.index)
    if entry.retrieve:
        source.note((*place, "retrieve"), check_use, "retriever", entry.retrieve, index)
    if entry.prf and entry.retrieve:
        source.note((*place, "prf"), check_prf, entry.prf, entry.retrieve)
    elif entry.prf:
        source.problem((*place, "prf"), f"{entry.id}: prf is for a retrieval; give it beside `retrieve`")
    if entry.fuse:
        source.note((*place, "fuse"), check_use, "fusion", entry.fuse)
    if entry.expand:
        source.note((*place, "expand"), check_use, "expander", entry.expand, index)
    if entry.rerank:
        source.note((*place, "rerank"), check_rerank, entry.rerank, index, bool(entry.contexts))
    elif entry.contexts:
        source.problem((*place, "contexts"), f"{entry.id}: contexts are for a reranking")
    for number, context in enumerate(entry.contexts):
        if type(context) is not int or context < 1:
            source.problem((*place, "contexts", number), f"context {context!r}; expected an integer >= 1")


def _check_expected(document: Document, found: Found) -> None:
    """`expected` has query sets, runs, protocols and measures of this spec, and numbers or null."""
    sets = {entry.id: entry for entry, _, _ in found["query_sets"]}
    runs = [name for entry, _, _ in found["conditions"] for name in entry.run_names]
    kinds = ("query set", "condition", "protocol", "measure")

    def known(place: Place) -> list[str]:
        if len(place) < 3:
            return [list(sets), runs][len(place) - 1]
        query_set = sets[str(place[1])]
        own = query_set.measures or tuple(document.content.get("measures") or ())
        return list(query_set.protocols if len(place) == 3 else own)

    def visit(value: Any, place: Place) -> None:
        if len(place) == 5:
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                document.problem(place, f"{place[-1]}: {value!r}; expected a number, or null where none is known")
        elif value is not None and not isinstance(value, dict):
            document.problem(place, f"{place[-1]}: {value!r}; expected query set: condition: protocol: measure")
        else:
            for name, inner in (value or {}).items():
                if name not in known(place):
                    kind = kinds[len(place) - 1]
                    hint = nearest(str(name), known(place)) if known(place) else "there are none"
                    document.problem((*place, name), f"expected {name}: no such {kind}; {hint}")
                else:
                    visit(inner, (*place, name))

    visit(document.content.get("expected"), ("expected",))


def _check_data(found: Found) -> None:
    """The names of documents, topics and judgements; files are looked for when a step needs them."""
    for entries in found.values():
        for entry, source, place in entries:
            for part in ("documents", "topics", "qrels"):
                if name := getattr(entry, part, ""):
                    source.note((*place, part), _known_data, name, part)


def _links(entry: Any) -> Iterable[tuple[str, str, str]]:
    """The names of other entries in an entry: its key, the name, where that must be."""
    if isinstance(entry, Condition):
        yield from (("of", name, "conditions") for name in entry.of)
        yield from (("against", name, "conditions") for name in filter(None, [entry.against]))
        yield from (("query_sets", name, "query_sets") for name in entry.query_sets)
    for key, target in (("index", "indexes"), ("candidates", "indexes"), ("model", "models"), ("start", "models")):
        if name := getattr(entry, key, ""):
            yield key, name, target


def cycles(needing: dict[Any, list[Any]]) -> list[list[Any]]:
    """The cycles that a walk through a graph meets, each from a node back to it; empty when there are none.

    >>> cycles({"a": ["b"], "b": ["c", "a"], "c": []})
    [['a', 'b', 'a']]
    """
    found: list[list[Any]] = []
    done: set[Any] = set()
    way: list[Any] = []

    def visit(node: Any) -> None:
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


def _known_protocols(names: list[str]) -> None:
    wrong = [f"protocol {name}; {nearest(name, PROTOCOLS)}" for name in names if name not in PROTOCOLS]
    if wrong:
        raise InputError("; ".join(wrong))


def _known_data(name: str, part: str) -> None:
    from rnnreranker.data import irds, local
    from rnnreranker.data.names import BUILT_IN_TOPICS, is_path

    if is_path(name) or name in BUILT_IN_TOPICS:
        return
    try:
        if local.source(name, part) != name:
            return
    except UnavailableError:
        return  # known, and not here: said when it is needed
    irds.load(name)
