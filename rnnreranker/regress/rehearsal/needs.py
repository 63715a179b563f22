"""What a plan reads that no step of it makes: data sets, models, prebuilt indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rnnreranker.data.irds import SHORT_NAMES
from rnnreranker.data.names import BUILT_IN, BUILT_IN_QRELS, BUILT_IN_TOPICS, left_out
from rnnreranker.regress.plans.model_words import forms_of, hub_id, is_carried, models_of
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.plans.step import Step

DATA_FLAGS = ("--documents", "--topics", "--qrels", "--validation-topics", "--validation-qrels", "--pairs")
DATA_SETTINGS = ("passages",)  # of methods: the passages that an aggregation takes to their documents


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
    models = [name for step in plan.steps for name in models_of(step) if not Path(name).is_relative_to(plan.folder)]
    read = [step.value("--index") for step in plan.steps]
    built_in = {*BUILT_IN, *BUILT_IN_TOPICS, *BUILT_IN_QRELS}
    return Needs(
        _once(name for name in datasets if name not in built_in),
        _once(hub_id(name) for name in models if not is_carried(name)),
        _once(name for name in read if name in prebuilt),
    )


def _datasets(step: Step) -> Iterator[str]:
    for flag in DATA_FLAGS:
        yield from _named(step.value(flag))
    for form in forms_of(step):
        for key in DATA_SETTINGS:
            if any(map(str.isalnum, given := str(form.params.get(key, "")))):  # others are a sign in docids
                yield from _named(given)


def _named(name: str) -> list[str]:
    """The data sets of a name: itself, and those whose queries are left out of it."""
    first, others = left_out(name)
    return [SHORT_NAMES.get(one, one) for one in (first, *others) if one]


def _once(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(given))
