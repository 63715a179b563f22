"""Studies of dual encoders: trained on hard labels, or on labels in [0, 1]; tested by search of all documents."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.files import write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone
from rnnreranker.base.settings import Params
from rnnreranker.lab.study.arm import Arm, ArmLabels
from rnnreranker.lab.study.distances import distances_of
from rnnreranker.lab.study.groups import REPAIR, GroupStudy, Pools
from rnnreranker.lab.study.models.base import MODEL
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.retrieved import opened
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import means_of, values_of
from rnnreranker.parts.terms.word_weights import CollectionWeights, SharedWords
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas

    from rnnreranker.encode.dense.encoder import Encoder
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.soft import Labels

SCORER = "term-scorer"  # labels by shared words, whose weights are those of a scorer of the task


class DualStudy(GroupStudy):
    """Dual encoders, tested by searching the collection, which each encodes; the encoder as it is, too."""

    name = "dual"
    takes = ("start", "negatives", "filter", "family")
    labels: ClassVar[Mapping[str, type[Params]]] = {"arm": ArmLabels, SCORER: SharedWords}

    @classmethod
    def context_of(cls, params: Any, context: int) -> int:
        """As many random documents are labelled beside the run's."""
        from rnnreranker.train.group.groups import AT_RANDOM

        return (2 if params.kind in AT_RANDOM else 1) * int(params.depth) + 1

    @classmethod
    def needs_of(cls, request: StudyRequest) -> frozenset[str]:
        """As of every study, and counted words."""
        words = any(arm.labels.name == SCORER for arm in request.chosen)
        return super().needs_of(request) | frozenset({"terms"} if words else ())

    def __init__(
        self,
        request: StudyRequest,
        arms: Sequence[Arm],
        index: IndexOnDisk,
        topics: Any,
        qrels: pandas.DataFrame,
    ) -> None:
        super().__init__(request, arms, index, topics, qrels)
        needs, parts = self.needs_of(request), index.settings.get("parts", {})
        vectors = index.vectors.fingerprint if "vectors" in needs else None
        self._sources = [vectors, parts.get("terms") if "terms" in needs else None]

    def own_identity(self) -> list[Any]:
        """See `StudiedModel`."""
        from rnnreranker.encode.dense.encoder import Encoder

        return [*super().own_identity(), Encoder.digest_of(self.encoder), self._sources]

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as trainings begin with it: its tokens averaged."""
        from rnnreranker.encode.dense.encoder import Encoder

        given: dict[str, Any] = {"pooling": "mean", "normalize": True, "max_length": self.max_length}
        encoder = Encoder.load(self.encoder, devices=self.devices, **given)
        return self._measured(encoder, task)

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its search."""
        from rnnreranker.encode.dense.encoder import Encoder

        return self._measured(Encoder.load(model, devices=self.devices), task)

    def made(self, task: Task, arm: Arm, folder: Path) -> dict[str, Any]:
        """As of every study, and `by_degrees`: the measures of all documents in the order of their labels."""
        record, labels = super().made(task, arm, folder), arm.labels.params
        if isinstance(labels, ArmLabels):
            taught = self.kept_record(self.kept(task, self.arms[labels.name]))
            return record | {"by_degrees": means_of(taught["values"])}
        return record | ({"by_degrees": self._by_words(task, arm)} if isinstance(labels, SharedWords) else {})

    def params_of(self, task: Task, arm: Arm) -> Any:
        """The labels of pools are scaled already."""
        return dataclasses.replace(arm.params_of(task), label_scale="scores")

    def pools(self, task: Task, arm: Arm, folder: Path) -> Pools:
        """As of every study, the labels that are no judgements scaled to [0, 1]."""
        from rnnreranker.train.group.groups import scaled_labels

        pools, seconds, teacher = super().pools(task, arm, folder)
        scale: Any = "scores" if arm.hard else arm.params.label_scale
        scaled = [dataclasses.replace(one, scores=scaled_labels(one, scale)) for one in pools]
        return scaled, seconds, teacher

    def candidates(self, task: Task, arm: Arm, folder: Path) -> tuple[Run, float]:
        """As of every study, and all that is drawn at random in training."""
        from rnnreranker.train.group.groups import AT_RANDOM, sampled

        run, seconds = super().candidates(task, arm, folder)
        if arm.params.kind not in AT_RANDOM:
            return run, seconds
        collection, known = tuple(sorted(self.documents)), task.known(validation=False)
        scores_of = {qid: dict(run[qid]) if qid in run else {} for qid in known}
        for qid, scores in scores_of.items():
            below = min(scores.values(), default=0.0)
            drawn = sampled(qid, known[qid], collection, arm.params.depth, task.seed)
            for rank, docid in enumerate((docid for docid in drawn if docid not in scores), 1):
                scores[docid] = below - rank
        return Run.from_dict(scores_of), seconds

    def labelled(self, task: Task, arm: Arm, run: Run, folder: Path) -> Pools:
        """By the cosines of another arm, by a term scorer of the task, or by a labeler."""
        labels = arm.labels.params
        if isinstance(labels, ArmLabels):
            kept = self.kept(task, self.arms[labels.name])
            scored = self._by_cosines(str(kept / MODEL), task, self.hard(task, run))
            return scored, float(self.kept_record(kept)["costs"]["training"]), None
        if arm.labels.name != SCORER:
            return super().labelled(task, arm, run, folder)
        from rnnreranker.lab.study.teachers.term_teacher import labels_by_words

        words = self._weighed(task, arm.params.depth)
        assert isinstance(labels, SharedWords)
        of_words = labels_by_words(words, run, task.known(validation=False), labels)
        pools = [
            dataclasses.replace(
                one, scores=np.array([of_words[one.qid].get(docid, -np.inf) for docid in one.docids], dtype=np.float32)
            )
            for one in self.hard(task, run)
        ]
        return pools, float(words["seconds"]), None

    def _weighed(self, task: Task, depth: int) -> dict[str, Any]:
        """`queries`, `documents`: id → the weights of its words by a term scorer of the task; `seconds` of all that."""
        from rnnreranker.lab.study.teachers.term_teacher import weighed_by_scorer

        path = self.kept_at("words", task, depth).with_suffix(".json")
        with alone(path, f"{path}: another process trains its term scorer"):
            if not path.is_file():
                begun, run = time.perf_counter(), self.head(task, depth)
                source = opened(self.index_name).term_source
                weights = weighed_by_scorer(self.encoder, source, run, task, self.documents)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_json(path, {**weights, "seconds": time.perf_counter() - begun})
        kept: dict[str, Any] = read_json(path, "record of what a term scorer says", REPAIR)
        return kept

    def _by_words(self, task: Task, arm: Arm) -> dict[str, float]:
        """The measures of the test queries where all documents stand in the order of the words that they share."""
        from rnnreranker.lab.study.teachers.word_search import run_by_words

        if arm.labels.name == SCORER:
            kept = self._weighed(task, arm.params.depth)
            queries, documents = {qid: kept["queries"][qid] for qid in task.test}, kept["documents"]
        else:
            weights = CollectionWeights(opened(self.index_name).term_source)
            texts = [task.topics[qid] for qid in task.test]
            queries = dict(zip(task.test, weights.of_texts(texts), strict=True))
            docids = opened(self.index_name).term_source.docids
            documents = dict(zip(docids, weights.of_documents(range(len(docids))), strict=True))
        assert isinstance(arm.labels.params, SharedWords)
        run = run_by_words(queries, documents, arm.labels.params.products, self.hits)
        return means_of(self.values(run, task))

    def _documents_by(self, encoder: Encoder) -> np.ndarray:
        return encoder.encode(list(self.documents.values()), threads=1, what="documents")

    @staticmethod
    def _queries_by(encoder: Encoder, task: Task, qids: Sequence[str]) -> np.ndarray:
        return encoder.encode([task.topics[qid] for qid in qids], threads=1, what="queries")

    def _by_cosines(self, model: str, task: Task, pools: list[Labels]) -> list[Labels]:
        """Pools whose scores are the cosines of a model."""
        from rnnreranker.encode.dense.encoder import Encoder

        encoder, rows = (
            Encoder.load(model, devices=self.devices),
            {docid: row for row, docid in enumerate(self.documents)},
        )
        documents, queries = self._documents_by(encoder), self._queries_by(encoder, task, [one.qid for one in pools])
        return [
            dataclasses.replace(
                one, scores=(documents[[rows[docid] for docid in one.docids]] @ query).astype(np.float32)
            )
            for one, query in zip(pools, queries, strict=True)
        ]

    def _measured(self, encoder: Encoder, task: Task) -> dict[str, Any]:
        """What the search of all documents comes to.

        `values` of the test queries, `checked`: the means of those of validation, and `distances` of the test queries
        from documents.
        """
        from rnnreranker.labels.judged import positives_of
        from rnnreranker.methods.retrieve.dense import dense_run
        from rnnreranker.parts.vectors import QueryVectors, open_vectors

        documents, held_out = self._documents_by(encoder), tuple(sorted(task.validation))
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            np.save(Path(folder) / "vectors.npy", documents)
            names = "".join(f"{docid}\n" for docid in self.documents)
            (Path(folder) / "docid").write_text(names, encoding="utf-8")
            asked = (*task.test, *held_out)
            queries = QueryVectors(asked, self._queries_by(encoder, task, asked))
            run = dense_run(open_vectors(Path(folder)), queries, self.hits, threads=1, batch_size=256)
        rows = {docid: row for row, docid in enumerate(self.documents)}
        judged = positives_of(self.qrels)
        relevant = [
            np.array([rows[docid] for docid, _ in judged.get(qid, ()) if docid in rows], dtype=np.int64)
            for qid in task.test
        ]
        own = "trec" if self.protocol == "dl" else self.protocol  # all of its judgements are positives
        checked = values_of(run, task.part(validation=True), self.measures, own, held_out)
        return {
            "values": self.values(run, task),
            "checked": means_of(checked),
            "distances": distances_of(queries.vectors[: len(task.test)], documents, relevant),
        }
