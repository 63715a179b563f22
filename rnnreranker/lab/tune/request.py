"""Requests of tunings, their search spaces, and their checks before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.device import AUTO, ComputesOnDevices, trained_on
from rnnreranker.base.errors import InputError, nearest, refuse, require
from rnnreranker.base.method import find, names
from rnnreranker.base.request import Request
from rnnreranker.base.settings import hints_of, is_file_name, sections_of, setting
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.data.names import QRELS, TOPICS
from rnnreranker.encode.params import TRAINED_POOLINGS
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import CHOSEN, PROTOCOLS
from rnnreranker.lab.tune.space import LABELS, TRAINING, Joint, Space
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import LABEL_PRESET, ChosenLabeler, choose_labeler
from rnnreranker.rnn import RnnParams
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX
from rnnreranker.search.queries import QueryEncoding
from rnnreranker.train.request import Training, training_of

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run

RERANKER = "rnn"  # whose settings are searched
MODEL, HARD = "query", "hard"  # what `tune train` trains; labels without settings that are searched
ENCODER_SETTINGS = ("pooling", "normalize")
PRESET_HELP = "where to begin, and what to compare with: tas-b, vectors, … or a YAML file"
RULES = ("capped", "mean")  # that choose among settings, see `collections.RULES`
UNREAD = {  # settings of a training that nothing reads here
    **dict.fromkeys(("validation_share", "validation_queries"), "which queries validate is said beside the model"),
    **dict.fromkeys(("neutrality_weight", "neutrality_cutoff"), "no trial knows how neutral documents are"),
}


@dataclass(frozen=True, kw_only=True)
class TuningRequest(Request):
    """The arguments of every tuning.

    Attributes:
        encoder: None = the one of the index. protocol: None = that of the judgements.
        measure: one measure, maximised or (for trainings) tested.
    """

    hits: int = setting(100, "candidates per query", at_least=1)
    encoder: Form | None = setting(None, ENCODER)
    measure: str = setting("nDCG@10", "what is maximised")
    protocol: str | None = setting(None, f"which grades count ({CHOSEN})", one_of=lambda: [*PROTOCOLS])
    trials: int = setting(200, "of every study; 0 = sweeps alone", at_least=0)
    seed: int = setting(0, "of the sampler", at_least=0)
    storage: str | Path | None = setting(None, "keep the trials here, and go on from them after a kill")


@dataclass(frozen=True, kw_only=True)
class QuerySetRequest(TuningRequest):
    """A tuning on one query set, perhaps with another for the test.

    Attributes:
        index: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text.
        qrels: a name, a file, {qid: {docid: grade}} or a data frame.
        run: a Run or a file; None = dense retrieval.
    """

    index: str | Path | IndexOnDisk = setting(MISSING, INDEX)
    topics: str | Path | Mapping[str, str] = setting(MISSING, TOPICS)
    qrels: Qrels = setting(MISSING, QRELS)
    run: str | Path | Run | None = setting(None, "candidates (default: retrieved densely)")
    test_topics: str | Path | Mapping[str, str] | None = setting(None, "test on these queries, held out")
    test_qrels: Qrels | None = setting(None, "their judgements")


@dataclass(frozen=True, kw_only=True)
class RerankingRequest(ComputesOnDevices, TuningRequest):
    """A tuning of rNN reranking.

    Attributes:
        rerank: rNN in written form, `rnn:k_exp=2,preset=tas-b`; its settings are fixed, the others are searched. The
            preset is the default: the first trial and the comparison.
        space: a file, or setting → range as in such a file.
        device, compute_dtype: of the query encoder, as in `devices_of`.
    """

    rerank: Form = setting(RERANKER, f"{RERANKER}:key=value,… with what is held", metavar="NAME")
    space: str | Path | Mapping[str, Any] | None = setting(None, "ranges in place of the default")
    threads: int | None = setting(None, "default: one per core; results do not depend on it", at_least=1)

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
        held = {name: getattr(chosen.params, name) for name in written.params}
        return Space.of(self.space, chosen.params).keeping(**held)


@dataclass(frozen=True, kw_only=True)
class TuneRequest(QuerySetRequest, RerankingRequest):
    """The arguments of `tune_reranker`, and flags of `tune`."""

    encoded_queries: str | Path | None = setting(None, ENCODED, metavar="NPY")
    test_run: str | Path | Run | None = setting(None, "candidates of --test-topics (default: retrieved densely)")
    folds: int = setting(5, "of the cross-validation", at_least=2)


@dataclass(frozen=True, kw_only=True)
class LeaveOutRequest(RerankingRequest):
    """The arguments of `tune_collections`, and flags with --collections.

    Attributes:
        collections: cells, each a collection under one first stage: a file, or name → {index: …, topics: …, qrels: …,
            run: …, collection: …}.
        rule: "capped" or "mean", see `collections.RULES`.
        trials: number of settings, the default included.
    """

    collections: str | Path | Mapping[str, Mapping[str, Any]]
    rule: str = "capped"


@dataclass(frozen=True, kw_only=True)
class TuneTrainRequest(QuerySetRequest):
    """The arguments of `tune_training`, and flags of `tune train`.

    Attributes:
        encoder: the trained one, `name:pooling=cls,normalize=true`; None = the one of the index.
        method, model, loss: in written form; their settings are fixed.
        preset: the default: published settings of rNN, or a file of a tuning.
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
    preset: str | Path | None = setting(None, PRESET_HELP)
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
        written = given
        if self.preset is not None and written.name in names("labeler"):
            if issubclass(find("labeler", written.name).Params, RnnParams):
                written = written.beside({PRESET: str(self.preset)}, argument("method"))
            elif "labels" in self._sections and LABEL_PRESET not in written.params:
                written = Written(written.name, {LABEL_PRESET: str(self.preset), **written.params})
        chosen, shown = choose_labeler(written, "method"), argument("method", str(given))
        if chosen.source != "vectors":
            raise InputError(f"{shown}: from={chosen.source}: not in tuning, which compares vectors of the index")
        if chosen.name == HARD and set(hints_of(LabelParams)) & set(given.params):
            raise InputError(f"{shown}: {HARD} has no parameters of similarity or labels")
        return chosen

    @cached_property
    def of_method(self) -> dict[str, Any]:
        """Settings of the method that belong neither to similarity nor to labels."""
        known = {*hints_of(RnnParams), *hints_of(LabelParams), LABEL_PRESET}
        return {name: value for name, value in Written.read(self.method).params.items() if name not in known}

    @cached_property
    def training(self) -> Training:
        """The model, the settings of its training and of its loss.

        Raises:
            InputError: another model, an unknown loss, unknown or unused settings.
        """
        written = Written.read(self.model)
        shown = argument("model", str(written))
        if written.name != MODEL:
            raise InputError(f"{shown}: expected {MODEL}, the model whose training is searched")
        if unread := {name: UNREAD[name] for name in written.params if name in UNREAD}:
            raise InputError(f"{shown}: " + "; ".join(f"{name}: {reason}" for name, reason in unread.items()))
        if self._sections:
            written = written.beside({PRESET: str(self.preset)}, argument("model"))
        return training_of(written, self.loss)

    @cached_property
    def searched(self) -> Space:
        """The space, without the settings that the written forms fix."""
        method, model = Written.read(self.method), Written.read(self.model)
        rnn = RnnParams.preset("vectors")
        if preset := str(self.preset or method.preset):
            rnn = RnnParams.named(preset, rnn)
        own = {name: getattr(self.labeler.params, name) for name in method.params if name in hints_of(RnnParams)}
        train: Any = self.training.params
        fixed = Joint(replace(rnn, **own), self.labeler.label_params, train)
        of_labels = {} if self.labeler.name == HARD else LABELS
        held = {*method.params, *model.params}
        return Space({name: one for name, one in {**of_labels, **TRAINING}.items() if name not in held}, fixed)

    @property
    def encoding(self) -> QueryEncoding:
        """How queries are encoded; InputError for settings that a training does not keep."""
        how = QueryEncoding.of(self.encoder, None, self.topics)
        given, shown = how.settings.given(), argument("encoder")
        if strange := [name for name in given if name not in ENCODER_SETTINGS]:
            expected = " or ".join(ENCODER_SETTINGS)
            raise InputError(f"{shown}: {', '.join(strange)}: expected {expected}, which a training keeps")
        if given.get("pooling") not in (None, *TRAINED_POOLINGS):
            raise InputError(f"{shown}: pooling={given['pooling']}: expected {' or '.join(TRAINED_POOLINGS)}")
        return how

    @property
    def _sections(self) -> frozenset[str]:
        """The sections of the preset file; empty for a published preset or a file with one kind of settings."""
        return sections_of(self.preset) if self.preset is not None and is_file_name(str(self.preset)) else frozenset()


def check(request: TuningRequest, *, ablations: bool = False) -> None:
    """Check a tuning before any work; ablations: whether trainings without parts follow.

    Raises:
        InputError: all faults of the arguments; unknown settings.
        MissingDependencyError: packages of tuning or training are missing.
    """
    faults: list[tuple[object, str]] = []
    if isinstance(request, TuneRequest):
        lonely = request.test_run is not None and request.test_topics is None
        faults = [(lonely, f"{argument('test_run')} needs {argument('test_topics')} and {argument('test_qrels')}")]
    elif isinstance(request, LeaveOutRequest):
        faults = [(request.rule not in RULES, f"{argument('rule', request.rule)}: {nearest(request.rule, RULES)}")]
    elif isinstance(request, TuneTrainRequest):
        shares = {name: getattr(request, name) for name in ("validation_share", "test_share")}
        both = request.validation_share + (0.0 if request.test_topics is not None else request.test_share)
        shown = " and ".join(argument(name, value) for name, value in shares.items())
        faults = [(both >= 1, f"{shown} leave nothing to train on")]
        no_parts = ablations and Written.read(request.method).name == HARD
        text = f"{argument('ablations')} leaves out parts of similarity and labels: not with"
        faults.append((no_parts, f"{text} {argument('method', HARD)}"))
    if isinstance(request, QuerySetRequest):
        halves = (request.test_topics is None) != (request.test_qrels is None)
        faults.append((halves, f"{argument('test_topics')} and {argument('test_qrels')} go together"))
    refuse(*faults)
    if len(parse_measures(request.measure)) != 1:
        raise InputError(f"{argument('measure', repr(request.measure))}: expected one measure")
    for name in (
        ("labeler", "searched", "encoding") if isinstance(request, TuneTrainRequest) else ("searched", "devices")
    ):
        getattr(request, name)  # read now: each says what is wrong with what it reads
    if isinstance(request, TuneTrainRequest):
        trained_on(request.device)
        require("optuna", "tuning", "'rnnreranker[tune]'")
        require("accelerate", "training", "'rnnreranker[train]'")
