"""What a study of query encoders works on: topics, judgements, base vectors, candidates and tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from rnnreranker.base.chosen_method import needs_together
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.cut import tasks_of
from rnnreranker.lab.study.query.setting import QuerySetting
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.retrieved import DEPTH, fused_scores, inputs_of, retrieved
from rnnreranker.lab.study.tasks import Task
from rnnreranker.train.query.params import TrainParams


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


def load_study(request: StudyRequest, params: TrainParams) -> Loaded:
    """Read topics and judgements, encode the topics, retrieve their candidates, and cut tasks.

    Args:
        request: what is asked for.
        params: of the trainings; its `validation_share` is held out.

    Raises:
        InputError: files that cannot be read or do not belong together, an index that does not name its encoder.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.evaluate.measures import deepest_cutoff
    from rnnreranker.index.opening import open_index
    from rnnreranker.labels import LabelParams
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.rnn import RnnParams
    from rnnreranker.search.queries import QueryEncoding, query_vectors, trained_encoder

    fused = request.arms == "labels" and any(Written.read(form).name == "run" for form in request.methods)
    stages = list(request.stages.values()) if fused else []
    needs = needs_together(stages) - {"topics", "query vectors"}
    index = open_index(request.index, needs=needs | {"vectors"} if stages else ())
    encoder, said = trained_encoder(request.encoder, index)
    topics, qrels = topics_of(request.topics), qrels_of(request.qrels)
    tasks, tested = tasks_of(request, topics, qrels, params.validation_share)
    texts = tasks[0].topics
    encoding = QueryEncoding.of(request.encoder, None, request.topics)
    queries = query_vectors(encoding, index, texts, threads=request.jobs)
    deepest = max(params.candidates, request.context, *(request.counts if request.arms == "candidates" else ()))
    run = dense_run(index.vectors, queries, deepest, threads=request.jobs, batch_size=256)
    taught = None
    if stages:
        inputs = inputs_of(index, texts, queries)
        taught = fused_scores(run, [retrieved(stage, inputs, DEPTH, request.jobs) for stage in stages])
    setting = QuerySetting(
        request.index_name,
        encoder,
        queries,
        run,
        tested,
        request.measures,
        request.protocol,
        dataclasses.replace(RnnParams.preset("vectors"), context=request.context),
        LabelParams(),
        hits=deepest_cutoff(request.measures),
        pooling=said.get("pooling"),
        normalize=said.get("normalize"),
        loss_values=request.loss_values,
        taught=taught,
    )
    return Loaded(setting, tasks, tasks[0].groups, index.vectors.fingerprint)
