"""A query set to tune on or to test on: candidates, vectors and judgements, from the arguments of the command."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.lab.tune.kept_contexts import Contexts
from rnnreranker.lab.tune.objective import Objective
from rnnreranker.search.flags import encoding

if TYPE_CHECKING:
    from rnnreranker.search.indexes import Index


def judged_topics(topics: str, qrels: str) -> dict[str, str]:
    """The topics that have judgements: query id to text.

    Raises:
        InputError: files that cannot be read, no topic with a judgement.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics

    judged, texts = set(load_qrels(qrels)["query_id"].tolist()), load_topics(topics)
    chosen = {qid: text for qid, text in texts.items() if qid in judged}
    if not chosen:
        raise InputError(f"{qrels}: judges none of the {len(texts)} topics of {topics}")
    return chosen


@phase("reading what to tune on")
def load_objective(
    args: argparse.Namespace, index: Index, topics: str, qrels: str, run: str | None, encoded: str | None = None
) -> Objective:
    """The objective of one query set.

    Args:
        args: hits, max_context, measure, protocol, threads, encoder and its settings.
        index: vectors of the documents.
        topics: file, ir_datasets id, or `pydoc`.
        qrels: likewise; unjudged topics are left out before anything is encoded.
        run: candidates; None = retrieve them densely.
        encoded: a .npy file of query vectors in place of encoding.

    Raises:
        InputError: files that cannot be read or do not belong together.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.runs import Run
    from rnnreranker.search.first_stage import read_first_stage
    from rnnreranker.search.queries import query_vectors

    judgements, texts, chosen = load_qrels(qrels), load_topics(topics), judged_topics(topics, qrels)
    queries = query_vectors(replace(encoding(args), encoded=encoded), index, texts, chosen, threads=args.threads)
    if run:
        found = read_first_stage(run).head(args.hits)
        found = Run.from_dict({qid: dict(found[qid]) for qid in found if qid in chosen})
        if not len(found):
            raise InputError(f"{run}: none of its queries is a judged topic of {topics}")
    else:
        found = dense_run(index.vectors, queries, args.hits, threads=args.threads).as_written()
    deepest = min(args.max_context, int(np.diff(found.offsets).max(initial=1)))
    contexts = Contexts(found, index.vectors, queries, deepest, args.threads)
    return Objective(contexts, judgements, args.measure, args.protocol)
