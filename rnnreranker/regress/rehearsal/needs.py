"""What a plan reads that no step of it makes: data sets, models, prebuilt indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find, names
from rnnreranker.base.written_form import Written, read_listed
from rnnreranker.data.irds import SHORT_NAMES
from rnnreranker.data.names import BUILT_IN, BUILT_IN_QRELS, BUILT_IN_TOPICS, is_path, left_out
from rnnreranker.encode.named import KnownModel
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.plans.step import Step

DATA_FLAGS = ("--documents", "--topics", "--qrels", "--validation-topics", "--validation-qrels", "--pairs")
DATA_SETTINGS = ("passages",)  # of methods: the passages that an aggregation takes to their documents
MODEL_FLAGS = ("--encoder", "--impact-encoder", "--token-encoder")  # of which the name in front is a model
MODEL_SETTINGS = ("encoder", "encoders", "model", "models", "scorer", "start")  # of methods
ENCODERS = ("encoder", "sparse-encoder", "late-encoder", "cross-encoder")  # kinds of method that are models


@dataclass(frozen=True)
class Needs:
    """What a plan reads from outside, each name once and in the order of its steps.

    Attributes:
        datasets: ids of ir_datasets (short names resolved), names of this package (`tripclick`, `tripclick-head-test`,
            `reqa-nq:standard-1-train`), and files, as the steps name them. Without built-in collections.
        models: ids of the hub (names like `tas-b` resolved) and folders, as `checkpoints/repbert`. Without models that
            an installed Python package carries.
        prebuilt: names of Pyserini's prebuilt indexes.

    Files and folders are named relative to the folder in which the steps are taken.
    """

    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    prebuilt: tuple[str, ...] = ()

    def __or__(self, other: Needs) -> Needs:
        """The needs of two plans."""
        return Needs(
            _once([*self.datasets, *other.datasets]),
            _once([*self.models, *other.models]),
            _once([*self.prebuilt, *other.prebuilt]),
        )


def needs_of_plan(plan: Plan) -> Needs:
    """What the steps of a plan and the measuring of its runs read from outside.

    >>> from rnnreranker.regress.plans.plan import make_plan
    >>> from rnnreranker.regress.specs.checks import read_spec
    >>> from rnnreranker.regress.specs.spec import specs_folder
    >>> plan = make_plan(read_spec(specs_folder() / "reqa-cmrc.yaml"))
    >>> needs_of_plan(plan).models
    ('google-bert/bert-base-chinese',)
    """
    prebuilt = {entry.prebuilt for entry in plan.spec.indexes if entry.prebuilt}
    datasets = [name for step in plan.steps for name in _datasets(step)]
    for entry in plan.query_sets:
        datasets += [*_named(entry.topics), *_named(entry.qrels)]
    models = [name for step in plan.steps for name in _models(step) if not Path(name).is_relative_to(plan.folder)]
    read = [step.value("--index") for step in plan.steps]
    built_in = {*BUILT_IN, *BUILT_IN_TOPICS, *BUILT_IN_QRELS}
    return Needs(
        _once(name for name in datasets if name not in built_in),
        _once(_hub_id(name) for name in models if not _carried(name)),
        _once(name for name in read if name in prebuilt),
    )


def _datasets(step: Step) -> Iterator[str]:
    for flag in DATA_FLAGS:
        yield from _named(step.value(flag))
    for form in _forms(step):
        for key in DATA_SETTINGS:
            if any(map(str.isalnum, given := str(form.params.get(key, "")))):  # others are a sign in docids
                yield from _named(given)


def _named(name: str) -> list[str]:
    """The data sets of a name: itself, and those whose queries are left out of it."""
    first, others = left_out(name)
    return [SHORT_NAMES.get(one, one) for one in (first, *others) if one]


def _models(step: Step) -> Iterator[str]:
    for flag in MODEL_FLAGS:
        if given := step.value(flag):
            yield Written.read(given).name
    for form in _forms(step):
        for key in MODEL_SETTINGS:
            for one in filter(None, str(form.params.get(key, "")).split(",")):
                name = Written.read(one).name
                if "/" in name or is_path(name) or _known(name):  # others say a kind: teacher=late, scorer=encoder
                    yield name


def _forms(step: Step) -> Iterator[Written]:
    """The methods with settings among the words of a command, and those in their settings."""
    for word in step.argv:
        yield from _read(word)


def _read(word: str) -> Iterator[Written]:
    try:
        forms = read_listed(word)
    except InputError:  # a word that is no method
        return
    for form in forms:
        if form.params:
            yield form
            for value in form.params.values():
                yield from _read(str(value)) if str(value) else ()


def _known(name: str) -> type[KnownModel] | None:
    """The model of files that a short name or a hub id stands for; None for others."""
    for kind in ENCODERS:
        for one in names(kind):
            model = find(kind, one)
            if issubclass(model, KnownModel) and name in (model.name, model.hub):
                return model
    return None


def _hub_id(name: str) -> str:
    model = _known(name)
    return model.hub if model is not None and model.hub else name


def _carried(name: str) -> bool:
    """Whether a name is of no model ("none"), or of one that comes with a Python package."""
    model = _known(name)
    own = any(name in names(kind) for kind in ENCODERS) and model is None  # of its own code
    return name in ("none", "") or own or bool(model and (model.package or not model.hub))


def _once(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(given))
