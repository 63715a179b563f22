"""What rerankers say of a query's candidates, beside the similarities: teachers that know the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.chosen_method import Chosen, Form, choose, naming, needs_together
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import Inputs, find, methods
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


class Teacher(NamedTuple):
    """A teacher by its name, one of `known`: the reranker, with its settings."""

    name: str
    chosen: Chosen


def known() -> list[str]:
    """The names of what can be beside: rerankers that read no scores of a run, and the collective teacher."""
    return [*COLLECTIVE, *(name for name, kind in methods("reranker").items() if "run scores" not in kind.needs)]


def choose_teacher(form: Form) -> Teacher:
    """The teacher of a written form, `late`, `collective:fb_clusters=24`, `cross-encoder:model=NAME`.

    Raises:
        InputError: no such teacher, settings that it does not have, values out of range.
    """
    written = Written.read(form)
    with naming("beside", written):
        if written.name not in known():
            raise InputError(f"no such teacher; {nearest(written.name, known())}")
        of = written
        if written.name in COLLECTIVE:
            feedback = Written(ColbertFeedback.name, written.params, written.preset)
            of = Written(PrfReranker.name, {"feedback": str(feedback)})
        if CONTEXT in of.params and CONTEXT in hints_of(find("reranker", of.name).Params):
            raise InputError(f"no setting {CONTEXT}: every candidate of the recovery's context is scored")
        return Teacher(written.name, choose("reranker", of))


def needs_of(teachers: Iterable[Teacher]) -> frozenset[str]:
    """What some teachers need together."""
    return needs_together(one.chosen for one in teachers)


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
    from rnnreranker.parts.tokens.source import query_tokens
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
    made: dict[Chosen, Reranker] = {}  # the collective ones share theirs, where they have the same settings
    for _, chosen in teachers:
        if chosen not in made:
            made[chosen] = chosen.method(inputs, chosen.params, threads=threads)
    return Beside({name: made[chosen] for name, chosen in teachers})
