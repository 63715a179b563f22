"""What a study of models that read texts works on: topics, judgements, documents, candidates and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnreranker.base.chosen_method import needs_together
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.lab.study.cut import tasks_of
from rnnreranker.lab.study.dual.arms import DualArm
from rnnreranker.lab.study.dual.setting import DualSetting
from rnnreranker.lab.study.late.arms import LateArm
from rnnreranker.lab.study.late.setting import LateSetting
from rnnreranker.lab.study.request import ARMS, StudyRequest
from rnnreranker.lab.study.retrieved import inputs_of, retrieved
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.text.arms import TextArm
from rnnreranker.lab.study.text.setting import CrossSetting, SparseSetting, TextSetting
from rnnreranker.train.group.params import GroupParams, OneLengthParams

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors

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
    request: StudyRequest, params: GroupParams, arms: Sequence[TextArm | LateArm | DualArm]
) -> LoadedTexts:
    """Read topics, judgements and documents, cut tasks, and retrieve the candidates of all topics.

    Args:
        request: what is asked for.
        params: of the trainings; their `validation_share` is held out.
        arms: what is trained; the filter or the labels of one ask for parts of the index.

    Raises:
        InputError: files that cannot be read or do not belong together, an index without the parts.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.evaluate.measures import deepest_cutoff
    from rnnreranker.index.opening import open_index
    from rnnreranker.parts.texts import documents_of

    assert request.encoder is not None
    stages = request.stages
    needs = needs_together(stages.values())
    read = frozenset(need for arm in arms for need in arm.needs)
    index = open_index(request.index, needs=(needs | read) - {"topics", "texts", "query vectors"})
    topics, qrels = topics_of(request.topics), qrels_of(request.qrels)
    tasks, tested = tasks_of(request, topics, qrels, params.validation_share)
    texts = tasks[0].topics
    queries = _query_vectors(request, index, texts) if "query vectors" in read | needs else None
    inputs = inputs_of(index, texts, queries)
    tested_first = request.test_candidates or RERANKED
    depth = max(params.depth, tested_first, params.validation_candidates)
    runs = {name: retrieved(stage, inputs, depth, request.jobs) for name, stage in stages.items()}
    if index.texts is None:
        raise InputError(f"{index.name}: no texts in this index; make it with python -m rnnreranker.index")
    documents = {document.docid: document.text for document in documents_of(index.texts)}
    kind: type[TextSetting] = SETTINGS[ARMS[request.arms]]
    setting = kind(
        request.encoder,
        runs,
        list(stages)[-1],
        documents,
        fingerprint(list(documents.items())),
        tested,
        request.measures,
        request.protocol,
        queries if "query vectors" in read else None,
        index.vectors if "vectors" in read else None,
        max(tested_first, deepest_cutoff(request.measures)),
        params.max_length if isinstance(params, OneLengthParams) else None,
        request.loss_values,
        **kind.own_attributes(request, params, index, read),
    )
    return LoadedTexts(setting, tasks, tasks[0].groups, {"index": setting.index})


def _query_vectors(request: StudyRequest, index: IndexOnDisk, topics: Mapping[str, str]) -> QueryVectors:
    """The vectors of all topics by the encoder that made the index: that of the request is trained."""
    from rnnreranker.search.queries import QueryEncoding, query_vectors

    return query_vectors(QueryEncoding.of(None, None, request.topics), index, topics, threads=request.jobs)
