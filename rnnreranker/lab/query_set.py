"""What tunings and recoveries read of a query set: candidates, vectors of the queries, judgements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run
    from rnnreranker.search.queries import QueryEncoding

Topics = str | Path | Mapping[str, str]


class JudgedQueries(NamedTuple):
    """Candidates of the judged topics, their vectors, their texts, and the judgements."""

    run: Run
    queries: QueryVectors
    texts: dict[str, str]
    qrels: pandas.DataFrame


def judged_topics(topics: Topics, qrels: Qrels) -> dict[str, str]:
    """The topics with judgements: query id → text.

    Raises:
        InputError: unreadable files, no topic with a judgement.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    texts, judged = topics_of(topics), set(qrels_of(qrels)["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged}
    if not chosen:
        shown = _name(topics, "topics")
        raise InputError(f"{_name(qrels, 'qrels')}: judges none of the {len(texts)} topics of {shown}")
    return chosen


def read_query_set(
    index: IndexOnDisk,
    topics: Topics,
    qrels: Qrels,
    run: str | Path | Run | None,
    encoding: QueryEncoding,
    hits: int,
    threads: int | None,
) -> JudgedQueries:
    """The query set of some topics; topics without judgements or candidates are not encoded.

    Args:
        run: a Run or a file; None = dense retrieval. hits: candidates a query.

    Raises:
        InputError: unreadable files, or files that do not belong together.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.own_documents import notice_own
    from rnnreranker.search.queries import query_vectors
    from rnnreranker.search.searching import first_stage_of

    chosen = judged_topics(topics, qrels)
    whole = None if run is None else first_stage_of(run)
    if whole is not None:
        chosen = {qid: text for qid, text in chosen.items() if qid in whole}
        if not chosen:
            raise InputError(f"{_name(run, 'run')}: none of its queries is a judged topic of {_name(topics, 'topics')}")
    queries = query_vectors(encoding, index, topics_of(topics), chosen, threads=threads)
    if whole is None:
        candidates = dense_run(index.vectors, queries, hits, threads=threads).as_written()
    else:
        candidates = whole.of_queries([qid in chosen for qid in whole.qids]).head(hits)
        notice_mismatch(candidates, queries, index.vectors)
    notice_own(candidates, f"give {argument('run')} of a search with --remove-query to leave it out")
    return JudgedQueries(candidates, queries, chosen, qrels_of(qrels))


def _name(given: Any, name: str) -> str:
    """The given file or name for messages; the argument for an object."""
    return str(given) if isinstance(given, str | Path) else argument(name)
