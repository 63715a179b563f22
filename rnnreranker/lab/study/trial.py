"""A trial: label, train, search and measure one arm by the functions behind the commands."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
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

VERSION = 4  # of what a trial computes: raise it when results change
RERANKED = 100  # candidates of the test, where the request does not say
FUSED = 1000  # depth of the runs that are fused with that of a query encoder
MODEL, INDEX, TRAINED = "model", "index", "trained.json"  # of a kept arm
REPAIR = "delete it, and the trial is taken again"
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
        params, stages = [self.params, *(arm.params for arm in self.arms.values())], self.request.stages
        names = ("candidates",) if self.fixed else ("depth", "validation_candidates")
        depth = max(self.request.context, self.hits, *(getattr(one, name, 0) for one in params for name in names))

        def search(stage: str, hits: int, encoder: str | None) -> Run:
            how = {**self.computing, "threads": self.request.jobs}
            return self.opened.search(topics, stage, None, hits=hits, encoder=encoder, **how)

        if not self.fixed:
            return {name: search(name, depth, None) for name in stages}
        taught = any(arm.method.name == "run" for arm in self.arms.values())
        read = [name for name in stages if taught or name in {arm.own.negatives for arm in self.arms.values()}]
        own = {name: self.request.encoder if "query vectors" in stages[name].needs else None for name in read}
        first = search("dense", depth, self.request.encoder)
        return {"": first} | {name: search(name, FUSED, encoder) for name, encoder in own.items()}

    @property
    def computing(self) -> dict[str, Any]:
        """Device and type of encoding and scoring."""
        return {"device": self.request.device, "compute_dtype": self.request.compute_dtype}

    @property
    def work(self) -> Path:
        """The folder of kept files."""
        return Path(str(self.request.work)).absolute()

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that identify what all trials share."""
        from rnnreranker.encode.model_folder import content_of

        packages = [version(name) for name in ("torch", "transformers")]
        begin = Path(str(self.encoder))
        lengths = [getattr(self.params, name, None) for name in LENGTHS]
        return fingerprint(
            *(VERSION, self.name, packages, content_of(begin) if begin.is_dir() else self.encoder, self.index),
            *(self.hits, self.request.test_candidates, self.request.measures, self.protocol, lengths),
            str(self.computing),
            list(self.opened.settings.get("parts", {}).items()),
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
        """The record of a trial: `values`, and for a training best_step, steps, validation, history, costs, …."""
        if arm is None:
            at = self.work / "untrained" / fingerprint(self.described(task, None))
            model = None if self.fixed or self.kind == "cross-encoder" else str(self.encoder)
            return self.tested(model, at, task, checks=any(one.own.family for one in self.arms.values()))
        if arm.own.prf or any(arm.name in other.refers for other in self.arms.values()):
            folder = self.kept(task, self.arms[arm.own.start] if arm.own.prf else arm)
            record: dict[str, Any] = read_json(folder / TRAINED, "record of a kept arm", REPAIR)
            prf = arm.own.prf
            return record | (self.tested(str(folder / MODEL), folder, task, prf) if prf else {})
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder_name:
            return self.made(task, arm, Path(folder_name))

    def kept(self, task: Task, arm: Arm) -> Path:
        """The folder of an arm's model and record on a task, which other arms read; trained if missing."""
        path = self.work / "arms" / fingerprint(self.described(task, arm))
        with alone(path, f"{path}: another process trains it"):
            if not (path / TRAINED).is_file():
                record = self.made(task, arm, path)
                write_json(path / TRAINED, record)
        return path

    def made(self, task: Task, arm: Arm, folder: Path) -> dict[str, Any]:
        """Label, train and test an arm; model and index are written into the folder."""
        trained, more = self.fitted(task, arm, folder)
        record = self.tested(str(folder / MODEL), folder, task, checks=bool(arm.own.family)) | more
        record |= {"best_step": trained.best_step, "steps": trained.steps, "validation": trained.measures}
        return record | {"history": list(trained.history)}

    def fitted(
        self,
        task: Task,
        arm: Arm,
        folder: Path,
        on_validation: Callable[[int, dict[str, float]], None] | None = None,
    ) -> tuple[Trained, dict[str, Any]]:
        """Label and train an arm into `folder / MODEL`; returns the training and further entries of the record."""
        from rnnreranker.train.request import TrainRequest

        begun = time.perf_counter()
        run = self.candidates(task, arm)
        labels, index, more = self.labelled(task, arm, run, folder)
        seconds, of_batches = time.perf_counter() - begun, getattr(arm.params, "batch_teacher", False)
        asked: dict[str, Any] = {"labels": labels, "topics": task.topics, "encoder": self.start(task, arm)}
        asked |= {"index": index if of_batches else self.opened, "other_index": self.fixed}
        asked |= {"validation_run": self.runs[self.over], "validation_qrels": task.part(validation=True)}
        checked = {qid: task.topics[qid] for qid in self.runs[self.over] if qid in task.validation}
        asked |= {"validation_topics": checked, "device": self.request.trained_on, "on_validation": on_validation}
        request = TrainRequest(folder / MODEL, self.name, checkpoints=False, **asked)
        model = find(KIND, self.name)()
        trained: Trained = model.train(request, arm.params_of(task), self.request.trained_on)
        if self.fixed:
            return trained, more | {name: trained.record[name] for name in ("positives", "inverse_temperature")}
        labelling = more.pop("labelling", 0.0 if arm.hard and not arm.finder else seconds)
        return trained, more | {"costs": {"training": trained.seconds, "labelling": labelling}}

    def start(self, task: Task, arm: Arm) -> str | None:
        """The model that a training begins with; None = the encoder of the index."""
        if arm.own.start in self.arms:
            return str(self.kept(task, self.arms[arm.own.start]) / MODEL)
        return arm.own.start or (None if self.encoder is None else str(self.encoder))

    def candidates(self, task: Task, arm: Arm) -> Run:
        """The documents of the training queries that an arm labels or takes negatives from."""
        qids = list(dict.fromkeys(task.part(validation=False)["query_id"]))
        depth, stage = getattr(arm.params, "depth", self.hits), arm.own.negatives
        if stage == "random":
            return self._drawn(qids, depth, task.seed)
        if arm.finder:
            kept = self.kept(task, self.arms[arm.finder])
            run = self.searched(str(kept / MODEL), kept, task, qids, max(depth, self.hits)).head(depth)
        elif arm.method.name == "run" and self.fixed:
            run = self.fused
        else:
            run = self.runs[stage or self.over]
        run = _of(run, qids)
        if getattr(arm.params, "kind", "") in AT_RANDOM and not arm.hard:
            run = self._with_drawn(run, task, depth)
        return run if arm.own.filter == "none" else self._without_likely_positives(run, task, arm.own.filter)

    @functools.cached_property
    def fused(self) -> Run:
        """The candidates of the encoder's run with the scores of its fusion (RRF) with the first stages."""
        from rnnreranker.runs.fuse import fuse

        own, fused = self.runs[self.over].to_dict(), fuse(list(self.runs.values())).to_dict()
        return Run.from_dict({qid: {docid: fused[qid][docid] for docid in scores} for qid, scores in own.items()})

    def _drawn(self, qids: Iterable[str], depth: int, seed: int) -> Run:
        """`depth` random documents for each query; the draw depends on seed and query."""
        docids, own = np.array(list(self.documents), dtype=object), {}
        for qid in qids:
            rng = np.random.default_rng([seed, int(fingerprint("random", qid)[:15], 16)])
            chosen = rng.choice(docids, min(depth, len(docids)), replace=False)
            own[qid] = {docid: -float(rank) for rank, docid in enumerate(chosen.tolist())}
        return Run.from_dict(own)

    def _with_drawn(self, run: Run, task: Task, depth: int) -> Run:
        """The first candidates, followed by the documents that the training draws at random: those need labels too."""
        known = task.part(validation=False).groupby("query_id")["doc_id"].agg(set).to_dict()
        collection, own = sorted(self.documents), {}
        for qid, scores in run.head(depth).to_dict().items():
            drawn = [one for one in sampled(qid, known[qid], collection, depth, task.seed) if one not in scores]
            own[qid] = scores | {docid: min(scores.values()) - rank for rank, docid in enumerate(drawn, 1)}
        return Run.from_dict(own)

    def _without_likely_positives(self, run: Run, task: Task, by: str) -> Run:
        """The run without the 10% of its candidates that are most similar to a positive."""
        from rnnreranker.labels.negatives import mine_negatives, suspicion

        judged = task.part(validation=False)
        mined = mine_negatives(run, judged, self.opened, by, topics=task.topics, encoder=self.encoder_of_queries)
        away = {
            pool.qid: {pool.candidates[row] for row in np.flatnonzero((suspicion(pool, by) > mined.threshold).any(0))}
            for pool in mined.pools
        }
        kept = {qid: {one: score for one, score in own.items() if one not in away.get(qid, ())}
                for qid, own in run.to_dict().items()}  # fmt: skip
        return Run.from_dict({qid: own for qid, own in kept.items() if own})

    def labelled(self, task: Task, arm: Arm, run: Run, folder: Path) -> tuple[SoftLabels, Index, dict[str, Any]]:
        """The labels of the training queries, their index, and further entries of the record."""
        import pandas

        from rnnreranker.labels.mass import SEVERAL

        method, index, judged = arm.method, self.opened, task.part(validation=False)
        more: dict[str, Any] = {}
        learnt: dict[str, Any] = {}
        if arm.teacher:
            kept = self.kept(task, self.arms[arm.teacher])
            index = self.indexed(str(kept / MODEL), kept, task)
            taught = read_json(kept / TRAINED, "record of a kept arm", REPAIR)
            more = {"by_degrees": means_of(taught["values"]), "labelling": taught["costs"]["training"]}
        elif "tokens" in arm.labels.needs and self.kind == "late-encoder":
            model = str(self.start(task, arm))
            index = self.indexed(model, Path(model).parent if arm.own.start in self.arms else folder / "start", task)
        elif method.params.get("scorer") == TO_TRAIN:
            scorer = self._scorer(task, arm, run)
            method = dataclasses.replace(method, params={**method.params, "scorer": str(scorer / MODEL)})
            more["labelling"] = read_json(scorer / TRAINED, "seconds of a term scorer", REPAIR)
        if arm.mass is not None:  # never from test queries, see `learn_mass`
            known = pandas.DataFrame(task.known)
            several = float((known.groupby("query_id").size() > 1).mean())
            learnt["validation_qrels"] = known if arm.mass == "confident" or several >= SEVERAL else task.positives
        labels = self._made_labels(run, judged, index, method, task, **learnt)
        if method.name == "term-weight":
            more["by_degrees"] = self._by_labels(index, method, task)
        if arm.mass is not None:
            more["mass"] = labels.metadata["labels"]["share"]
        return labels, index, more

    def _made_labels(self, run: Run, judged: Any, index: Index, method: Written, task: Task, **more: Any) -> SoftLabels:
        from rnnreranker.labels.make import make_labels

        given = {"topics": task.topics, "encoder": self.encoder_of_queries, "jobs": 1, **self.computing}
        return make_labels(run, judged, index, method, **given, **more)

    def _scorer(self, task: Task, arm: Arm, run: Run) -> Path:
        """The folder of a term scorer trained on the words of training queries (paper 004, eq. 4), with its seconds."""
        from rnnreranker.train.request import TrainRequest

        path = self.work / "scorers" / fingerprint(self.described(task, None), getattr(arm.params, "depth", 0))
        with alone(path, f"{path}: another process trains its term scorer"):
            if not (path / TRAINED).is_file():
                begun = time.perf_counter()
                hard = self._made_labels(run, task.part(validation=False), self.opened, Written("hard"), task)
                topics = {qid: " ".join(text.split()) for qid, text in task.topics.items()}
                asked: dict[str, Any] = {"index": self.opened, "topics": topics, "encoder": self.encoder}
                form = Written("term-scorer", {"texts": "queries", "seed": task.seed})
                request = TrainRequest(path / MODEL, form, hard, checkpoints=False, device="cpu", **asked)
                request.training.model.train(request, request.training.params, "cpu")
                write_json(path / TRAINED, time.perf_counter() - begun)
        return path

    def _by_labels(self, index: Index, method: Written, task: Task) -> dict[str, float]:
        """The measures of the test queries if all documents are ranked by shared words."""
        every = {docid: -float(rank) for rank, docid in enumerate(self.documents)}
        judged = self.qrels[self.qrels["query_id"].isin(task.test) & (self.qrels["relevance"] > 0)]
        whole = dataclasses.replace(method, params={**method.params, "context": len(every) + 1})
        run = Run.from_dict(dict.fromkeys(task.test, every))
        labels = self._made_labels(run, judged, index, whole, task, depth=len(every))
        shared = {
            one.qid: {docid: score for docid, score in zip(one.docids, one.scores.tolist(), strict=True) if score > 0}
            for one in labels
        }
        run = Run.from_dict({qid: own for qid, own in shared.items() if own})
        return means_of(self.values(run.head(self.hits), task.test))

    def indexed(self, model: str, at: Path, task: Task) -> Index:
        """An index of the documents by a model, beside the model's folder.

        For reranking it holds only the candidates of all queries and the positives of the training.
        """
        from rnnreranker.search.opened import build_index

        part, argument_name, _ = PARTS[self.kind]
        settings = {name: value for name in LENGTHS if (value := getattr(self.params, name, None)) is not None}
        if part == "dense":  # what was trained says all of it; the start is taken as a training of two sides does
            said = model != self.encoder and (Path(model) / "modules.json").is_file()
            settings = {} if said else {**settings, "pooling": "mean", "normalize": True}
        documents = self.documents
        if self._reranks:
            wanted = set(task.positives["doc_id"]).union(*(run.docids.tolist() for run in self.runs.values()))
            documents = {docid: text for docid, text in documents.items() if docid in wanted}
        form: dict[str, Any] = {argument_name: Written(model, settings)}
        return build_index(documents, at / INDEX, part, threads=1, **self.computing, **form)

    @property
    def _reranks(self) -> bool:
        return self.kind == "late-encoder" and self.request.test_candidates is not None

    def searched(
        self, model: str | None, at: Path, task: Task, qids: Sequence[str], hits: int, prf: str | None = None
    ) -> Run:
        """The run of some queries by a model, None = the first stage; `at`: the folder for an index."""
        topics = {qid: task.topics[qid] for qid in qids}
        given: dict[str, Any] = {"threads": 1, **self.computing, "hits": hits}
        index, first = self.opened, _of(self.runs[self.over].head(hits), qids)
        if self.fixed:
            given |= {"encoder": model or self.request.encoder, "prf": prf}
            return index.search(topics, "dense", None, **given)
        if self.kind == "cross-encoder":
            settings = {"context": hits, "max_length": getattr(self.params, "max_length", None)}
            form = Written("cross-encoder", {"model": model, **settings})
            return first if model is None else index.rerank(first, form, topics, **given)
        own = self.indexed(str(model), at, task)
        if self._reranks:
            form = Written("prf", {"feedback": prf, "context": hits}) if prf else Written("late", {"context": hits})
            return own.rerank(first, form, topics, **given)
        return own.search(topics, PARTS[self.kind][2], None, prf=prf, **given)

    def tested(
        self, model: str | None, at: Path, task: Task, prf: str | None = None, checks: bool = False
    ) -> dict[str, Any]:
        """The results of a model: `values`; with `checks` also `checked`, means of the validation queries; further
        `words` of a sparse encoder, `distances` of a dual one.
        """
        run = self.searched(model, at, task, task.test, self.hits, prf)
        record: dict[str, Any] = {"values": self.values(run, task.test)}
        if checks:
            held_out = tuple(sorted(task.validation))
            run = self.searched(model, at, task, held_out, self.hits, prf)
            protocol = "trec" if self.protocol == "dl" else self.protocol  # all of its judgements are positives
            checked = values_of(run, task.part(validation=True), self.request.measures, protocol, held_out)
            record["checked"] = means_of(checked)
        if not self.fixed and self.kind in ("encoder", "sparse-encoder"):
            record |= self._use(self.indexed(str(model), at, task), task)
        return record

    def _use(self, index: Index, task: Task) -> dict[str, Any]:
        from rnnreranker.lab.diagnose.diagnosing import word_use_of
        from rnnreranker.labels.judged import positives_of
        from rnnreranker.search.queries import QueryEncoding, query_vectors

        topics = {qid: task.topics[qid] for qid in task.test}
        if self.kind == "sparse-encoder":
            return {"words": word_use_of(index, topics, 1)}
        judged, source = positives_of(self.qrels), index.vectors
        documents = source.fetch(np.arange(len(self.documents)))
        relevant = [source.rows([docid for docid, _ in judged.get(qid, ())]) for qid in topics]
        asked = query_vectors(QueryEncoding(devices=self.request.devices), index, topics, threads=1)
        return {"distances": distances_of(asked.vectors, documents, [rows[rows >= 0] for rows in relevant])}

    def values(self, run: Run, qids: Sequence[str]) -> Values:
        """Measure → test query → value of a run."""
        return values_of(run, self.qrels, self.request.measures, self.protocol, qids)


def run_trial(studied: Studied, task: Task, arm: Arm | None) -> dict[str, Any]:
    """The record of a trial, read from its file if that exists; arm: None = the untrained model.

    It runs on one thread, since several threads change the order of sums.
    """
    path = studied.work / f"{fingerprint(studied.described(task, arm))}.json"
    if path.is_file():
        kept = read_json(path, "record of a trial", REPAIR)
        if not isinstance(kept, dict) or not isinstance(kept.get("values"), dict):
            raise InputError(f"{path}: no record of a trial, with the values of measures by topic; {REPAIR}")
        return kept | {"arm": arm and arm.name}
    begun = time.perf_counter()
    record: dict[str, Any] = {"arm": arm and arm.name, "task": task.name, "seed": task.seed}
    with one_torch_thread():
        record |= studied.record(task, arm)
    record["seconds"] = round(time.perf_counter() - begun, 2)
    write_json(path, record)
    return record


@functools.cache
def opened(name: str) -> Index:
    """The opened index of a name, one for each process."""
    from rnnreranker.search.opened import open_index

    return open_index(name)


def _of(run: Run, qids: Collection[str]) -> Run:
    wanted = set(qids)
    return run.of_queries([qid in wanted for qid in run.qids])


def _parts_read(arm: Arm, kind: str) -> frozenset[str]:
    """The parts of the index that an arm's labels and filter read."""
    from rnnreranker.parts.base import givers

    read = arm.labels.needs if not arm.teacher else frozenset[str]()
    if kind == "late-encoder":
        read -= {"tokens", "query tokens"}
    return (read | (frozenset({"vectors"}) if arm.own.filter != "none" else frozenset())) & {*givers()}
