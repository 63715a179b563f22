"""Labels and training tuned together: a trial makes labels, trains an encoder on them and is judged by validation."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import Inputs, defaults_of, find
from rnnreranker.base.settings import Params
from rnnreranker.base.written_form import Written
from rnnreranker.evaluate.measures import deepest_cutoff
from rnnreranker.lab.tune.heldout import HeldOut, fold_of, held_out_of
from rnnreranker.lab.tune.identity import of_qrels, of_queries, of_run
from rnnreranker.lab.tune.joint.space import Joint, JointSpace
from rnnreranker.lab.tune.sweeps import WHOLE, Rows, compared, without_parts
from rnnreranker.lab.tune.trials import Report, Study, search
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run
    from rnnreranker.train.fit import Trained


@dataclass(frozen=True, eq=False)
class Trainings:
    """Everything that a trial needs besides its parameters.

    Attributes:
        source: the fixed vectors of the documents.
        topics: texts of all queries.
        queries: their vectors by the encoder as it is.
        run: their candidates, which labels are made over.
        qrels: sparse judgements: columns query_id, doc_id, relevance.
        training, validation: ids of the queries that a trial is trained on, and judged on.
        encoder: that is trained: minilm, tas-b, a folder or a Hugging Face id.
        method: of the labels of the training queries; validation queries have their judgements.
        relevant: grades from here on are positive.
        of_method: settings of the method that are none of the similarity, where they are not its defaults.
        pooling, normalize: where they differ from what the model's files say.
        device: "cpu" or "cuda".
    """

    source: VectorSource
    topics: Mapping[str, str]
    queries: QueryVectors
    run: Run
    qrels: pandas.DataFrame
    training: tuple[str, ...]
    validation: tuple[str, ...]
    encoder: str
    method: str = "evidence"
    relevant: int = 1
    of_method: Mapping[str, Any] = field(default_factory=dict)
    pooling: str | None = None
    normalize: bool | None = None
    device: str = "cpu"

    def value(self, joint: Joint, report: Report | None = None) -> float:
        """The best validation measure (`joint.train.key_measure`, larger is better) of a training.

        `report` is told the measure of every validation after the first step, and may raise to end the training.
        """
        with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
            return _key(joint, self.train(joint, Path(folder) / "encoder", report).measures)

    def train(self, joint: Joint, output: Path, report: Report | None = None) -> Trained:
        """Make labels, train on them, and write the encoder."""
        from rnnreranker.labels.methods.base import make_labeler
        from rnnreranker.train.query.training import train_encoder

        judged = self.qrels[self.qrels["relevance"] >= self.relevant]
        inputs = Inputs(vectors=self.source, query_vectors=self.queries)
        of_method = make_labeler(self.method, inputs, self._params(joint.rnn), joint.labels, relevant=self.relevant)
        hard = make_labeler("hard", inputs, relevant=self.relevant)
        labels, checked = (
            labeler.infer(self.run, judged[judged["query_id"].isin(chosen)])
            for labeler, chosen in ((of_method, self.training), (hard, self.validation))
        )
        seen = 0

        def tell(step: int, measures: dict[str, float]) -> None:
            nonlocal seen
            if report is not None and step:
                report(seen, _key(joint, measures))
                seen += 1

        return train_encoder(
            labels,
            self.source,
            self.topics,
            self.encoder,
            output,
            joint.train,
            validation=checked,
            pooling=self.pooling,
            normalize=self.normalize,
            loss=joint.loss_params,
            checkpoints=False,
            device=self.device,
            on_validation=tell,
        )

    def _params(self, rnn: RnnParams) -> Params:
        """The settings of the method of labels, with this similarity where it has one."""
        usual = defaults_of(find("labeler", self.method))
        similarity = rnn.to_dict() if isinstance(usual, RnnParams) else {}
        return dataclasses.replace(usual, **similarity, **self.of_method)

    def about(self) -> dict[str, str]:
        """What a value depends on besides the parameters: name -> fingerprint or value."""
        return {
            "vectors": self.source.fingerprint,
            "topics": fingerprint(dict(self.topics)),
            "query vectors": of_queries(self.queries),
            "run": of_run(self.run),
            "qrels": of_qrels(self.qrels),
            "training queries": fingerprint(list(self.training)),
            "validation queries": fingerprint(list(self.validation)),
            "encoder": self.encoder,
            "pooling": str(self.pooling),
            "normalize": str(self.normalize),
            "method": str(Written(self.method, dict(self.of_method))),
            "relevant": str(self.relevant),
        }


@dataclass(frozen=True, eq=False)
class Test:
    """Queries that took no part in the search, and what retrieval over the whole index is worth on them.

    Attributes:
        topics: query id to text.
        qrels: their judgements, or those of more queries.
        measure, protocol: as `evaluate` takes them; one measure.
        hits: documents retrieved: as many as the measure looks at, 100 at least.
    """

    topics: Mapping[str, str]
    qrels: pandas.DataFrame
    measure: str
    protocol: str = "trec"

    @property
    def hits(self) -> int:
        return deepest_cutoff(self.measure)

    def values(self, source: VectorSource, queries: QueryVectors) -> np.ndarray:
        """(T,) float64: the measure of every topic, in the order of `topics`."""
        from rnnreranker.evaluate import evaluate
        from rnnreranker.methods.retrieve.dense import dense_run

        run = dense_run(source, queries, self.hits, threads=None, batch_size=256)
        scores = evaluate(run.as_written(), self.qrels, self.measure, self.protocol, topics=tuple(self.topics))
        return scores.per_topic(scores.measures[0])

    def trained(self, trainings: Trainings, joint: Joint, seeds: Sequence[int]) -> np.ndarray:
        """(T,) float64: as `values`, by encoders trained with the parameters, averaged over seeds."""
        from rnnreranker.encode.dense.encoder import Encoder
        from rnnreranker.parts.vectors import QueryVectors

        of_seeds = []
        for seed in seeds:
            seeded = dataclasses.replace(joint, train=dataclasses.replace(joint.train, seed=seed))
            with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
                trainings.train(seeded, out := Path(folder) / "encoder")
                vectors = Encoder.load(str(out)).encode(list(self.topics.values()), what="queries")
            of_seeds.append(self.values(trainings.source, QueryVectors(tuple(self.topics), vectors)))
        return np.mean(of_seeds, axis=0)


def tune_jointly(
    trainings: Trainings, space: JointSpace, trials: int, *, seed: int = 0, storage: str | Path | None = None
) -> Study[Joint]:
    """Search the parameters whose training validates best; the first trial is the default.

    A training is ended early when its validation so far is below the median of earlier trials at the same validation.

    Raises:
        InputError: as `search`, and for queries of the trial that cannot be labelled or trained on.
    """
    sizes = len(trainings.training), len(trainings.validation)
    if not all(sizes):
        raise InputError(f"{sizes[0]} training and {sizes[1]} validation queries: expected some of each")
    random_trials = min(20, max(3, trials // 4))
    about = trainings.about() if storage is not None else None
    kept: dict[str, Any] = {"storage": storage, "name": "joint", "about": about}
    return search(trainings.value, space, trials, seed=seed, random_trials=random_trials, **kept)


def on_test_queries(
    trainings: Trainings, study: Study[Joint], default: Joint, test: Test, base: QueryVectors, seeds: Sequence[int]
) -> HeldOut:
    """What the parameters found are worth on queries that took no part, beside the default and the untrained encoder.

    Args:
        trainings: as in the search; the encoders are trained on its training queries.
        study: of `tune_jointly`.
        default: to compare with.
        test: the other queries; base: their vectors by the encoder as it is.
        seeds: of the trainings; values are averaged over them before anything is compared.
    """
    tuned, plain = (test.trained(trainings, joint, seeds) for joint in (study.params, default))
    fold = fold_of(study, len(trainings.training), tuned, plain)
    how = f"test queries, {len(seeds)} seeds averaged" if len(seeds) > 1 else "test queries"
    return held_out_of(how, test.values(trainings.source, base), plain, tuned, [fold])


def joint_ablations(trainings: Trainings, joint: Joint, test: Test, seeds: Sequence[int]) -> Rows:
    """Each part of similarity and labels left out in turn, trained and tested; rows as of `sweeps.ablation_sweep`.

    Args:
        trainings, test: as in `on_test_queries`.
        joint: all parts.
        seeds: of the trainings, averaged.
    """
    variants = {WHOLE: joint}
    variants |= {
        what: dataclasses.replace(joint, rnn=params)
        for what, params in without_parts(joint.rnn).items()
        if params != joint.rnn
    }
    for what, changed in (("no n_max", {"n_max": None}), ("no boost (b 1)", {"boost": 1.0})):
        variants[what] = dataclasses.replace(joint, labels=dataclasses.replace(joint.labels, **changed))
    shown = progress(list(variants.items()), unit="variants", what="ablations")
    return compared({what: test.trained(trainings, variant, seeds) for what, variant in shown})


def _key(joint: Joint, measures: Mapping[str, float]) -> float:
    """The measure that trials are judged by, larger is better."""
    name = joint.train.key_measure
    return -measures[name] if name == "loss" else measures[name]
