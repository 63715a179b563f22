"""What negatives are asked for: a request, and the filter that it names with its settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rnnreranker.base.chosen_method import Form, naming
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.settings import hints_of, plain, setting
from rnnreranker.base.written_form import Written
from rnnreranker.labels.methods.base import Source, needs_of
from rnnreranker.labels.methods.joint import JointLabeler, JointParams
from rnnreranker.labels.negatives.filters import FILTERS, SIMILAR
from rnnreranker.labels.negatives.params import NegativeParams
from rnnreranker.labels.request import SOURCE, JudgedRunRequest
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels

OF_MINING = tuple(name for name in hints_of(NegativeParams) if name != "filter")
OF_SIMILARITY = tuple(name for name in hints_of(JointParams) if name not in OF_THE_MIXTURE)


@dataclass(frozen=True)
class ChosenFilter:
    """A filter with settings that were checked.

    Attributes:
        mining: the filter, and which of the rest become negatives.
        rnn, joint: the similarities that the filters of these names go by; `rnn.context` counts for all filters.
        source: where similarities come from, "vectors" or "neighbours".
    """

    mining: NegativeParams
    rnn: RnnParams
    joint: JointParams
    source: Source = "vectors"

    @property
    def name(self) -> str:
        """Of the filter."""
        return self.mining.filter

    def similarities(self, compared: bool) -> dict[str, RnnParams]:
        """Filter → settings of its similarity, of those that are wanted: the chosen one, or all that are compared."""
        both: dict[str, RnnParams] = {"rnn": self.rnn, "joint": self.joint}
        wanted = "joint" if self.name == "joint" else "rnn"
        return both if compared else {wanted: both[wanted]}

    def needs(self, compared: bool) -> frozenset[str]:
        """What must be opened of the index and of the queries; compared: with the other filters, by judgements.

        Raises:
            InputError: a source that there is not, or not for these settings.
        """
        if self.name == "none" and (self.source == "neighbours" or not compared):
            return frozenset()
        asked = self.similarities(compared)
        return frozenset[str]().union(*(needs_of(SIMILAR[how], own, self.source) for how, own in asked.items()))


def choose_filter(form: Form, of: str = "") -> ChosenFilter:
    """The filter of a written form, `rnn:rate=0.1,negatives=5,k=21,preset=tas-b,from=neighbours`.

    Settings are those of `NegativeParams` and of the similarity, those of rNN with those of joint labels.

    Args:
        form: the filter; of: the argument that it was given with, for messages; "" = none.

    Raises:
        InputError: no such filter, settings that there are not, values out of range, no such preset, no such source.
    """
    with naming(of, form):
        written = Written.read(form)
        if written.name not in FILTERS:
            raise InputError(f"{written.name}: no such filter; {nearest(written.name, FILTERS)}")
        known = [*OF_MINING, *OF_SIMILARITY, SOURCE]
        if unknown := [name for name in written.params if name not in known]:
            raise InputError("; ".join(f"no setting {name}, {nearest(str(name), known)}" for name in unknown))
        values = {name: value for name, value in written.params.items() if name != SOURCE}
        chosen = ChosenFilter(
            NegativeParams.of({"filter": written.name, **_among(values, OF_MINING)}),
            _similarity(RnnParams.preset("vectors"), values, written.preset),
            _similarity(JointLabeler.defaults, values, written.preset),
            str(written.params.get(SOURCE, "vectors")),  # type: ignore[arg-type]  # looked at with the needs
        )
        chosen.needs(compared=False)
    return chosen


def _among(values: Mapping[str, Any], names: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def _similarity(usual: Any, values: Mapping[str, Any], preset: str) -> Any:
    """The settings of a similarity: those given, of these that it has, before those of a preset, before the usual."""
    hints = hints_of(type(usual))
    base = type(usual).named(preset, usual) if preset else usual
    given = _among(_among(values, OF_SIMILARITY), hints)
    return dataclasses.replace(base, **{name: plain(value, hints[name]) for name, value in given.items()})


@dataclass(frozen=True)
class NegativesRequest(JudgedRunRequest):
    """Negatives to be mined: the arguments of `mine_negatives`, and the flags of the command.

    Attributes:
        filter: in its written form, see `choose_filter`.
        truth: fuller judgements, by which all filters are compared at the same share of discarded pairs.
        threads: None = one per core; negatives do not depend on it.
    """

    filter: Form = "rnn"
    truth: Qrels | None = None
    threads: int | None = setting(None, "one per core where None", at_least=1)

    @cached_property
    def chosen(self) -> ChosenFilter:
        """The filter, and how negatives are chosen."""
        return choose_filter(self.filter, "filter")

    @cached_property
    def needs(self) -> frozenset[str]:
        """What must be opened of the index and of the queries."""
        return self.chosen.needs(self.truth is not None)
