"""What rerankers say of a query's candidates, beside the similarities: teachers that know the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import Inputs, find, make_params, methods
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.methods.feedback.colbert import ColbertFeedback
from rnnreranker.methods.rerank.prf import PrfReranker

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.recover.similarities import RankedCandidates, Scores
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.parts.vectors import QueryVectors

COLLECTIVE = {"collective": False, "collective-positives": True}  # whether the visible positive gives feedback
CONTEXT = "context"  # a setting of rerankers: here every candidate of the context is scored


@dataclass(frozen=True)
class Teacher:
    """A teacher with its settings; its name is one of `known`."""

    name: str
    params: Any

    @property
    def kind(self) -> Any:
        """The class of its reranker."""
        return PrfReranker if self.name in COLLECTIVE else find("reranker", self.name)

    @property
    def needs(self) -> frozenset[str]:
        """What it reads."""
        return PrfReranker.needs_with(self.params) if self.name in COLLECTIVE else frozenset(self.kind.needs)

    @property
    def setting(self) -> str:
        """The setting that names its model; empty where it computes with none."""
        return str(self.kind.model_setting)


def known() -> list[str]:
    """The names of what can stand beside: rerankers that read no scores of a run, and the collective teacher."""
    return [*COLLECTIVE, *(name for name, kind in methods("reranker").items() if "run scores" not in kind.needs)]


def choose_teacher(form: Form) -> Teacher:
    """The teacher of a written form, `late`, `collective:fb_clusters=24`, `cross-encoder:model=NAME`.

    Raises:
        InputError: no such teacher, settings that it does not have, values out of range.
    """
    written = Written.read(form)
    shown = argument("beside", str(written))
    if written.name not in known():
        raise InputError(f"{shown}: no such teacher; {nearest(written.name, known())}")
    of, values = written.name, written.params
    try:
        if of in COLLECTIVE:
            of, values = PrfReranker.name, {"feedback": str(Written(ColbertFeedback.name, values, written.preset))}
        if CONTEXT in values and CONTEXT in hints_of(find("reranker", of).Params):
            raise InputError(f"no setting {CONTEXT}: every candidate of the recovery's context is scored")
        return Teacher(written.name, make_params("reranker", of, values, written.preset or None))
    except InputError as error:
        raise InputError(f"{shown}: {error}") from None


def needs_of(teachers: Iterable[Teacher]) -> frozenset[str]:
    """What some teachers need together."""
    return frozenset[str]().union(*(one.needs for one in teachers))


@dataclass(frozen=True)
class Beside:
    """The scores of some rerankers; `positives`: whether a visible positive gives feedback."""

    rerankers: Mapping[str, Reranker]

    def of(self, ranked: RankedCandidates) -> Scores:
        """Name → (R, n) float64, of candidates; the same for every positive, but where it gives feedback.

        Raises:
            InputError: candidates without what a reranker needs of them.
        """
        scores = {}
        for name, reranker in self.rerankers.items():
            query, candidates = reranker.alone(ranked.qid, ranked.docids)
            if COLLECTIVE.get(name):
                assert isinstance(reranker, PrfReranker)
                every = [reranker.scores_knowing(query, candidates, [number]) for number in ranked.positives.tolist()]
                scores[name] = np.array(every)
            else:
                own = reranker.scores(query, candidates)
                scores[name] = np.broadcast_to(own, (len(ranked.positives), len(own)))
        return scores

    def describe(self) -> dict[str, Any]:
        """Name → what its scores depend on besides the inputs."""
        return {name: reranker.describe() for name, reranker in self.rerankers.items()}

    def remark(self) -> str:
        """What the rerankers have to say of the candidates that they scored; empty = nothing."""
        return "; ".join(filter(None, (reranker.remark() for reranker in self.rerankers.values())))


def open_beside(
    teachers: Sequence[Teacher],
    index: IndexOnDisk,
    topics: Mapping[str, str],
    queries: QueryVectors,
    documents: tuple[str | None, str | None],
    threads: int | None,
) -> Beside | None:
    """Teachers on the texts of `topics` and their vectors; None without any; documents: theirs, and their fields.

    Raises:
        InputError: an index without what they need, and what their constructors raise.
    """
    from rnnreranker.parts.tokens.queries import query_tokens
    from rnnreranker.search.inputs import document_texts

    if not teachers:
        return None
    needs = needs_of(teachers)
    inputs = Inputs(
        topics=topics,
        query_vectors=queries,
        vectors=index.vectors,
        tokens=index.token_vectors if "tokens" in needs else None,
        query_tokens=query_tokens(index.token_vectors, topics, threads) if "query tokens" in needs else None,
        texts=document_texts(documents[0], index, asked_fields(*documents)) if "texts" in needs else None,
    )
    made: dict[tuple[Any, Any], Reranker] = {}  # the collective ones share theirs, where they have the same settings
    for one in teachers:
        if (one.kind, one.params) not in made:
            made[one.kind, one.params] = one.kind(inputs, one.params, threads=threads)
    return Beside({one.name: made[one.kind, one.params] for one in teachers})
