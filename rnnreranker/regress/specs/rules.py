"""What entries of a spec must not say: unknown names, settings that no method takes, ids that are missing, cycles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rnnreranker.base.errors import InputError, UnavailableError, nearest
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.regress.specs.entry_rules import check_index, check_kinds, check_model, model_links
from rnnreranker.regress.specs.methods import check_prf, check_rerank, check_use, check_work
from rnnreranker.regress.specs.needs import TEXTS, UNITS
from rnnreranker.regress.specs.reading import KeyPath, SpecDocument
from rnnreranker.regress.specs.spec import NOWHERE, WORKS, Condition, IndexEntry, Work

Entries = dict[
    str, list[tuple[Any, SpecDocument, KeyPath]]
]  # kind of entry → entries, each with its file and where it stands


def check(document: SpecDocument, by_kind: Entries, works: list[Work], data: bool) -> None:
    """Note what entries must not say of each other, and of methods, measures and data.

    Conditions without an index get the only one that there is. data: whether the names of data sets are looked up.
    """
    _check_measures(document, by_kind)
    _check_needs(document, (), document.content.get("needs", {}))
    _check_links(document, by_kind, works)
    indexes = {entry.id: entry for entry, _, _ in by_kind["indexes"]}
    for entry, source, keys in by_kind["indexes"]:
        check_index(entry, source, keys)
    for entry, source, keys in by_kind["models"]:
        check_model(entry, source, keys, indexes)
    for number, (entry, source, keys) in enumerate(by_kind["conditions"]):
        if (entry.retrieve or entry.expand or entry.rerank) and not entry.index and len(indexes) == 1:
            entry = dataclasses.replace(entry, index=next(iter(indexes)))
            by_kind["conditions"][number] = (entry, source, keys)
        _check_condition(entry, source, keys, indexes)
    for key in ("indexes", "models", "query_sets"):
        for entry, source, keys in by_kind[key]:
            _check_needs(source, keys, entry.needs)
    for entry, source, keys in by_kind["models"]:
        for name, needs in entry.step_needs.items():
            _check_needs(source, (*keys, "step_needs"), needs, name)
    models = {entry.id: entry for entry, _, _ in by_kind["models"]}
    for work in works:
        check_kinds(work, document, (next(key for key, kind in WORKS.items() if kind == work.kind), work.id), models)
    sets = {entry.id for entry, _, _ in by_kind["query_sets"]}
    for entry, source, keys in (every for key in ("indexes", "models", "conditions") for every in by_kind[key]):
        check_kinds(entry, source, keys, models)
        for name, needs in entry.needs.items() if isinstance(entry, Condition) else ():
            if name not in sets:
                source.problem((*keys, "needs", name), f"needs of {name}: no such query set; {nearest(name, sets)}")
            if not isinstance(needs, dict):
                source.problem((*keys, "needs", name), f"needs {name}: {needs!r}; expected QUERY_SET: {{gpu_hours: …}}")
            _check_needs(source, (*keys, "needs", name), needs)
    _check_expected(document, by_kind)
    if data:
        _check_data(by_kind)


def _check_measures(document: SpecDocument, by_kind: Entries) -> None:
    content = document.content
    lists: list[tuple[KeyPath, Any, Any]] = []
    if "measures" in content:
        lists.append((("measures",), content["measures"], parse_measures))
    for entry, _, keys in by_kind["query_sets"]:
        lists.append(((*keys, "protocols"), entry.protocols, _known_protocols))
        if wrong := [kind for kind, name in entry.kinds.items() if not isinstance(name, str)]:
            document.problem((*keys, "kinds", wrong[0]), f"kinds {wrong[0]}: expected the name of topics")
        if entry.measures or "measures" not in content:
            lists.append(((*keys, "measures"), entry.measures, parse_measures))
    for keys, names, look in lists:
        if not names or not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            document.problem(keys, f"{keys[-1]}: expected a list with at least one name")
        else:
            document.note(keys, look, list(names))
    for name in document.optional(content, "compare"):
        if name not in content.get("measures", ()):
            hint = nearest(str(name), content.get("measures", ()))
            document.problem(("compare",), f"compare {name}: not among the measures; {hint}")


def _check_needs(source: SpecDocument, keys: KeyPath, needs: Any, name: str = "needs") -> None:
    for key, value in needs.items() if isinstance(needs, dict) else ():
        where = (*keys, name, key)
        if key not in (*UNITS, *TEXTS):
            source.problem(where, f"{name} {key}; {nearest(str(key), (*UNITS, *TEXTS))}")
        elif key in UNITS and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            source.problem(where, f"{name} {key}: {value!r}; expected a number >= 0")
        elif key in TEXTS and not isinstance(value, str):
            source.problem(where, f"{name} {key}: {value!r}; expected a text")


def _check_links(document: SpecDocument, by_kind: Entries, works: list[Work]) -> None:
    """Names of other entries, and no entry that needs itself."""
    ids = {key: [entry.id for entry, _, _ in entries] for key, entries in by_kind.items()}
    indexes = {entry.id: entry for entry, _, _ in by_kind["indexes"]}
    nodes: list[tuple[str, str, SpecDocument, KeyPath, list[tuple[str, str, str]]]] = [
        (key, entry.id, source, keys, list(_links(entry))) for key in by_kind for entry, source, keys in by_kind[key]
    ]
    for work in works:
        key = next(key for key, kind in WORKS.items() if kind == work.kind)
        named = (("of", "conditions"), ("query_set", "query_sets"))
        links = [(name, work.options[name], target) for name, target in named if name in work.options]
        links += _links(work)
        nodes.append((key, work.id, document, (key, work.id), links))
        document.note((key, work.id), check_work, work, indexes.get(str(work.options.get("index"))))
        _check_needs(document, (key, work.id), work.needs)
    needing: dict[tuple[str, str], list[tuple[str, str]]] = {}
    keys_of: dict[tuple[str, str], tuple[SpecDocument, KeyPath]] = {}
    for key, own, source, keys, links in nodes:
        needs = needing.setdefault((key, own), [])
        keys_of.setdefault((key, own), (source, keys))
        for name, value, target in links:
            if value in ids[target]:
                needs.append((target, value))
            else:
                hint = nearest(str(value), ids[target]) if ids[target] else "there are none"
                source.problem((*keys, name), f"{name} {value}: not in {target}; {hint}")
    for cycle in cycles(needing):
        source, keys = keys_of[cycle[0]]
        source.problem(keys, f"cyclic steps: {' → '.join(node[1] for node in cycle)}")


def _check_condition(entry: Condition, source: SpecDocument, keys: KeyPath, indexes: dict[str, IndexEntry]) -> None:
    ways = [key for key in ("retrieve", "fuse", "aggregate", "expand", "rerank") if getattr(entry, key)]
    if len(ways) != 1 and not ((entry.planned or entry.published) and not ways):
        said = "give one of retrieve, fuse, aggregate, expand and rerank, or planned, or runs alone"
        source.problem(keys, f"{entry.id}: {said}")
    wanted = {"fuse": (2, "the conditions that are fused"), "rerank": (1, "the condition that is reranked")}
    wanted["expand"] = (1, "the condition that is expanded")
    wanted["aggregate"] = (1, "the condition whose passages become documents")
    for way in ways:
        least, what = wanted.get(way, (0, ""))
        if len(entry.of) < least or (way != "fuse" and len(entry.of) > least):
            source.problem((*keys, "of"), f"{entry.id}: `of` has {len(entry.of)} entries; expected {what or 'none'}")
        if way not in ("fuse", "aggregate") and not entry.index:
            source.problem(keys, f"{entry.id}: key index is missing")
    index = indexes.get(entry.index)
    if entry.retrieve:
        source.note((*keys, "retrieve"), check_use, "retriever", entry.retrieve, index)
    if entry.prf and entry.retrieve:
        source.note((*keys, "prf"), check_prf, entry.prf, entry.retrieve)
    elif entry.prf:
        source.problem((*keys, "prf"), f"{entry.id}: prf is for a retrieval; give it beside `retrieve`")
    if entry.fuse:
        source.note((*keys, "fuse"), check_use, "fusion", entry.fuse)
    if entry.aggregate:
        source.note((*keys, "aggregate"), check_use, "aggregation", entry.aggregate)
    if entry.expand:
        source.note((*keys, "expand"), check_use, "expander", entry.expand, index)
    if entry.rerank:
        source.note((*keys, "rerank"), check_rerank, entry.rerank, index, bool(entry.contexts))
    elif entry.contexts:
        source.problem((*keys, "contexts"), f"{entry.id}: contexts are for a reranking")
    for number, context in enumerate(entry.contexts):
        if type(context) is not int or context < 1:
            source.problem((*keys, "contexts", number), f"context {context!r}; expected an integer >= 1")


def _check_expected(document: SpecDocument, by_kind: Entries) -> None:
    """`expected` has query sets, runs, protocols and measures of this spec, and numbers or null."""
    sets = {entry.id: entry for entry, _, _ in by_kind["query_sets"]}
    runs = [name for entry, _, _ in by_kind["conditions"] for name in entry.run_names]
    kinds = ("query set", "condition", "protocol", "measure")

    def known(keys: KeyPath) -> list[str]:
        if len(keys) < 3:
            return [list(sets), runs][len(keys) - 1]
        query_set = sets[str(keys[1])]
        own = query_set.measures or tuple(document.content.get("measures") or ())
        return list(query_set.protocols if len(keys) == 3 else own)

    def visit(value: Any, keys: KeyPath) -> None:
        if len(keys) == 5:
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                document.problem(keys, f"{keys[-1]}: {value!r}; expected a number, or null where none is known")
        elif value is not None and not isinstance(value, dict):
            document.problem(keys, f"{keys[-1]}: {value!r}; expected query set: condition: protocol: measure")
        else:
            for name, inner in (value or {}).items():
                if name not in known(keys):
                    kind = kinds[len(keys) - 1]
                    hint = nearest(str(name), known(keys)) if known(keys) else "there are none"
                    document.problem((*keys, name), f"expected {name}: no such {kind}; {hint}")
                else:
                    visit(inner, (*keys, name))

    visit(document.content.get("expected"), ("expected",))


def _check_data(by_kind: Entries) -> None:
    """The names of documents, topics and judgements; files are looked for when a step needs them."""
    for entries in by_kind.values():
        for entry, source, keys in entries:
            for part in ("documents", "topics", "qrels"):
                if name := getattr(entry, part, ""):
                    source.note((*keys, part), _known_data, name, part)
                if name := getattr(entry, "validation", {}).get(part):
                    source.note((*keys, "validation", part), _known_data, name, part)


def _links(entry: Any) -> Iterable[tuple[str, str, str]]:
    """The names of other entries in an entry: its key, the name, where that must be."""
    if isinstance(entry, Condition):
        yield from (("of", name, "conditions") for name in entry.of)
        yield from (("against", name, "conditions") for name in filter(None, [entry.against]))
        yield from (("query_sets", name, "query_sets") for name in entry.query_sets if entry.query_sets != NOWHERE)
    for key in ("index", "candidates"):
        if name := getattr(entry, key, ""):
            yield key, name, "indexes"
    yield from ((key, name, "models") for key, name, _ in model_links(entry))


def cycles(needing: dict[Any, list[Any]]) -> list[list[Any]]:
    """The cycles that a walk through a graph meets, each from a node back to it; empty when there are none.

    >>> cycles({"a": ["b"], "b": ["c", "a"], "c": []})
    [['a', 'b', 'a']]
    """
    cycles_met: list[list[Any]] = []
    done: set[Any] = set()
    way: list[Any] = []

    def visit(node: Any) -> None:
        if node in way:
            cycles_met.append([*way[way.index(node) :], node])
        elif node not in done:
            way.append(node)
            for following in needing.get(node, ()):
                visit(following)
            done.add(way.pop())

    for node in needing:
        visit(node)
    return cycles_met


def _known_protocols(names: list[str]) -> None:
    wrong = [f"protocol {name}; {nearest(name, PROTOCOLS)}" for name in names if name not in PROTOCOLS]
    if wrong:
        raise InputError("; ".join(wrong))


def _known_data(name: str, part: str) -> None:
    from rnnreranker.data import irds, local
    from rnnreranker.data.names import BUILT_IN_TOPICS, is_path, left_out

    name, others = left_out(name)
    for other in others:
        _known_data(other, "topics")
    if is_path(name) or name in BUILT_IN_TOPICS:
        return
    try:
        if local.source(name, part) != name:
            return
    except UnavailableError:
        return  # known, and not here: said when it is needed
    irds.load(name)
