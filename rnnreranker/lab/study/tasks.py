"""What a study trains on and tests on: sparse positives of some queries, all judgements of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    """One training set and the queries it is tested on.

    Attributes:
        name: "fold 2 of 5", "transfer".
        seed: that chose the positives and the validation queries.
        topics: query id to text, of all queries below.
        positives: one judgement of grade 1 a query (or all of them), of training and validation queries.
        validation: ids of the queries that are held out of training to choose the best step.
        test: ids of the test queries.
        groups: test query → group that is reported apart; empty where there are none.
        known_of_validation: (query id, docid, grade) of all positives of the validation queries, from which arms learn
            how much probability leaves the positives; nothing else reads more than one of a query.
    """

    name: str
    seed: int
    topics: Mapping[str, str]
    positives: pandas.DataFrame
    validation: frozenset[str]
    test: tuple[str, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    known_of_validation: tuple[tuple[str, str, int], ...] = ()

    def part(self, validation: bool) -> pandas.DataFrame:
        """The positives of the validation queries, or of the others."""
        chosen: pandas.DataFrame = self.positives[self.positives["query_id"].isin(self.validation) == validation]
        return chosen

    def known(self, validation: bool) -> dict[str, set[str]]:
        """Query id → its positives, of the validation queries, or of the others."""
        positives: dict[str, set[str]] = {}
        for qid, docid in self.part(validation)[["query_id", "doc_id"]].itertuples(index=False):
            positives.setdefault(qid, set()).add(docid)
        return positives


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
    """Every query is tested once, by an encoder that was trained on one random positive of each query of other folds.

    The folds are the same for every seed; the positives, the labelled queries and those of validation are drawn by it.
    Topics without a positive are neither trained on nor tested.

    Args:
        share: of the training queries that is held out for validation.
        relevant: grades from here on are positive.
        labelled: queries of the other folds that are trained on or held out for validation; None = all.

    Raises:
        InputError: fewer queries with a positive than there are folds, fewer than 2 folds, too many labelled queries.
    """
    usable = _with_positive(topics, qrels, relevant)
    if not 2 <= folds <= len(usable):
        raise InputError(f"{argument('folds', folds)}: expected at least 2, and at most one per query ({len(usable)})")
    ordered = sorted(usable, key=lambda qid: (fingerprint("fold", qid), qid))
    tasks = []
    for fold in range(folds):
        tested = set(ordered[fold::folds])
        training = _labelled([qid for qid in usable if qid not in tested], labelled, seed)
        held_out = _held_out(training, share, seed)
        tasks.append(
            Task(
                f"fold {fold + 1} of {folds}",
                seed,
                {qid: topics[qid] for qid in usable},
                one_positive(qrels, training, seed, relevant),
                held_out,
                tuple(qid for qid in usable if qid in tested),
                known_of_validation=_known(qrels, held_out, relevant),
            )
        )
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
    """Train on one positive of each query (or of `labelled` queries) of one set, test on another.

    Test queries with a positive that some training query has too, whether drawn or not, are a group.

    Raises:
        InputError: no query with a positive in either set, one id in both, or more labelled queries than there are.
    """
    usable = _with_positive(topics, qrels, relevant)
    tested = _with_positive(test_topics, test_qrels, relevant)
    check_held_out(usable, tested)
    training = _labelled(usable, labelled, seed)
    seen = {docid for qid, docids in _positives(qrels, relevant).items() if qid in topics for docid in docids}
    of_test = _positives(test_qrels, relevant)
    held_out = _held_out(training, share, seed)
    return Task(
        "transfer",
        seed,
        {**{qid: topics[qid] for qid in training}, **{qid: test_topics[qid] for qid in tested}},
        one_positive(qrels, training, seed, relevant),
        held_out,
        tuple(tested),
        {qid: SEEN if of_test[qid] & seen else UNSEEN for qid in tested},
        _known(qrels, held_out, relevant),
    )


def split_tasks(
    topics: Mapping[str, str], qrels: pandas.DataFrame, setting: str, folds: int, seed: int, *, relevant: int = 1
) -> list[Task]:
    """The first folds of paper 004's setting "standard", 60/20/20, or "cold", 20/20/60, in the parts of `data.splits`.

    All positives of the training queries are known, as in the paper, not one of them; the seed is of the trainings.

    Raises:
        InputError: no query with a positive or fewer than five different ones, folds other than 1 to 4.
    """
    import pandas

    usable = _with_positive(topics, qrels, relevant)
    if not 1 <= folds <= FOLDS:
        raise InputError(f"{argument('folds', folds)}: expected 1 to {FOLDS} with {argument('splits')}")
    parts, positive = parts_of({qid: topics[qid] for qid in usable}), _positives(qrels, relevant)
    tasks = []
    for fold in range(1, folds + 1):
        train, held_out, tested = (parts[f"{setting}-{fold}-{part}"] for part in PARTS)
        rows = [(qid, docid, 1) for qid in (*train, *held_out) for docid in sorted(positive[qid])]
        tasks.append(
            Task(
                f"{setting}, fold {fold} of {FOLDS}",
                seed,
                {qid: topics[qid] for qid in usable},
                pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]),
                frozenset(held_out),
                tuple(tested),
                known_of_validation=_known(qrels, frozenset(held_out), relevant),
            )
        )
    return tasks


def one_positive(qrels: pandas.DataFrame, qids: list[str], seed: int, relevant: int = 1) -> pandas.DataFrame:
    """One positive of every query, drawn by the seed whatever the order of the judgements, with grade 1."""
    import pandas

    positives = _positives(qrels, relevant)
    rows = [
        (qid, min(positives[qid], key=lambda docid: (fingerprint("positive", seed, qid, docid), docid)), 1)
        for qid in qids
    ]
    return pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])


def _with_positive(topics: Mapping[str, str], qrels: pandas.DataFrame, relevant: int) -> list[str]:
    positive = _positives(qrels, relevant)
    usable = [qid for qid in topics if qid in positive]
    if not usable:
        raise InputError(f"none of {len(topics)} topics has a judgement of grade {relevant} or more")
    return usable


def _labelled(qids: list[str], count: int | None, seed: int) -> list[str]:
    """As many of the queries, drawn by the seed, in their order."""
    if count is None:
        return qids
    if count > len(qids):
        shown = argument("labelled_queries", count)
        raise InputError(f"{shown}: a task has {len(qids)} queries beside those of its test")
    drawn = set(sorted(qids, key=lambda qid: (fingerprint("labelled", seed, qid), qid))[:count])
    return [qid for qid in qids if qid in drawn]


def _known(qrels: pandas.DataFrame, qids: frozenset[str], relevant: int) -> tuple[tuple[str, str, int], ...]:
    """All judgements of grade `relevant` or more of some queries, in their order."""
    chosen = qrels[qrels["query_id"].isin(qids) & (qrels["relevance"] >= relevant)]
    return tuple(chosen[["query_id", "doc_id", "relevance"]].itertuples(index=False, name=None))


def _positives(qrels: pandas.DataFrame, relevant: int) -> dict[str, set[str]]:
    """Query → docids of grade `relevant` or more."""
    positives: dict[str, set[str]] = {}
    for qid, docid, grade in qrels[["query_id", "doc_id", "relevance"]].itertuples(index=False):
        if grade >= relevant:
            positives.setdefault(qid, set()).add(docid)
    return positives


def _held_out(qids: list[str], share: float, seed: int) -> frozenset[str]:
    from rnnreranker.train.query.samples import split

    return frozenset(split(qids, share, seed))
