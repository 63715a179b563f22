"""The choices of the page: first stages, rerankers with their settings, presets, judged topics."""

from __future__ import annotations

import typing
from typing import Any

from rnnreranker.base.method import SOURCES, choose, defaults_of, fields_of, first_line, methods
from rnnreranker.base.settings import hints_of
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search.request import AUTO, HYBRID, SearchRequest
from rnnreranker.serve.collection import ServedIndex


def controls(collection: ServedIndex) -> dict[str, Any]:
    """The name of the index, and the choices with their defaults, plain values; rNN is the first reranker."""

    def usable(needs: typing.Collection[str]) -> bool:
        return all(map(collection.index.has, needs)) and (collection.encodes or "query vectors" not in needs)

    retrievers = [name for name, one in methods("retriever").items() if usable(one.needs)]
    rerankers = [
        _reranker(collection, name, one)
        for name, one in sorted(methods("reranker").items(), key=lambda one: (one[0] != "rnn", one[0]))
        if not one.model_setting and not getattr(one, "inner", None) and usable(choose("reranker", name).needs)
    ]
    return {
        "index": collection.request.name,
        "retrievers": [AUTO, *retrievers, *(["hybrid"] if {*HYBRID} <= {*retrievers} else [])],
        "fusions": hints_of(FuseParams)["fuse"].words,
        "hits": min(SearchRequest.hits, collection.limits.max_candidates),
        "max_candidates": collection.limits.max_candidates,
        "rerankers": rerankers,
        "topics": [
            {"topic": qid, "query": text, "judged": len(collection.grades.get(qid, ()))}
            for qid, text in collection.topics.items()
        ],
    }


def _reranker(collection: ServedIndex, name: str, method: Any) -> dict[str, Any]:
    usual = defaults_of(method)
    settings: list[dict[str, Any]] = []
    for setting in fields_of(method):
        hint = hints_of(method.Params)[setting]
        words = [*hint.words] or (["true", "false"] if hint.number is bool else [])
        words += ["none"] if words and hint.nones else []
        about = {"name": setting, "help": hint.about["help"]}
        settings.append(about | {"default": getattr(usual, setting), "choices": words})
    if getattr(method, "takes_source", False) and collection.index.has("neighbours"):
        there = [one for one in SOURCES["from"] if collection.index.has(one)]
        about = {"name": "from", "help": "where similarities come from"}
        settings.append(about | {"default": SOURCES["from"][0], "choices": there})
    presets = {one: params.to_dict() for one, params in method.Params.presets.items()}
    return {"name": name, "about": first_line(method), "settings": settings, "presets": presets}
