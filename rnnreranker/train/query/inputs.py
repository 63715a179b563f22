"""What a training reads, from the arguments of its command: labels, texts, vectors, and the queries that validate."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.train.params import TrainParams
from rnnreranker.train.query.samples import check_index

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run

GIVEN = ("validation_run", "validation_topics", "validation_qrels")


class TrainingInputs(NamedTuple):
    """Labels and texts of the training queries, vectors of documents, labels of the validation queries if given."""

    labels: SoftLabels
    topics: Mapping[str, str]
    source: VectorSource
    validation: SoftLabels | None


def load_inputs(args: argparse.Namespace, params: TrainParams) -> TrainingInputs:
    """Everything that the arguments name.

    Raises:
        InputError: files that cannot be read or do not belong together, half of the validation flags.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.labels import SoftLabels
    from rnnreranker.runs import Run
    from rnnreranker.search.indexes import open_index

    check_validation(args)
    labels, topics = SoftLabels.read(args.labels), load_topics(args.topics)
    validation = SoftLabels.read(args.validation_labels) if args.validation_labels else None
    texts = load_topics(args.validation_topics) if args.validation_topics else {}
    if args.validation_run:
        run, qrels = Run.read(args.validation_run), load_qrels(args.validation_qrels)
        validation = hard_labels(run, texts, qrels, params.validation_queries)
        texts = {qid: texts[qid] for qid in validation.qids}
    if other := [qid for qid, text in texts.items() if topics.get(qid, text) != text]:
        raise InputError(
            f"{args.validation_topics}: query {other[0]} has another text in {args.topics}; expected one text for an id"
        )
    source = open_index(args.index).vectors
    if not args.other_index:
        check_index(labels, source, args.labels, f"--index {args.index}")
        if args.validation_labels and validation is not None:
            check_index(validation, source, args.validation_labels, f"--index {args.index}")
    return TrainingInputs(labels, {**texts, **topics}, source, validation)


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


def check_validation(args: argparse.Namespace) -> None:
    """Refuse two kinds of validation queries at once, and half of one."""
    flags = {name: "--" + name.replace("_", "-") for name in GIVEN}
    if args.validation_labels:
        if both := [flags[name] for name in ("validation_run", "validation_qrels") if getattr(args, name)]:
            raise InputError(f"--validation-labels and {both[0]}: expected one of them; labels name their candidates")
        return
    lacking = [flag for name, flag in flags.items() if not getattr(args, name)]
    if lacking and len(lacking) < len(flags):
        raise InputError(f"{', '.join(lacking)} missing: {', '.join(flags.values())} go together")
