"""A trial: label, train, search and measure one arm by the functions behind the commands."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.locks import alone
from rnnreranker.base.method import find
from rnnreranker.base.process.threads import one_torch_thread
from rnnreranker.base.strict import read_json
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.comparisons import Values, distances_of, means_of, values_of
from rnnreranker.lab.study.request import KIND, TO_TRAIN, Arm, StudyRequest
from rnnreranker.lab.study.tasks import Task
from rnnreranker.runs import Run
from rnnreranker.train.groups import AT_RANDOM, sampled

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.search.opened import Index
    from rnnreranker.train.request import Trained

VERSION = 5  # of what a trial computes: raise it when results change
RERANKED = 100  # candidates of the test, where the request does not say
FUSED = 1000  # depth of the runs that are fused with that of a query encoder
MODEL, INDEX, TRIAL = "model", "index", "trial.json"  # of the folder of a trial
PARTS = {  # kind of encoder → the part that it makes of documents, the argument that names it, who searches the part
    "encoder": ("dense", "encoder", "dense"),
    "sparse-encoder": ("impact", "impact_encoder", "impact"),
    "late-encoder": ("tokens", "token_encoder", "late"),
}
LENGTHS = ("max_length", "query_length", "document_length")  # settings of encoders that their trainings have, too


class Studied:
    """What all trials of a study share.

    Args:
        request: a checked study; tasks: all of its tasks; qrels: judgements of the test queries.
        run: candidates for a query encoder; None = the index is searched.

    Attributes:
        runs: first stage → candidates of all topics; over: the first stage that validates and is reranked.
        hits: depth of the test runs.
        documents: docid → text; empty if the model searches the vectors of the index.
        how: device and type of encoding and scoring.

    Raises:
        InputError: an index without texts or a needed part.
    """

    def __init__(
        self, request: StudyRequest, tasks: Sequence[Task], qrels: pandas.DataFrame, run: Run | None = None
    ) -> None:
        from rnnreranker.evaluate.measures import deepest_cutoff
        from rnnreranker.evaluate.protocols import protocol_of
        from rnnreranker.parts.texts import documents_of

        self.request, self.arms = request, {arm.name: arm for arm in request.chosen}
        self.name, self.fixed, self.kind = request.written.name, request.fixed, str(request.kind.trains)
        self.qrels, self.protocol = qrels, protocol_of(qrels, request.protocol)
        self.how: dict[str, Any] = {"device": request.device, "compute_dtype": request.compute_dtype}
        self.work = Path(str(request.work)).absolute()
        self.params: Any = request.training.params
        self.encoder: Any = request.encoder
        if self.kind == "late-encoder":
            from rnnreranker.encode.late import late_start

            self.encoder = str(late_start(str(self.encoder), getattr(self.params, "dimension", None)).path)
        index = self.opened
        for need in sorted(set().union(*(_parts_read(arm, self.kind) for arm in self.arms.values()))):
            _ = index.given(need)  # opened here, so that errors come before any work
        if not self.fixed and index.texts is None:
            raise InputError(f"{index.name}: no texts in this index; make it with python -m rnnreranker.index")
        texts = () if self.fixed or index.texts is None else documents_of(index.texts)
        self.documents = {document.docid: document.text for document in texts}
        self.index = str(index.settings.get("fingerprint") or index.vectors.fingerprint)
        self.hits = max(deepest_cutoff(request.measures), 0 if self.fixed else request.test_candidates or RERANKED)
        self.runs = self._retrieved(tasks[0].topics) if run is None else {"": run}
        self.over = next(iter(self.runs)) if self.fixed else list(self.runs)[-1]

    @property
    def opened(self) -> Index:
        """The index."""
        return opened(self.request.index_name)

    @property
    def encoder_of_queries(self) -> str | None:
        """The query encoder of labels and searches, None = that of the index."""
        return self.request.encoder if self.fixed else None

    def _retrieved(self, topics: Mapping[str, str]) -> dict[str, Run]:
        """The runs of the first stages that some arm reads, for a query encoder after its own run."""
        arms, stages = [*self.arms.values()], self.request.stages
        names = ("candidates",) if self.fixed else ("depth", "validation_candidates")
        depths = [getattr(one, name, 0) for one in (self.params, *(arm.params for arm in arms)) for name in names]
        depth, how = max(self.request.context, self.hits, *depths), {**self.how, "threads": self.request.jobs}
        if not self.fixed:
            return {name: self.opened.search(topics, name, None, hits=depth, **how) for name in stages}
        taught = any(arm.method.name == "run" for arm in arms)
        read = [name for name in stages if taught or name in {arm.own.negatives for arm in arms}]
        runs = {"": self.opened.search(topics, "dense", None, hits=depth, encoder=self.request.encoder, **how)}
        for name in read:
            own = self.request.encoder if "query vectors" in stages[name].needs else None
            runs[name] = self.opened.search(topics, name, None, hits=FUSED, encoder=own, **how)
        return runs

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that identify what all trials share."""
        from rnnreranker.encode.model_folder import content_of

        packages, begin = [version(name) for name in ("torch", "transformers")], Path(str(self.encoder))
        return fingerprint(
            *(VERSION, self.name, packages, content_of(begin) if begin.is_dir() else self.encoder, self.index),
            *(self.hits, self.request.test_candidates, self.request.measures, self.protocol, str(self.how)),
            [getattr(self.params, name, None) for name in LENGTHS],
            {name: run.to_dict() for name, run in self.runs.items()},
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
        )

    def described(self, task: Task, arm: Arm | None) -> list[Any]:
        """Everything that an arm's trial depends on, the arms that it refers to included."""
        positives, validation = task.positives.to_numpy().tolist(), sorted(task.validation)
        of_task = [self.identity, task.seed, task.topics, positives, validation, task.test]
        return of_task if arm is None else [*of_task, *self._alone(task, arm)]

    def _alone(self, task: Task, arm: Arm) -> list[Any]:
        others = [self._alone(task, self.arms[name]) for name in arm.refers if name in self.arms]
        return [*arm.described(task), bool(arm.own.family), *others]

    def record(self, task: Task, arm: Arm | None) -> dict[str, Any]:
        """The record of a trial, taken if its folder has none; None = the untrained model.

        It has `values`, and for a training best_step, steps, validation, history, costs, …. The folder keeps model and
        index of an arm that other arms refer to. A trial runs on one thread, since several change the order of sums.
        """
        folder = self.work / fingerprint(self.described(task, arm))
        kept = arm is not None and any(arm.name in other.refers for other in self.arms.values())
        with alone(folder, f"{folder}: another process takes this trial"):
            if not (folder / TRIAL).is_file() or (kept and not (folder / MODEL).is_dir()):
                begun = time.perf_counter()
                folder.mkdir(parents=True, exist_ok=True)
                with one_torch_thread():
                    made = self._made(task, arm, folder)
                if not kept:
                    for name in (MODEL, INDEX):
                        shutil.rmtree(folder / name, ignore_errors=True)
                write_json(folder / TRIAL, made | {"seconds": round(time.perf_counter() - begun, 2)})
        record = read_json(folder / TRIAL, "record of a trial", "delete it, and the trial is taken again")
        return {**record, "arm": arm and arm.name, "task": task.name, "seed": task.seed, "folder": str(folder)}

    def _made(self, task: Task, arm: Arm | None, folder: Path) -> dict[str, Any]:
        if arm is None:
            model = None if self.fixed or self.kind == "cross-encoder" else str(self.encoder)
            return self.tested(model, folder, task, checks=any(one.own.family for one in self.arms.values()))
        if arm.own.prf:
            of_start = self.record(task, self.arms[arm.own.start])
            at = Path(of_start["folder"])
            return of_start | self.tested(str(at / MODEL), at, task, arm.own.prf)
        trained, more = self.fitted(task, arm, folder)
        record = self.tested(str(folder / MODEL), folder, task, checks=bool(arm.own.family)) | more
        record |= {"best_step": trained.best_step, "steps": trained.steps, "validation": trained.measures}
        return record | {"history": list(trained.history)}

    def kept(self, task: Task, name: str) -> Path:
        """The folder of an arm that other arms refer to, trained if missing."""
        return Path(self.record(task, self.arms[name])["folder"])

    def fitted(
        self,
        task: Task,
        arm: Arm,
        folder: Path,
        on_validation: Callable[[int, dict[str, float]], None] | None = None,
    ) -> tuple[Trained, dict[str, Any]]:
        """Label and train an arm into `folder / MODEL`; returns the training and further entries of the record."""
        begun = time.perf_counter()
        labels, index, more = self.labelled(task, arm, self.candidates(task, arm), folder)
        seconds, run = time.perf_counter() - begun, self.runs[self.over]
        asked: dict[str, Any] = {"labels": labels, "topics": task.topics, "encoder": self.start(task, arm)}
        asked |= {"index": index if getattr(arm.params, "batch_teacher", False) else self.opened}
        asked |= {"other_index": self.fixed, "validation_run": run, "validation_qrels": task.part(validation=True)}
        checked = {qid: task.topics[qid] for qid in run if qid in task.validation}
        asked |= {"validation_topics": checked, "on_validation": on_validation}
        trained = self._trained(folder / MODEL, self.name, arm.params_of(task), self.request.trained_on, **asked)
        if self.fixed:
            return trained, more | {name: trained.record[name] for name in ("positives", "inverse_temperature")}
        labelling = more.pop("labelling", 0.0 if arm.hard and not arm.finder else seconds)
        return trained, more | {"costs": {"training": trained.seconds, "labelling": labelling}}

    def _trained(self, output: Path, model: Any, params: Any, device: str, **asked: Any) -> Trained:
        """The training of a checked request, without its warnings: a study gives one for all of its trainings."""
        from rnnreranker.train.request import TrainRequest

        request = TrainRequest(output, model, checkpoints=False, device=device, **asked)
        trained: Trained = find(KIND, request.training.model.name)().train(request, params, device)
        return trained

    def start(self, task: Task, arm: Arm) -> str | None:
        """The model that a training begins with; None = the encoder of the index."""
        if arm.own.start in self.arms:
            return str(self.kept(task, arm.own.start) / MODEL)
        return arm.own.start or (None if self.encoder is None else str(self.encoder))

    def candidates(self, task: Task, arm: Arm) -> Run:
        """The documents of the training queries that an arm labels or takes negatives from."""
        qids, depth = list(dict.fromkeys(task.part(validation=False)["query_id"])), getattr(arm.params, "depth", 0)
        depth, stage = depth or self.hits, arm.own.negatives
        if stage == "random":
            return self._with_drawn({}, qids, task, depth)
        if arm.finder:
            kept = self.kept(task, arm.finder)
            run = self.searched(str(kept / MODEL), kept, task, qids, max(depth, self.hits)).head(depth)
        elif arm.method.name == "run" and self.fixed:
            run = self.fused
        else:
            run = self.runs[stage or self.over]
        run = _of(run, qids)
        if getattr(arm.params, "kind", "") in AT_RANDOM and not arm.hard:  # what training draws needs labels, too
            run = self._with_drawn(run.head(depth).to_dict(), run.qids, task, depth)
        return run if arm.own.filter == "none" else self._without_likely_positives(run, task, arm.own.filter)

    @functools.cached_property
    def fused(self) -> Run:
        """The candidates of the encoder's run with the scores of its fusion (RRF) with the first stages."""
        from rnnreranker.runs.fuse import fuse

        own, fused = self.runs[self.over].to_dict(), fuse(list(self.runs.values())).to_dict()
        return Run.from_dict({qid: {docid: fused[qid][docid] for docid in scores} for qid, scores in own.items()})

    def _with_drawn(self, first: Mapping[str, Any], qids: Iterable[str], task: Task, depth: int) -> Run:
        """The first candidates of queries, followed by `depth` random documents that are no positives."""
        known = task.part(validation=False).groupby("query_id")["doc_id"].agg(set).to_dict()
        collection, own = sorted(self.documents), {}
        for qid in qids:
            scores = dict(first.get(qid, {}))
            drawn = [one for one in sampled(qid, known[qid], collection, depth, task.seed) if one not in scores]
            low = min(scores.values(), default=0.0)
            own[qid] = scores | {docid: low - rank for rank, docid in enumerate(drawn, 1)}
        return Run.from_dict(own)

    def _without_likely_positives(self, run: Run, task: Task, by: str) -> Run:
        """The run without the 10% of its candidates that are most similar to a positive."""
        from rnnreranker.labels.negatives import mine_negatives, suspicion

        given = {"topics": task.topics, "encoder": self.encoder_of_queries}
        mined = mine_negatives(run, task.part(validation=False), self.opened, by, **given)
        away = {
            (pool.qid, pool.candidates[row])
            for pool in mined.pools
            for row in np.flatnonzero((suspicion(pool, by) > mined.threshold).any(0))
        }
        return _run_of({qid: {docid: score for docid, score in own.items() if (qid, docid) not in away}
                        for qid, own in run.to_dict().items()})  # fmt: skip

    def labelled(self, task: Task, arm: Arm, run: Run, folder: Path) -> tuple[SoftLabels, Index, dict[str, Any]]:
        """The labels of the training queries, their index, and further entries of the record."""
        from rnnreranker.labels.mass import SEVERAL

        method, index, judged = arm.method, self.opened, task.part(validation=False)
        more, learnt = dict[str, Any](), dict[str, Any]()
        if arm.teacher:
            taught = self.record(task, self.arms[arm.teacher])
            kept = Path(taught["folder"])
            index = self.indexed(str(kept / MODEL), kept)
            more = {"by_degrees": means_of(taught["values"]), "labelling": taught["costs"]["training"]}
        elif "tokens" in arm.labels.needs and self.kind == "late-encoder":
            model = str(self.start(task, arm))
            index = self.indexed(model, Path(model).parent if arm.own.start in self.arms else folder / "start")
        elif method.params.get("scorer") == TO_TRAIN:
            scorer, more["labelling"] = self._scorer(task, arm, run)
            method = dataclasses.replace(method, params={**method.params, "scorer": str(scorer)})
        if arm.mass is not None:  # never from test queries, see `learn_mass`
            several = float((task.known.groupby("query_id").size() > 1).mean())  # type: ignore[union-attr]
            all_known = arm.mass == "confident" or several >= SEVERAL
            learnt["validation_qrels"] = task.known if all_known else task.positives
        labels = self._labels(run, judged, index, method, task, **learnt)
        if method.name == "term-weight":  # what they find by themselves, among all documents
            ranked = {docid: -float(rank) for rank, docid in enumerate(self.documents)}
            every = Run.from_dict({qid: ranked for qid in task.test})  # noqa: C420
            judged = self.qrels[self.qrels["query_id"].isin(task.test) & (self.qrels["relevance"] > 0)]
            whole = dataclasses.replace(method, params={**method.params, "context": len(self.documents) + 1})
            degrees = self._labels(every, judged, index, whole, task, depth=len(self.documents))
            shared = {one.qid: dict(zip(one.docids, one.scores.tolist(), strict=True)) for one in degrees}
            of_words = _run_of(
                {qid: {d: score for d, score in own.items() if score > 0} for qid, own in shared.items()}
            )
            more["by_degrees"] = means_of(self.values(of_words.head(self.hits), task.test))
        if arm.mass is not None:
            more["mass"] = labels.metadata["labels"]["share"]
        return labels, index, more

    def _labels(self, run: Run, judged: Any, index: Index, method: Written, task: Task, **more: Any) -> SoftLabels:
        from rnnreranker.labels.make import make_labels

        given = {"topics": task.topics, "encoder": self.encoder_of_queries, "jobs": 1, **self.how}
        return make_labels(run, judged, index, method, **given, **more)

    def _scorer(self, task: Task, arm: Arm, run: Run) -> tuple[Path, float]:
        """A term scorer trained on the words of training queries (paper 004, eq. 4), and its seconds."""
        path = self.work / fingerprint("scorer", self.described(task, None), getattr(arm.params, "depth", 0))
        with alone(path, f"{path}: another process trains its term scorer"):
            if not (path / TRIAL).is_file():
                begun = time.perf_counter()
                hard = self._labels(run, task.part(validation=False), self.opened, Written("hard"), task)
                topics = {qid: " ".join(text.split()) for qid, text in task.topics.items()}
                asked: dict[str, Any] = {"labels": hard, "index": self.opened, "topics": topics}
                form = Written("term-scorer", {"texts": "queries", "seed": task.seed})
                params = find(KIND, "term-scorer").Params(texts="queries", seed=task.seed)
                self._trained(path / MODEL, form, params, "cpu", encoder=self.encoder, **asked)
                write_json(path / TRIAL, time.perf_counter() - begun)
        return path / MODEL, float(read_json(path / TRIAL, "seconds of a term scorer"))

    def indexed(self, model: str, at: Path) -> Index:
        """An index of the documents by a model, beside the model's folder."""
        from rnnreranker.search.opened import build_index

        part, argument_name, _ = PARTS[self.kind]
        settings = {name: value for name in LENGTHS if (value := getattr(self.params, name, None)) is not None}
        if part == "dense":  # what was trained says all of it; the start is taken as a training of two sides does
            said = model != self.encoder and (Path(model) / "modules.json").is_file()
            settings = {} if said else {**settings, "pooling": "mean", "normalize": True}
        form: dict[str, Any] = {argument_name: Written(model, settings)}
        return build_index(self.documents, at / INDEX, part, threads=1, **self.how, **form)

    def searched(
        self, model: str | None, at: Path, task: Task, qids: Sequence[str], hits: int, prf: str | None = None
    ) -> Run:
        """The run of some queries by a model, None = the first stage; `at`: the folder for an index."""
        topics = {qid: task.topics[qid] for qid in qids}
        given: dict[str, Any] = {"threads": 1, **self.how, "hits": hits}
        if self.fixed:
            return self.opened.search(topics, "dense", None, encoder=model or self.request.encoder, prf=prf, **given)
        if self.kind == "cross-encoder":
            settings = {"model": model, "context": hits, "max_length": getattr(self.params, "max_length", None)}
            first, form = _of(self.runs[self.over].head(hits), qids), Written("cross-encoder", settings)
            return first if model is None else self.opened.rerank(first, form, topics, **given)
        return self.indexed(str(model), at).search(topics, PARTS[self.kind][2], None, prf=prf, **given)

    def tested(
        self, model: str | None, at: Path, task: Task, prf: str | None = None, checks: bool = False
    ) -> dict[str, Any]:
        """The results of a model: `values`; with `checks` also `checked`, means of the validation queries; further
        `words` of a sparse encoder, `distances` of a dual one.
        """
        record: dict[str, Any] = {
            "values": self.values(self.searched(model, at, task, task.test, self.hits, prf), task.test)
        }
        if checks:
            held_out = tuple(sorted(task.validation))
            run = self.searched(model, at, task, held_out, self.hits, prf)
            protocol = "trec" if self.protocol == "dl" else self.protocol  # all of its judgements are positives
            judged = task.part(validation=True)
            record["checked"] = means_of(values_of(run, judged, self.request.measures, protocol, held_out))
        topics = {qid: task.topics[qid] for qid in task.test}
        if self.kind == "sparse-encoder":
            from rnnreranker.lab.diagnose.diagnosing import word_use_of

            record["words"] = word_use_of(self.indexed(str(model), at), topics, 1)
        elif self.kind == "encoder" and not self.fixed:
            record["distances"] = self._distances(self.indexed(str(model), at), topics)
        return record

    def _distances(self, index: Index, topics: Mapping[str, str]) -> dict[str, Any]:
        from rnnreranker.labels.judged import positives_of
        from rnnreranker.search.queries import QueryEncoding, query_vectors

        judged, source = positives_of(self.qrels), index.vectors
        rows = [source.rows([docid for docid, _ in judged.get(qid, ())]) for qid in topics]
        asked = query_vectors(QueryEncoding(devices=self.request.devices), index, topics, threads=1)
        documents = source.fetch(np.arange(len(self.documents)))
        return distances_of(asked.vectors, documents, [own[own >= 0] for own in rows])

    def values(self, run: Run, qids: Sequence[str]) -> Values:
        """Measure → test query → value of a run."""
        return values_of(run, self.qrels, self.request.measures, self.protocol, qids)


@functools.cache
def opened(name: str) -> Index:
    """The opened index of a name, one for each process."""
    from rnnreranker.search.opened import open_index

    return open_index(name)


def _of(run: Run, qids: Collection[str]) -> Run:
    wanted = set(qids)
    return run.of_queries([qid in wanted for qid in run.qids])


def _run_of(scores: Mapping[str, Mapping[str, float]]) -> Run:
    """A run of the queries that have documents."""
    return Run.from_dict({qid: own for qid, own in scores.items() if own})


def _parts_read(arm: Arm, kind: str) -> frozenset[str]:
    """The parts of the index that an arm's labels and filter read."""
    from rnnreranker.parts.base import givers

    read = arm.labels.needs if not arm.teacher else frozenset[str]()
    if kind == "late-encoder":
        read -= {"tokens", "query tokens"}
    return (read | (frozenset({"vectors"}) if arm.own.filter != "none" else frozenset())) & {*givers()}
