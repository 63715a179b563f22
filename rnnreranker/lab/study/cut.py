"""The tasks that a study asks for: folds, paper 004's parts, or other queries to test on, each with every seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rnnreranker.data.splits import FOLDS
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.tasks import Task, fold_tasks, split_tasks, transfer_task

if TYPE_CHECKING:
    import pandas


def tasks_of(
    request: StudyRequest, topics: Mapping[str, str], qrels: pandas.DataFrame, share: float
) -> tuple[list[Task], pandas.DataFrame]:
    """Every task with every seed of a study, and the judgements of their test queries.

    Raises:
        InputError: test topics that cannot be read, no query with a positive, more folds than queries.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    seeds, relevant = range(request.seeds), request.relevant
    given: dict[str, Any] = {"share": share, "relevant": relevant, "labelled": request.labelled_queries}
    if request.splits:
        first = request.folds or FOLDS
        parts = (split_tasks(topics, qrels, request.splits, first, seed, relevant=relevant) for seed in seeds)
        return [task for tasks in parts for task in tasks], qrels
    if request.test_topics is None or request.test_qrels is None:
        folds = (fold_tasks(topics, qrels, request.folds or 5, seed, **given) for seed in seeds)
        return [task for tasks in folds for task in tasks], qrels
    other, tested = topics_of(request.test_topics), qrels_of(request.test_qrels)
    transfers = [transfer_task(topics, qrels, other, tested, seed, **given) for seed in seeds]
    return transfers, tested
