"""A question of a client, as a request of the library."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.base.chosen_method import Chosen, Form, as_list
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import hints_of, is_file_name, member, words_of
from rnnreranker.base.written_form import Written, read_joined
from rnnreranker.search.request import SearchRequest
from rnnreranker.serve.request import Limits

QID = "query"  # what a question is called, as in the command
MOST_FEEDBACK = 100  # documents, terms or clusters that a second query is made of
WIDE_GRAPH = 64  # neighbours of a document; graphs have no more
MOST_REACHED = 100_000  # documents that an expander looks at


@dataclass(frozen=True)
class SearchQuestion:
    """A search; the fields are those of `SearchRequest`.

    topic: the id of its judged topic, None = none; limit: of the results.
    """

    query: str
    topic: str | None = None
    retrieve: Form | Sequence[Form] | None = "auto"
    fuse: Form | None = None
    prf: Form | None = None
    expand: Form | None = None
    rerank: Form | Sequence[Form] | None = "rnn"
    hits: int = 1000
    limit: int = 10

    def request(self, index: Any, **others: Any) -> SearchRequest:
        """The request of the library; InputError: methods that load a file or a model."""
        own = {name: value for name, value in vars(self).items() if name not in ("topic", "limit")}
        request = SearchRequest(index=index, **own, **others)
        for form in [*as_list(self.rerank), *as_list(self.prf), *as_list(self.expand), *as_list(self.fuse)]:
            _refuse_files(Written.read(form))
        for form in [] if self.retrieve is None else read_joined(self.retrieve):
            _refuse_files(form)
        for one in request.methods.rerankers:
            _refuse_model(one)
        for one in [*request.methods.retrievers, *request.methods.rerankers]:
            _refuse_names(one)
        return request

    @property
    def first_stage(self) -> tuple[str, ...]:
        """All that the candidates before reranking depend on."""
        return tuple(map(repr, (self.query, self.retrieve, self.fuse, self.prf, self.hits)))

    def check(self, limits: Limits) -> None:
        if len(self.query) > limits.max_characters:
            raise InputError(f"query has {len(self.query)} characters; expected {limits.max_characters} at most")
        if not 1 <= self.hits <= limits.max_candidates:
            raise InputError(f"hits={self.hits}: expected a number in [1, {limits.max_candidates}]")


def check_work(methods: Iterable[Chosen], candidates: int, limits: Limits, explain: bool = False) -> None:
    """Refuse methods that would take more than about a second, or 200 MB, for a number of candidates.

    The work of a reranker is its context times the two largest of its other counts, such as k and probes: on one core,
    `max_work` pairs take .1 to .6 s, and an explanation of 200 candidates 1.1 s.

    Raises:
        InputError: a count above `max_candidates`, or contexts beyond these limits.
    """
    together = 0
    for one in methods:
        counts = {
            field.name: value
            for field in dataclasses.fields(one.params)
            if type(value := getattr(one.params, field.name)) is int
        }
        most = min(limits.max_candidates, MOST_FEEDBACK if one.kind == "feedback" else limits.max_candidates)
        for name, value in counts.items():
            if value > most and value != getattr(type(one.params), name, None):  # a default is fine
                raise InputError(f"{one.name}: {name}={value}: expected {most} at most here")
        hops = counts.get("hops", 1)
        if hops > 1 and candidates * min(counts["k"], WIDE_GRAPH) ** hops > MOST_REACHED:
            raise InputError(f"{one.name}: hops={hops}: reaches too many documents; ask for fewer hops or hits")
        if one.kind != "reranker":
            continue
        context = min(counts.pop("context", candidates), candidates)
        if explain and context > limits.max_explained:
            raise InputError(f"{one.name}: context={context}: expected {limits.max_explained} at most to be explained")
        together += context * math.prod(sorted(min(value, context) for value in counts.values())[-2:])
    if together > limits.max_work:
        raise InputError(
            f"rerank: context × k × k_exp or probes is {together}, expected {limits.max_work} at most here; ask for "
            "smaller ones"
        )


def _refuse_model(one: Chosen) -> None:
    if one.method.model_setting:
        raise InputError(
            f"rerank={one.name}: loads a model of its own, which this server does not; use python -m rnnreranker.search"
        )


def _refuse_names(one: Chosen) -> None:
    """Refuse settings that name an encoder: those that take any text."""
    hints, inner = hints_of(type(one.params)), getattr(one.method, "inner", None) or ("",)
    for field in dataclasses.fields(one.params):
        any_text = member(hints[field.name]) is str and not words_of(field, hints[field.name])
        if any_text and field.name != inner[0] and getattr(one.params, field.name) != field.default:
            raise InputError(f"{one.name}: {field.name} names a model, which clients cannot name; leave it out")


def _refuse_files(form: Written) -> None:
    if form.preset and is_file_name(form.preset):
        raise InputError(f"preset={form.preset}: a file, which clients cannot name; expected a known preset")
    for value in _texts(form.params):
        if "/" in value or "\\" in value:
            raise InputError(f"{form.name}: {value[:80]!r} names a file or a model, which clients cannot name")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, Written):
        yield from _texts(value.params)
    elif isinstance(value, str):
        yield value
