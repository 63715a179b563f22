"""Tasks of a study: sparse positives of some queries for training, all judgements of others for the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import fingerprint
from rnnreranker.data.splits import FOLDS, PARTS, by_hash, parts_of
from rnnreranker.data.topics import check_held_out
from rnnreranker.train.request import split as split_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.lab.study.request import StudyRequest

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
        known: all positives of the validation queries; only the learning of the mass reads them.
        groups: test query → group with rows of its own; may be empty.
    """

    name: str
    seed: int
    topics: Mapping[str, str]
    positives: pandas.DataFrame
    validation: frozenset[str]
    test: tuple[str, ...]
    known: pandas.DataFrame
    groups: Mapping[str, str]

    def part(self, validation: bool) -> pandas.DataFrame:
        """The positives of the validation queries, or of the others."""
        return self.positives[self.positives["query_id"].isin(self.validation) == validation]


def tasks_of(
    request: StudyRequest, topics: Mapping[str, str], qrels: pandas.DataFrame
) -> tuple[list[Task], pandas.DataFrame]:
    """Every task of a study for every seed, and the judgements of the test queries.

    Topics without a positive are left out. Folds, the default, are the same for every seed; a task knows one random
    positive of each query of the other folds, or all. On other test topics, those that share a positive with a training
    query form a group. `splits` are the first folds of paper 004's "standard" (60/20/20) or "cold" (20/20/60), see
    `data.splits`; all positives are known, as in the paper, and the seed is for the trainings.

    Raises:
        InputError: unreadable test topics, no query with a positive, too few queries, a query in training and test.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    relevant = request.relevant
    texts, tested, groups = with_positive(topics, qrels, relevant), qrels, dict[str, str]()
    usable = [*texts]
    if request.test_topics is not None:
        tested = qrels_of(request.test_qrels)  # type: ignore[arg-type]  # `check` refuses None
        other = with_positive(topics_of(request.test_topics), tested, relevant)
        check_held_out(texts, other)
        seen, of_test = (_positive(one, relevant).set_index("doc_id")["query_id"] for one in (qrels, tested))
        shared = set(of_test[of_test.index.isin(seen[seen.isin(usable)].index)])
        groups = {qid: SEEN if qid in shared else UNSEEN for qid in other}
        parts: Any = [("transfer", usable, other, None)]
        texts |= other
    elif request.splits:
        if not 1 <= (folds := request.folds or FOLDS) <= FOLDS:
            raise InputError(f"{argument('folds', folds)}: expected 1 to {FOLDS} with {argument('splits')}")
        split, parts = parts_of(texts), []
        for fold in range(1, folds + 1):
            train, checked, test = (split[f"{request.splits}-{fold}-{part}"] for part in PARTS)
            parts.append((f"{request.splits}, fold {fold} of {FOLDS}", [*train, *checked], test, checked))
    else:
        if not 2 <= (folds := request.folds or 5) <= len(usable):
            most = f"at most one per query ({len(usable)})"
            raise InputError(f"{argument('folds', folds)}: expected at least 2, and {most}")
        ordered, parts = by_hash(usable, "fold"), []
        for fold in range(folds):
            held = {*ordered[fold::folds]}
            others, test = ([qid for qid in usable if (qid in held) == own] for own in (False, True))
            parts.append((f"fold {fold + 1} of {folds}", others, test, None))
    positive = _positive(qrels, relevant)
    made = []
    for seed in range(request.seeds):
        for name, training, test, held_out in parts:
            labelled = _labelled(training, request.labelled_queries, seed)
            validation = split_of(labelled, request.share, seed) if held_out is None else held_out
            known = _known(positive, labelled, None if request.splits or request.all_positives else seed)
            of_checked = positive[positive["query_id"].isin(validation)]
            made.append(Task(name, seed, texts, known, frozenset(validation), tuple(test), of_checked, groups))
    return made, tested


def _known(positive: pandas.DataFrame, queries: Sequence[str], seed: int | None) -> pandas.DataFrame:
    """The positives that training knows, with grade 1; seed: draws one of each query, whatever their order."""
    drawn = positive.drop_duplicates(["query_id", "doc_id"]).sort_values("doc_id")
    if seed is not None:
        pairs = zip(drawn["query_id"], drawn["doc_id"], strict=True)
        drawn = drawn.assign(draw=[fingerprint("positive", seed, *pair) for pair in pairs]).sort_values("draw")
        drawn = drawn.drop_duplicates("query_id").drop(columns="draw")
    return drawn.set_index("query_id").loc[list(queries)].reset_index().assign(relevance=1)


def with_positive(topics: Mapping[str, str], qrels: pandas.DataFrame, relevant: int) -> dict[str, str]:
    """The topics that have a positive; InputError: none has."""
    positive = set(_positive(qrels, relevant)["query_id"])
    usable = {qid: text for qid, text in topics.items() if qid in positive}
    if not usable:
        raise InputError(f"none of {len(topics)} topics has a judgement of grade {relevant} or more")
    return usable


def _positive(qrels: pandas.DataFrame, relevant: int) -> pandas.DataFrame:
    return qrels.loc[qrels["relevance"] >= relevant, ["query_id", "doc_id", "relevance"]]


def _labelled(qids: list[str], count: int | None, seed: int) -> list[str]:
    if count is not None and count > len(qids):
        shown = argument("labelled_queries", count)
        raise InputError(f"{shown}: a task has {len(qids)} queries beside those of its test")
    drawn = set(by_hash(qids, "labelled", seed)[:count])
    return [qid for qid in qids if qid in drawn]
