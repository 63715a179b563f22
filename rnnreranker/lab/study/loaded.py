"""What a study works on: an index, topics with judgements cut into tasks, and what its trials share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rnnreranker.lab.study.cut import tasks_of
from rnnreranker.lab.study.models.base import OF_INPUTS, StudiedModel
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.tasks import Task


@dataclass(frozen=True, eq=False)
class Loaded:
    """A study that can be run.

    Attributes:
        studied: what all trials share.
        tasks: every task with every seed.
        groups: test query → group; empty where there are none.
    """

    studied: StudiedModel
    tasks: list[Task]
    groups: Mapping[str, str]


def load_study(request: StudyRequest) -> Loaded:
    """Read topics and judgements, cut tasks, and read what the trials of the model share.

    Raises:
        InputError: files that cannot be read or do not belong together, an index without the parts that are read.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index

    index = open_index(request.index, needs=request.kind.needs_of(request) - OF_INPUTS)
    topics, qrels = topics_of(request.topics), qrels_of(request.qrels)
    share = getattr(request.training.params, "validation_share", 0.1)
    tasks, tested = tasks_of(request, topics, qrels, share)
    studied = request.kind(request, request.chosen, index, tasks[0].topics, tested)
    return Loaded(studied, tasks, tasks[0].groups)
