"""What methods do to nDCG@10 and to how alike the first ten are, over first stages: a table from records."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from page_data.first_stages import LAYOUTS, MEASURE, Collection
from rnnreranker.evaluate.redundancy import NAMES

if TYPE_CHECKING:
    from rnnreranker.base.record import Record
    from rnnreranker.regress.records import Figures

FIRST = ""  # the first stage itself
METHODS = {  # end of a condition's id → what it is
    FIRST: "the first stage",
    "rnn": "rNN",
    "mmr-5": "MMR, λ .5",
    "mmr-7": "MMR, λ .7",
    "rnn-mmr-7": "rNN, then MMR, λ .7",
}


@dataclass(frozen=True)
class StageLine:
    """A method over a first stage, means over query sets.

    Attributes:
        stage, title: id and name of the first stage; method: of `METHODS`.
        sets: the query sets that count.
        value, gain: nDCG@10, and its difference to the first stage (0 of that itself).
        worse, better: query sets whose 95% interval of this difference lies below 0, and above.
        cosine: of the pairs of the first ten; pairs: near-duplicates among them.
    """

    stage: str
    title: str
    method: str
    sets: tuple[str, ...]
    value: float
    gain: float
    worse: int
    better: int
    cosine: float
    pairs: float


def diversity(figures: Figures) -> list[StageLine]:
    """The lines on record, first stage by first stage, of the query sets that have all methods over all of them."""
    layout = LAYOUTS["first stages"]
    runs = {
        (one.spec, one.outcome["query_set"], one.name): one
        for one in figures.records("run")
        if "redundancy" in one.outcome
    }

    def record_of(where: Collection, name: str) -> Record | None:
        return runs.get((where.spec, where.query_set, name))

    stages = {}
    for stage in layout.stages:
        names = {method: stage.over(method) if method else stage.id for method in METHODS}
        names = {
            one: name for one, name in names.items() if any(record_of(where, name) for where in layout.collections)
        }
        if len(names) >= 3:  # else there is nothing to compare
            stages[stage] = names
    every = [name for names in stages.values() for name in names.values()]
    sets = [where for where in layout.collections if all(record_of(where, name) for name in every)]
    lines = []
    for stage, names in stages.items() if sets else ():
        for method, name in names.items():
            mine = [one for one in (record_of(where, name) for where in sets) if one is not None]
            gains = [one.outcome["differences"][MEASURE] for one in mine if method]
            cosines, pairs = ([one.outcome["redundancy"][figure] for one in mine] for figure in NAMES)
            lines.append(
                StageLine(
                    stage=stage.id,
                    title=stage.title,
                    method=method,
                    sets=tuple(where.title for where in sets),
                    value=fmean(next(iter(one.outcome["values"].values()))[MEASURE] for one in mine),
                    gain=fmean(gain["difference"] for gain in gains) if gains else 0.0,
                    worse=sum(gain["high"] < 0 for gain in gains),
                    better=sum(gain["low"] > 0 for gain in gains),
                    cosine=fmean(cosines),
                    pairs=fmean(pairs),
                )
            )
    return lines
