"""The flags that commands share: index, topics, query vectors, encoder; and those that say how rNN reranks."""

from __future__ import annotations

from typing import Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.chosen_method import SOURCES, Form
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.data.names import QRELS as QRELS
from rnnreranker.data.names import TOPICS
from rnnreranker.rnn import RnnParams
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX, RNN
from rnnreranker.search.request import SearchRequest

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


def add_reranking(group: Any) -> None:
    """The flags --rerank and --preset, of the settings of rNN, --from and --queries."""
    command.add_request_flags(group, SearchRequest, "rerank")
    group.add_argument("--preset", help="of rnn: tas-b, cocondenser, vectors, mixture, … or a YAML file")
    command.add_dataclass_flags(group, RnnParams, shown=EVERYDAY)
    for name, text in (("from", "of rnn: where similarities come from"), ("queries", "of rnn from a graph")):
        words = SOURCES[name]
        group.add_argument(flag(name), dest=name, choices=words, help=f"{text}: {', '.join(words)}", metavar="WHAT")


def rerankers(args: Any, explained: bool = False) -> list[Form]:
    """The rerankers of --rerank with what the flags of rNN say of them; the usual one where nothing is said.

    explained: whether the page of a query shows what it does, so that it may not be left out.

    Raises:
        InputError: flags of rNN without rNN, or of what its written form says too.
    """
    typed = command.given(args, RnnParams)
    with command.naming_flags(typed):
        RnnParams(**typed)  # each says by its flag what is wrong with it
    context = typed.pop("context", None)
    typed |= {name: value for name in SOURCES if (value := getattr(args, name)) is not None}
    if args.preset is not None:
        typed["preset"] = args.preset
    forms = [Written.read(one) for one in args.rerank or ([] if not typed and context is None else [RNN])]
    if not forms:
        return [str(RNN) if explained else RNN]
    if context is not None:
        forms = _with_context(forms, context)
    known = [form for form in forms if form.name in names("reranker")]
    for name in typed if len(known) == len(forms) else ():  # an unknown reranker is refused with the request
        if not any(_takes(form.name, name) for form in known):
            shown = " ".join(f"--rerank {form.name}" for form in forms)
            takers = " or ".join(one for one in names("reranker") if _takes(one, name))
            raise InputError(f"{flag(name)}: of {takers}, not with {shown}")
    return [_with(form, typed) if form in known else form for form in forms]


def with_rnn(args: Any, form: Form, of: str, settings: type[RnnParams] = RnnParams) -> Written:
    """A written form with what the flags of rNN and --preset say too; of: the flag that the form was given with.

    Raises:
        InputError: values out of range, by their flags; a setting that both say.
    """
    typed = command.given(args, settings)
    with command.naming_flags(typed):
        settings(**typed)  # each says by its flag what is wrong with it
    return Written.read(form).beside(typed | ({} if args.preset is None else {PRESET: args.preset}), of)


def _with_context(forms: list[Written], context: int) -> list[Written]:
    """The rerankers that have a context with this one, where their written form says none."""
    takers = [
        one.name in names("reranker") and "context" in hints_of(find("reranker", one.name).Params) for one in forms
    ]
    if not any(takers) and all(one.name in names("reranker") for one in forms):
        raise InputError(f"--context {context}: {' and '.join(one.name for one in forms)} has none; leave it out")
    return [
        Written(form.name, {"context": context, **form.params}, form.preset) if takes else form
        for form, takes in zip(forms, takers, strict=True)
    ]


def _takes(reranker: str, name: str) -> bool:
    """Whether a reranker has a setting that is a flag too."""
    method = find("reranker", reranker)
    return bool(method.takes_source) if name in SOURCES else issubclass(method.Params, RnnParams)


def _with(form: Written, typed: dict[str, Any]) -> Written:
    """A written form with what the flags say too."""
    return form.beside({name: value for name, value in typed.items() if _takes(form.name, name)}, "--rerank")
