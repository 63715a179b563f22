"""What a plan says of disk beside what its miniature took, times how much larger the data and the models are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rnnreranker.base.errors import RnnrerankerError
from rnnreranker.data import irds
from rnnreranker.data.names import left_out
from rnnreranker.regress.plans.disk import sizes
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.plans.step import Step
from rnnreranker.regress.rehearsal.shorten import WIDTH, Miniature

TIMES = 3.0  # an estimate that is off by more is told
GB = 1e9
REAL_WIDTHS = {"--encoder": 768 / 32, "--token-encoder": 128 / WIDTH}  # over those of models of miniatures


@dataclass(frozen=True)
class Estimate:
    """GB of disk of a step's output: as the plan says, and as the miniature's would be at full size."""

    output: str
    said: float
    scaled: float

    @property
    def off(self) -> bool:
        """Whether one is more than `TIMES` the other."""
        return not self.said / TIMES <= self.scaled <= self.said * TIMES


def estimates(plan: Plan, size: Miniature, disk: Callable[[Step], int]) -> list[Estimate]:
    """The estimates that can be compared: runs and labels of topics, vectors and tokens of documents.

    How many topics and documents there are at full size is known of data sets of ir_datasets. Postings of words are not
    compared: documents have other lengths, and models that learnt nothing give other weights.

    Args:
        plan: with what its steps say of disk.
        size: of the miniatures, among which this is called.
        disk: bytes that the output of a step took, 0 where that is not known.
    """
    said = sizes(plan.steps, plan.spec)
    compared = []
    for step in plan.steps:
        if said[step.output] >= 1 and (took := disk(step)) and (times := _larger(step, size)):
            compared.append(Estimate(step.output.name, said[step.output], round(took * times / GB, 1)))
    return compared


def _larger(step: Step, size: Miniature) -> float:
    """How many times larger the output of a step is at full size; 0 where that is not known."""
    if step.module == "index":
        wider = next((times for flag, times in REAL_WIDTHS.items() if step.value(flag) not in ("", "minilm")), 0.0)
        return wider * _full(step.value("--documents"), "docs") / size.documents
    if step.module in ("search", "labels", "negatives"):
        deeper = 1000 / min(1000, size.documents) if step.module == "search" else 1.0
        return deeper * _full(step.value("--topics"), "queries") / max(1, _topics(step.value("--topics")))
    return 0.0


def _full(name: str, part: str) -> int:
    """How many documents or queries a data set has at full size, 0 where nobody says it; nothing is read."""
    first, _ = left_out(name)
    if Path(first).exists():
        return 0
    try:
        counts = irds.load(first).metadata().get(part) or {}
    except RnnrerankerError:  # a name that ir_datasets does not know
        return 0
    return int(counts.get("count") or 0)


def _topics(name: str) -> int:
    from rnnreranker.data.topics import load_topics

    return len(load_topics(name))
