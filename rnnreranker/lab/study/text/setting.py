"""What the trials of a model that reads texts share, and one of them: trained on groups, tested by its own run."""

from __future__ import annotations

import functools
import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import Inputs
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.text.arms import TextArm
from rnnreranker.lab.study.trial import VERSION, values_of
from rnnreranker.labels.soft import Labels

if TYPE_CHECKING:
    import pandas
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.sparse.encoder import SparseEncoder
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run
    from rnnreranker.train.fit import Trained
    from rnnreranker.train.group.inputs import GroupInputs
    from rnnreranker.train.group.params import GroupParams

FACTOR = 100  # weights of words are searched as whole numbers of hundredths, as an index keeps them


@dataclass(frozen=True, eq=False)
class TextSetting:
    """What all trials share.

    Attributes:
        model: "cross", "sparse", "late" or "dual".
        encoder: what the trainings begin with: a name, folder or Hugging Face id.
        runs: retriever → the candidates of all topics.
        over: the retriever whose candidates a cross-encoder reranks in the test.
        documents: docid → text, of the collection; index: its fingerprint.
        qrels: judgements of all test queries; measures, protocol: of the test, see `evaluate`.
        queries, vectors: of the filter of likely positives and of labels; None where no arm has such.
        hits: candidates of a test query; max_length: tokens at which the test cuts texts, None = as the model says.
        loss_values: parameters of losses; an arm takes those that its loss has.
    """

    model: ClassVar[str]
    encoder: str
    runs: Mapping[str, Run]
    over: str
    documents: Mapping[str, str]
    index: str
    qrels: pandas.DataFrame
    measures: str
    protocol: str
    queries: QueryVectors | None = None
    vectors: VectorSource | None = None
    hits: int = 100
    max_length: int | None = None
    loss_values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def own_attributes(
        cls, request: StudyRequest, params: Any, index: IndexOnDisk, needs: frozenset[str]
    ) -> dict[str, Any]:
        """The attributes that other kinds of settings do not have, by what is asked for.

        index, needs: what labelers and filters of the arms read, and which of it.
        """
        return {}

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that name all of it."""
        packages = [version(name) for name in ("torch", "transformers", "sentence-transformers")]
        return fingerprint(
            *(VERSION, self.model, packages, self.encoder, self.index, self.over, self.hits, self.max_length),
            *(self.measures, self.protocol, {name: run.to_dict() for name, run in self.runs.items()}),
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
            None if self.queries is None else self.queries.vectors.tolist(),
            dict(self.loss_values),
            *self.own_identity(),
        )

    def own_identity(self) -> list[Any]:
        """What else results depend on, in a kind of setting with attributes of its own."""
        return []

    def trained(self, task: Task, arm: TextArm) -> dict[str, Any]:
        """The values of the model that an arm trains, and what its training came to, see `train_on_groups`."""
        params = arm.params_of(task)
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            out = Path(folder) / "model"
            made = self.fitted(self._inputs(task, arm), self.encoder, out, params, arm.of_loss)
            return self.tested(str(out), task) | training_record(made)

    def fitted(
        self,
        inputs: GroupInputs,
        encoder: str,
        out: Path,
        params: GroupParams,
        of_loss: Mapping[str, Any] | None = None,
    ) -> Trained:
        """Train a model that begins as `encoder`; of_loss: parameters of its loss before those of the study."""
        from rnnreranker.train.group.training import train_on_groups
        from rnnreranker.train.params import loss_params

        loss = loss_params(params.loss, {**(of_loss or {}), **self.loss_values})
        return train_on_groups(inputs, self.model, encoder, out, params, loss=loss, checkpoints=False)

    @abstractmethod
    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of what the trained models are compared with."""

    @abstractmethod
    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of a model, and what else its record says of it."""

    def _inputs(self, task: Task, arm: TextArm) -> GroupInputs:
        from rnnreranker.labels.methods.base import make_labeler

        run = self.runs[arm.stage]
        hard = make_labeler("hard", Inputs())
        pools = list(hard.infer(run, task.part(validation=False)))
        if arm.filter != "none":
            pools = self._without_likely_positives(pools, task, arm)
        return self.grouped(task, pools, arm.params, {"negatives": f"{arm.stage}, filter {arm.filter}"})

    def grouped(
        self, task: Task, pools: Sequence[Labels], params: GroupParams, made: Mapping[str, Any], margins: bool = False
    ) -> GroupInputs:
        """What is trained on and validated: the latter on candidates of `over`, whatever the pools are made of.

        made, margins: as of `GroupInputs`.
        """
        from rnnreranker.labels.methods.base import make_labeler
        from rnnreranker.train.group.groups import enough, first_candidates
        from rnnreranker.train.group.inputs import GroupInputs
        from rnnreranker.train.group.negative_kinds import AT_RANDOM

        lists = make_labeler("hard", Inputs()).infer(self.runs[self.over], task.part(validation=True))
        kept = [first_candidates(one, params.validation_candidates) for one in lists]
        usable = enough(pools, *params.least)
        collection = tuple(sorted(self.documents)) if params.kind in AT_RANDOM else ()
        return GroupInputs(usable, kept, task.topics, self.documents, made, margins, collection=collection)

    def head(self, task: Task, depth: int) -> Run:
        """The first candidates of the training queries of a task, by the last of the first stages."""
        from rnnreranker.runs import Run as RunOf

        run, wanted = self.runs[self.over].head(depth), dict.fromkeys(task.part(validation=False)["query_id"])
        return RunOf.from_dict({qid: dict(run[qid]) for qid in wanted if qid in run})

    def _without_likely_positives(self, pools: list[Labels], task: Task, arm: TextArm) -> list[Labels]:
        """The pools without the tenth of their candidates that is nearest to a positive by reciprocal neighbours."""
        from rnnreranker.labels.judged import positives_of
        from rnnreranker.labels.negatives import discarded, threshold_at
        from rnnreranker.labels.negatives import pools as neighbourhoods
        from rnnreranker.labels.negatives.params import DEFAULT_RATE

        assert self.vectors is not None
        assert self.queries is not None
        run, positives = self.runs[arm.stage], positives_of(task.part(validation=False))
        inputs = Inputs(vectors=self.vectors, query_vectors=self.queries)
        hoods = neighbourhoods(run, positives, inputs, threads=1)
        threshold = threshold_at(hoods, arm.filter, DEFAULT_RATE)
        away = {
            one.qid: {one.candidates[row] for row in np.flatnonzero(discarded(one, arm.filter, threshold).any(0))}
            for one in hoods
        }
        kept = []
        for pool in pools:
            stay = np.array([docid not in away.get(pool.qid, ()) for docid in pool.docids])
            docids = [docid for docid, its in zip(pool.docids, stay.tolist(), strict=True) if its]
            kept.append(Labels(pool.qid, docids, pool.scores[stay], pool.targets[stay], pool.positive[stay]))
        return kept


def training_record(made: Trained) -> dict[str, Any]:
    """What a record says of a training."""
    about = {"best_step": made.best_step, "steps": made.steps, "validation": made.measures}
    return about | {"history": made.record["history"]}


@dataclass(frozen=True, eq=False)
class CrossSetting(TextSetting):
    """Cross-encoders, tested by reranking the first candidates of a first stage, which is the base."""

    model = "cross"

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the first stage."""
        run = self.runs[self.over].head(self.hits)
        return {"values": values_of(run, self.qrels, self.measures, self.protocol, task)}

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its order of the candidates."""
        from rnnreranker.encode.cross.encoder import PairScorer
        from rnnreranker.runs import Run

        scorer = PairScorer.load(model, max_length=self.max_length)
        scores_of: dict[str, dict[str, float]] = {}
        for qid in task.test:
            docids = self.runs[self.over].ranked(qid)[: self.hits] if qid in self.runs[self.over] else []
            pairs = [(task.topics[qid], self.documents[docid]) for docid in docids]
            scores_of[qid] = dict(zip(docids, scorer.score(pairs, threads=1).scores.tolist(), strict=True))
        run = Run.from_dict({qid: scores for qid, scores in scores_of.items() if scores})
        return {"values": values_of(run, self.qrels, self.measures, self.protocol, task)}


@dataclass(frozen=True, eq=False)
class SparseSetting(TextSetting):
    """Sparse encoders, tested by searching the collection, which each encodes; the one as it is, too."""

    model = "sparse"

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as it is."""
        return self.tested(self.encoder, task)

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its search, and `words`: what its weights cost, see `WordUse`."""
        from rnnreranker.encode.sparse.encoder import SparseEncoder
        from rnnreranker.methods.retrieve.base import run_of_rows
        from rnnreranker.parts.impacts.exact import best_impacts
        from rnnreranker.parts.impacts.quantization import whole
        from rnnreranker.parts.impacts.word_use import word_use

        encoder = SparseEncoder.load(model, max_length=self.max_length)
        documents = whole(self._weights(encoder), FACTOR)
        queries = whole(encoder.encode_queries([task.topics[qid] for qid in task.test], threads=1), FACTOR, "queries")
        docids = list(self.documents)
        docid_ranks = np.argsort(np.argsort(np.array(docids, dtype=object).astype(str)))
        turned = documents.astype(np.float64).T.tocsr()
        hits = best_impacts(queries.astype(np.float64), [(0, turned)], self.hits, docid_ranks, 1)
        run = run_of_rows(task.test, docids, [scores for scores, _ in hits], [rows for _, rows in hits])
        return {
            "values": values_of(run, self.qrels, self.measures, self.protocol, task),
            "words": word_use(
                queries, np.bincount(documents.indices, minlength=documents.shape[1]), len(docids)
            ).to_dict(),
        }

    def _weights(self, encoder: SparseEncoder) -> csr_matrix:
        return encoder.encode_documents(list(self.documents.values()), threads=1)
