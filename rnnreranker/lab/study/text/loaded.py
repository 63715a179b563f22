"""What a study of models that read texts works on, from the arguments of its command."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find
from rnnreranker.base.method_flags import given_of
from rnnreranker.lab.study.dual.arms import DualArm
from rnnreranker.lab.study.dual.setting import DualSetting
from rnnreranker.lab.study.late.arms import LateArm
from rnnreranker.lab.study.late.setting import LateSetting
from rnnreranker.lab.study.retrieved import inputs_of, retrieved
from rnnreranker.lab.study.tasks import Task, tasks_of
from rnnreranker.lab.study.text.arms import MODELS, TextArm
from rnnreranker.lab.study.text.setting import CrossSetting, SparseSetting, TextSetting
from rnnreranker.train.group.params import GroupParams, OneLengthParams

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.search.indexes import Index

SETTINGS = {kind.model: kind for kind in (CrossSetting, SparseSetting, LateSetting, DualSetting)}
RERANKED = 100  # candidates of the test, where nothing is said


@dataclass(frozen=True, eq=False)
class LoadedTexts:
    """A study that can be run.

    Attributes:
        setting: what all trials share.
        tasks: every task with every seed.
        groups: test query → group; empty where there are none.
        fingerprints: of what was read, by name.
    """

    setting: TextSetting
    tasks: list[Task]
    groups: Mapping[str, str]
    fingerprints: dict[str, str]


def load_text_study(
    args: argparse.Namespace, params: GroupParams, arms: Sequence[TextArm | LateArm | DualArm]
) -> LoadedTexts:
    """Read topics, judgements and documents, cut tasks, and retrieve the candidates of all topics.

    Args:
        args: of the command.
        params: of the trainings; their `validation_share` is held out.
        arms: what is trained; the filter or the labels of one ask for parts of the index.

    Raises:
        InputError: files that cannot be read or do not belong together, no --encoder, an index without the parts.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.evaluate.measures import deepest_cutoff
    from rnnreranker.parts.texts import documents_of
    from rnnreranker.search.indexes import open_index

    if not args.encoder:
        raise InputError(f"--arms {args.arms}: --encoder is missing: the model that the trainings begin with")
    stages = tuple(args.first_stages)
    needs = {need for name in stages for need in find("retriever", name).needs} - {"topics", "query vectors"}
    read = frozenset(need for arm in arms for need in arm.needs)
    index = open_index(args.index, needs=needs | (read - {"topics", "texts", "query vectors"}))
    topics, qrels = load_topics(args.topics), load_qrels(args.qrels)
    tasks, tested = tasks_of(args, topics, qrels, params.validation_share)
    texts = tasks[0].topics
    queries = _query_vectors(args, index, texts) if "query vectors" in read or "dense" in stages else None
    inputs = inputs_of(index, texts, queries)
    tested_first = args.test_candidates or RERANKED
    depth = max(params.depth, tested_first, params.validation_candidates)
    runs = {name: retrieved(name, inputs, depth, args.jobs) for name in stages}
    if index.texts is None:
        raise InputError(f"{index.name}: no texts in this index; make it with python -m rnnreranker.index")
    documents = {document.docid: document.text for document in documents_of(index.texts)}
    kind: type[TextSetting] = SETTINGS[MODELS[args.arms]]
    setting = kind(
        args.encoder,
        runs,
        stages[-1],
        documents,
        fingerprint(list(documents.items())),
        tested,
        args.measures,
        args.protocol,
        queries if "query vectors" in read else None,
        index.vectors if "vectors" in read else None,
        max(tested_first, deepest_cutoff(args.measures)),
        params.max_length if isinstance(params, OneLengthParams) else None,
        given_of(args, "loss"),
        **kind.more(args, params, index, read),
    )
    return LoadedTexts(setting, tasks, tasks[0].groups, {"index": setting.index})


def _query_vectors(args: argparse.Namespace, index: Index, topics: Mapping[str, str]) -> QueryVectors:
    """The vectors of all topics by the encoder that made the index: --encoder is what is trained."""
    from rnnreranker.search.queries import QueryEncoding, query_vectors

    return query_vectors(QueryEncoding.of(None, None, args.topics), index, topics, threads=args.jobs)
