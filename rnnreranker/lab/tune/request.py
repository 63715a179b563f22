"""Requests of tunings, their search spaces, and their checks before any work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker.base.device import AUTO, ComputesOnDevices
from rnnreranker.base.errors import InputError, argument, refuse, require
from rnnreranker.base.method import Form, choose
from rnnreranker.base.settings import Written, hints_of, setting
from rnnreranker.data.names import QRELS
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import CHOSEN, PROTOCOLS
from rnnreranker.lab.query_set import QueriesRequest, VectorsRequest
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.request import check as check_study
from rnnreranker.lab.tune.space import LABELS, TRAINING, Joint, Space
from rnnreranker.labels.request import choose_labeler
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.runs import Run

RERANKER = "rnn"  # whose settings are searched
MODEL, HARD, ARM = "query", "hard", "trial"  # what `tune train` trains; labels without searched settings; its arm
RULES = ("capped", "mean")  # that choose among settings, see `collections.RULES`
SWEEPS = ("context", "lambda", "grid", "ablations")
NEEDED = ("index", "topics", "qrels")  # of one query set
SINGLE = (*NEEDED, "run", "encoded_queries", "test_topics", "test_qrels", "test_run")  # not with cells
UNREAD = ("validation_share", "validation_queries")  # in a training here


@dataclass(frozen=True, kw_only=True)
class TuningRequest(QueriesRequest):
    """The arguments of every tuning, and flags of its command.

    Attributes:
        qrels: a name, a file, {qid: {docid: grade}} or a data frame.
        protocol: None = that of the judgements.
        measure: one measure, maximised or (for trainings) tested.
    """

    qrels: Qrels | None = setting(None, QRELS)
    test_topics: str | Path | Mapping[str, str] | None = setting(None, "test on these queries, held out")
    test_qrels: Qrels | None = setting(None, "their judgements")
    hits: int = setting(100, "candidates per query", at_least=1)
    measure: str = setting("nDCG@10", "what is maximised")
    protocol: str | None = setting(None, f"which grades count ({CHOSEN})", one_of=lambda: [*PROTOCOLS])
    trials: int = setting(200, "of every study; 0 = sweeps alone", at_least=0)
    seed: int = setting(0, "of the sampler", at_least=0)
    storage: str | Path | None = setting(None, "keep the trials here, and go on from them after a kill")


@dataclass(frozen=True, kw_only=True)
class TuneRequest(ComputesOnDevices, TuningRequest, VectorsRequest):
    """The arguments of `tune_reranker` and `tune_collections`, and flags of `tune`.

    Attributes:
        rerank: rNN in written form, `rnn:k_exp=2,preset=tas-b`; its settings are fixed, the others are searched. The
            preset is the default: the first trial and the comparison.
        space: a file, or setting → range as in such a file.
        collections: cells, each a collection under one first stage: a file, or name → {index: …, topics: …, qrels: …,
            run: …, collection: …}; then `trials` is the number of settings, the default included.
        rule: "capped" or "mean", see `collections.RULES`.
        device, compute_dtype: of the query encoder, as in `devices_of`.
    """

    test_run: str | Path | Run | None = setting(None, "candidates of --test-topics (default: retrieved densely)")
    folds: int = setting(5, "of the cross-validation", at_least=2)
    rerank: Form = setting(RERANKER, f"{RERANKER}:key=value,… with what is held", metavar="NAME")
    space: str | Path | Mapping[str, Any] | None = setting(None, "ranges in place of the default")
    sweep: str | None = setting(None, f"around these settings: some of {','.join(SWEEPS)}", metavar="NAMES")
    collections: str | Path | Mapping[str, Mapping[str, Any]] | None = setting(
        None, "cells (name: {index: …, topics: …, qrels: …, run: …}), each left out in turn", metavar="FILE.yaml"
    )
    rule: str | None = setting(
        None, "of --collections (default: capped, losses weigh more)", one_of=lambda: [*RULES], metavar="NAME"
    )

    @property
    def sweeps(self) -> list[str]:
        """The names of the sweeps."""
        return self.sweep.split(",") if self.sweep else []

    @property
    def apart(self) -> TuneRequest | None:
        """The request of the query set that is tested on; None = folds."""
        if self.test_topics is None:
            return None
        test: Any = {"topics": self.test_topics, "qrels": self.test_qrels, "run": self.test_run}
        return dataclasses.replace(self, **test, encoded_queries=None, test_topics=None, test_qrels=None, test_run=None)

    @cached_property
    def searched(self) -> Space:
        """The space, without the settings that the written form fixes.

        Raises:
            InputError: another reranker, unknown settings, or settings that tuning cannot vary.
        """
        written = Written.read(self.rerank)
        chosen = choose("reranker", written, "rerank")
        strange = [name for name in written.params if name not in hints_of(RnnParams)]
        if chosen.name != RERANKER or strange:
            shown = f"{argument('rerank', str(written))}: expected {RERANKER}, whose settings are searched"
            raise InputError(shown + (f", without {', '.join(strange)}: vectors are compared" if strange else ""))
        space = Space.of(self.space, chosen.params)
        return Space({name: one for name, one in space.ranges.items() if name not in written.params}, chosen.params)


@dataclass(frozen=True, kw_only=True)
class TuneTrainRequest(TuningRequest):
    """The arguments of `tune_training`, and flags of `tune train`.

    Attributes:
        encoder: the trained one, `name:pooling=cls,normalize=true`; None = the one of the index.
        method, model, loss: in written form, also with `preset`; their settings are fixed.
        validation_share, test_share: of the queries, by a hash of their ids.
    """

    hits: int = setting(200, "candidates per query", at_least=1)
    measure: str = setting("nDCG@10", "of the test: retrieval over the whole index")
    trials: int = setting(40, "trainings", at_least=1)
    relevant: int = setting(1, "grade from which on positive", at_least=1)
    encoder: Form | None = setting(None, "that is trained: NAME|DIR|hub id[:pooling=cls] (default: the index's)")
    method: Form = setting("evidence", ": of the labels", method="labeler", metavar="NAME")
    model: Form = setting(MODEL, f"the training, {MODEL}:epochs=3,batch_size=16")
    loss: Form | None = setting(None, " (default: kl)", method="loss", metavar="NAME")
    validation_share: float = setting(0.25, "of the queries", above=0, at_most=1)
    test_share: float = setting(0.25, "of the queries", above=0, at_most=1)
    final_seeds: int = setting(3, "trainings for the test", at_least=1)
    device: str = setting("cpu", f"cpu, cuda, {AUTO}")
    ablations: bool = setting(False, "train without each part too, around what was best")

    @property
    def sweeps(self) -> list[str]:
        """The names of the sweeps."""
        return ["ablations"] if self.ablations else []

    @cached_property
    def study(self) -> StudyRequest:
        """The study whose arm the trials change.

        Raises:
            InputError: another model, unknown or unused settings of model, loss or labels, another source than vectors.
        """
        model, method = Written.read(self.model), Written.read(self.method)
        choose_labeler(method, "method")
        unread = [name for name in model.params if name in UNREAD]
        shown = argument("model", str(model))
        refuse(
            (model.name != MODEL, f"{shown}: expected {MODEL}, whose training is searched"),
            (unread, f"{shown}: {', '.join(unread)}: nothing reads it in a tuning; leave it out"),
            (
                method.name == HARD and method.params,
                f"{argument('method', str(method))}: {HARD} has no parameters here",
            ),
        )
        given: Any = {name: getattr(self, name) for name in ("index", "topics", "qrels", "loss", "device", "protocol")}
        given |= {"model": model, "arms": [{ARM: {"labels": str(method)}}], "context": self.hits}
        given |= {"encoder": self.encoder and str(Written.read(self.encoder)), "measures": self.measure}
        study = StudyRequest(**given)
        check_study(study)
        return study

    @cached_property
    def searched(self) -> Space:
        """The space, without the settings that the written forms fix."""
        [arm], labeler = self.study.chosen, choose_labeler(self.method)
        own = {name: value for name, value in labeler.params.to_dict().items() if name in hints_of(RnnParams)}
        held = {*Written.read(self.method).params, *Written.read(self.model).params}
        ranges = yaml.safe_load(TRAINING if arm.hard else LABELS + TRAINING)
        fixed = Joint(RnnParams(**own), labeler.label_params, arm.params)
        return Space({name: one for name, one in ranges.items() if name not in held}, fixed)


def check(request: Any) -> None:
    """Check a `TuneRequest` or a `TuneTrainRequest` before any work.

    Raises:
        InputError: all faults of the arguments; unknown settings.
        MissingDependencyError: packages of tuning or training are missing.
    """
    given = [name for name in (*SINGLE, "collections", "rule") if getattr(request, name, None) is not None]
    training, cells = isinstance(request, TuneTrainRequest), "collections" in given
    unknown, single = [name for name in request.sweeps if name not in SWEEPS], [one for one in given if one in SINGLE]
    test_set, of_cells = f"{argument('test_topics')} and {argument('test_qrels')}", argument("collections")
    tested, measures = ["test_topics" in given, "test_qrels" in given], len(parse_measures(request.measure))
    refuse(
        *(() if cells else request.lacking(*NEEDED)),
        (cells and single, f"{', '.join(map(argument, single))}: of one query set, not with {of_cells}"),
        ("rule" in given and not cells, f"{argument('rule')} chooses over {of_cells}: not for one query set"),
        (unknown, f"{argument('sweep', ', '.join(unknown))}: expected some of {','.join(SWEEPS)}"),
        (
            not request.trials and (cells or not request.sweeps),
            f"{argument('trials', 0)}: nothing to do without a sweep",
        ),
        (any(tested) and not all(tested), f"{test_set} go together"),
        ("test_run" in given and not any(tested), f"{argument('test_run')} needs {test_set}"),
        (measures != 1, f"{argument('measure', request.measure)}: expected one measure"),
    )
    if training:
        require("accelerate", "training", "'rnnreranker[train]'")
        share = request.validation_share + (0 if any(tested) else request.test_share)
        hard = Written.read(request.method).name == HARD
        refuse(
            (share >= 1, f"{argument('validation_share')} and {argument('test_share')} leave nothing to train on"),
            (request.sweeps and hard, f"{argument('ablations')}: nothing to leave out of {argument('method', HARD)}"),
        )
    else:
        _ = request.devices
    searched = request.searched  # says what is wrong with what it reads
    if request.trials:
        _ = searched.distributions
