"""What miniatures are made of: a small real collection, and draws from it that are the same every time.

The queries are the collection's own, with its judgements, and behind them one for each other document: its first
sentence, without the words of its name, to which that document is relevant. So there are as many as documents, and
whatever a recipe trains, validates and tests on can be given queries of its own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.data.documents import load_documents
from rnnreranker.data.names import BUILT_IN_QRELS
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics

Item = TypeVar("Item")
DOCUMENTS, TOPICS = 600, 40
TRAINING = 4  # times as many queries to train on as to test on
WORDS_OF_A_QUERY = 3  # a document with fewer in its first sentence asks nothing


@dataclass(frozen=True)
class Text:
    """A document: its id in the collection, a title of one line, and its whole text."""

    docid: str
    title: str
    text: str


@dataclass(frozen=True)
class SourceQuery:
    """A query, and what is judged for it: number of a document in `Source.documents` → grade from 0 to 3."""

    text: str
    grades: Mapping[int, int]

    @property
    def relevant(self) -> list[int]:
        """The documents judged relevant, the best first."""
        return sorted((one for one, grade in self.grades.items() if grade), key=lambda one: (-self.grades[one], one))


@dataclass(frozen=True)
class Source:
    """A small real collection.

    Attributes:
        name: of the collection it is of.
        documents: the drawn ones.
        queries: the collection's own, then one of each other document; all texts differ, each has a relevant document.
        topics: queries of a test set of a miniature.
    """

    name: str
    documents: tuple[Text, ...]
    queries: tuple[SourceQuery, ...]
    topics: int

    @classmethod
    def of(cls, name: str = "pydoc", documents: int = DOCUMENTS, topics: int = TOPICS) -> Source:
        """The source drawn from a collection: what its queries judge, and others up to `documents`.

        Args:
            name: of documents, topics and judgements, as other commands take them.
            documents: how many are drawn; all where the collection has fewer.
            topics: of a test set; trainings get four times as many.

        Raises:
            InputError: a name that is not known, or too few documents for that many topics.
            UnavailableError: a collection that is not here.
        """
        every = {document.docid: document.text for document in load_documents(name)}
        asked, judged = _judged(name)
        own = dict.fromkeys(docid for grades in judged.values() for docid, grade in grades.items() if docid in every)
        rng = random.Random(fingerprint("documents", name))
        others = sorted(every.keys() - own.keys())
        rng.shuffle(others)
        drawn = sorted([*list(own)[:documents], *others][:documents])
        texts = tuple(Text(docid, _title(every[docid]), every[docid]) for docid in drawn)
        source = cls(name, texts, tuple(_queries(texts, asked, judged)), topics)
        if len(source.queries) < (least := topics * (TRAINING + 4)):
            raise InputError(
                f"{name}: {len(source.queries)} queries with a relevant document among {len(texts)} documents; "
                f"expected {least} or more for {topics} topics: give more documents or fewer topics"
            )
        return source

    def shuffled(self, items: Sequence[Item], *key: object) -> list[Item]:
        """The items in an order that the key says."""
        order = list(items)
        random.Random(fingerprint(self.name, *map(str, key))).shuffle(order)
        return order

    def parts(self, key: str, counts: Mapping[str, int]) -> dict[str, list[SourceQuery]]:
        """Queries in parts that have none in common, as many as asked for or, where there are fewer, that share of all.

        Args:
            key: another key, other parts.
            counts: name of a part → how many.

        Raises:
            InputError: fewer queries than parts.
        """
        queries = self.shuffled(self.queries, "parts", key)
        share = min(1.0, len(queries) / (sum(counts.values()) or 1))
        sizes = {name: int(count * share) for name, count in counts.items()}
        if not all(sizes.values()):
            raise InputError(
                f"{self.name}: {len(queries)} queries; expected {sum(counts.values())} for {', '.join(counts)}"
            )
        rest = iter(queries)
        return {name: [next(rest) for _ in range(size)] for name, size in sizes.items()}

    def graded(self, query: SourceQuery, depth: int = 12) -> dict[int, int]:
        """The judgements of a query as a pool of assessors has them: grades 0 to 3, those of `depth` documents or more.

        Documents that nobody judged get 0, and the first two of these 1 and 2.
        """
        pool = self.shuffled([one for one in range(len(self.documents)) if one not in query.grades], "pool", query.text)
        grades = dict(query.grades)
        for rank, document in enumerate(pool[: max(3, depth - len(grades))]):
            grades[document] = (1, 2)[rank] if rank < 2 else 0
        return dict(sorted((grades | {query.relevant[0]: 3}).items()))


def _judged(name: str) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """Queries and judgements of a collection, those of its training set too where it is built in."""
    asked: dict[str, str] = {}
    judged: dict[str, dict[str, int]] = {}
    for one in [name, *(other for other in BUILT_IN_QRELS if other.startswith(f"{name}/"))]:
        asked |= load_topics(one)
        for qid, docid, grade in load_qrels(one).itertuples(index=False):
            judged.setdefault(qid, {})[docid] = int(grade)
    return asked, judged


def _queries(
    texts: Sequence[Text], asked: Mapping[str, str], judged: Mapping[str, Mapping[str, int]]
) -> Iterable[SourceQuery]:
    number_of = {text.docid: number for number, text in enumerate(texts)}
    seen: set[str] = set()
    answered: set[int] = set()
    for qid, text in asked.items():
        grades = {
            number_of[docid]: max(0, min(3, grade))
            for docid, grade in judged.get(qid, {}).items()
            if docid in number_of
        }
        if any(grades.values()) and (plain := " ".join(text.split())) and plain.casefold() not in seen:
            seen.add(plain.casefold())
            answered.update(one for one, grade in grades.items() if grade)
            yield SourceQuery(plain, grades)
    for number, document in enumerate(texts):
        question = _asks(document)
        if number not in answered and len(question.split()) >= WORDS_OF_A_QUERY and question.casefold() not in seen:
            seen.add(question.casefold())
            yield SourceQuery(question, {number: 1})


def _asks(document: Text) -> str:
    """The first sentence that is not the title nor the words of the name."""
    name = _letters(document.docid)
    for line in document.text.splitlines()[1:]:
        if _letters(line) not in (name, ""):
            return re.split(r"(?<=[.!?;:])\s", " ".join(line.split()))[0].rstrip(".!?;:").lower()
    return ""


def _letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]+", text)).casefold()


def _title(text: str) -> str:
    return " ".join(text.partition("\n")[0].split())[:100]
