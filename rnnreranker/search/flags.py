"""The flags of rNN that several commands have."""

from __future__ import annotations

from typing import Any

from rnnreranker.base import command
from rnnreranker.base.method import Form
from rnnreranker.base.settings import PRESET, Written
from rnnreranker.rnn import RnnParams

EVERYDAY = ("k", "k_exp", "tau", "lam", "context")  # settings of rNN that help shows


def typed_rnn(args: Any) -> dict[str, Any]:
    """The flags of rNN and --preset that were typed; InputError: values out of range, by their flags."""
    typed = command.given(args, RnnParams)
    with command.naming_flags(typed):
        RnnParams(**typed)
    return typed | ({} if args.preset is None else {PRESET: args.preset})


def with_rnn(args: Any, form: Form, of: str) -> Written:
    """A written form with the flags of rNN and --preset; of: the flag of the form; InputError: a setting in both."""
    return Written.read(form).beside(typed_rnn(args), of)
