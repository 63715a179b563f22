"""Queries to train on, to validate on and to test on, from the arguments of `tune train`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.lab.tune.joint.trial import Test, Trainings
from rnnreranker.lab.tune.query_set import judged_topics
from rnnreranker.search.flags import encoding

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors


def load_trainings(args: argparse.Namespace) -> tuple[Trainings, Test, QueryVectors]:
    """What trials share, the test, and the test queries' vectors by the encoder as it is.

    Args:
        args: of `tune train`.

    Raises:
        InputError: files that cannot be read or do not belong together, too few queries, an index without vectors or
            without the name of its encoder.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import check_held_out, load_topics
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.runs import Run
    from rnnreranker.search.first_stage import read_first_stage
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.queries import query_vectors, trained_encoder
    from rnnreranker.train.query.samples import split

    index = open_index(args.index)
    how = encoding(args)
    encoder, described = trained_encoder(how.encoder, index)
    qrels, texts = load_qrels(args.qrels), load_topics(args.topics)
    usable = _usable(texts, qrels, args)
    if args.test_topics:
        judged, tested = load_qrels(args.test_qrels), judged_topics(args.test_topics, args.test_qrels)
        check_held_out(usable, tested)
        share = args.validation_share
    else:
        chosen = split(usable, args.test_share, args.seed)
        judged, tested = qrels, {qid: texts[qid] for qid in usable if qid in chosen}
        usable = [qid for qid in usable if qid not in chosen]
        share = args.validation_share / (1 - args.test_share)
    checked = split(usable, share, args.seed)
    topics = {qid: texts[qid] for qid in usable}
    vectors = query_vectors(how, index, {**topics, **tested})
    queries, base = (vectors.of(list(some)) for some in (topics, tested))
    if args.run:
        whole = read_first_stage(args.run).head(args.hits)
        if lost := [qid for qid in usable if qid not in whole]:
            raise InputError(f"{args.run}: {len(lost)} of the queries have no candidates (first: {lost[0]})")
        run = Run.from_dict({qid: dict(whole[qid]) for qid in usable})
    else:
        run = dense_run(index.vectors, queries, args.hits, threads=None, batch_size=256)
    trainings = Trainings(
        index.vectors,
        topics,
        queries,
        run,
        qrels,
        tuple(qid for qid in usable if qid not in checked),
        tuple(qid for qid in usable if qid in checked),
        encoder,
        args.method,
        args.relevant,
        pooling=how.settings.pooling or described.get("pooling"),
        normalize=described.get("normalize"),
        device=args.device,
    )
    return trainings, Test(tested, judged, args.measure, args.protocol), base


def _usable(texts: Mapping[str, str], qrels: Any, args: argparse.Namespace) -> list[str]:
    positive = set(qrels.loc[qrels["relevance"] >= args.relevant, "query_id"])
    usable = [qid for qid in texts if qid in positive]
    if len(usable) < 8:
        raise InputError(
            f"{len(usable)} of {len(texts)} topics have a positive in {args.qrels}: too few to cut in three"
        )
    return usable
