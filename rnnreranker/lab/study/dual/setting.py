"""What the trials of dual encoders share, and one of them: taught, trained, tested by search of all documents."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.locks import alone
from rnnreranker.base.method import Inputs
from rnnreranker.lab.study.dual.arms import DualArm
from rnnreranker.lab.study.dual.distances import distances_of
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.retrieved import opened
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.text.setting import TextSetting, training_record
from rnnreranker.lab.study.trial import means_of, values_of
from rnnreranker.parts.terms.word_weights import CollectionWeights

if TYPE_CHECKING:
    from rnnreranker.encode.dense.encoder import Encoder
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.soft import Labels
    from rnnreranker.runs import Run
    from rnnreranker.train.models.dual import DualParams

REPAIR = "delete it, and it is made again"


@dataclass(frozen=True, eq=False)
class DualSetting(TextSetting):
    """Dual encoders, tested by searching the collection, which each encodes; the encoder as it is, too.

    What the arm LE-None comes to on a task is kept in `work` with the cosines of the training candidates, from which
    LE-Distill learns, and what a term scorer says of all words, from which LE-BS learns.

    Attributes:
        work: folder of what is kept.
        index_name: of the index, whose vectors and words labelers read.
        sources: what tells these from others.
    """

    model = "dual"

    work: Path = Path()
    index_name: str = ""
    sources: tuple[Any, ...] = ()

    @classmethod
    def own_attributes(
        cls, request: StudyRequest, params: Any, index: IndexOnDisk, needs: frozenset[str]
    ) -> dict[str, Any]:
        """See `TextSetting`."""
        sources = (
            index.vectors.fingerprint if "vectors" in needs else None,
            index.settings.get("parts", {}).get("terms") if "terms" in needs else None,
        )
        return {"work": Path(str(request.work)), "index_name": request.index_name, "sources": sources}

    def own_identity(self) -> list[Any]:
        """See `TextSetting`."""
        from rnnreranker.encode.dense.encoder import Encoder

        return [Encoder.digest_of(self.encoder), list(self.sources), "distances", "checked"]

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as trainings begin with it: its tokens averaged."""
        from rnnreranker.encode.dense.encoder import Encoder

        encoder = Encoder.load(self.encoder, pooling="mean", normalize=True, max_length=self.max_length)
        return self._measured(encoder, self._documents_by(encoder), task)

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its search."""
        from rnnreranker.encode.dense.encoder import Encoder

        encoder = Encoder.load(model)
        return self._measured(encoder, self._documents_by(encoder), task)

    def trained(self, task: Task, arm: DualArm) -> dict[str, Any]:  # type: ignore[override]
        """As `TextSetting.trained`; `costs`: seconds of training and of making labels, a teacher's training with it."""
        plain = None if arm.plain is None else self._plain(task, dataclasses.replace(arm.plain, seed=task.seed))
        if plain is not None and arm.method == "hard":
            return dict(plain["found"])
        begun, run = time.perf_counter(), self._candidates(task, arm.params_of(task))
        own: dict[str, Any] = {}
        if plain is not None:
            pools, labelling = self._scored(task, run, plain["cosines"]), float(plain["found"]["costs"]["training"])
            own = {"by_degrees": means_of(plain["found"]["values"])}
        elif arm.method == "bs":
            from rnnreranker.lab.study.dual.term_teacher import labels_by_words

            kept = self._weighed(task, arm.params.depth)
            assert arm.shared is not None
            labels = labels_by_words(kept, run, task.known(validation=False), arm.shared)
            pools, labelling = self._scored(task, run, labels), float(kept["seconds"])
        else:
            pools = self._labelled(task, arm, run)
            labelling = time.perf_counter() - begun if arm.method != "hard" else 0.0
        if arm.shared is not None:
            own = {"by_degrees": self._by_degrees(task, arm)}
        return self._trained_on(task, arm, pools, labelling)[0] | own

    def _trained_on(
        self, task: Task, arm: DualArm, pools: list[Labels], labelling: float
    ) -> tuple[dict[str, Any], Any]:
        """What a training comes to, and the cosines of its encoder of `pools`."""
        from rnnreranker.encode.dense.encoder import Encoder
        from rnnreranker.train.label_scale import scaled_labels

        params = dataclasses.replace(arm.params_of(task), label_scale="scores")
        read = [dataclasses.replace(one, scores=scaled_labels(one, arm.label_scale)) for one in pools]
        inputs = self.grouped(task, read, params, {"labels": arm.method}, margins=arm.method != "hard")
        own = dataclasses.replace(self, loss_values={**self.loss_values, **arm.of_loss})
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            out = Path(folder) / "model"
            trained = own.fitted(inputs, arm.encoder or self.encoder, out, params)
            encoder = Encoder.load(str(out))
            documents = self._documents_by(encoder)
            measured = self._measured(encoder, documents, task)
            cosines = self._cosines(encoder, documents, task, pools) if arm.plain is not None else {}
        costs = {"training": trained.seconds, "labelling": labelling}
        return measured | training_record(trained) | {"costs": costs}, cosines

    def _plain(self, task: Task, params: DualParams) -> dict[str, Any]:
        """`record`: what LE-None comes to on a task; `cosines`: query → docid → cosine of its training candidates."""
        path = self._place("le-none", task, params.to_dict())
        with alone(path, f"{path}: another process trains it"):
            if not path.is_file():
                arm = DualArm("", params, {"alpha": 0.0}, plain=params)
                pools = self._labelled(task, arm, self._candidates(task, params))
                record, cosines = self._trained_on(task, arm, pools, 0.0)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_json(path, {"found": record, "cosines": cosines})
        kept: dict[str, Any] = read_json(path, "record of what LE-None came to", REPAIR)
        return kept

    def _candidates(self, task: Task, params: DualParams) -> Run:
        """What labels are made of: the first candidates of the training queries, and all that is drawn at random."""
        from rnnreranker.runs import Run as RunOf
        from rnnreranker.train.group.negative_kinds import AT_RANDOM, sampled

        run = self.head(task, params.depth)
        if params.kind not in AT_RANDOM:
            return run
        collection, known = tuple(sorted(self.documents)), task.known(validation=False)
        scores_of = {qid: dict(run[qid]) if qid in run else {} for qid in known}
        for qid, scores in scores_of.items():
            below = min(scores.values(), default=0.0)
            drawn = sampled(qid, known[qid], collection, params.depth, task.seed)
            for rank, docid in enumerate((docid for docid in drawn if docid not in scores), 1):
                scores[docid] = below - rank
        return RunOf.from_dict(scores_of)

    def _labelled(self, task: Task, arm: DualArm, run: Run) -> list[Labels]:
        """The labels of the training queries by the method of an arm."""
        from rnnreranker.labels.methods.base import make_labeler

        inputs = Inputs(
            topics=task.topics,
            texts=self.documents,
            query_vectors=self.queries,
            vectors=lambda: opened(self.index_name).vectors,
            terms=lambda: opened(self.index_name).term_source,
        )
        labeler = make_labeler(arm.method, inputs, arm.method_params, threads=1)
        return list(labeler.infer(run, task.part(validation=False)))

    def _weighed(self, task: Task, depth: int) -> dict[str, Any]:
        """`queries`, `documents`: id → the weights of its words by a term scorer of the task; `seconds` of all that."""
        from rnnreranker.lab.study.dual.term_teacher import weighed_by_scorer

        path = self._place("words", task, depth)
        with alone(path, f"{path}: another process trains its term scorer"):
            if not path.is_file():
                begun, run = time.perf_counter(), self.head(task, depth)
                source = opened(self.index_name).term_source
                weights = weighed_by_scorer(self.encoder, source, run, task, self.documents)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_json(path, {**weights, "seconds": time.perf_counter() - begun})
        kept: dict[str, Any] = read_json(path, "record of what a term scorer says", REPAIR)
        return kept

    def _by_degrees(self, task: Task, arm: DualArm) -> dict[str, float]:
        """The measures of the test queries where all documents stand in the order of their labels."""
        from rnnreranker.lab.study.dual.word_search import run_by_words

        assert arm.shared is not None
        if arm.method == "bs":
            kept = self._weighed(task, arm.params.depth)
            queries, documents = {qid: kept["queries"][qid] for qid in task.test}, kept["documents"]
        else:
            weights = CollectionWeights(opened(self.index_name).term_source)
            texts = [task.topics[qid] for qid in task.test]
            queries = dict(zip(task.test, weights.of_texts(texts), strict=True))
            docids = opened(self.index_name).term_source.docids
            documents = dict(zip(docids, weights.of_documents(range(len(docids))), strict=True))
        run = run_by_words(queries, documents, arm.shared.products, self.hits)
        return means_of(values_of(run, self.qrels, self.measures, self.protocol, task))

    def _place(self, name: str, task: Task, *more: Any) -> Path:
        """The file of what is kept of a task."""
        task_of = [task.seed, task.positives.to_numpy().tolist(), sorted(task.validation), task.test, task.topics]
        return self.work / name / f"{fingerprint(self.identity, task_of, *more)}.json"

    @staticmethod
    def _scored(task: Task, run: Run, scores: dict[str, dict[str, float]]) -> list[Labels]:
        """The labels of the training queries whose scores are these."""
        from rnnreranker.labels.methods.base import make_labeler

        hard = make_labeler("hard", Inputs()).infer(run, task.part(validation=False))
        return [
            dataclasses.replace(
                one, scores=np.array([scores[one.qid].get(docid, -np.inf) for docid in one.docids], dtype=np.float32)
            )
            for one in hard
        ]

    def _documents_by(self, encoder: Encoder) -> np.ndarray:
        return encoder.encode(list(self.documents.values()), threads=1, what="documents")

    @staticmethod
    def _queries_by(encoder: Encoder, task: Task, qids: tuple[str, ...]) -> np.ndarray:
        return encoder.encode([task.topics[qid] for qid in qids], threads=1, what="queries")

    def _cosines(
        self, encoder: Encoder, documents: np.ndarray, task: Task, pools: list[Labels]
    ) -> dict[str, dict[str, float]]:
        """Query → docid → cosine, of the candidates of pools."""
        rows = {docid: row for row, docid in enumerate(self.documents)}
        queries = self._queries_by(encoder, task, tuple(one.qid for one in pools))
        cosines_of = {}
        for one, query in zip(pools, queries, strict=True):
            scores = documents[[rows[docid] for docid in one.docids]] @ query
            cosines_of[one.qid] = dict(zip(one.docids, scores.tolist(), strict=True))
        return cosines_of

    def _measured(self, encoder: Encoder, documents: np.ndarray, task: Task) -> dict[str, Any]:
        """What the search of all documents comes to.

        `values` of the test queries, `checked`: the means of those of validation, and `distances` of the test queries
        from documents.
        """
        from rnnreranker.labels.judged import positives_of
        from rnnreranker.methods.retrieve.dense import dense_run
        from rnnreranker.parts.vectors import QueryVectors, open_vectors

        held_out = tuple(sorted(task.validation))
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
        checked = values_of(run, task.part(validation=True), self.measures, self.protocol, task, held_out)
        return {
            "values": values_of(run, self.qrels, self.measures, self.protocol, task),
            "checked": means_of(checked),
            "distances": distances_of(queries.vectors[: len(task.test)], documents, relevant),
        }
