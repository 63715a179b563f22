"""Topics: names or files to the text of each query, and its narrative where one is written."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from rnnreranker import command
from rnnreranker.data import irds, local, trec_text
from rnnreranker.data.names import BUILT_IN_TOPICS, is_file
from rnnreranker.errors import InputError
from rnnreranker.files import read_text
from rnnreranker.files.json_files import parse_record
from rnnreranker.process.phases import phase
from rnnreranker.runs.words import check_id, columns_of


@phase("reading topics")
def load_topics(name: str | Path) -> dict[str, str]:
    """Query id to query text, in the order of the source.

    Args:
        name: a file (TSV of `qid, text[, narrative]`, JSON lines with `_id`/`id` and `text`, or the <top>s of TREC,
            plain or .gz), a folder in BEIR layout (the judged queries of `FOLDER` or `FOLDER:SPLIT`), an ir_datasets
            id or short name, `tripclick-head-val` (and the like), `reqa-squad` (-nq, -cmrc, -drcd), `pydoc` (test
            topics) or `pydoc/train`.

    Raises:
        InputError: unknown name, unreadable file, a malformed line (with file:line), a query id twice, no topics.
        UnavailableError: data that cannot be downloaded here.
    """
    return {qid: text for qid, (text, _) in _topics(str(name)).items()}


def load_narratives(name: str | Path) -> dict[str, str]:
    """Query id to narrative, for the topics that have one; the same names and errors as `load_topics`."""
    return {qid: narrative for qid, (_, narrative) in _topics(str(name)).items() if narrative}


def check_held_out(training: Iterable[str], tested: Iterable[str]) -> None:
    """Refuse query ids that stand on both sides: a figure of theirs would pass for held out.

    Raises:
        InputError: ids in both.
    """
    if twice := sorted(set(training) & set(tested)):
        raise InputError(
            f"{command.counted(len(twice), 'query id')} in both the training and the test topics "
            f"(first: {', '.join(twice[:3])}); expected other queries to test on"
        )


def _topics(name: str) -> dict[str, tuple[str, str]]:
    given, name = name, local.source(name, "topics")
    judged = local.judged_file(given)
    if judged is not None:
        lines = read_text(judged, "qrels file").split("\n")
        asked = {columns_of(line, f"{judged}:{number}")[0] for number, line in enumerate(lines, 1) if line.strip()}
        found = _parse(read_text(name, "topics file"), name)
        return _not_empty({qid: topic for qid, topic in found.items() if qid in asked}, given)
    if is_file(name, "topics"):
        return _parse(read_text(name, "topics file"), name)
    if name in BUILT_IN_TOPICS:
        inside = resources.files("rnnreranker.data").joinpath(BUILT_IN_TOPICS[name])
        return _parse(inside.read_text(encoding="utf-8"), name)
    dataset = irds.load(name)
    with irds.reading(name, "queries"):
        topics = {query.query_id: (query.default_text().strip(), "") for query in dataset.queries_iter()}
    return _not_empty(topics, name)


def _parse(text: str, source: str) -> dict[str, tuple[str, str]]:
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
    return _not_empty(topics, source)


def _trec_topics(text: str, source: str) -> dict[str, tuple[str, str]]:
    topics: dict[str, tuple[str, str]] = {}
    for where, qid, query, narrative in trec_text.topics(text, source):
        check_id(qid, "query id", where)
        if qid in topics:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        topics[qid] = (query, narrative)
    return _not_empty(topics, source)


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


def _not_empty(topics: dict[str, tuple[str, str]], source: str) -> dict[str, tuple[str, str]]:
    if not topics:
        raise InputError(f"{source}: no topics; expected one query a line, qid<TAB>text")
    return topics
