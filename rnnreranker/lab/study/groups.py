"""Studies of models that are trained on groups of texts: whose negatives, what labels, what an arm begins as."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone
from rnnreranker.base.method import Inputs
from rnnreranker.lab.study.arm import Arm
from rnnreranker.lab.study.models.base import MODEL, StudiedModel, training_record
from rnnreranker.lab.study.retrieved import opened
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.soft import Labels
from rnnreranker.runs import Run

if TYPE_CHECKING:
    from rnnreranker.train.group.batch_teacher import BatchTeacher
    from rnnreranker.train.group.inputs import GroupInputs

REPAIR = "delete it, and it is made again"
KEPT, TRAINED = "arms", "trained.json"  # folder of kept arms, and the record of one
Pools = tuple[list[Labels], float, "BatchTeacher | None"]  # seconds of labels and own negatives; who scores a batch


class GroupStudy(StudiedModel):
    """A kind of model that is trained on groups; what an arm trains that others refer to is kept, a task at a time."""

    takes: ClassVar[tuple[str, ...]] = ("start", "negatives", "filter")
    whole: ClassVar[bool] = False  # whether hard negatives are drawn from all candidates, not from the first `depth`

    @functools.cached_property
    def referred(self) -> frozenset[str]:
        """The arms that others refer to."""
        return frozenset(name for arm in self.arms.values() for name in arm.refers if name in self.arms)

    def own_identity(self) -> list[Any]:
        """See `StudiedModel`."""
        return [getattr(self.params, "max_length", None)]

    @property
    def max_length(self) -> int | None:
        """Tokens at which the test cuts texts, None = as the model says."""
        length: int | None = getattr(self.params, "max_length", None)
        return length

    def trained(self, task: Task, arm: Arm) -> dict[str, Any]:
        """The values of what an arm trains, what its training came to, and `costs`: seconds of it and of labels."""
        if arm.name in self.referred:
            return self.kept_record(self.kept(task, arm))
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            return self.made(task, arm, Path(folder))

    def made(self, task: Task, arm: Arm, folder: Path) -> dict[str, Any]:
        """Train an arm, write the model to a folder in this one, and test it."""
        from rnnreranker.train.group.inputs import train_on_groups

        pools, seconds, teacher = self.pools(task, arm, folder)
        inputs = self.grouped(task, pools, arm, teacher)
        params, out = self.params_of(task, arm), folder / MODEL
        loss: Any = arm.loss
        made = train_on_groups(inputs, self.name, self.start(task, arm), out, params, loss=loss, checkpoints=False)
        record = training_record(made) | {"costs": {"training": made.seconds, "labelling": seconds}}
        return self.tested(str(out), task) | record

    def kept(self, task: Task, arm: Arm) -> Path:
        """The folder of what an arm trains on a task, with its record."""
        path = self.kept_at(KEPT, task, self.described(task, arm))
        with alone(path, f"{path}: another process trains it"):
            if not (path / TRAINED).is_file():
                record = self.made(task, arm, path)
                write_json(path / TRAINED, record)
        return path

    def kept_at(self, name: str, task: Task, *more: Any) -> Path:
        """Where something of a task is kept."""
        task_of = [task.seed, task.positives.to_numpy().tolist(), sorted(task.validation), task.test, task.topics]
        return self.work / name / fingerprint(self.identity, task_of, *more)

    @staticmethod
    def kept_record(folder: Path) -> dict[str, Any]:
        """The record of a kept arm."""
        record: dict[str, Any] = read_json(folder / TRAINED, "record of a kept arm", REPAIR)
        return record

    def params_of(self, task: Task, arm: Arm) -> Any:
        """The parameters of a training on groups."""
        return arm.params_of(task)

    def start(self, task: Task, arm: Arm) -> str:
        """What a training begins as."""
        if arm.own.start in self.arms:
            return str(self.kept(task, self.arms[arm.own.start]) / MODEL)
        return arm.own.start or self.encoder

    def candidates(self, task: Task, arm: Arm, folder: Path) -> tuple[Run, float]:
        """The documents that an arm draws its negatives from, and the seconds that it took to find them."""
        stage, depth = arm.own.negatives or self.over, getattr(arm.params, "depth", self.hits)
        if stage == "random":
            return self.drawn(task, depth), 0.0
        return (self.runs[stage] if self.whole and arm.hard else self.head(task, depth, stage)), 0.0

    def drawn(self, task: Task, depth: int) -> Run:
        """As many documents as `depth` for every training query, drawn by the seed and the query."""
        docids, own = np.array(list(self.documents), dtype=object), {}
        for qid in dict.fromkeys(task.part(validation=False)["query_id"]):
            rng = np.random.default_rng([task.seed, int(fingerprint("random", qid)[:15], 16)])
            chosen = rng.choice(docids, min(depth, len(docids)), replace=False)
            own[qid] = {docid: -float(rank) for rank, docid in enumerate(chosen.tolist())}
        return Run.from_dict(own)

    def pools(self, task: Task, arm: Arm, folder: Path) -> Pools:
        """What groups are drawn from, the seconds that labels and own negatives took, and who scores a batch."""
        run, seconds = self.candidates(task, arm, folder)
        pools, of_labels, teacher = (
            (self.hard(task, run), 0.0, None) if arm.hard else self.labelled(task, arm, run, folder)
        )
        if arm.own.filter != "none":
            pools = self._without_likely_positives(pools, task, arm, run)
        return pools, seconds + of_labels, teacher

    def labelled(self, task: Task, arm: Arm, run: Run, folder: Path) -> Pools:
        """What an arm learns from that has not judgements alone."""
        begun = time.perf_counter()
        return list(self.labels_of(task, arm, run)), time.perf_counter() - begun, None

    @staticmethod
    def hard(task: Task, run: Run) -> list[Labels]:
        """The judgements of the training queries, over the candidates of a run."""
        from rnnreranker.labels.methods.base import make_labeler

        return list(make_labeler("hard", Inputs()).infer(run, task.part(validation=False)))

    def grouped(self, task: Task, pools: Sequence[Labels], arm: Arm, teacher: BatchTeacher | None) -> GroupInputs:
        """What is trained on and validated: the latter on candidates of `over`, whatever the pools are made of."""
        from rnnreranker.labels.methods.base import make_labeler
        from rnnreranker.train.group.groups import AT_RANDOM, enough, first_candidates
        from rnnreranker.train.group.inputs import GroupInputs

        params = arm.params
        lists = make_labeler("hard", Inputs()).infer(self.runs[self.over], task.part(validation=True))
        kept = [first_candidates(one, params.validation_candidates) for one in lists]
        usable = enough(pools, *params.least)
        collection = tuple(sorted(self.documents)) if params.kind in AT_RANDOM else ()
        made = {"negatives": arm.own.negatives or self.over, "labels": arm.labels.name}
        return GroupInputs(usable, kept, task.topics, self.documents, made, not arm.hard, teacher, collection)

    def _without_likely_positives(self, pools: list[Labels], task: Task, arm: Arm, run: Run) -> list[Labels]:
        """The pools without the tenth of their candidates that is nearest to a positive by reciprocal neighbours."""
        from rnnreranker.labels.judged import positives_of
        from rnnreranker.labels.negatives.filters import DEFAULT_RATE, discarded, threshold_at
        from rnnreranker.labels.negatives.filters import pools as neighbourhoods

        inputs = Inputs(vectors=opened(self.index_name).vectors, query_vectors=self.queries)
        hoods = neighbourhoods(run, positives_of(task.part(validation=False)), inputs, threads=1)
        threshold = threshold_at(hoods, arm.own.filter, DEFAULT_RATE)
        away = {
            one.qid: {one.candidates[row] for row in np.flatnonzero(discarded(one, arm.own.filter, threshold).any(0))}
            for one in hoods
        }
        kept = []
        for pool in pools:
            stay = np.array([docid not in away.get(pool.qid, ()) for docid in pool.docids])
            docids = [docid for docid, its in zip(pool.docids, stay.tolist(), strict=True) if its]
            own = {name: getattr(pool, name)[stay] for name in ("scores", "targets", "positive")}
            kept.append(dataclasses.replace(pool, docids=docids, **own))
        return kept
