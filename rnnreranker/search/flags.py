"""The flags that commands share: index, topics, query vectors, encoder; and those that say how rNN reranks."""

from __future__ import annotations

from typing import Any

from rnnreranker.base import command
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.data.names import QRELS as QRELS
from rnnreranker.data.names import TOPICS
from rnnreranker.rnn import RnnParams
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX

EVERYDAY = ("k", "k_exp", "tau", "lam", "context")  # settings of rNN that help shows


def add_index(group: Any, *, required: bool = True) -> None:
    """The flag --index."""
    group.add_argument("--index", required=required, help=INDEX)


def add_topics(group: Any, *, required: bool = False) -> None:
    """The flags --topics and --encoded-queries."""
    group.add_argument("--topics", required=required, help=TOPICS)
    group.add_argument("--encoded-queries", metavar="NPY", help=ENCODED)


def add_encoder(group: Any) -> None:
    """The flag --encoder of a command that encodes queries."""
    group.add_argument("--encoder", help=ENCODER)


def with_rnn(args: Any, form: Form, of: str, settings: type[RnnParams] = RnnParams) -> Written:
    """A written form with what the flags of rNN and --preset say too; of: the flag that the form was given with.

    Raises:
        InputError: values out of range, by their flags; a setting that both say.
    """
    typed = command.given(args, settings)
    with command.naming_flags(typed):
        settings(**typed)  # each says by its flag what is wrong with it
    return Written.read(form).beside(typed | ({} if args.preset is None else {PRESET: args.preset}), of)
