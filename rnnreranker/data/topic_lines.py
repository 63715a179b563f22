"""Lines of topics: tab-separated, JSON, or the <top>s of TREC."""

from __future__ import annotations

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.data import trec_text
from rnnreranker.runs.words import check_id


def parse_topics(text: str, source: str) -> dict[str, tuple[str, str]]:
    """Query id to text and narrative ("" where there is none), in their order.

    Args:
        text: lines of `qid<TAB>text[<TAB>narrative]`, of JSON where the name of the source says so, or <top>s of TREC.
        source: where they stand, for messages.

    Raises:
        InputError: a malformed line (with source:line), a query id twice, a query without text, no topics.
    """
    topics: dict[str, tuple[str, str]] = {}
    if text.lstrip().startswith("<top>"):
        return _trec_topics(text, source)
    as_json = source.removesuffix(".gz").endswith((".jsonl", ".json"))
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or (number == 1 and line.startswith("qid\t")):
            continue
        where = f"{source}:{number}"
        qid, query, narrative = _json_topic(line, where) if as_json else _tsv_topic(line, where)
        check_id(qid, "query id", where)
        if qid in topics:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        if not query.strip():
            raise InputError(f"{where}: query {qid} has no text; expected qid<TAB>text")
        topics[qid] = (query.strip(), narrative.strip())
    return not_empty(topics, source)


def _trec_topics(text: str, source: str) -> dict[str, tuple[str, str]]:
    topics: dict[str, tuple[str, str]] = {}
    for where, qid, query, narrative in trec_text.topics(text, source):
        check_id(qid, "query id", where)
        if qid in topics:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        topics[qid] = (query, narrative)
    return not_empty(topics, source)


def _tsv_topic(line: str, where: str) -> tuple[str, str, str]:
    columns = line.split("\t")
    if len(columns) not in (2, 3) or not columns[0].strip():
        blank = " (is there a blank in place of the tab?)" if len(columns) == 1 and " " in line.strip() else ""
        raise InputError(
            f"{where}: {command.counted(len(columns), 'tab-separated column')}{blank}; "
            "expected qid<TAB>text[<TAB>narrative]"
        )
    return columns[0].strip(), columns[1], columns[2] if len(columns) == 3 else ""


def _json_topic(line: str, where: str) -> tuple[str, str, str]:
    record = parse_record(line, where, 'an object with "_id" and "text"')
    qid = record.get("_id", record.get("id"))
    query, narrative = record.get("text", record.get("title")), record.get("narrative") or ""
    if qid is None or query is None:
        raise InputError(f'{where}: keys {sorted(record)}; expected "_id" (or "id") and "text"')
    if type(qid) not in (str, int) or not isinstance(query, str) or not isinstance(narrative, str):
        raise InputError(f"{where}: query id, text or narrative is not a string; expected strings")
    return str(qid), query, narrative


def not_empty(topics: dict[str, tuple[str, str]], source: str) -> dict[str, tuple[str, str]]:
    """The topics; InputError: there are none."""
    if not topics:
        raise InputError(f"{source}: no topics; expected one query a line, qid<TAB>text")
    return topics
