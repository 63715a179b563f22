"""Tasks of a study: sparse positives of some queries for training, all judgements of others for the test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.splits import FOLDS, PARTS, parts_of
from rnnreranker.data.topics import check_held_out

if TYPE_CHECKING:
    import pandas

SEEN, UNSEEN = "a positive is a training query's too", "no positive is a training query's"


@dataclass(frozen=True, eq=False)
class Task:
    """A training set and its test queries.

    Attributes:
        name: "fold 2 of 5", "transfer", ….
        seed: draws the positives and the validation queries.
        topics: query id → text of all queries.
        positives: one positive (or all) with grade 1, for each training and validation query.
        validation: ids of the queries that choose the best step. test: ids of the test queries.
        groups: test query → group with rows of its own; may be empty.
        known: all positives of the validation queries; only the learning of the mass reads them.
    """

    name: str
    seed: int
    topics: Mapping[str, str]
    positives: pandas.DataFrame
    validation: frozenset[str]
    test: tuple[str, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    known: pandas.DataFrame | None = None

    def part(self, validation: bool) -> pandas.DataFrame:
        """The positives of the validation queries, or of the others."""
        chosen: pandas.DataFrame = self.positives[self.positives["query_id"].isin(self.validation) == validation]
        return chosen


def tasks_of(
    request: Any, topics: Mapping[str, str], qrels: pandas.DataFrame, share: float
) -> tuple[list[Task], pandas.DataFrame]:
    """Every task of a study for every seed, and the judgements of the test queries.

    Args:
        request: a `StudyRequest`; share: the share of training queries that validate.

    Raises:
        InputError: unreadable test topics, no query with a positive, more folds than queries.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    given: dict[str, Any] = {"share": share, "relevant": request.relevant, "labelled": request.labelled_queries}
    made: list[Task] = []
    tested = qrels if request.test_qrels is None else qrels_of(request.test_qrels)
    other = {} if request.test_topics is None else topics_of(request.test_topics)
    for seed in range(request.seeds):
        if request.splits:
            first = request.folds or FOLDS
            made += split_tasks(topics, qrels, request.splits, first, seed, relevant=request.relevant)
        elif request.test_topics is not None:
            made.append(transfer_task(topics, qrels, other, tested, seed, **given))
        else:
            made += fold_tasks(topics, qrels, request.folds or 5, seed, **given)
    return made, tested


def fold_tasks(
    topics: Mapping[str, str],
    qrels: pandas.DataFrame,
    folds: int,
    seed: int,
    *,
    share: float,
    relevant: int = 1,
    labelled: int | None = None,
) -> list[Task]:
    """Tasks of a cross-validation: train on one random positive of each query of the other folds.

    Folds are the same for every seed. Topics without a positive are left out.

    Args:
        share: of the training queries that validate.
        labelled: number of training and validation queries; None = all.

    Raises:
        InputError: fewer than 2 folds, fewer queries with a positive than folds, too many labelled queries.
    """
    usable = with_positive(topics, qrels, relevant)
    if not 2 <= folds <= len(usable):
        raise InputError(f"{argument('folds', folds)}: expected at least 2, and at most one per query ({len(usable)})")
    ordered, tasks = sorted(usable, key=lambda qid: (fingerprint("fold", qid), qid)), []
    for fold in range(folds):
        tested = set(ordered[fold::folds])
        training = _labelled([qid for qid in usable if qid not in tested], labelled, seed)
        name, test = f"fold {fold + 1} of {folds}", [qid for qid in usable if qid in tested]
        tasks.append(task_of(name, seed, usable, qrels, training, test, share=share, relevant=relevant))
    return tasks


def transfer_task(
    topics: Mapping[str, str],
    qrels: pandas.DataFrame,
    test_topics: Mapping[str, str],
    test_qrels: pandas.DataFrame,
    seed: int,
    *,
    share: float,
    relevant: int = 1,
    labelled: int | None = None,
) -> Task:
    """Train on one positive of each query of one set, test on another set.

    Test queries that share a positive with a training query form a group.

    Raises:
        InputError: no query with a positive, a query id in both sets, too many labelled queries.
    """
    usable, tested = with_positive(topics, qrels, relevant), with_positive(test_topics, test_qrels, relevant)
    check_held_out(usable, tested)
    training = _labelled([*usable], labelled, seed)
    texts = {qid: usable[qid] for qid in training} | tested
    task = task_of("transfer", seed, texts, qrels, training, tested, share=share, relevant=relevant)
    trained, of_test = (of[of["relevance"] >= relevant] for of in (qrels, test_qrels))
    seen = set(trained.loc[trained["query_id"].isin(usable), "doc_id"])
    shared = set(of_test.loc[of_test["doc_id"].isin(seen), "query_id"])
    return replace(task, groups={qid: SEEN if qid in shared else UNSEEN for qid in tested})


def split_tasks(
    topics: Mapping[str, str], qrels: pandas.DataFrame, setting: str, folds: int, seed: int, *, relevant: int = 1
) -> list[Task]:
    """The first folds of paper 004's setting "standard" (60/20/20) or "cold" (20/20/60), see `data.splits`.

    All positives of the training queries are known, as in the paper; the seed is for the trainings.

    Raises:
        InputError: too few queries with a positive, folds outside 1 to 4.
    """
    usable = with_positive(topics, qrels, relevant)
    if not 1 <= folds <= FOLDS:
        raise InputError(f"{argument('folds', folds)}: expected 1 to {FOLDS} with {argument('splits')}")
    parts, tasks = parts_of(usable), []
    for fold in range(1, folds + 1):
        train, checked, tested = (parts[f"{setting}-{fold}-{part}"] for part in PARTS)
        known: dict[str, Any] = {"held_out": checked, "relevant": relevant, "one_each": False}
        named = f"{setting}, fold {fold} of {FOLDS}"
        tasks.append(task_of(named, seed, usable, qrels, [*train, *checked], tested, **known))
    return tasks


def task_of(
    name: str,
    seed: int,
    texts: Mapping[str, str],
    qrels: pandas.DataFrame,
    training: Sequence[str],
    test: Iterable[str],
    *,
    share: float = 0.0,
    held_out: Iterable[str] | None = None,
    relevant: int = 1,
    one_each: bool = True,
) -> Task:
    """A task; the draw of positives does not depend on the order of the judgements.

    Args:
        training: ids of the training queries, those of validation included, each with a positive.
        share, held_out: the share of them that validates, or their ids.
        one_each: whether one random positive of each is known, and not all.
    """
    from rnnreranker.train.request import split

    validation = frozenset(split(training, share, seed) if held_out is None else held_out)
    positive = qrels.loc[qrels["relevance"] >= relevant, ["query_id", "doc_id", "relevance"]]
    drawn = positive.drop_duplicates(["query_id", "doc_id"]).sort_values("doc_id")
    if one_each:
        pairs = zip(drawn["query_id"], drawn["doc_id"], strict=True)
        drawn = drawn.assign(draw=[fingerprint("positive", seed, *pair) for pair in pairs]).sort_values("draw")
        drawn = drawn.drop_duplicates("query_id").drop(columns="draw")
    drawn = drawn.set_index("query_id").loc[list(training)].reset_index().assign(relevance=1)
    known = positive[positive["query_id"].isin(validation)]
    return Task(name, seed, texts, drawn, validation, tuple(test), known=known)


def with_positive(topics: Mapping[str, str], qrels: pandas.DataFrame, relevant: int) -> dict[str, str]:
    """The topics that have a positive; InputError: none has."""
    positive = set(qrels.loc[qrels["relevance"] >= relevant, "query_id"])
    usable = {qid: text for qid, text in topics.items() if qid in positive}
    if not usable:
        raise InputError(f"none of {len(topics)} topics has a judgement of grade {relevant} or more")
    return usable


def _labelled(qids: list[str], count: int | None, seed: int) -> list[str]:
    if count is not None and count > len(qids):
        shown = argument("labelled_queries", count)
        raise InputError(f"{shown}: a task has {len(qids)} queries beside those of its test")
    drawn = set(sorted(qids, key=lambda qid: (fingerprint("labelled", seed, qid), qid))[:count])
    return [qid for qid in qids if qid in drawn]
