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
from rnnreranker.lab.study.query_trial import QueryTest, QueryTrial
from rnnreranker.lab.tune.heldout import HeldOut, fold_of, held_out_of
from rnnreranker.lab.tune.identity import of_qrels, of_queries, of_run
from rnnreranker.lab.tune.joint.space import Joint, JointSpace
from rnnreranker.lab.tune.sweeps import WHOLE, Rows, compared, without_parts
from rnnreranker.lab.tune.trials import Report, Study, search
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.train.fit import Trained


@dataclass(frozen=True, eq=False, kw_only=True)
class Trainings(QueryTrial):
    """Everything that a trial needs besides its parameters.

    Attributes:
        qrels: sparse judgements: columns query_id, doc_id, relevance; positive from `relevant` on.
        training, validation: ids of the queries that a trial is trained on, by labels of `method`, and judged on.
        of_method: settings of the method that are none of the similarity, where they are not its defaults.
    """

    qrels: pandas.DataFrame
    training: tuple[str, ...]
    validation: tuple[str, ...]
    method: str = "evidence"
    relevant: int = 1
    of_method: Mapping[str, Any] = field(default_factory=dict)

    def value(self, joint: Joint, report: Report | None = None) -> float:
        """The best validation measure (`joint.train.key_measure`, larger is better) of a training.

        `report` is told the measure of every validation after the first step, and may raise to end the training.
        """
        with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
            return _key(joint, self.train(joint, Path(folder) / "encoder", report).measures)

    def train(self, joint: Joint, output: Path, report: Report | None = None) -> Trained:
        """Make labels, train on them, and write the encoder."""
        from rnnreranker.labels.methods.base import make_labeler

        judged = self.qrels[self.qrels["relevance"] >= self.relevant]
        training, validation = (judged[judged["query_id"].isin(own)] for own in (self.training, self.validation))
        inputs, params = Inputs(vectors=self.source, query_vectors=self.queries), self._params(joint.rnn)
        labeler = make_labeler(self.method, inputs, params, joint.labels, relevant=self.relevant)
        labels = labeler.infer(self.run, training)
        seen = 0

        def tell(step: int, measures: dict[str, float]) -> None:
            nonlocal seen
            if report is not None and step:
                report(seen, _key(joint, measures))
                seen += 1

        loss, relevant = joint.loss_params, self.relevant
        return self.fit(labels, validation, joint.train, loss, output, relevant=relevant, report=tell)

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


class Test(QueryTest):
    """Queries that took no part in the search, and what a measure says of a search of the whole index."""

    def values(self, source: VectorSource, queries: QueryVectors) -> np.ndarray:
        """(T,) float64: the measure of every topic, in the order of `topics`."""
        (by_query,) = self.values_of(source, queries).values()
        return np.array([by_query[qid] for qid in self.topics])

    def trained(self, trainings: Trainings, joint: Joint, seeds: Sequence[int]) -> np.ndarray:
        """(T,) float64: as `values`, by encoders trained with the parameters, averaged over seeds."""
        of_seeds = []
        for seed in seeds:
            seeded = dataclasses.replace(joint, train=dataclasses.replace(joint.train, seed=seed))
            with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
                trainings.train(seeded, out := Path(folder) / "encoder")
                of_seeds.append(self.values(trainings.source, self.encoded(out)))
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

    base: vectors of the test queries by the encoder as it is. Values are averaged over the seeds before anything is
    compared.
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
