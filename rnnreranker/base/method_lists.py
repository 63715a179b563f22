"""What methods there are and what settings they have, in words: for people, and for flags that there are no more."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import KINDS, defaults_of, fields_of, find, names
from rnnreranker.base.settings import expected, hints_of, typed_name

TAKEN_BY = {  # kind of method → the flag that takes its written form
    **{"retriever": "--retriever", "feedback": "--prf", "expander": "--expand", "reranker": "--rerank"},
    **{"part": "--parts", "labeler": "--method", "loss": "--loss", "trained-model": "--model"},
}
TAKEN_TOO = (  # of `recover`: kind of method, method, the flag that takes it, its name there
    ("feedback", "colbert", "--beside", "collective"),
    ("labeler", "joint", "--similarity", "joint"),
)
USUAL = {"reranker": "rnn", "labeler": "evidence", "trained-model": "query"}  # named first, of several that have it
MOVED = {  # settings of no method that were flags → flag and name that their written form begins with
    **dict.fromkeys(("rrf_k", "weights"), ("--fuse", "rrf")),
    **{"passages": ("--aggregate", "maxp"), "passage_hits": ("--aggregate", "maxp")},
    **dict.fromkeys(("aggregate", "redistribute", "rho", "include_level", "temperature"), ("--method", "evidence")),
    **dict.fromkeys(("mass", "share", "threshold", "compat", "label_preset"), ("--method", "evidence")),
    **dict.fromkeys(("boost", "n_max", "normalization"), ("--method", "evidence")),
    **dict.fromkeys(("positive_weight", "queries"), ("--filter", "joint")),
    **dict.fromkeys(("pooling", "l2_norm", "max_length", "query_prompt", "document_prompt"), ("--encoder", "NAME")),
    **dict.fromkeys(("blocks", "width", "scorer_dropout", "scorer_rate", "residual"), ("--scorer", "encoder")),
    **dict.fromkeys(("new_layers", "new_size", "new_heads", "new_vocabulary"), ("--model", "masked")),
    "learn_from": ("--model", "term-scorer"),
    "beside_model": ("--beside", "NAME"),
    **{"encoder_dtype": ("--encoder", "NAME"), "impact_max_length": ("--impact-encoder", "NAME")},
    **dict.fromkeys(("token_query_length", "token_document_length"), ("--token-encoder", "NAME")),
    **dict.fromkeys(("impact_weights", "impact_factor"), ("--parts", "impact")),
    **dict.fromkeys(("term_language", "term_stemmer"), ("--parts", "terms")),
    **{"bm25_language": ("--parts", "bm25"), "token_search": ("--parts", "tokens")},
    **dict.fromkeys(("neighbours", "neighbours_of", "graph_search"), ("--parts", "neighbours")),
}
AMONG = {  # settings of feedback among candidates, which were flags beside those of feedback
    **{"prf_depth": "rocchio,fb_depth", "rocchio_topk": "rocchio,fb_docs", "rocchio_bottomk": "rocchio,fb_bottom_docs"},
    **{f"rocchio_{one}": f"rocchio,fb_{one}" for one in ("alpha", "beta", "gamma")},
    **{f"prf_{one}": f"colbert,fb_{one}" for one in ("clusters", "embeddings", "expansion_weight")},
}
NAMES = {
    **{"passage_hits": "hits", "l2_norm": "normalize", "rrf_k": "k", "new_layers": "layers", "new_size": "hidden_size"},
    **{"scorer_dropout": "dropout", "scorer_rate": "learning_rate"},
    **{"beside_model": "model"},
    **{"new_heads": "heads", "new_vocabulary": "vocabulary", "learn_from": "texts"},
    **{"encoder_dtype": "dtype", "impact_max_length": "max_length", "token_query_length": "query_length"},
    **{"token_document_length": "document_length", "impact_weights": "weights", "impact_factor": "factor"},
    **{"term_language": "language", "term_stemmer": "stemmer", "bm25_language": "language", "token_search": "search"},
    **{"neighbours": "k", "neighbours_of": "by", "graph_search": "search"},
}  # of these, what they are called in the written form
PARTS = {"no_dense": "bm25"}  # flags → --parts
RENAMED = {"add": "append"}  # flags


def moved(unknown: str, flags: Collection[str]) -> str:
    """Where what was a flag is written now, in a command with these flags; "" where it never was one.

    >>> moved("--k1", ["--retriever"])
    '--k1 is a setting of bm25: --retriever bm25:k1=VALUE'
    """
    name = unknown.removeprefix("--").removeprefix("no-").replace("-", "_")
    if name in AMONG and "--rerank" in flags:
        return f"{unknown} is a setting of prf: --rerank prf:feedback={AMONG[name]}=VALUE"
    takers = [(kind, method, taker, method) for kind, taker in TAKEN_BY.items() for method in names(kind)]
    takers.sort(key=lambda one: USUAL.get(one[0]) != one[1])
    for kind, method, taker, called in (*takers, *TAKEN_TOO):
        if taker in flags and (now := getattr(find(kind, method), "former_settings", {}).get(name)):
            return f"{unknown} of {called} is {now} now: {taker} {called}:KEY=VALUE"
        for field in fields_of(find(kind, method)) if taker in flags else ():
            if name in (field.name, typed_name(field), field.metadata.get("was")):
                return f"{unknown} is a setting of {called}: {taker} {called}:{field.name}=VALUE"
    if name in MOVED and MOVED[name][0] in flags:
        taker, first = MOVED[name]
        return f"{unknown} is a setting of {taker}: {taker} {first}:{NAMES.get(name, name)}=VALUE"
    if name in PARTS and "--parts" in flags:
        return f"{unknown} is said by the parts: --parts {PARTS[name]}"
    if f"--{RENAMED.get(name)}" in flags:
        return f"{unknown} is called --{RENAMED[name]} now"
    return ""


def listed() -> Iterator[str]:
    """Every kind of method with its methods, a line each: the name and what it is."""
    for kind in KINDS:
        yield f"{kind}:"
        for name in names(kind):
            yield f"  {name:22} {first_line(find(kind, name))}"


def described(name: str) -> Iterator[str]:
    """The settings of the methods of a name, a line each; InputError: no such method."""
    kinds = [kind for kind in KINDS if name in names(kind)]
    if not kinds:
        known = sorted({one for kind in KINDS for one in names(kind)})
        raise InputError(f"{name}: no such method, {nearest(name, known)}")
    for kind in kinds:
        method = find(kind, name)
        yield f"{kind} {name}: {first_line(method)}"
        if presets := sorted(method.Params.presets):
            yield f"  preset={'|'.join(presets)}, or a YAML file"
        yield from _settings(defaults_of(method), fields_of(method))
        if inner := getattr(method, "inner", None):
            yield f"and in the same written form those of the {inner[1]} that {inner[0]} names"
        if (of_encoder := getattr(method, "OfEncoder", None)) is not None:
            yield "settings of its encoder, which may stand among them or behind its name, NAME:KEY=VALUE:"
            yield from _settings(of_encoder(), dataclasses.fields(of_encoder))
        if (beside := getattr(method, "Beside", None)) is not None:
            yield f"settings of every {kind}, in the same written form:"
            yield from _settings(beside(), dataclasses.fields(beside))


def _settings(usual: Any, fields: Iterable[dataclasses.Field[Any]]) -> Iterator[str]:
    """Two lines for each setting: its default and what it is, and what it takes."""
    hints = hints_of(type(usual))
    for field in fields:
        yield f"  {field.name}={shown(getattr(usual, field.name))}  {field.metadata.get('help', '')}"
        yield f"    {expected(field, hints[field.name])}"


def first_line(method: Any) -> str:
    """What the docstring of a method says first."""
    return next(iter((method.__doc__ or "").strip().splitlines()), "")


def shown(value: Any) -> str:
    """A value of a setting as its written form has it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
