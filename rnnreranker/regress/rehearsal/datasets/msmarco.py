"""What the miniatures of MS MARCO share: queries with numbers, in the sets that its versions have in common.

As in the originals: both versions train on the same queries, the first development set of the second version is a part
of the small one of the first, the queries of TREC are in no other set, and of a set's queries some are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker.regress.rehearsal.source import TRAINING, Source, SourceQuery

HOME = "ir_datasets"  # the folder that ir_datasets gets
VARIABLES = {"IR_DATASETS_SKIP_DISK_FREE": "true"}  # it asks for the room that the originals take
FIRST_QID, QID_STEP = 1_000_003, 7


@dataclass(frozen=True)
class NumberedQuery:
    """A query with its number."""

    qid: int
    query: SourceQuery


@dataclass(frozen=True)
class Sets:
    """The queries of each set, none in two of them but those of `dev1`, which are in `dev_small`.

    Attributes:
        train: to learn from.
        dev_small: of the first version's small development set.
        dev1: of these, those of the second version's first one.
        dev2: of the second version's second development set, in the first version's whole one.
        dev_rest: others of that.
        dl19, dl20, dl21: of TREC.
        unjudged: queries that stand with each set and have no judgement.
    """

    train: list[NumberedQuery]
    dev_small: list[NumberedQuery]
    dev1: list[NumberedQuery]
    dev2: list[NumberedQuery]
    dev_rest: list[NumberedQuery]
    dl19: list[NumberedQuery]
    dl20: list[NumberedQuery]
    dl21: list[NumberedQuery]
    unjudged: list[NumberedQuery]

    @property
    def dev(self) -> list[NumberedQuery]:
        """The judged queries of the whole development set of the first version."""
        return [*self.dev_small, *self.dev2, *self.dev_rest]


def sets_of(source: Source) -> Sets:
    """The sets of queries made of a source.

    Raises:
        InputError: a source with too few queries.
    """
    test = source.topics
    few = max(2, test // 2)
    counts = {"train": TRAINING * test, "dev_small": test, "dev2": few, "dev_rest": test}
    counts |= {"dl19": few, "dl20": few, "dl21": few, "unjudged": few}
    number = iter(range(FIRST_QID, FIRST_QID + QID_STEP * len(source.queries) + QID_STEP, QID_STEP))
    parts = {
        name: [NumberedQuery(next(number), query) for query in queries]
        for name, queries in source.parts("msmarco", counts).items()
    }
    return Sets(dev1=parts["dev_small"][: max(1, test // 2)], **parts)


def topic_rows(asked: list[NumberedQuery]) -> list[tuple[object, ...]]:
    """Rows of a file of queries: number, text."""
    return [(one.qid, one.query.text) for one in asked]


def line_of(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())
