"""A trial: label, train, search and measure one arm by the functions behind the commands."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, read_json, write_json
from rnnreranker.base.jobs import alone, one_torch_thread
from rnnreranker.base.settings import Written
from rnnreranker.lab.study.request import BASE, LENGTHS, TO_TRAIN, Arm, StudyRequest
from rnnreranker.lab.study.tasks import Task
from rnnreranker.runs import Run
from rnnreranker.train.groups import sampled

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import Index
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.train.request import Trained

VERSION = 7  # of what a trial computes: raise it when results change
RERANKED = 100  # candidates of the test, where the request does not say
FUSED = 1000  # depth of the runs that are fused with that of a query encoder
MODEL, INDEX, TRIAL = "model", "index", "trial.json"  # of the folder of a trial
RETRIEVERS = {"dense": "dense", "impact": "impact", "tokens": "late"}  # part → who searches it
DEPTHS = ("candidates", "depth", "validation_candidates")  # settings of trainings: documents read of a run
RANGES = 10  # of equal width, of distances from 0 to 1


Values = dict[str, dict[str, float]]  # measure → test query → value


class Studied:
    """What all trials of a study share.

    Args:
        request: a checked study; tasks: all of its tasks; qrels: judgements of the test queries.

    Attributes:
        encoder: the start of trainings, of a late-interaction encoder with its projection.
        hits: depth of the test runs.
        how: device and type of encoding and scoring.

    Raises:
        InputError: an index without texts or a needed part.
    """

    def __init__(self, request: StudyRequest, tasks: Sequence[Task], qrels: pandas.DataFrame) -> None:
        from rnnreranker.encode.late import late_start
        from rnnreranker.evaluate.measures import deepest_cutoff
        from rnnreranker.evaluate.protocols import protocol_of
        from rnnreranker.index.opening import open_index
        from rnnreranker.parts.base import givers

        self.request, self.arms, self.topics = request, {arm.name: arm for arm in request.chosen}, tasks[0].topics
        self.opened, self.qrels = open_index(request.index), qrels
        self.fixed, self.kind, self.params = request.fixed, request.kind, request.training.params
        self.protocol = protocol_of(qrels, request.protocol)
        self.how: dict[str, Any] = {"device": request.device, "compute_dtype": request.compute_dtype}
        self.work, self.encoder, made = Path(str(request.work)).absolute(), request.encoder, set[str]()
        if self.kind.part == "tokens":
            self.encoder = str(late_start(str(self.encoder), getattr(self.params, "dimension", None)).path)
            made = {"tokens", "query tokens"}  # of an index that each trial makes
        for arm in self.arms.values():
            for need in () if arm.teacher else sorted((arm.labels.needs - made) & {*givers()}):
                _ = self.opened.given(need)  # opened here, so that errors come before any work
        if not self.fixed and self.opened.texts is None:
            raise InputError(f"{self.opened.name}: no texts in this index; make it with python -m rnnreranker.index")
        self.index = str(self.opened.settings.get("fingerprint") or self.opened.vectors.fingerprint)
        self.hits = max(deepest_cutoff(request.measures), 0 if self.fixed else request.test_candidates or RERANKED)

    @functools.cached_property
    def documents(self) -> dict[str, str]:
        """Docid → text."""
        from rnnreranker.parts.texts import documents_of

        texts = documents_of(self.opened.texts)  # type: ignore[arg-type]  # they are there, see above
        return {document.docid: document.text for document in texts}

    @functools.cached_property
    def runs(self) -> dict[str, Run]:
        """Candidates of all topics by first stage; of a query encoder first its own, "", then those that arms read."""
        stages, arms = self.request.stages, self.arms.values()
        every = (self.params, *(arm.params for arm in arms))
        depth = max(self.request.context, self.hits, *(getattr(one, name, 0) for one in every for name in DEPTHS))
        read = {arm.own.negatives for arm in arms} | {*(stages if "run" in [arm.method.name for arm in arms] else ())}
        encoder, runs = self.request.encoder if self.fixed else None, dict[str, Run]()
        for name in ["", *(one for one in stages if one in read)] if self.fixed else stages:
            by_vectors = not name or "query vectors" in stages[name].needs
            given: Any = {"encoder": encoder if by_vectors else None, "threads": self.request.jobs, **self.how}
            hits = FUSED if self.fixed and name else depth
            runs[name] = self.opened.search(self.topics, name or "dense", None, hits=hits, **given)
        return runs

    @property
    def over(self) -> Run:
        """The candidates that validate and are reranked."""
        return next(iter(self.runs.values())) if self.fixed else list(self.runs.values())[-1]

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that identify what all trials share."""
        asked = (self.request.measures, self.request.test_candidates, self.protocol)
        return fingerprint(
            *(VERSION, self.kind.name, _content(self.encoder), self.index, self.hits),
            *(asked, str(self.how), [getattr(self.params, name, None) for name in LENGTHS]),
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
        named = {*arm.refers, *",".join(map(str, arm.method.params.values())).split(",")} - {*self.arms}
        others += sorted({*map(_content, named)} - named)
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
            return self.tested(folder, task)
        if arm.own.prf:
            record = self.record(task, self.arms[arm.own.start])
            return record | self.tested(Path(record["folder"]), task, arm.own.prf)
        begun = time.perf_counter()
        labels, index, made = self.labelled(task, arm, folder)
        seconds = 0.0 if arm.hard and not arm.finder else time.perf_counter() - begun
        trained = self.trained(
            folder / MODEL,
            Written(self.kind.name),
            arm.params_of(task),
            labels=labels,
            index=index if getattr(arm.params, "batch_teacher", False) else self.opened,
            topics=task.topics,
            encoder=self.start(task, arm),
            other_index=self.fixed,
            validation_run=self.over,
            validation_qrels=task.part(validation=True),
            validation_topics={qid: task.topics[qid] for qid in self.over if qid in task.validation},
        )
        made |= {name: getattr(trained, name) for name in ("best_step", "steps", "history")}
        made |= {"validation": trained.measures, "positives": trained.record.get("positives")}
        made["costs"] = {"training": trained.seconds, "labelling": made.pop("labelling", seconds)}
        return made | self.tested(folder, task)

    def trained(self, output: Path, model: Written, params: Any = None, **asked: Any) -> Trained:
        """A training, without its warnings: a study gives one for all. params: checked settings; None = the model's."""
        from rnnreranker.train.request import TrainRequest

        device = self.request.trained_on
        request = TrainRequest(output, model, device=device, **asked)
        return request.training.model.train(request, params or request.training.params, device)

    def folder(self, task: Task, name: str) -> Path:
        """The folder of an arm that other arms refer to, with its model, trained if missing."""
        return Path(self.record(task, self.arms[name])["folder"])

    def start(self, task: Task, arm: Arm) -> str | None:
        """The model that a training begins with; None = the encoder of the index."""
        name = arm.own.start
        return str(self.folder(task, name) / MODEL) if name in self.arms else name or self.encoder

    def candidates(self, task: Task, arm: Arm) -> Run:
        """The documents that an arm labels or takes negatives from, of training queries; of all if it learns a mass."""
        judged, stage = task.positives if arm.mass else task.part(validation=False), arm.own.negatives
        depth, qids = getattr(arm.params, "depth", 0) or self.hits, list(dict.fromkeys(judged["query_id"]))
        if arm.finder:
            run = self.searched(self.folder(task, arm.finder), task, qids, max(depth, self.hits)).head(depth)
        elif stage == "random":
            run = Run.from_dict({qid: {} for qid in qids})
        elif arm.method.name == "run" and self.fixed:
            run = self.fused
        else:
            run = self.over if not stage else self.runs[stage]
        run = run.only(qids)
        if stage == "random" or (getattr(arm.params, "at_random", False) and not arm.hard):  # they need labels, too
            run = self._with_drawn(run.head(depth), judged, task.seed, depth)
        return run if arm.own.filter == "none" else self._without_likely_positives(run, task, arm.own.filter)

    @functools.cached_property
    def fused(self) -> Run:
        """The candidates of the encoder's run with the scores of its fusion (RRF) with the first stages."""
        from rnnreranker.runs.fuse import fuse

        own, fused = self.over.to_dict(), fuse(list(self.runs.values())).to_dict()
        return Run.from_dict({qid: {docid: fused[qid][docid] for docid in scores} for qid, scores in own.items()})

    def _with_drawn(self, run: Run, judged: pandas.DataFrame, seed: int, depth: int) -> Run:
        """The run, followed by `depth` random documents a query that are no positives."""
        known, collection = judged.groupby("query_id")["doc_id"].agg(set).to_dict(), sorted(self.documents)
        entries = run.to_dict()
        for qid, scores in entries.items():
            low = min(scores.values(), default=0.0)
            drawn = [one for one in sampled(qid, known[qid], collection, depth, seed) if one not in scores]
            scores |= {docid: low - rank for rank, docid in enumerate(drawn, 1)}
        return Run.from_dict(entries)

    def _without_likely_positives(self, run: Run, task: Task, by: str) -> Run:
        """The run without the 10% of its candidates that are most similar to a positive."""
        from rnnreranker.labels.negatives import mine_negatives

        given = {"topics": task.topics, "encoder": self.request.encoder if self.fixed else None}
        mined = mine_negatives(run, task.part(validation=False), self.opened, by, **given)
        scores, likely = run.to_dict(), mined.pairs[mined.suspicion > mined.threshold]
        for qid, docid in likely[["qid", "docid"]].itertuples(index=False):
            scores[qid].pop(docid, None)
        return Run.from_dict({qid: own for qid, own in scores.items() if own})

    def labelled(self, task: Task, arm: Arm, folder: Path) -> tuple[SoftLabels, Index, dict[str, Any]]:
        """The labels of the training queries, their index, and further entries of the record."""
        from rnnreranker.labels.make import make_labels
        from rnnreranker.labels.mass import SEVERAL

        method, index, judged, more = arm.method, self.opened, task.part(validation=False), dict[str, Any]()
        run, begun = self.candidates(task, arm), time.perf_counter()
        given = {"topics": task.topics, "encoder": self.request.encoder if self.fixed else None, "jobs": 1, **self.how}
        if arm.teacher:
            taught = self.record(task, self.arms[arm.teacher])
            index = self.indexed(Path(taught["folder"]))
            more = {"by_degrees": means_of(taught["values"]), "labelling": taught["costs"]["training"]}
        elif "tokens" in arm.labels.needs and self.kind.part == "tokens":
            start, model = arm.own.start, str(self.start(task, arm))
            index = self.indexed(self.folder(task, start) if start in self.arms else folder / "start", model)
        elif method.params.get("scorer") == TO_TRAIN:  # on the words of training queries (paper 004, eq. 4)
            form = Written("term-scorer", {"seed": task.seed})
            asked: Any = {"labels": make_labels(run, judged, index, "hard", **given), "index": index}
            asked |= {"topics": {qid: " ".join(text.split()) for qid, text in task.topics.items()}}
            self.trained(folder / "scorer", form, encoder=self.encoder, **asked)
            more["labelling"] = time.perf_counter() - begun
            method = dataclasses.replace(method, params={**method.params, "scorer": str(folder / "scorer")})
        learnt = {}
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
            judged = self.qrels[self.qrels["query_id"].isin(task.test)]
            method = dataclasses.replace(method, params={**method.params, "context": count + 1})
            degrees: Any = make_labels(every, judged, index, method, **given, depth=count).frame().query("score > 0")
            by_words = Run.from_columns(degrees["qid"], degrees["docid"], degrees["score"]).head(self.hits)
            more["by_degrees"] = means_of(self.values(by_words, task.test))
        return labels, index, more

    def model_in(self, at: Path) -> str | None:
        """The trained model in a folder, else the start; None = the first stage, without a trained model."""
        untrained = None if self.fixed or self.kind.trains == "cross-encoder" else self.encoder
        return str(at / MODEL) if (at / MODEL).is_dir() else untrained

    def indexed(self, at: Path, model: str | None = None) -> Index:
        """An index of the documents beside the model in a folder, by it or by another one."""
        from rnnreranker.index.opening import build_index

        model, part = str(model or self.model_in(at)), self.kind.part
        settings = {name: value for name in LENGTHS if (value := getattr(self.params, name, None)) is not None}
        if part == "dense":  # what was trained says all of it; the start is taken as a training of two sides does
            said = model != self.encoder and (Path(model) / "modules.json").is_file()
            settings = {} if said else {**settings, "pooling": "mean", "normalize": True}
        form = Written(part, {"encoder": str(Written(model, settings))})
        return build_index(self.documents, at / INDEX, form, threads=1, **self.how)

    def searched(self, at: Path, task: Task, qids: Sequence[str], hits: int, prf: str | None = None) -> Run:
        """The run of some queries by the model in a folder."""
        topics, model = {qid: task.topics[qid] for qid in qids}, self.model_in(at)
        given: Any = {"threads": 1, **self.how, "hits": hits}
        if self.kind.trains == "cross-encoder":
            settings = {"model": model, "context": hits, "max_length": getattr(self.params, "max_length", None)}
            first, form = self.over.head(hits).only(qids), Written("cross-encoder", settings)
            return first if model is None else self.opened.rerank(first, form, topics, **given)
        if self.fixed:
            given["encoder"] = model or self.request.encoder
        index = self.opened if self.fixed else self.indexed(at)
        return index.search(topics, RETRIEVERS[self.kind.part], None, prf=prf, **given)

    def tested(self, at: Path, task: Task, prf: str | None = None) -> dict[str, Any]:
        """The results of the model in a folder: `values`; `words` of a sparse encoder, `distances` of a dual one."""
        from rnnreranker.lab.diagnose.diagnosis import word_use_of

        record: Any = {"values": self.values(self.searched(at, task, task.test, self.hits, prf), task.test)}
        topics = {qid: task.topics[qid] for qid in task.test}
        if self.kind.trains == "sparse-encoder":
            record["words"] = word_use_of(self.indexed(at), topics, 1)
        elif self.kind.trains == "encoder" and not self.fixed:
            record["distances"] = self._distances(self.indexed(at), topics)
        return record

    def _distances(self, index: Index, topics: Mapping[str, str]) -> dict[str, Any]:
        from rnnreranker.labels.methods.base import positives_of
        from rnnreranker.search.queries import QueryEncoding, query_vectors

        judged, source = positives_of(self.qrels, self.request.relevant), index.vectors
        rows = [source.rows([*judged.get(qid, ())]) for qid in topics]
        asked = query_vectors(QueryEncoding(devices=self.request.devices), index, topics, threads=1)
        documents = source.fetch(np.arange(len(self.documents)))
        return distances_of(asked.vectors, documents, [own[own >= 0] for own in rows])

    def values(self, run: Run, qids: Sequence[str]) -> Values:
        """Measure → query → value of a run; 0 for an empty one, as of a collapsed model."""
        from rnnreranker.evaluate import evaluate
        from rnnreranker.evaluate.measures import name_of, parse_measures

        if not len(run.rows):
            return {name_of(one): dict.fromkeys(qids, 0.0) for one in parse_measures(self.request.measures)}
        scores = evaluate(run.as_written(), self.qrels, self.request.measures, self.protocol, topics=tuple(qids))
        return scores.frame().set_index("topic")[list(scores.measures)].to_dict()  # type: ignore[return-value]


def _content(model: Any) -> Any:
    """A model, perhaps with settings; a folder's name is replaced by the digest of its files."""
    from rnnreranker.encode.model_folder import content_of

    name, *settings = str(model).partition(":")
    return "".join([content_of(Path(name)), *settings]) if name and Path(name).is_dir() else model


def means_of(values: Values) -> dict[str, float]:
    """Measure → mean over the queries; 0 without queries."""
    return {name: sum(by_query.values()) / max(len(by_query), 1) for name, by_query in values.items()}


def distances_of(queries: np.ndarray, documents: np.ndarray, relevant: Sequence[np.ndarray]) -> dict[str, Any]:
    """Shares of pairs by distance f = (1 - cosine) / 2 (paper 004, eq. 6), and how close vectors are to one line.

    Args:
        queries: (Q, D) unit vectors; documents: (N, D) unit vectors.
        relevant: for each query the rows of its relevant documents.

    Returns:
        relevant, others: 10 shares each, of distances in [0, .1], (.1, .2], … (paper 004, 4.3); 0 without pairs.
        line: the largest eigenvalue of the second moments over the sum of all, from 1/D to 1 (one line).
    """
    near = np.clip((1 + queries @ documents.T) / 2, 0, 1)  # 1 - f
    of_query = np.zeros(near.shape, dtype=bool)
    for row, own in zip(of_query, relevant, strict=True):
        row[own] = True
    counts = np.stack([np.histogram(near[mask], RANGES, (0, 1))[0][::-1] for mask in (of_query, ~of_query)])
    moments = sum(vectors.astype(np.float64).T @ vectors / len(vectors) for vectors in (queries, documents))
    values = np.linalg.eigvalsh(moments)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return {"relevant": shares[0].tolist(), "others": shares[1].tolist(), "line": float(values[-1] / values.sum())}
