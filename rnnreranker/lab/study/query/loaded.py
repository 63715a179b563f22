"""What a study works on, from the arguments of its command: topics, judgements, base vectors, candidates and tasks."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from rnnreranker.base.method import find
from rnnreranker.base.method_flags import given_of
from rnnreranker.lab.study.query.setting import QuerySetting
from rnnreranker.lab.study.retrieved import DEPTH, fused_scores, inputs_of, retrieved
from rnnreranker.lab.study.tasks import Task, tasks_of
from rnnreranker.search.flags import encoding
from rnnreranker.train.params import TrainParams


@dataclass(frozen=True, eq=False)
class Loaded:
    """A study that can be run.

    Attributes:
        setting: what all trials share.
        tasks: every task with every seed.
        groups: test query → group; empty where there are none.
        fingerprint: of the document vectors.
    """

    setting: QuerySetting
    tasks: list[Task]
    groups: Mapping[str, str]
    fingerprint: str


def load_study(args: argparse.Namespace, params: TrainParams) -> Loaded:
    """Read topics and judgements, encode the topics, retrieve their candidates, and cut tasks.

    Args:
        args: of the command.
        params: of the trainings; its `validation_share` is held out.

    Raises:
        InputError: files that cannot be read or do not belong together, an index that does not name its encoder.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.evaluate.measures import deepest_cutoff
    from rnnreranker.labels import LabelParams
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.rnn import RnnParams
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.queries import query_vectors, trained_encoder

    stages = args.first_stages if args.arms == "labels" and "run" in args.methods else ()
    needs = {need for name in stages for need in find("retriever", name).needs} - {"topics", "query vectors"}
    index = open_index(args.index, needs=needs | {"vectors"} if stages else ())
    encoder, said = trained_encoder(args.encoder, index)
    topics, qrels = load_topics(args.topics), load_qrels(args.qrels)
    tasks, tested = tasks_of(args, topics, qrels, params.validation_share)
    texts = tasks[0].topics
    queries = query_vectors(encoding(args), index, texts, threads=args.jobs)
    deepest = max(params.candidates, args.context, *(args.counts if args.arms == "candidates" else ()))
    run = dense_run(index.vectors, queries, deepest, threads=args.jobs, batch_size=256)
    taught = None
    if stages:
        inputs = inputs_of(index, texts, queries)
        taught = fused_scores(run, [retrieved(name, inputs, DEPTH, args.jobs) for name in stages])
    setting = QuerySetting(
        args.index,
        encoder,
        queries,
        run,
        tested,
        args.measures,
        args.protocol,
        dataclasses.replace(RnnParams.preset("vectors"), context=args.context),
        LabelParams(),
        hits=deepest_cutoff(args.measures),
        pooling=said.get("pooling"),
        normalize=said.get("normalize"),
        loss_values=given_of(args, "loss"),
        taught=taught,
    )
    return Loaded(setting, tasks, tasks[0].groups, index.vectors.fingerprint)
