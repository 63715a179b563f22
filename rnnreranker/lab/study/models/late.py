"""Studies of late-interaction encoders: who teaches, whose negatives, where trainings begin; tested by MaxSim."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base.chosen_method import choose
from rnnreranker.base.files import write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone
from rnnreranker.base.method import Inputs, find
from rnnreranker.base.settings import Params, setting
from rnnreranker.lab.study.arm import Arm
from rnnreranker.lab.study.groups import KEPT, REPAIR, GroupStudy, Pools
from rnnreranker.lab.study.models.base import MODEL
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.teachers.encoded_tokens import TokenSearch
from rnnreranker.lab.study.teachers.pair_teacher import taught_by
from rnnreranker.runs import Run

if TYPE_CHECKING:
    from rnnreranker.encode.late.encoder import LateEncoder
    from rnnreranker.methods.feedback import Feedback

OWN, TOKENS, ASKED = "own.json", "tokens", "teacher-tokens"  # of a kept arm


@dataclass(frozen=True)
class PairLabels(Params):
    """Labels of cross-encoders: the mean of their scores of a query and a document."""

    models: str = setting("", "names, folders or hub ids, commas between them")


class LateStudy(GroupStudy):
    """Late-interaction encoders, tested by MaxSim with all documents, or with the first candidates of `over`.

    Labels that read tokens read those of the encoder that an arm starts from.
    """

    name = "late"
    usual: ClassVar[Mapping[str, Any]] = {"similarity": "l2"}  # as the program of paper 002
    takes = (*GroupStudy.takes, "prf")
    labels: ClassVar[Mapping[str, type[Params]]] = {"cross-encoders": PairLabels}
    brings = frozenset({"tokens", "query tokens", "teacher"})
    reads = frozenset({"topics", *brings})
    own_negatives = True

    def own_identity(self) -> list[Any]:
        """See `StudiedModel`."""
        from rnnreranker.encode.model_folder import content_of

        return [content_of(self._begin), self._lengths]

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as it is."""
        return self.tested(str(self._begin), task)

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its search, or of its order of the candidates."""
        return self._measured(model, task, None)

    def trained(self, task: Task, arm: Arm) -> dict[str, Any]:
        """As of every study; of an arm with feedback the record of the arm that it starts from, and its values."""
        if not arm.own.prf:
            return super().trained(task, arm)
        chosen = choose("feedback", arm.own.prf)
        folder = self.kept(task, self.arms[arm.own.start])
        feedback: Feedback = chosen.method(chosen.params)
        return self.kept_record(folder) | self._measured(str(folder / MODEL), task, feedback)

    def start(self, task: Task, arm: Arm) -> str:
        """See `GroupStudy`."""
        return super().start(task, arm) if arm.own.start else str(self._begin)

    def candidates(self, task: Task, arm: Arm, folder: Path) -> tuple[Run, float]:
        """As of every study, and an arm's own: the first ones of the training queries by what it trained."""
        if arm.own.negatives not in self.arms:
            return super().candidates(task, arm, folder)
        kept, depth = self.kept(task, self.arms[arm.own.negatives]), arm.params.depth
        with alone(kept, f"{kept}: another process searches by it"):
            if not (kept / OWN).is_file():
                qids = dict.fromkeys(qid for qid in task.positives["query_id"] if qid not in task.validation)
                hits = max(depth, self.hits)
                run, seconds = self._searched(str(kept / MODEL), task, tuple(qids), hits)
                write_json(kept / OWN, {"seconds": seconds, "run": run.to_dict()})
        kept_run = read_json(kept / OWN, "candidates of a kept encoder", REPAIR)
        return Run.from_dict(kept_run["run"]).head(depth), float(kept_run["seconds"])

    def labelled(self, task: Task, arm: Arm, run: Run, folder: Path) -> Pools:
        """By cross-encoders, or by a labeler, which may read the tokens of the encoder that the arm starts from."""
        from rnnreranker.labels.methods.base import make_labeler, needs_of, with_teacher
        from rnnreranker.train.group.batch_teacher import BatchTeacher

        positives, labels = task.part(validation=False), arm.labels
        if isinstance(labels.params, PairLabels):
            models, kept = labels.params.models.split(","), self.work / "cross-encoders"
            run, seconds = taught_by(models, run, positives, task.topics, self.documents, kept, self.devices)
            params = find("labeler", "run").Params(context=arm.params.depth + 1)
            return list(make_labeler("run", Inputs(), params, labels.label_params).infer(run, positives)), seconds, None
        inputs = Inputs(topics=task.topics)
        if "tokens" in needs_of(labels.name, labels.params):
            search = self._teaching(task, arm, run, folder)
            asked = search.queries({qid: task.topics[qid] for qid in run})
            inputs = Inputs(
                tokens=search.source,
                query_tokens=asked,
                teacher=lambda: with_teacher(inputs, labels.params, 1, self.devices),
            )
        begun = time.perf_counter()
        labeler = make_labeler(labels.name, inputs, labels.params, labels.label_params, threads=1)
        made = list(labeler.infer(run, positives))
        teacher = BatchTeacher(labeler) if arm.params.batch_teacher else None
        return made, time.perf_counter() - begun, teacher

    def _teaching(self, task: Task, arm: Arm, run: Run, folder: Path) -> TokenSearch:
        """The tokens of the encoder that an arm starts from: of all documents, or of those that it reranks."""
        model = Path(self.start(task, arm))
        if self.reranks is None:
            kept = model.parent / TOKENS if arm.own.start in self.arms else folder / ASKED
            return self._tokens(str(model), kept)
        wanted = dict.fromkeys(
            [*(one for qid in run for one in run.ranked(qid)), *task.part(validation=False)["doc_id"]]
        )
        return TokenSearch(self._loaded(str(model)), {docid: self.documents[docid] for docid in wanted}, folder / ASKED)

    @functools.cached_property
    def _begin(self) -> Path:
        """The folder of the encoder that trainings begin with."""
        from rnnreranker.encode.late.folder import late_start

        return late_start(self.encoder, self.params.dimension).path

    @property
    def _lengths(self) -> dict[str, Any]:
        return {name: getattr(self.params, name) for name in ("query_length", "document_length")}

    def _loaded(self, model: str) -> LateEncoder:
        from rnnreranker.encode.late.encoder import LateEncoder

        return LateEncoder.load(model, devices=self.devices, **self._lengths)

    def _tokens(self, model: str, folder: Path) -> TokenSearch:
        """The tokens of all documents by a model, in a folder that may be kept."""
        with alone(folder, f"{folder}: another process encodes documents"):
            return TokenSearch(self._loaded(model), self.documents, folder)

    def _measured(self, model: str, task: Task, feedback: Feedback | None) -> dict[str, Any]:
        """The values of a model, with second queries by `feedback`."""
        run, _ = self._searched(model, task, task.test, self.hits, feedback)
        return {"values": self.values(run, task)}

    def _searched(
        self, model: str, task: Task, qids: tuple[str, ...], hits: int, feedback: Feedback | None = None
    ) -> tuple[Run, float]:
        """The run of some queries by a model, and the seconds of encoding and search; tokens of a kept one are kept."""
        begun = time.perf_counter()
        topics, own = {qid: task.topics[qid] for qid in qids}, Path(model).parent
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            if self.reranks is None:
                kept = own if own.parent == self.work / KEPT else Path(folder)
                search = self._tokens(model, kept / TOKENS)
                begun = time.perf_counter()
                run = search.best(topics, hits, feedback=feedback)
                return run, search.seconds + time.perf_counter() - begun
            first = self.runs[self.over]
            candidates = {qid: first.ranked(qid)[: self.reranks] if qid in first else [] for qid in qids}
            wanted = dict.fromkeys(docid for its in candidates.values() for docid in its)
            documents = {docid: self.documents[docid] for docid in wanted}
            search = TokenSearch(self._loaded(model), documents, Path(folder) / TOKENS)
            return search.best(topics, hits, candidates, feedback), time.perf_counter() - begun
