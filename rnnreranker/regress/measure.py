"""What the runs of a plan score, each reranked one against its base."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.data.qrels import load_qrels
from rnnreranker.evaluate import compare, evaluate
from rnnreranker.evaluate.comparison import holm
from rnnreranker.regress.plan import Plan, index_name
from rnnreranker.regress.spec import QuerySet
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Measured:
    """The values of a query set's runs.

    Attributes:
        values: condition id → measure → mean over the judged topics.
        differences: reranked condition id → measure → difference, low, high, p, p_holm, win, tie, loss.
        topics: judged topics.
        judged: judgements.
        unjudgeable: judgements whose document is not in the collection.
    """

    values: dict[str, dict[str, float]]
    differences: dict[str, dict[str, dict[str, Any]]]
    topics: int
    judged: int
    unjudgeable: int


def measure(plan: Plan, query_set: QuerySet, conditions: Collection[str]) -> Measured:
    """The measured values of the conditions whose runs were made.

    Args:
        plan: where the run files are.
        query_set: with which judgements.
        conditions: ids, of those in the spec.
    """
    qrels = load_qrels(query_set.qrels)
    wanted = [condition for condition in plan.spec.conditions if condition.id in conditions]
    runs = {condition.id: Run.read(plan.run_file(condition.id, query_set.id)) for condition in wanted}
    scores = evaluate(runs, qrels, plan.spec.measures, query_set.protocol)
    values = {
        run: {measure: float(scores.means[r, m]) for m, measure in enumerate(plan.spec.measures)}
        for r, run in enumerate(scores.runs)
    }
    pairs = [(condition.id, condition.base) for condition in wanted if condition.base in runs]
    return Measured(
        values=values,
        differences=_differences(plan, query_set, runs, qrels, pairs),
        topics=len(scores.topics),
        judged=len(qrels),
        unjudgeable=_lacking(plan, qrels),
    )


def _differences(
    plan: Plan, query_set: QuerySet, runs: dict[str, Run], qrels: pandas.DataFrame, pairs: list[tuple[str, str]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Every reranked run against its own base; Holm's family is all of them in all compared measures."""
    found = []
    for reranked, base in pairs:
        both = evaluate({base: runs[base], reranked: runs[reranked]}, qrels, plan.spec.compare, query_set.protocol)
        found += compare(both)
    corrected = holm([comparison.p for comparison in found])
    differences: dict[str, dict[str, dict[str, Any]]] = {}
    for comparison, p_holm in zip(found, corrected, strict=True):
        differences.setdefault(comparison.run, {})[comparison.measure] = {
            "difference": comparison.difference,
            "low": comparison.low,
            "high": comparison.high,
            "p": comparison.p,
            "p_holm": p_holm,
            "win": comparison.wins,
            "tie": comparison.ties,
            "loss": comparison.losses,
        }
    return differences


def _lacking(plan: Plan, qrels: pandas.DataFrame) -> int:
    """The number of judgements whose document the index does not hold."""
    from rnnreranker.search.indexes import open_index

    source = open_index(index_name(plan.spec, plan.folder)).vectors
    return int((source.rows(qrels["doc_id"].tolist()) < 0).sum())
