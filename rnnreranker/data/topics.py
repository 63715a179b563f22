"""Topics: names, files or mappings to the text of each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError
from rnnreranker.data import irds, local
from rnnreranker.data.names import left_out
from rnnreranker.data.records import read_topics


def topics_of(given: str | Path | Mapping[str, str]) -> dict[str, str]:
    """The topics of a name or file, see `load_topics`, or a mapping qid → text.

    Raises:
        InputError: as `load_topics`; an empty mapping, ids or texts that are no strings.
        UnavailableError: as `load_topics`.
    """
    if not isinstance(given, Mapping):
        return load_topics(given)
    if not given:
        raise InputError("topics: no entries; expected at least one, query id → text")
    for pair in given.items():
        if not all(isinstance(one, str) and one.strip() for one in pair):
            raise InputError("topics: entry {!r}: {!r}; expected query id → text, both texts, none empty".format(*pair))
    return dict(given)


@phase("reading topics")
def load_topics(name: str | Path) -> dict[str, str]:
    """Query id → text, in the order of the source.

    Args:
        name: a file, plain or .gz (TSV of `qid, text`, JSON lines or an array with `_id`/`id` and `text`, parquet
            with these names, TREC's <top>s or XML); a folder in BEIR layout (the judged queries of `FOLDER` or
            `FOLDER:SPLIT`); an ir_datasets id or short name; `tripclick-head-val` (and the like); `reqa-squad` (-nq,
            -cmrc, -drcd); `pydoc` (`pydoc/paraphrase`, `pydoc/symptom`, `pydoc/name` by kind) or `pydoc/train`.
            `NAME:without:OTHER` leaves out the ids of OTHER.

    Raises:
        InputError: an unknown name, a malformed line (with file:line), a query id twice, no topics.
        UnavailableError: data that cannot be downloaded here.
    """
    first, unwanted = without(str(name))
    if files := local.files_of(first, "topics"):
        topics = read_topics(files)
    else:
        topics = {query.query_id: query.default_text().strip() for query in irds.items(first, "queries")}
    beir = local.beir_folder(first)
    judged = {qid for qid, *_ in local.judged(first)} if beir and (beir[0] / "qrels").is_dir() else topics.keys()
    kept = {qid: text for qid, text in topics.items() if qid in judged and qid not in unwanted}
    if not kept:
        of = f" among the {len(topics)} of {files[0]}, as its qrels judge none" if topics and beir else ""
        raise InputError(f"{name}: no topics{of}; expected one query a line, qid<TAB>text")
    return kept


def without(name: str) -> tuple[str, set[str]]:
    """NAME and the query ids of OTHER in `NAME:without:OTHER`.

    Raises:
        InputError, UnavailableError: as `load_topics`.
    """
    first, others = left_out(name)
    return first, {qid for other in others for qid in load_topics(other)}


def check_held_out(training: Iterable[str], tested: Iterable[str]) -> None:
    """Refuse query ids in both the training and the test topics.

    Raises:
        InputError: ids in both.
    """
    if twice := sorted(set(training) & set(tested)):
        raise InputError(
            f"{command.counted(len(twice), 'query id')} in both the training and the test topics "
            f"(first: {', '.join(twice[:3])}); expected other queries to test on"
        )
