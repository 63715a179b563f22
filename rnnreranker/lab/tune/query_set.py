"""A query set to tune on or to test on: candidates, vectors and judgements, of a request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.lab.tune.kept_contexts import Contexts
from rnnreranker.lab.tune.objective import Objective
from rnnreranker.lab.tune.request import RerankingRequest

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run

Topics = str | Path | Mapping[str, str]


def judged_topics(topics: Topics, qrels: Qrels) -> dict[str, str]:
    """The topics that have judgements: query id to text.

    Raises:
        InputError: files that cannot be read, no topic with a judgement.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    return _judged(topics_of(topics), qrels_of(qrels), topics, qrels)


@phase("reading what to tune on")
def load_objective(
    request: RerankingRequest,
    index: IndexOnDisk,
    topics: Topics,
    qrels: Qrels,
    run: str | Path | Run | None = None,
    encoded: str | Path | None = None,
) -> Objective:
    """The objective of one query set; unjudged topics are left out before anything is encoded.

    Raises:
        InputError: files that cannot be read or do not belong together.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.runs import Run
    from rnnreranker.search.first_stage import first_stage_of
    from rnnreranker.search.own_documents import notice_own
    from rnnreranker.search.queries import QueryEncoding, query_vectors

    judgements, texts = qrels_of(qrels), topics_of(topics)
    chosen = _judged(texts, judgements, topics, qrels)
    how = QueryEncoding.of(request.encoder, encoded, topics, request.devices)
    queries = query_vectors(how, index, texts, chosen, threads=request.threads)
    if run is not None:
        candidates = first_stage_of(run).head(request.hits)
        candidates = Run.from_dict({qid: dict(candidates[qid]) for qid in candidates if qid in chosen})
        if not len(candidates):
            raise InputError(f"{_name(run, 'run')}: none of its queries is a judged topic of {_name(topics, 'topics')}")
        notice_mismatch(candidates, queries, index.vectors)
    else:
        candidates = dense_run(index.vectors, queries, request.hits, threads=request.threads).as_written()
    notice_own(candidates, f"give {argument('run')} of a search with --remove-query to leave it out")
    deepest = int(np.diff(candidates.offsets).max(initial=1))
    contexts = Contexts(candidates, index.vectors, queries, deepest, request.threads)
    return Objective(contexts, judgements, request.measure, request.protocol)


def _judged(texts: Mapping[str, str], judgements: pandas.DataFrame, topics: Topics, qrels: Qrels) -> dict[str, str]:
    judged = set(judgements["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged}
    if not chosen:
        raise InputError(
            f"{_name(qrels, 'qrels')}: judges none of the {len(texts)} topics of {_name(topics, 'topics')}"
        )
    return chosen


def _name(given: Any, name: str) -> str:
    """The file or name that was given, for messages; the argument itself where it is an object."""
    return str(given) if isinstance(given, str | Path) else argument(name)
