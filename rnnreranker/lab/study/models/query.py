"""Studies of query encoders: trained on labels against the vectors of an index, tested by searching it."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find
from rnnreranker.lab.study.arm import Arm
from rnnreranker.lab.study.models.base import MODEL, StudiedModel, training_record
from rnnreranker.lab.study.query_trial import QueryTest, QueryTrial
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.retrieved import DEPTH, fused_scores, inputs_of, opened, retrieved
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import VERSION

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors


class QueryStudy(StudiedModel):
    """Query encoders, tested by searching the index.

    Attributes:
        queries: vectors of all topics by the encoder as it is; run: their candidates.
        pooling, normalize: what the index says of its encoder; None = what the model's files say.
        fused: the run with the scores of its fusion with the first stages, of labels `run`; None where no arm has them.
    """

    name = "query"
    usual: ClassVar[Mapping[str, Any]] = {"epochs": 4.0, "candidates": 100, "batch_size": 16}
    of_index = True
    unread = ("test_candidates",)
    reads = frozenset({"topics", "vectors", "query vectors", "tokens", "query tokens", "terms", "teacher", "texts"})

    @classmethod
    def context_of(cls, params: Any, context: int) -> int:
        """As the study says."""
        return context

    @classmethod
    def needs_of(cls, request: StudyRequest) -> frozenset[str]:
        """The vectors, and what first stages read of which a run that teaches is fused."""
        taught = any(arm.labels.name == "run" for arm in request.chosen)
        return frozenset({"vectors"}).union(*(one.needs for one in request.stages.values() if taught))

    def __init__(
        self,
        request: StudyRequest,
        arms: Sequence[Arm],
        index: IndexOnDisk,
        topics: Mapping[str, str],
        qrels: pandas.DataFrame,
    ) -> None:
        from rnnreranker.evaluate.measures import deepest_cutoff
        from rnnreranker.evaluate.protocols import protocol_of
        from rnnreranker.methods.retrieve.dense import dense_run
        from rnnreranker.search.queries import QueryEncoding, query_vectors, trained_encoder

        self.encoder, said = trained_encoder(request.encoder, index)
        self.pooling, self.normalize = said.get("pooling"), said.get("normalize")
        self.index_name, self.index = request.index_name, index.vectors.fingerprint
        self.qrels, self.measures, self.protocol = qrels, request.measures, protocol_of(qrels, request.protocol)
        self.hits = deepest_cutoff(request.measures)
        self.devices, self.trained_on = request.devices, request.trained_on
        encoding = QueryEncoding.of(request.encoder, None, request.topics, request.devices)
        self.queries: QueryVectors = query_vectors(encoding, index, topics, threads=request.jobs)
        params: Any = [request.training.params, *(arm.params for arm in arms)]
        deepest = max(request.context, *(one.candidates for one in params))
        self.run = dense_run(index.vectors, self.queries, deepest, threads=request.jobs, batch_size=256)
        self.fused = None
        if any(arm.labels.name == "run" for arm in arms):
            inputs = inputs_of(index, topics, self.queries, self.devices)
            others = [retrieved(stage, inputs, DEPTH, request.jobs) for stage in request.stages.values()]
            self.fused = fused_scores(self.run, others)
        self.arms = {arm.name: dataclasses.replace(arm, taught=self._taught(arm, index)) for arm in arms}

    def _taught(self, arm: Arm, index: IndexOnDisk) -> str:
        """The fingerprint of what its labels read beside the vectors; "" where they read no such thing.

        Raises:
            InputError: labels of tokens, and none in the index.
        """
        if arm.labels.name == "run":
            return "" if self.fused is None else fingerprint(self.fused.to_dict())
        return str(index.token_vectors.fingerprint) if "tokens" in find("labeler", arm.labels.name).needs else ""

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that name all of it; pooling and normalize show in the query vectors."""
        return fingerprint(
            *(VERSION, version("torch"), version("transformers")),
            *(self.index, self.encoder, self.measures, self.protocol, self.hits),
            *(self.run.to_dict(), self.queries.vectors.tolist()),
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
        )

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as it is."""
        return {"values": self._test(task).values_of(opened(self.index_name).vectors, self.queries.of(task.test))}

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of an encoder of a folder."""
        test = self._test(task)
        return {"values": test.values_of(opened(self.index_name).vectors, test.encoded(Path(model)))}

    def trained(self, task: Task, arm: Arm) -> dict[str, Any]:
        """The values of the encoder that an arm trains, and what its training came to, see `train_encoder`."""
        from rnnreranker.lab.study.task_labels import training_labels

        run = self.fused if arm.labels.name == "run" and self.fused is not None else self.run
        index, judged = opened(self.index_name), task.part(validation=True)
        labels, mass = training_labels(task, arm, inputs_of(index, task.topics, self.queries, self.devices), run)
        begun = self.encoder, self.pooling, self.normalize
        trial = QueryTrial(index.vectors, task.topics, self.queries, self.run, *begun, self.trained_on)
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            out = Path(folder) / MODEL
            other = bool(arm.taught)  # labels of tokens say which tokens
            made = trial.fit(labels, judged, arm.params_of(task), arm.loss, out, other_index=other)
            record = mass | self.tested(str(out), task) | training_record(made)
        return record | {name: made.record[name] for name in ("positives", "inverse_temperature")}

    def about(self, request: StudyRequest, arms: Sequence[Arm]) -> dict[str, Any]:
        """The trainings by labels, of each the first arm that takes no other's rates."""
        own = [arm for arm in arms if arm.own.rates in ("", arm.name)]
        return {"params": {arm.labels.name: arm.training() for arm in reversed(own)}}

    def observations(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Probabilities of positives by rank, and the mass that was learnt."""
        from rnnreranker.lab.study.comparisons import masses, positives

        learnt = masses(records)
        return {"positives": positives(records)} | ({"masses": learnt} if learnt else {})

    def shown(self, rates: Mapping[str, Any]) -> dict[str, Any]:
        """By the labels of the arms, where these differ."""
        of = {name: self.arms[name].labels.name for name in rates}
        return {of[name] if len({*of.values()}) == len(of) else name: own for name, own in rates.items()}

    def _test(self, task: Task) -> QueryTest:
        topics = {qid: task.topics[qid] for qid in task.test}
        return QueryTest(topics, self.qrels, self.measures, self.protocol, 1, self.devices)
