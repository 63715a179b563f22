"""The flags of --rerank and what they say: which reranker, with which parameters."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from rnnreranker import command
from rnnreranker.errors import InputError, nearest
from rnnreranker.rerank import RERANKERS
from rnnreranker.rerank.registry import NO_RERANKING, PARAMS, make_params
from rnnreranker.rnn import RnnParams
from rnnreranker.settings import flag


def add_rerank_flags(group: Any) -> None:
    """Add --rerank, --preset, --missing and one flag per parameter of every reranker, those that several have once."""
    group.add_argument("--rerank", type=_known, default="rnn", metavar="NAME", help=f"{', '.join(RERANKERS)}")
    group.add_argument(
        "--preset", help="published parameters (tas-b, cocondenser, …) or a YAML file; rnn, jaccard-plain"
    )
    group.add_argument("--missing", choices=("error", "skip"), default="error", help="candidates without a vector")
    seen: set[str] = set()
    for kind in dict.fromkeys(PARAMS.values()):
        command.add_dataclass_flags(group, kind, skip=seen)
        seen.update(field.name for field in dataclasses.fields(kind))


def rerank_params(args: argparse.Namespace) -> Any:
    """The parameters of the chosen reranker, flag before preset before default; the defaults of rnn for "none".

    Raises:
        InputError: flags of another reranker, a preset with one that takes none, values out of range.
    """
    kind = PARAMS.get(args.rerank, RnnParams)
    fields = {name: [field.name for field in dataclasses.fields(its)] for name, its in PARAMS.items()}
    own = [field.name for field in dataclasses.fields(kind)]
    foreign = {
        flag(typed): [name for name, its in fields.items() if typed in its]
        for typed in dict.fromkeys(typed for its in fields.values() for typed in its)
        if typed not in own and getattr(args, typed) is not None
    }
    if foreign:
        shown = "; ".join(f"{flag} is for --rerank {' or '.join(names)}" for flag, names in foreign.items())
        raise InputError(f"{shown}: not with --rerank {args.rerank}")
    if args.rerank == NO_RERANKING:
        return command.chosen(args, RnnParams)
    if args.preset and kind is RnnParams:
        return command.chosen(args, RnnParams, args.preset)
    typed = command.given(args, kind)
    with command.naming_flags(typed):
        return make_params(args.rerank, typed, args.preset)


def _known(text: str) -> str:
    if text not in RERANKERS:
        raise argparse.ArgumentTypeError(f"{text}: no such reranker; {nearest(text, RERANKERS)}")
    return text
