"""What a training reads, of a request: labels, texts, vectors, and the queries that validate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.query.samples import check_index
from rnnreranker.train.request import labels_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run
    from rnnreranker.train.request import TrainRequest

GIVEN = ("validation_run", "validation_topics", "validation_qrels")


class TrainingInputs(NamedTuple):
    """Labels and texts of the training queries, vectors of documents, labels of the validation queries if given."""

    labels: SoftLabels
    topics: Mapping[str, str]
    source: VectorSource
    validation: SoftLabels | None


def load_inputs(request: TrainRequest, params: TrainParams) -> TrainingInputs:
    """Everything that a request names: of labels, an index and topics at least.

    Raises:
        InputError: files that cannot be read or do not belong together, half of the validation flags.
    """
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index

    assert request.labels is not None
    assert request.index is not None
    assert request.topics is not None
    labels, topics = labels_of(request.labels), topics_of(request.topics)
    validation, texts = validation_of(request, params.validation_queries, topics)
    index = open_index(request.index)
    source, shown = index.vectors, argument("index", index.name)
    if not request.other_index:
        check_index(labels, source, request.shown("labels"), shown)
        if request.validation_labels is not None and validation is not None:
            check_index(validation, source, request.shown("validation_labels"), shown)
    return TrainingInputs(labels, {**texts, **topics}, source, validation)


def validation_of(
    request: TrainRequest, queries: int, topics: Mapping[str, str]
) -> tuple[SoftLabels | None, dict[str, str]]:
    """The labels of the validation queries that were given, None = none, and the texts of these.

    Args:
        queries: how many of a run are taken, at most; topics: texts of the training queries.

    Raises:
        InputError: as `check_validation`, files that cannot be read, a query with two texts.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.runs import Run

    check_validation(request)
    labels = None if request.validation_labels is None else labels_of(request.validation_labels)
    texts = {} if request.validation_topics is None else topics_of(request.validation_topics)
    if request.validation_run is not None and request.validation_qrels is not None:
        run = request.validation_run if isinstance(request.validation_run, Run) else Run.read(request.validation_run)
        labels = hard_labels(run, texts, qrels_of(request.validation_qrels), queries)
        texts = {qid: texts[qid] for qid in labels.qids}
    if other := [qid for qid, text in texts.items() if topics.get(qid, text) != text]:
        raise InputError(
            f"{request.shown('validation_topics')}: query {other[0]} has another text in {request.shown('topics')}; "
            "expected one text for an id"
        )
    return labels, texts


def hard_labels(run: Run, topics: Mapping[str, str], qrels: pandas.DataFrame, queries: int) -> SoftLabels:
    """The original labels of validation queries over the candidates of a run, positives that it lacks put in.

    The papers validate on 10,000 queries of the development set with one relevance level (000, A.2.1; 001, 3.2).

    Args:
        topics: of more queries, perhaps; the first of them that have a judgement of grade 1 or more are taken.
        queries: how many, at most.

    Raises:
        InputError: none of the topics has such a judgement, or none of those with one has candidates.
    """
    from rnnreranker.labels.methods.base import make_labeler

    positive = set(qrels.loc[qrels["relevance"] >= 1, "query_id"])
    chosen = [qid for qid in topics if qid in positive][:queries]
    if not chosen:
        raise InputError(
            f"none of {counted(len(topics), 'validation topic')} has a judgement of grade 1 or more; "
            "give topics and judgements of the same queries"
        )
    known = [qid for qid in chosen if qid in run]
    if not known:
        raise InputError(
            f"the validation run has no candidates of the validation topics (first: {', '.join(chosen[:3])}); "
            "give a run that was retrieved for them"
        )
    if len(known) < len(chosen):
        left = counted(len(chosen) - len(known), "validation query", "validation queries")
        say(f"{left} without candidates left out")
    return make_labeler("hard", Inputs()).infer(run, qrels[qrels["query_id"].isin(known)])


def check_validation(request: TrainRequest) -> None:
    """Refuse two kinds of validation queries at once, and half of one."""
    if request.validation_labels is not None:
        both = [name for name in ("validation_run", "validation_qrels") if getattr(request, name) is not None]
        if both:
            shown = f"{argument('validation_labels')} and {argument(both[0])}"
            raise InputError(f"{shown}: expected one of them; labels name their candidates")
        return
    lacking = request.lacking(*GIVEN)
    if lacking and len(lacking) < len(GIVEN):
        raise InputError(f"{', '.join(lacking)} missing: {', '.join(map(argument, GIVEN))} go together")
