"""Requests of tunings, their search spaces, and their checks before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.device import AUTO, ComputesOnDevices, trained_on
from rnnreranker.base.errors import InputError, refuse, require
from rnnreranker.base.request import Request
from rnnreranker.base.settings import hints_of, setting
from rnnreranker.base.written_form import Written
from rnnreranker.data.names import QRELS, TOPICS
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import CHOSEN, PROTOCOLS
from rnnreranker.lab.tune.space import LABELS, TRAINING, Joint, Space
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import ChosenLabeler, choose_labeler
from rnnreranker.rnn import RnnParams
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX
from rnnreranker.train.request import TrainRequest

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run

RERANKER = "rnn"  # whose settings are searched
MODEL, HARD = "query", "hard"  # what `tune train` trains; labels without settings that are searched
RULES = ("capped", "mean")  # that choose among settings, see `collections.RULES`
SWEEPS = ("context", "lambda", "grid", "ablations")
NEEDED = ("index", "topics", "qrels")  # of one query set
SINGLE = (*NEEDED, "run", "encoded_queries", "test_topics", "test_qrels", "test_run")  # not with cells
UNREAD = ("validation_share", "validation_queries", "neutrality_weight", "neutrality_cutoff")  # in a training here


@dataclass(frozen=True, kw_only=True)
class TuningRequest(Request):
    """The arguments of every tuning, and flags of its command.

    Attributes:
        index: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text.
        qrels: a name, a file, {qid: {docid: grade}} or a data frame.
        run: a Run or a file; None = dense retrieval.
        encoder: None = the one of the index. protocol: None = that of the judgements.
        measure: one measure, maximised or (for trainings) tested.
    """

    index: str | Path | IndexOnDisk | None = setting(None, INDEX)
    topics: str | Path | Mapping[str, str] | None = setting(None, TOPICS)
    qrels: Qrels | None = setting(None, QRELS)
    run: str | Path | Run | None = setting(None, "candidates (default: retrieved densely)")
    test_topics: str | Path | Mapping[str, str] | None = setting(None, "test on these queries, held out")
    test_qrels: Qrels | None = setting(None, "their judgements")
    hits: int = setting(100, "candidates per query", at_least=1)
    encoder: Form | None = setting(None, ENCODER)
    measure: str = setting("nDCG@10", "what is maximised")
    protocol: str | None = setting(None, f"which grades count ({CHOSEN})", one_of=lambda: [*PROTOCOLS])
    trials: int = setting(200, "of every study; 0 = sweeps alone", at_least=0)
    seed: int = setting(0, "of the sampler", at_least=0)
    storage: str | Path | None = setting(None, "keep the trials here, and go on from them after a kill")


@dataclass(frozen=True, kw_only=True)
class TuneRequest(ComputesOnDevices, TuningRequest):
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

    encoded_queries: str | Path | None = setting(None, ENCODED, metavar="NPY")
    test_run: str | Path | Run | None = setting(None, "candidates of --test-topics (default: retrieved densely)")
    folds: int = setting(5, "of the cross-validation", at_least=2)
    rerank: Form = setting(RERANKER, f"{RERANKER}:key=value,… with what is held", metavar="NAME")
    space: str | Path | Mapping[str, Any] | None = setting(None, "ranges in place of the default")
    threads: int | None = setting(None, "default: one per core; results do not depend on it", at_least=1)
    collections: str | Path | Mapping[str, Mapping[str, Any]] | None = setting(
        None, "cells (name: {index: …, topics: …, qrels: …, run: …}), each left out in turn", metavar="FILE.yaml"
    )
    rule: str | None = setting(
        None, "of --collections (default: capped, losses weigh more)", one_of=lambda: [*RULES], metavar="NAME"
    )

    @cached_property
    def searched(self) -> Space:
        """The space, without the settings that the written form fixes.

        Raises:
            InputError: another reranker, unknown settings, or settings that tuning cannot vary.
        """
        written = Written.read(self.rerank)
        chosen = choose("reranker", written, "rerank")
        shown = argument("rerank", str(written))
        if chosen.name != RERANKER:
            raise InputError(f"{shown}: expected {RERANKER}, whose settings are searched")
        if strange := [name for name in written.params if name not in hints_of(RnnParams)]:
            raise InputError(f"{shown}: {', '.join(strange)}: not in tuning, which compares vectors of the index")
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

    @cached_property
    def labeler(self) -> ChosenLabeler:
        """The method of the labels with its settings.

        Raises:
            InputError: unknown method or settings, a source other than vectors.
        """
        given = Written.read(self.method)
        chosen, shown = choose_labeler(given, "method"), argument("method", str(given))
        if chosen.source != "vectors":
            raise InputError(f"{shown}: from={chosen.source}: not in tuning, which compares vectors of the index")
        if chosen.name == HARD and set(hints_of(LabelParams)) & set(given.params):
            raise InputError(f"{shown}: {HARD} has no parameters of similarity or labels")
        return chosen

    @cached_property
    def training(self) -> TrainRequest:
        """The training of the model, without labels.

        Raises:
            InputError: another model, an unknown loss, unknown or unused settings of the model or the encoder.
        """
        written = Written.read(self.model)
        shown = argument("model", str(written))
        if written.name != MODEL:
            raise InputError(f"{shown}: expected {MODEL}, the model whose training is searched")
        if unread := [name for name in written.params if name in UNREAD]:
            raise InputError(f"{shown}: {', '.join(unread)}: nothing reads it in a tuning; leave it out")
        made = TrainRequest("model", written, loss=self.loss, encoder=self.encoder, device=self.device)
        _ = made.training, made.encoder and made.start
        return made

    @cached_property
    def searched(self) -> Space:
        """The space, without the settings that the written forms fix."""
        labeler = self.labeler
        own = {name: value for name, value in labeler.params.to_dict().items() if name in hints_of(RnnParams)}
        train: Any = self.training.training.params
        held = {*Written.read(self.method).params, *Written.read(self.model).params}
        ranges = yaml.safe_load(TRAINING if labeler.name == HARD else LABELS + TRAINING)
        fixed = Joint(RnnParams(**own), labeler.label_params, train)
        return Space({name: one for name, one in ranges.items() if name not in held}, fixed)


def check(request: TuningRequest, sweeps: Sequence[str] | None = None) -> None:
    """Check a tuning before any work; sweeps: those that follow, None = any may.

    Raises:
        InputError: all faults of the arguments; unknown settings.
        MissingDependencyError: packages of tuning or training are missing.
    """
    given = {name: getattr(request, name, None) for name in (*SINGLE, "collections", "rule")}
    cells, unknown = given["collections"] is not None, [name for name in sweeps or () if name not in SWEEPS]
    there = {name: argument(name) for name in (*given, "sweep")}
    test_set = f"{there['test_topics']} and {there['test_qrels']}"
    one_set = f"is for one query set: not with {there['collections']}"
    of_rule = f"{there['rule']} chooses over {there['collections']}: not for one query set"
    halves = (given["test_topics"] is None) != (given["test_qrels"] is None)
    nothing = not request.trials and (cells or sweeps == [])
    faults: list[tuple[object, str]] = [
        *((not cells and given[name] is None, f"{there[name]} is missing") for name in NEEDED),
        *((cells and given[name] is not None, f"{there[name]} {one_set}") for name in SINGLE),
        (given["rule"] and not cells, of_rule),
        (unknown, f"{argument('sweep', ', '.join(unknown))}: expected some of {','.join(SWEEPS)}"),
        (nothing, f"{argument('trials', 0)} leaves nothing to do without {there['sweep']}"),
        (halves, f"{test_set} go together"),
        (given["test_run"] is not None and given["test_topics"] is None, f"{there['test_run']} needs {test_set}"),
    ]
    if isinstance(request, TuneTrainRequest):
        shares = [argument(name, getattr(request, name)) for name in ("validation_share", "test_share")]
        tested = 0.0 if request.test_topics is not None else request.test_share
        no_parts = f"{argument('ablations')} leaves out parts of similarity and labels: not with"
        faults += [
            (request.validation_share + tested >= 1, f"{' and '.join(shares)} leave nothing to train on"),
            (sweeps and Written.read(request.method).name == HARD, f"{no_parts} {argument('method', HARD)}"),
        ]
    refuse(*faults)
    if len(parse_measures(request.measure)) != 1:
        raise InputError(f"{argument('measure', repr(request.measure))}: expected one measure")
    searched: Space = request.searched  # type: ignore[attr-defined]  # each says what is wrong with what it reads
    if request.trials:
        _ = searched.distributions
    if isinstance(request, TuneRequest):
        _ = request.devices
    else:
        trained_on(str(request.device))  # type: ignore[attr-defined]
        require("accelerate", "training", "'rnnreranker[train]'")
