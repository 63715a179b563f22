"""Topics of a file: tab-separated, JSON, parquet, or the tags of TREC."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text
from rnnreranker.data import trec_text
from rnnreranker.data.records import TOPICS, Records, form_of, read_records, topic_of
from rnnreranker.runs.words import check_id


def read_topics(path: Path) -> dict[str, tuple[str, str]]:
    """Query id to text and narrative ("" where there is none), in the order of a file.

    Queries without an id that have positive and negative documents, as FlagEmbedding writes them, have their number.

    Raises:
        InputError: a malformed line (with file:line), a query id twice, a query without text, no topics.
    """
    form = form_of(path)
    if form == "tags":
        return collected(trec_text.topics(read_text(path, "topics file"), str(path)), str(path))
    return topics_of_records(read_records(path, TOPICS, form), str(path))


def topics_of_records(records: Records, source: str) -> dict[str, tuple[str, str]]:
    """The same of records; source: where they stand, for messages."""

    def topics() -> Iterable[tuple[str, str, str, str]]:
        for number, (where, record) in enumerate(records, 1):
            values = topic_of(record, number, where)
            yield where, values["id"].strip(), values["text"].strip(), values["narrative"].strip()

    return collected(topics(), source)


def collected(topics: Iterable[tuple[str, str, str, str]], source: str) -> dict[str, tuple[str, str]]:
    """Query id to text and narrative of (file:line, qid, text, narrative).

    Raises:
        InputError: an id that is no word, or twice, a query without text, no topics.
    """
    queries_of: dict[str, tuple[str, str]] = {}
    for where, qid, query, narrative in topics:
        check_id(qid, "query id", where)
        if qid in queries_of:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        if not query:
            raise InputError(f"{where}: query {qid} has no text; expected qid<TAB>text")
        queries_of[qid] = (query, narrative)
    return not_empty(queries_of, source)


def not_empty(topics: dict[str, tuple[str, str]], source: str) -> dict[str, tuple[str, str]]:
    """The topics; InputError: there are none."""
    if not topics:
        raise InputError(f"{source}: no topics; expected one query a line, qid<TAB>text")
    return topics
