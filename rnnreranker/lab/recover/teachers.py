"""Teachers: scores of rerankers for a query's candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.chosen_method import Chosen, Form, choose, naming, needs_together
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import Inputs, find, methods
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.methods.feedback.colbert import ColbertFeedback
from rnnreranker.methods.rerank.prf import PrfReranker

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.recover.similarities import Scores
    from rnnreranker.runs import Run

COLLECTIVE = {"collective": False, "collective-positives": True}  # whether the visible positive gives feedback
CONTEXT = "context"  # a setting of rerankers: here every candidate of the context is scored


class Teacher(NamedTuple):
    """A name of `known`, and the reranker with its settings."""

    name: str
    chosen: Chosen


def known() -> list[str]:
    """Names of teachers: rerankers that read no run scores, and the collective teacher."""
    return [*COLLECTIVE, *(name for name, kind in methods("reranker").items() if "run scores" not in kind.needs)]


def choose_teacher(form: Form) -> Teacher:
    """The teacher of a written form: `late`, `collective:fb_clusters=24`, `cross-encoder:model=NAME`.

    Raises:
        InputError: an unknown teacher or setting, values out of range.
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
    """The needs of some teachers together."""
    return needs_together(one.chosen for one in teachers)


def scores_of(
    teachers: Sequence[Teacher],
    index: IndexOnDisk,
    run: Run,
    topics: Mapping[str, str],
    **how: Any,
) -> tuple[Callable[[str, Sequence[str], np.ndarray], Scores], dict[str, Any]]:
    """A function (qid, n docids, R positives) → name → (R, n) float64 scores, and name → the teacher's description.

    Args:
        run: the candidates, all of which are scored; topics: texts of its queries.
        how: documents, fields, encoded_queries and threads, as in `SearchRequest`.

    Raises:
        InputError: an index without a needed part, and errors of the rerankers.
    """
    from rnnreranker.parts.tokens.source import query_tokens
    from rnnreranker.search.pipeline import open_pipeline
    from rnnreranker.search.request import check
    from rnnreranker.search.searching import read_queries, request_of

    deepest = int(np.diff(run.offsets).max(initial=1))
    reranked: dict[str, dict[str, dict[str, float]]] = {}
    knowing: dict[str, PrfReranker] = {}
    described: dict[str, Any] = {}
    for name, chosen in teachers:
        if COLLECTIVE.get(name):
            tokens = index.token_vectors
            inputs = Inputs(tokens=tokens, query_tokens=query_tokens(tokens, topics, how.get("threads")))
            knowing[name] = PrfReranker(inputs, chosen.params, threads=how.get("threads"))
            described[name] = knowing[name].describe()
            continue
        settings = chosen.params.to_dict()
        settings |= {CONTEXT: deepest} if CONTEXT in settings else {}
        unread = () if "texts" in chosen.needs else ("documents", "fields")
        own = {key: value for key, value in how.items() if key not in unread}
        request = request_of(index, topics, run=run, rerank=Written(chosen.name, settings), hits=deepest, **own)
        check(request)
        asked, given = read_queries(request)
        pipeline = open_pipeline(request, asked, None, given)
        reranked[name] = pipeline.stages(given)[-1].as_written().to_dict()
        described[name] = pipeline.rerankers[0].describe()

    def of(qid: str, docids: Sequence[str], positives: np.ndarray) -> Scores:
        scores = {}
        for name, _ in teachers:
            if name in knowing:
                query, candidates = knowing[name].alone(qid, docids)
                rows = [knowing[name].scores_knowing(query, candidates, [number]) for number in positives.tolist()]
                scores[name] = np.array(rows)
            else:
                own = np.array([reranked[name][qid][docid] for docid in docids])
                scores[name] = np.broadcast_to(own, (len(positives), len(own)))
        return scores

    return of, described
