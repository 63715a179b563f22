"""Search spaces and requests of tunings, and their checks before any work."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker.base.device import ComputesOnDevices
from rnnreranker.base.errors import InputError, argument, brief, refuse, require
from rnnreranker.base.files import read_yaml
from rnnreranker.base.method import Form, choose
from rnnreranker.base.settings import Hint, Params, Written, check_names, hints_of, located, setting
from rnnreranker.data.names import QRELS
from rnnreranker.evaluate.measures import notice_cut, parse_measures
from rnnreranker.evaluate.protocols import protocol_setting
from rnnreranker.lab.shared import VectorsRequest
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.request import check as check_study
from rnnreranker.labels.params import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.train.params import TrainParams

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.runs import Run


EXPECTED = "expected {low: …, high: …} (and log: true), or a list of values"

# The space of paper 000 for reranking, with `scale`, `weight` and the first stage's rank and score. The run's scores
# always count for something, so that a draw without any of the three terms cannot come up.
RERANKING = """
context: {low: 40, high: 1000, log: true}
k: {low: 3, high: 30}
k_exp: {low: 1, high: 20}
tau: {low: 0, high: 0.8}
lam: {low: 0.001, high: 1, log: true}
normalize: [none, max, mean]
scale: [minmax, none]
weight: [linear, binary]
rank_weight: [0, 0.5, 1, 2]
run_weight: {low: 0.1, high: 4, log: true}
query_weight: [0, 0.5, 1, 2]
rank_constant: {low: 1, high: 100, log: true}
probes: {low: 1, high: 4}
smoothing: {low: 0, high: 0.5}
smoothing_neighbours: {low: 1, high: 30}
"""
# Similarity, labels and training with the ranges of paper 000 and `scale` besides; learning rates are higher and
# warm-ups shorter than there, whose training set is 500 times as large.
LABELS = """
context: {low: 20, high: 400}
k: {low: 3, high: 30}
k_exp: {low: 1, high: 10}
tau: [0, 0.5]
lam: {low: 0.001, high: 1, log: true}
scale: [minmax, none]
aggregate: [max, mean]
normalization: [maxmin, maxminmax, std, none]
n_max: {low: 3, high: 300, log: true}
temperature: {low: 0.1, high: 2, log: true}
boost: {low: 1, high: 5, log: true}
"""
TRAINING = """
learning_rate: {low: 5.0e-7, high: 1.0e-4, log: true}
epochs: {low: 1, high: 20, log: true}
warmup: {low: 0, high: 0.3}
final_ratio: {low: 0.1, high: 0.999}
"""


def content_of(given: Any, name: str, what: str) -> tuple[Any, str]:
    """The content of an argument, of a YAML file if it is one, and its name for messages; errors as `read_yaml`."""
    return (read_yaml(given, what), str(given)) if isinstance(given, str | Path) else (given, argument(name))


@dataclass(frozen=True)
class Joint:
    """Settings of similarity, labels and training together; their names are distinct."""

    rnn: RnnParams = field(default_factory=lambda: RnnParams.preset("vectors"))
    labels: LabelParams = field(default_factory=LabelParams)
    train: TrainParams = field(default_factory=TrainParams)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The sections of a preset file; the loss is in written form."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Space:
    """A range or choice for each searched setting; the others have the values of `fixed`.

    Attributes:
        ranges: setting → `{"low": …, "high": …, "log": …}` or a list of values, as in a file of `--space`.
        fixed: RnnParams or Joint, the default and first trial.

    Raises:
        InputError: unknown settings, values out of range, entries of another form.
    """

    ranges: Mapping[str, Any] = field(default_factory=lambda: yaml.safe_load(RERANKING))
    fixed: Any = field(default_factory=RnnParams)

    def __post_init__(self) -> None:
        known, ranges = self._known, check_names(self.ranges, self._known)
        for name, entry in ranges.items():
            bounds = isinstance(entry, Mapping) and {"low", "high"} <= set(entry) <= {"low", "high", "log"}
            values = [entry["low"], entry["high"]] if bounds else entry
            if not isinstance(values, list | tuple) or not values:
                raise InputError(f"{name}: {brief(entry)}; {EXPECTED}")
            pairs = [known[name].checked(value) for value in values]
            if problems := [problem for _, problem in pairs if problem]:  # each alone: trials refuse combinations
                raise InputError(f"search space: {problems[0]}")
            plain = [value for value, _ in pairs]
            ranges[name] = {**entry, "low": plain[0], "high": plain[1]} if bounds else plain
        object.__setattr__(self, "ranges", ranges)

    @property
    def parts(self) -> list[Params]:
        """The settings of each kind."""
        return [*vars(self.fixed).values()] if isinstance(self.fixed, Joint) else [self.fixed]

    @property
    def _known(self) -> dict[str, Hint]:
        """The type and the limits of every setting."""
        return {name: hint for part in self.parts for name, hint in hints_of(type(part)).items()}

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distribution of each searched setting; InputError: a range that ends before it begins."""
        of = require("optuna", "tuning", "'rnnreranker[tune]'").distributions
        made: dict[str, BaseDistribution] = {}
        for name, entry in self.ranges.items():
            kind = of.IntDistribution if self._known[name].number is int else of.FloatDistribution
            try:
                made[name] = of.CategoricalDistribution(entry) if isinstance(entry, list) else kind(**entry)
            except ValueError as error:
                raise InputError(f"search space: {name}: {error}") from None
        return made

    def drawn(self, values: Mapping[str, Any]) -> Any:
        """`fixed` with other values of some settings, as of a trial; ignores other names."""
        made = []
        for part in self.parts:
            made.append(dataclasses.replace(part, **{name: values[name] for name in vars(part) if name in values}))
        return Joint(*made) if isinstance(self.fixed, Joint) else made[0]  # type: ignore[arg-type]

    def firsts(self, trials: int) -> list[dict[str, Any]]:
        """The values of the first trials: the fixed settings, if they are in the space, and all of a small space."""
        known = {name: value for part in self.parts for name, value in vars(part).items()}
        start = {name: known[name] for name in self.ranges}
        inside = [
            start[name] in one if isinstance(one, list) else one["low"] <= (start[name] or 0) <= one["high"]
            for name, one in self.ranges.items()
        ]
        firsts, lists = [start] if all(inside) else [], [*self.ranges.values()]
        if all(isinstance(one, list) for one in lists) and math.prod(map(len, lists)) <= trials:
            grid = (dict(zip(self.ranges, values, strict=True)) for values in itertools.product(*lists))
            firsts += [values for values in grid if values != start]
        return firsts

    def within(self, deepest: int) -> Space:
        """The space with contexts of at most `deepest`."""
        ranges, entry = dict(self.ranges), self.ranges.get("context")
        if isinstance(entry, list):
            ranges["context"] = sorted({min(value, deepest) for value in entry})
        elif entry:
            ranges["context"] = entry | {name: min(entry[name], deepest) for name in ("low", "high")}
        [context] = [part.context for part in self.parts if isinstance(part, RnnParams)]
        return Space(ranges, self.drawn({"context": min(context, deepest)}))

    @classmethod
    def of(cls, given: str | Path | Mapping[str, Any] | None, fixed: Any) -> Space:
        """The space of a YAML file, or of a mapping such as one has; None = the default ranges.

        `k: {low: 3, high: 30}`, `lam: {low: 0.001, high: 1, log: true}`, `scale: [minmax]`

        Raises:
            InputError: an unreadable file, unknown names or values out of range, with the file's name.
        """
        if given is None:
            return cls(fixed=fixed)
        content, shown = content_of(given, "space", "search space")
        with located(shown):
            if not isinstance(content, Mapping) or not content:
                raise InputError("expected a mapping such as `k: {low: 3, high: 30}`")
            return cls({str(name): entry for name, entry in content.items()}, fixed)


RERANKER, MODEL = "rnn", "query"  # whose settings are searched
KEPT = "keep the trials here, and go on from them after a kill"
SHARE = 0.25  # of the queries that trials of trainings are judged by, at least
SWEEPS = ("context", "lambda", "grid", "ablations")
NEEDED = ("index", "topics", "qrels")  # of one query set
SINGLE = (*NEEDED, "run", "encoded_queries", "test_topics", "test_qrels", "test_run", "sweep")  # not with cells


@dataclass(frozen=True, kw_only=True)
class TuneRequest(ComputesOnDevices, VectorsRequest):
    """The arguments of `tune_reranker` and `leave_one_out`, and flags of `tune`.

    Attributes:
        qrels: a name, a file, {qid: {docid: grade}} or a data frame. protocol: None = that of the judgements.
        rerank: rNN in written form, `rnn:k_exp=2,preset=tas-b`; its settings are fixed, the others are searched. The
            preset is the default: the first trial and the comparison.
        space: a file, or setting → range as in such a file.
        collections: cells, each a collection under one first stage: a file, or name → {index: …, topics: …, qrels: …,
            run: …, collection: …}; then `trials` is the number of settings, the default included.
        device, compute_dtype: of the query encoder, as in `devices_of`.
    """

    qrels: Qrels | None = setting(None, QRELS)
    hits: int = setting(100, "candidates per query", at_least=1)
    measure: str = setting("nDCG@10", "what is maximised")
    protocol: str | None = protocol_setting()
    trials: int = setting(200, "of every study; 0 = sweeps alone", at_least=0)
    seed: int = setting(0, "of the sampler", at_least=0)
    storage: str | Path | None = setting(None, KEPT)
    test_topics: str | Path | Mapping[str, str] | None = setting(None, "test on these queries, held out")
    test_qrels: Qrels | None = setting(None, "their judgements")
    test_run: str | Path | Run | None = setting(None, "candidates of --test-topics (default: retrieved densely)")
    folds: int = setting(5, "of the cross-validation", at_least=2)
    rerank: Form = setting(RERANKER, f"{RERANKER}:key=value,… with what is held", metavar="NAME")
    space: str | Path | Mapping[str, Any] | None = setting(None, "ranges in place of the default")
    sweep: str | None = setting(None, f"around these settings: some of {','.join(SWEEPS)}", metavar="NAMES")
    collections: str | Path | Mapping[str, Mapping[str, Any]] | None = setting(
        None, "cells (name: {index: …, topics: …, qrels: …, run: …}), each left out in turn", metavar="FILE.yaml"
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
class TuneTrainRequest(StudyRequest):
    """The arguments of `tune_training`, and flags of `tune train`: a study of one arm, whose settings are searched.

    Settings that the arm, its labels or the model give are fixed.

    Attributes:
        context: candidates of labels at most.
        measures: one, of the test, retrieval over the whole index.
        seeds: trainings for the test. work: None = `STORAGE.trials`, without a storage a temporary folder.
    """

    arms: Sequence[Form] | str | Mapping[str, Mapping[str, Any] | None] = setting(
        ("tuned:labels=evidence",), "one, with what is fixed of its labels and training", metavar="ARM"
    )
    context: int = setting(200, "candidates of labels", at_least=1)
    measures: str = setting("nDCG@10", "one, of the test: retrieval over the whole index")
    all_positives: bool = setting(True, "train on one random positive of each query")
    trials: int = setting(40, "trainings", at_least=1)
    seed: int = setting(0, "of the sampler", at_least=0)
    storage: str | Path | None = setting(None, KEPT)

    @property
    def share(self) -> float:
        """The share of the training queries that validates, which trials are judged by."""
        return max(SHARE, super().share)

    @cached_property
    def searched(self) -> Space:
        """The space, without the settings that the written forms fix.

        Raises:
            InputError: another model, several arms, unknown settings.
        """
        count, shown = len(self.forms), argument("model", str(self.written))
        refuse(
            (self.written.name != MODEL, f"{shown}: expected {MODEL}, whose training is searched"),
            (count != 1, f"{argument('arms')}: {count} arms; expected one, whose settings are searched"),
            (self.learning_rates, f"{argument('learning_rates')}: the rate is searched; give {argument('model')} one"),
        )
        [form], [arm] = self.forms, self.chosen
        own = {name: value for name, value in arm.labels.params.to_dict().items() if name in hints_of(RnnParams)}
        held = {*form.params, *self.written.params, *Written.read(arm.own.labels).params}
        ranges = yaml.safe_load(TRAINING if arm.hard else LABELS + TRAINING)
        fixed = Joint(RnnParams(**own), arm.labels.label_params, arm.params)
        return Space({name: one for name, one in ranges.items() if name not in held}, fixed)


def check(request: TuneRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: all faults of the arguments; unknown settings.
        MissingDependencyError: optuna is missing.
    """
    given = [name for name in (*SINGLE, "collections") if getattr(request, name) is not None]
    cells, single, sweeps = "collections" in given, [one for one in given if one in SINGLE], request.sweeps
    test_set, of_cells = f"{argument('test_topics')} and {argument('test_qrels')}", argument("collections")
    tested, unknown = {"test_topics", "test_qrels"} & {*given}, [name for name in sweeps if name not in SWEEPS]
    idle = not request.trials and (cells or not sweeps)
    refuse(
        *(() if cells else request.lacking(*NEEDED)),
        (cells and single, f"{', '.join(map(argument, single))}: of one query set, not with {of_cells}"),
        (unknown, f"{argument('sweep', ', '.join(unknown))}: expected some of {','.join(SWEEPS)}"),
        (idle, f"{argument('trials', 0)}: nothing to do without a sweep"),
        (len(tested) == 1, f"{test_set} go together"),
        (
            tested and "encoded_queries" in given,
            f"{argument('encoded_queries')} is of {argument('topics')}: not with {argument('test_topics')}",
        ),
        ("test_run" in given and not tested, f"{argument('test_run')} needs {test_set}"),
        *one_measure("measure", request.measure),
    )
    notice_cut(request.measure, request.hits)
    searched, _ = request.searched, request.devices  # they say what is wrong with what they read
    if request.trials:
        _ = searched.distributions


def check_training(request: TuneTrainRequest) -> None:
    """Check a request before any work; raises as `check`, also if packages of training are missing."""
    require("accelerate", "training", "'rnnreranker[train]'")
    check_study(request)
    refuse(*one_measure("measures", request.measures))
    _ = request.searched.distributions


def one_measure(name: str, given: str) -> list[tuple[object, str]]:
    """Faults, as in `refuse`, of an argument with one measure."""
    return [(len(parse_measures(given)) != 1, f"{argument(name, given)}: expected one measure")]
