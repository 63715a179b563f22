"""Diagnoses on record beside what reranking did to the same runs: what pages and the limit of the verdict stand on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from page_data.learnt_limit import Case
from rnnreranker.base.errors import InputError
from rnnreranker.lab.diagnose.verdict import HELPS, MAY, verdict
from rnnreranker.regress.records import Figures, Row
from rnnreranker.rnn import RnnParams

DEFAULT = "default"  # third part of the name of a diagnosis of the default; of others the name of the preset


@dataclass(frozen=True)
class Forecast:
    """A diagnosis `QUERY_SET.CONDITION.PARAMETERS` and what followed.

    Attributes:
        collection: the spec; query sets of one spec are of one collection.
        query_set, condition, parameters: the parts of its name.
        measured: what was measured.
        word: the verdict on it.
        gain: of the reranked run in nDCG@10, with its interval; None = not on record.
    """

    collection: str
    query_set: str
    condition: str
    parameters: str
    measured: dict[str, Any]
    word: str
    gain: Row | None

    @property
    def gained(self) -> bool:
        """Whether the 95% interval of the gain lies above 0."""
        return self.gain is not None and bool(self.gain["low"] > 0)


def forecasts(figures: Figures) -> list[Forecast]:
    """All diagnoses on record whose parameters are what their names say today, in the order of specs and names.

    Raises:
        InputError: a diagnosis with a name of other than three parts.
    """
    made = []
    for record in figures.records("diagnosis"):
        parts = record.name.split(".")
        if len(parts) != 3:
            raise InputError(f"diagnosis {record.name} of spec {record.spec}: expected QUERY_SET.CONDITION.PARAMETERS")
        query_set, condition, parameters = parts
        params = RnnParams() if parameters == DEFAULT else RnnParams.preset(parameters)
        if record.outcome["params"] != params.to_dict():  # made before a default that came since
            continue
        reranked = f"{condition}-rnn" if parameters == DEFAULT else f"{condition}-rnn-{parameters}"
        gain = figures.gain(record.spec, reranked, query_set=query_set)
        word = verdict(record.outcome)["word"]
        made.append(Forecast(record.spec, query_set, condition, parameters, record.outcome, word, gain))
    return made


def cases(made: list[Forecast]) -> list[Case]:
    """Those that the limit is set on: the default, measured, and neither risky nor of little effect."""
    return [
        Case(one.collection, one.measured["order"]["agreement"], one.gained)
        for one in made
        if one.parameters == DEFAULT and one.gain is not None and one.word in (HELPS, MAY)
    ]
