"""A trial: label, train, search and measure one arm by the functions behind the commands."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, read_json, write_json
from rnnreranker.base.jobs import alone, one_torch_thread
from rnnreranker.base.method import find
from rnnreranker.base.settings import Written
from rnnreranker.lab.study.comparisons import Values, distances_of, means_of, values_of
from rnnreranker.lab.study.request import BASE, KIND, TO_TRAIN, Arm, StudyRequest
from rnnreranker.lab.study.tasks import Task
from rnnreranker.runs import Run
from rnnreranker.train.groups import sampled

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.search.opened import Index
    from rnnreranker.train.request import Trained

VERSION = 6  # of what a trial computes: raise it when results change
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
        checks: whether models are measured on validation queries, too.

    Raises:
        InputError: an index without texts or a needed part.
    """

    def __init__(
        self, request: StudyRequest, tasks: Sequence[Task], qrels: pandas.DataFrame, run: Run | None = None
    ) -> None:
        from rnnreranker.evaluate.measures import deepest_cutoff
        from rnnreranker.evaluate.protocols import protocol_of
        from rnnreranker.parts.base import givers
        from rnnreranker.parts.texts import documents_of

        self.request, self.arms = request, {arm.name: arm for arm in request.chosen}
        self.fixed, self.kind, self.params = request.fixed, str(request.kind.trains), request.training.params
        self.qrels, self.protocol = qrels, protocol_of(qrels, request.protocol)
        self.how: dict[str, Any] = {"device": request.device, "compute_dtype": request.compute_dtype}
        self.work, self.encoder = Path(str(request.work)).absolute(), request.encoder
        self.checks = any(arm.own.family for arm in self.arms.values())
        if self.kind == "late-encoder":
            from rnnreranker.encode.late import late_start

            self.encoder = str(late_start(str(self.encoder), getattr(self.params, "dimension", None)).path)
        index, late = self.opened, {"tokens", "query tokens"} if self.kind == "late-encoder" else set()
        for arm in self.arms.values():
            read = {"vectors"} if arm.own.filter != "none" else set()
            for need in sorted((read if arm.teacher else read | arm.labels.needs - late) & {*givers()}):
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

    def _retrieved(self, topics: Mapping[str, str]) -> dict[str, Run]:
        """The runs of the first stages that some arm reads, for a query encoder after its own run."""
        stages, search = self.request.stages, functools.partial(self.opened.search, topics, rerank=None, **self.how)
        names = ("candidates",) if self.fixed else ("depth", "validation_candidates")
        every = [self.params, *(arm.params for arm in self.arms.values())]
        depths = [getattr(one, name, 0) for one in every for name in names]
        depth, threads = max(self.request.context, self.hits, *depths), self.request.jobs
        if not self.fixed:
            return {name: search(retrieve=name, hits=depth, threads=threads) for name in stages}
        own, read = self.request.encoder, {arm.own.negatives for arm in self.arms.values()}
        read |= {*stages} if any(arm.method.name == "run" for arm in self.arms.values()) else set()
        runs = {"": search(retrieve="dense", hits=depth, encoder=own, threads=threads)}
        for name in (one for one in stages if one in read):
            by = own if "query vectors" in stages[name].needs else None
            runs[name] = search(retrieve=name, hits=FUSED, encoder=by, threads=threads)
        return runs

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that identify what all trials share."""
        from rnnreranker.encode.model_folder import content_of

        packages, begin = [version(name) for name in ("torch", "transformers")], Path(str(self.encoder))
        return fingerprint(
            *(VERSION, self.kind, packages, content_of(begin) if begin.is_dir() else self.encoder, self.index),
            *(
                self.hits,
                self.request.test_candidates,
                self.request.measures,
                self.protocol,
                str(self.how),
                self.checks,
            ),
            [getattr(self.params, name, None) for name in LENGTHS],
            {name: run.to_dict() for name, run in self.runs.items()},
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
        )

    def described(self, task: Task, arm: Arm | None) -> list[Any]:
        """Everything that an arm's trial depends on, the arms that it refers to included."""
        positives, validation = task.positives.to_numpy().tolist(), sorted(task.validation)
        of_task: Any = [self.identity, task.seed, task.topics, positives, validation, task.test]
        if arm is None:
            return of_task
        own = {name: value for name, value in vars(arm.own).items() if name not in ("rates", "against", "family")}
        learnt = sorted(task.known.to_numpy().tolist()) if arm.mass else []
        others = [self.described(task, self.arms[name]) for name in arm.refers if name in self.arms]
        return [*of_task, arm.params_of(task).described(), str(arm.method), own, learnt, others]

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
                for path in () if kept else [path for path in folder.iterdir() if path.is_dir()]:
                    shutil.rmtree(path)
                write_json(folder / TRIAL, made | {"seconds": round(time.perf_counter() - begun, 2)})
        record = read_json(folder / TRIAL, "record of a trial", "delete it, and the trial is taken again")
        about = {"arm": arm.name if arm else BASE, "task": task.name, "seed": task.seed, "folder": str(folder)}
        return {**record, **about}

    def _made(self, task: Task, arm: Arm | None, folder: Path) -> dict[str, Any]:
        if arm is None:
            return self.tested(None if self.fixed or self.kind == "cross-encoder" else str(self.encoder), folder, task)
        if arm.own.prf:
            record, at = self.kept(task, arm.own.start)
            return record | self.tested(str(at / MODEL), at, task, arm.own.prf)
        begun, run = time.perf_counter(), self.runs[self.over]
        labels, index, more = self.labelled(task, arm, self.candidates(task, arm), folder)
        seconds = time.perf_counter() - begun
        asked: Any = {"labels": labels, "topics": task.topics, "encoder": self.start(task, arm)}
        asked |= {"index": index if getattr(arm.params, "batch_teacher", False) else self.opened}
        asked |= {"other_index": self.fixed, "validation_run": run, "validation_qrels": task.part(validation=True)}
        asked["validation_topics"] = {qid: task.topics[qid] for qid in run if qid in task.validation}
        form = Written(self.request.written.name)
        trained = self.trained(folder / MODEL, form, arm.params_of(task), **asked)
        made = self.tested(str(folder / MODEL), folder, task) | {"history": list(trained.history)}
        made |= {"best_step": trained.best_step, "steps": trained.steps, "validation": trained.measures}
        if self.fixed:
            return made | more | {"positives": trained.record["positives"]}
        untold = arm.hard and not arm.finder
        labelling = more.pop("labelling", 0.0 if untold else seconds)
        return made | more | {"costs": {"training": trained.seconds, "labelling": labelling}}

    def trained(self, output: Path, model: Written, params: Any, **asked: Any) -> Trained:
        """The training of a checked request, without its warnings: a study gives one for all of its trainings."""
        from rnnreranker.train.request import TrainRequest

        device = self.request.trained_on
        request = TrainRequest(output, model, device=device, **asked)
        made: Trained = find(KIND, model.name)().train(request, params, device)
        return made

    def kept(self, task: Task, name: str) -> tuple[dict[str, Any], Path]:
        """The record and the folder of an arm that other arms refer to, trained if missing."""
        record = self.record(task, self.arms[name])
        return record, Path(record["folder"])

    def start(self, task: Task, arm: Arm) -> str | None:
        """The model that a training begins with; None = the encoder of the index."""
        if arm.own.start in self.arms:
            return str(self.kept(task, arm.own.start)[1] / MODEL)
        return arm.own.start or (None if self.encoder is None else str(self.encoder))

    def candidates(self, task: Task, arm: Arm) -> Run:
        """The documents of the training queries that an arm labels or takes negatives from."""
        qids, depth = list(dict.fromkeys(task.part(validation=False)["query_id"])), getattr(arm.params, "depth", 0)
        depth, stage = depth or self.hits, arm.own.negatives
        if stage == "random":
            return self._with_drawn({}, qids, task, depth)
        if arm.finder:
            at = self.kept(task, arm.finder)[1]
            run = self.searched(str(at / MODEL), at, task, qids, max(depth, self.hits)).head(depth)
        elif arm.method.name == "run" and self.fixed:
            run = self.fused
        else:
            run = self.runs[stage or self.over]
        run = _of(run, qids)
        if getattr(arm.params, "at_random", False) and not arm.hard:  # what training draws needs labels, too
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
        from rnnreranker.labels.negatives import mine_negatives

        given = {"topics": task.topics, "encoder": self.request.encoder if self.fixed else None}
        mined = mine_negatives(run, task.part(validation=False), self.opened, by, **given)
        scores, likely = run.to_dict(), mined.pairs[mined.suspicion > mined.threshold]
        for qid, docid in zip(likely["qid"], likely["docid"], strict=True):
            scores[qid].pop(docid, None)
        return _run_of(scores)

    def labelled(self, task: Task, arm: Arm, run: Run, folder: Path) -> tuple[SoftLabels, Index, dict[str, Any]]:
        """The labels of the training queries, their index, and further entries of the record."""
        from rnnreranker.labels.make import make_labels
        from rnnreranker.labels.mass import SEVERAL

        method, index, judged = arm.method, self.opened, task.part(validation=False)
        more, learnt = dict[str, Any](), dict[str, Any]()
        given = {"topics": task.topics, "encoder": self.request.encoder if self.fixed else None, "jobs": 1, **self.how}
        if arm.teacher:
            taught, at = self.kept(task, arm.teacher)
            index = self.indexed(str(at / MODEL), at)
            more = {"by_degrees": means_of(taught["values"]), "labelling": taught["costs"]["training"]}
        elif "tokens" in arm.labels.needs and self.kind == "late-encoder":
            model = str(self.start(task, arm))
            index = self.indexed(model, Path(model).parent if arm.own.start in self.arms else folder / "start")
        elif method.params.get("scorer") == TO_TRAIN:  # on the words of training queries (paper 004, eq. 4)
            begun, form = time.perf_counter(), Written("term-scorer", {"texts": "queries", "seed": task.seed})
            hard = make_labels(run, judged, index, "hard", **given)
            topics = {qid: " ".join(text.split()) for qid, text in task.topics.items()}
            own = find(KIND, form.name).Params(**form.params)
            asked: Any = {"labels": hard, "index": index, "topics": topics, "encoder": self.encoder}
            self.trained(folder / "scorer", form, own, **asked)
            more["labelling"] = time.perf_counter() - begun
            method = dataclasses.replace(method, params={**method.params, "scorer": str(folder / "scorer")})
        if arm.mass is not None:  # never from test queries, see `learn_mass`
            all_known = arm.mass == "confident" or (task.known.groupby("query_id").size() > 1).mean() >= SEVERAL
            learnt["validation_qrels"] = task.known if all_known else task.positives
        labels = make_labels(run, judged, index, method, **given, **learnt)
        if arm.mass is not None:
            more["mass"] = labels.metadata["labels"]["share"]
        if method.name == "term-weight":  # what they find by themselves, among all documents
            count = len(self.documents)
            ranked = {docid: -float(rank) for rank, docid in enumerate(self.documents)}
            every = Run.from_dict({qid: ranked for qid in task.test})  # noqa: C420
            judged = self.qrels[self.qrels["query_id"].isin(task.test) & (self.qrels["relevance"] > 0)]
            whole = dataclasses.replace(method, params={**method.params, "context": count + 1})
            by_words = {}
            for one in make_labels(every, judged, index, whole, **given, depth=count):
                scores = zip(one.docids, one.scores.tolist(), strict=True)
                by_words[one.qid] = {docid: score for docid, score in scores if score > 0}
            more["by_degrees"] = means_of(self.values(_run_of(by_words).head(self.hits), task.test))
        return labels, index, more

    def indexed(self, model: str, at: Path) -> Index:
        """An index of the documents by a model, beside the model's folder."""
        from rnnreranker.search.opened import build_index

        part, argument_name, _ = PARTS[self.kind]
        settings = {name: value for name in LENGTHS if (value := getattr(self.params, name, None)) is not None}
        if part == "dense":  # what was trained says all of it; the start is taken as a training of two sides does
            said = model != self.encoder and (Path(model) / "modules.json").is_file()
            settings = {} if said else {**settings, "pooling": "mean", "normalize": True}
        form: Any = {argument_name: Written(model, settings)}
        return build_index(self.documents, at / INDEX, part, threads=1, **self.how, **form)

    def searched(
        self, model: str | None, at: Path, task: Task, qids: Sequence[str], hits: int, prf: str | None = None
    ) -> Run:
        """The run of some queries by a model, None = the first stage; `at`: the folder for an index."""
        topics = {qid: task.topics[qid] for qid in qids}
        given: Any = {"threads": 1, **self.how, "hits": hits}
        if self.kind == "cross-encoder":
            settings = {"model": model, "context": hits, "max_length": getattr(self.params, "max_length", None)}
            first, form = _of(self.runs[self.over].head(hits), qids), Written("cross-encoder", settings)
            return first if model is None else self.opened.rerank(first, form, topics, **given)
        if self.fixed:
            index, given["encoder"] = self.opened, model or self.request.encoder
        else:
            index = self.indexed(str(model), at)
        return index.search(topics, PARTS[self.kind][2], None, prf=prf, **given)

    def tested(self, model: str | None, at: Path, task: Task, prf: str | None = None) -> dict[str, Any]:
        """The results of a model: `values`, perhaps `checked`, means of the validation queries; further `words` of a
        sparse encoder, `distances` of a dual one.
        """
        from rnnreranker.lab.diagnose.diagnosing import word_use_of

        run = self.searched(model, at, task, task.test, self.hits, prf)
        record: Any = {"values": self.values(run, task.test)}
        if self.checks:
            held_out = tuple(sorted(task.validation))
            run = self.searched(model, at, task, held_out, self.hits, prf)
            protocol = "trec" if self.protocol == "dl" else self.protocol  # all of its judgements are positives
            judged = task.part(validation=True)
            record["checked"] = means_of(values_of(run, judged, self.request.measures, protocol, held_out))
        topics = {qid: task.topics[qid] for qid in task.test}
        if self.kind == "sparse-encoder":
            record["words"] = word_use_of(self.indexed(str(model), at), topics, 1)
        elif self.kind == "encoder" and not self.fixed:
            record["distances"] = self._distances(self.indexed(str(model), at), topics)
        return record

    def _distances(self, index: Index, topics: Mapping[str, str]) -> dict[str, Any]:
        from rnnreranker.labels.methods.base import positives_of
        from rnnreranker.search.queries import QueryEncoding, query_vectors

        judged, source = positives_of(self.qrels), index.vectors
        rows = [source.rows([*judged.get(qid, ())]) for qid in topics]
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
