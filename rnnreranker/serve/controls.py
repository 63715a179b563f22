"""The choices of the page: first stages, rerankers with their settings, presets, judged topics."""

from __future__ import annotations

import typing
from typing import Any

from rnnreranker._version import __version__
from rnnreranker.base.chosen_method import SOURCES
from rnnreranker.base.method import defaults_of, fields_of, first_line, methods, names
from rnnreranker.base.settings import choices, hints_of, member, words_of
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search.request import AUTO, HYBRID
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.question import SearchQuestion

EVERYDAY = ("k", "k_exp", "tau", "lam", "context")  # settings of rNN that stand open


def controls(collection: ServedIndex) -> dict[str, Any]:
    """The name of the index, the limits, and the choices with their defaults, plain values."""
    index = collection.index
    return {
        "version": __version__,
        "index": collection.request.name,
        "parts": list(index.parts),
        "retrievers": retrievers(collection),
        "fusions": choices(hints_of(FuseParams)["fuse"]),
        "hits": min(SearchQuestion.hits, collection.limits.max_candidates),
        "limits": collection.limits.to_dict(),
        "rerankers": [_reranker(collection, name, one) for name, one in rerankers(collection).items()],
        "topics": len(collection.topics),
        "measures": collection.request.measures,
        "protocol": collection.protocol,
    }


def retrievers(collection: ServedIndex) -> list[str]:
    """`auto`, the first stages that the index has the parts for, and perhaps `hybrid`."""
    known = methods("retriever")
    there = [name for name in names("retriever") if _has(collection, known[name].needs)]
    hybrid = ["hybrid"] if {*HYBRID} <= {*there} else []
    return [AUTO, *there, *hybrid]


def rerankers(collection: ServedIndex) -> dict[str, Any]:
    """The rerankers that load no model and whose inputs the index has, rNN first."""
    usable = {
        name: one
        for name, one in methods("reranker").items()
        if not one.model_setting and _has(collection, _needs(one)) and not getattr(one, "inner", None)
    }
    return {name: usable[name] for name in sorted(usable, key=lambda name: (name != "rnn", name))}


def _needs(method: Any) -> frozenset[str]:
    by_params = getattr(method, "needs_with", None)
    return frozenset(by_params(defaults_of(method)) if by_params else method.needs)


def _has(collection: ServedIndex, needs: typing.Collection[str]) -> bool:
    if "query vectors" in needs and not collection.encodes:
        return False
    return all(collection.index.has(need) for need in needs)


def _reranker(collection: ServedIndex, name: str, method: Any) -> dict[str, Any]:
    usual = defaults_of(method)
    hints = hints_of(method.Params)
    settings = [_setting(field, hints[field.name], getattr(usual, field.name)) for field in fields_of(method)]
    if name == "rnn":
        settings.sort(key=lambda one: one["name"] not in EVERYDAY)
    if getattr(method, "takes_source", False) and collection.index.has("neighbours"):
        settings.append(
            {"name": "from", "help": "where similarities come from", "type": "choice", "default": SOURCES["from"][0]}
            | {"choices": [one for one in SOURCES["from"] if collection.index.has(one)], "optional": False}
        )
    presets = {one: params.to_dict() for one, params in method.Params.presets.items()}
    everyday = [*EVERYDAY] if name == "rnn" else [one["name"] for one in settings]
    about = first_line(method)
    return {"name": name, "about": about, "settings": settings, "presets": presets, "everyday": everyday}


def _setting(field: Any, hint: Any, default: Any) -> dict[str, Any]:
    kind, limits = member(hint), field.metadata.get("limits", {})
    words = words_of(field, hint)
    named = "choice" if words else {bool: "yes or no", int: "integer", float: "number"}.get(kind, "text")
    return {
        "name": field.name,
        "help": str(field.metadata.get("help", "")),
        "type": named,
        "default": default,
        "choices": words,
        "optional": type(None) in typing.get_args(hint),
        **{one: limits.get(one) for one in ("at_least", "at_most", "above")},
    }
