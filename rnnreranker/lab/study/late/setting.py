"""What the trials of late-interaction encoders share, and one of them: taught, trained, tested by MaxSim."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone
from rnnreranker.base.method import Inputs, find
from rnnreranker.lab.study.late.arms import PRF, LateArm
from rnnreranker.lab.study.late.encoded_tokens import TokenSearch
from rnnreranker.lab.study.late.pair_teacher import taught_by
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.text.setting import TextSetting, training_record
from rnnreranker.lab.study.trial import values_of

if TYPE_CHECKING:
    from rnnreranker.encode.late.encoder import LateEncoder
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.soft import Labels, SoftLabels
    from rnnreranker.methods.feedback import Feedback
    from rnnreranker.runs import Run
    from rnnreranker.train.group.batch_teacher import BatchTeacher
    from rnnreranker.train.models.late import LateParams

REPAIR = "delete it, and it is made again"
TRAINED, OWN, MODEL, TOKENS = "trained.json", "own.json", "model", "tokens"  # of a kept ColBERT


@dataclass(frozen=True, eq=False)
class LateSetting(TextSetting):
    """Late-interaction encoders, tested by MaxSim with all documents, or with the first candidates of `over`.

    What the arm ColBERT trains on a task is kept in `work`, for the arms that begin with it.

    Attributes:
        work: folder of kept encoders, and of what cross-encoders say.
        reranks: how many candidates of `over` are put in order in place of a search, in the test and for own
            candidates; None = the collection is searched.
        lengths: query_length and document_length of every encoder; None = the model's own.
        dimension: of a token where the encoder is a transformer; None = 128.
    """

    model = "late"

    work: Path = Path()
    reranks: int | None = None
    lengths: tuple[int | None, int | None] = (None, None)
    dimension: int | None = None

    @classmethod
    def own_attributes(
        cls, request: StudyRequest, params: Any, index: IndexOnDisk, needs: frozenset[str]
    ) -> dict[str, Any]:
        """See `TextSetting`."""
        return {
            "work": Path(str(request.work)),
            "reranks": request.test_candidates,
            "lengths": (params.query_length, params.document_length),
            "dimension": params.dimension,
        }

    def own_identity(self) -> list[Any]:
        """See `TextSetting`."""
        from rnnreranker.encode.model_folder import content_of

        return [content_of(self._start), self.reranks, self.lengths]

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as it is."""
        return self.tested(str(self._start), task)

    def tested(
        self, model: str, task: Task, feedback: Feedback | None = None, tokens: Path | None = None
    ) -> dict[str, Any]:
        """The values of its search, or of its order of the candidates; with second queries by `feedback`.

        tokens: where those of all documents are kept; None = they are not.
        """
        run = self._searched(model, task, task.test, self.hits, feedback, tokens)[0]
        return {"values": values_of(run, self.qrels, self.measures, self.protocol, task)}

    def trained(self, task: Task, arm: LateArm) -> dict[str, Any]:  # type: ignore[override]
        """As `TextSetting.trained`; `costs`: seconds of training and of making labels and finding negatives."""
        params = arm.params_of(task)
        colbert = None if arm.colbert is None else self._colbert(task, dataclasses.replace(arm.colbert, seed=task.seed))
        feedback = find("feedback", "colbert")(arm.method_params) if arm.method == PRF else None
        if colbert is not None and (arm.begins == "base" or feedback is not None):
            kept: dict[str, Any] = read_json(colbert / TRAINED, "record of a kept encoder", REPAIR)
            return self.tested(str(colbert / MODEL), task, feedback, colbert / TOKENS) | kept
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            begin = self._start if colbert is None else colbert / MODEL
            pools, labelling, teacher = self._pools(task, arm, colbert, Path(folder))
            made = {"negatives": arm.candidates, "labels": arm.method}
            inputs = self.grouped(task, pools, params, made, margins=arm.method != "hard")
            inputs = dataclasses.replace(inputs, teacher=teacher)
            fitted = self.fitted(inputs, str(begin), Path(folder) / MODEL, params, arm.of_loss)
            values = self.tested(str(Path(folder) / MODEL), task)
        return values | training_record(fitted) | {"costs": {"training": fitted.seconds, "labelling": labelling}}

    @functools.cached_property
    def _start(self) -> Path:
        """The folder of the encoder that trainings begin with."""
        from rnnreranker.encode.late.folder import late_start

        return late_start(self.encoder, self.dimension).path

    def _loaded(self, model: str) -> LateEncoder:
        from rnnreranker.encode.late.encoder import LateEncoder

        query_length, document_length = self.lengths
        return LateEncoder.load(model, query_length=query_length, document_length=document_length)

    def _tokens(self, model: str, folder: Path) -> TokenSearch:
        """The tokens of all documents by a model, in a folder that may be kept."""
        with alone(folder, f"{folder}: another process encodes documents"):
            return TokenSearch(self._loaded(model), self.documents, folder)

    def _searched(
        self,
        model: str,
        task: Task,
        qids: tuple[str, ...],
        hits: int,
        feedback: Feedback | None = None,
        tokens: Path | None = None,
    ) -> tuple[Run, float]:
        """The run of some queries by a model, and the seconds of encoding and search; tokens: as of `tested`."""
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            topics = {qid: task.topics[qid] for qid in qids}
            if self.reranks is None:
                search = self._tokens(model, tokens or Path(folder) / "all")
                begun = time.perf_counter()
                run = search.best(topics, hits, feedback=feedback)
                return run, search.seconds + time.perf_counter() - begun
            first = self.runs[self.over]
            candidates = {qid: first.ranked(qid)[: self.reranks] if qid in first else [] for qid in qids}
            wanted = dict.fromkeys(docid for own in candidates.values() for docid in own)
            documents = {docid: self.documents[docid] for docid in wanted}
            search = TokenSearch(self._loaded(model), documents, Path(folder) / "all")
            return search.best(topics, hits, candidates, feedback), time.perf_counter() - begun

    def _colbert(self, task: Task, params: LateParams) -> Path:
        """The folder with what the arm ColBERT trains on a task."""
        task_of = [task.positives.to_numpy().tolist(), sorted(task.validation), task.topics]
        path = self.work / "colbert" / fingerprint(self.identity, task_of, params.to_dict())
        with alone(path, f"{path}: another process trains it"):
            if not (path / TRAINED).is_file():
                labels = self._hard(task, self.head(task, params.depth))
                inputs = self.grouped(task, list(labels), params, {"negatives": self.over})
                made = self.fitted(inputs, str(self._start), path / MODEL, params)
                costs = {"training": made.seconds, "labelling": 0.0}
                write_json(path / TRAINED, training_record(made) | {"costs": costs})
        return path

    def _own(self, task: Task, colbert: Path, depth: int) -> tuple[Run, float]:
        """The first candidates of the training queries by a kept encoder, and the seconds that it took to find them."""
        from rnnreranker.runs import Run

        with alone(colbert, f"{colbert}: another process searches by it"):
            if not (colbert / OWN).is_file():
                qids = dict.fromkeys(qid for qid in task.positives["query_id"] if qid not in task.validation)
                hits, model = max(depth, self.hits), str(colbert / MODEL)
                run, seconds = self._searched(model, task, tuple(qids), hits, tokens=colbert / TOKENS)
                write_json(colbert / OWN, {"seconds": seconds, "run": run.to_dict()})
        kept = read_json(colbert / OWN, "candidates of a kept encoder", REPAIR)
        return Run.from_dict(kept["run"]).head(depth), float(kept["seconds"])

    def _pools(
        self, task: Task, arm: LateArm, colbert: Path | None, folder: Path
    ) -> tuple[list[Labels], float, BatchTeacher | None]:
        """What groups are drawn from, the seconds that labels and own candidates took, and who scores a batch."""
        from rnnreranker.labels.methods.base import make_labeler, needs_of, with_teacher
        from rnnreranker.train.group.batch_teacher import BatchTeacher

        depth, seconds = arm.params.depth, 0.0
        if arm.candidates == "own":
            assert colbert is not None
            run, seconds = self._own(task, colbert, depth)
        elif arm.candidates == "random":
            run = self._drawn(task, depth)
        else:
            run = self.head(task, depth)
        if arm.method == "hard":
            return list(self._hard(task, run)), seconds, None
        positives = task.part(validation=False)
        if arm.method == "cross-encoder":
            run, own = taught_by(arm.models, run, positives, task.topics, self.documents, self.work / "cross-encoders")
            labeler = make_labeler("run", Inputs(), find("labeler", "run").Params(context=depth + 1), arm.labels)
            return list(labeler.infer(run, positives)), seconds + own, None
        inputs = Inputs()
        if "tokens" in needs_of(arm.method, arm.method_params):
            assert colbert is not None
            if self.reranks is None:
                search = self._tokens(str(colbert / MODEL), colbert / TOKENS)
            else:
                wanted = dict.fromkeys([*(one for qid in run for one in run.ranked(qid)), *positives["doc_id"]])
                documents = {docid: self.documents[docid] for docid in wanted}
                search = TokenSearch(self._loaded(str(colbert / MODEL)), documents, folder / TOKENS)
            asked = search.queries({qid: task.topics[qid] for qid in run})
            inputs = Inputs(
                tokens=search.source,
                query_tokens=asked,
                teacher=lambda: with_teacher(inputs, arm.method_params, threads=1),
            )
        begun = time.perf_counter()
        labeler = make_labeler(arm.method, inputs, arm.method_params, arm.labels, threads=1)
        soft_labels, teacher = (
            labeler.infer(run, positives),
            BatchTeacher(labeler) if arm.params.batch_teacher else None,
        )
        return list(soft_labels), seconds + time.perf_counter() - begun, teacher

    @staticmethod
    def _hard(task: Task, run: Run) -> SoftLabels:
        from rnnreranker.labels.methods.base import make_labeler

        return make_labeler("hard", Inputs()).infer(run, task.part(validation=False))

    def _drawn(self, task: Task, depth: int) -> Run:
        """As many documents as `depth` for every training query, drawn by the seed and the query."""
        from rnnreranker.runs import Run as RunOf

        docids, own = np.array(list(self.documents), dtype=object), {}
        for qid in dict.fromkeys(task.part(validation=False)["query_id"]):
            rng = np.random.default_rng([task.seed, int(fingerprint("random", qid)[:15], 16)])
            chosen = rng.choice(docids, min(depth, len(docids)), replace=False)
            own[qid] = {docid: -float(rank) for rank, docid in enumerate(chosen.tolist())}
        return RunOf.from_dict(own)
