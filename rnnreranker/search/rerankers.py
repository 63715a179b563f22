"""The flags of --rerank and what they say: which reranker, with which parameters."""

from __future__ import annotations

import argparse
from typing import Any

from rnnreranker import command
from rnnreranker.errors import nearest
from rnnreranker.method import names

NO_RERANKING = "none"


def add_rerank_flags(group: Any) -> None:
    """Add --rerank, --preset, --missing and one flag per parameter of every reranker, those that several have once."""
    group.add_argument("--rerank", type=_known, default="rnn", metavar="NAME", help=", ".join(_choices()))
    group.add_argument(
        "--preset", help="published parameters (tas-b, cocondenser, …) or a YAML file; rnn, jaccard-plain"
    )
    group.add_argument("--missing", choices=("error", "skip"), default="error", help="candidates without a vector")
    command.add_method_flags(group, "reranker")


def rerank_params(args: argparse.Namespace) -> Any:
    """The parameters of the chosen reranker, flag before preset before default; None for "none".

    Raises:
        InputError: flags of another reranker, a preset with one that takes none, values out of range.
    """
    chosen = [] if args.rerank == NO_RERANKING else [args.rerank]
    return next(iter(command.method_params(args, "reranker", chosen, args.preset)), None)


def _choices() -> list[str]:
    return [*names("reranker"), NO_RERANKING]


def _known(text: str) -> str:
    if text not in _choices():
        raise argparse.ArgumentTypeError(f"{text}: no such reranker; {nearest(text, _choices())}")
    return text
