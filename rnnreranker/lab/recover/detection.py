"""How well scores put hidden positives above judged negatives, and what a filter removes of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rnnreranker.lab.recover.rankings import Visible
from rnnreranker.lab.recover.similarities import OF_GRAPH
from rnnreranker.labels.negatives.filters import Pool, suspicion
from rnnreranker.runs.head import order_by_score

MEASURES = ("AP", "P@m", "AUC")
SIMILAR = {"rnn": "mixed", "joint": "joint"}  # filter → the scorer that it goes by


def ranking_measures(scores: np.ndarray, hidden: np.ndarray, docids: Sequence[str]) -> dict[str, float]:
    """AP, precision at m (m = the number of hidden positives) and AUC of one ranking; ties by docid, in AUC halved.

    scores: (n,); hidden: (n,) bool, some of each.

    >>> found = ranking_measures(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), ["a", "b", "c"])
    >>> [round(value, 4) for value in found.values()]
    [0.8333, 0.5, 0.5]
    """
    order = order_by_score(scores, np.array(docids, dtype=object))
    ranked = hidden[order]
    m = int(ranked.sum())
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    positives, negatives = scores[hidden], np.sort(scores[~hidden])
    below = np.searchsorted(negatives, positives, side="left")
    level = np.searchsorted(negatives, positives, side="right") - below
    return {
        "AP": float(precision[ranked].sum() / m),
        "P@m": float(ranked[:m].sum() / m),
        "AUC": float((below + level / 2).sum() / (m * len(negatives))),
    }


def filtered(cases: Sequence[Visible], rates: Sequence[float]) -> list[dict[str, float | str]]:
    """What each filter removes when all discard the same share of the judged candidates.

    Rows: filter, rate (asked), discarded (reached: equal doubts stay together, on the kept side), positives (share of
    the hidden positives removed: the gain) and negatives (share of the true negatives lost: the price).

    Cases with similarities from a graph have filters `rnn-graph` and `joint-graph` besides. A filter's threshold is one
    for all queries, as a user would set it. A case counts 1 / (cases of its query), so that a query counts as often as
    it has judged candidates, as where each query has one known positive.
    """
    rows: list[dict[str, float | str]] = []
    hidden, weights = np.concatenate([case.hidden for case in cases]), weights_of(cases)
    chosen = [(how, how, "") for how in SIMILAR]
    if OF_GRAPH + "mixed" in cases[0].scores:
        chosen += [(f"{how}-graph", how, OF_GRAPH) for how in SIMILAR]
    for name, how, source in [*chosen, ("margin", "margin", ""), ("max-score", "max-score", "")]:
        doubts = np.concatenate([suspicion(as_pool(case, source), how)[0] for case in cases])
        falling = np.argsort(-doubts, kind="stable")
        reached = np.cumsum(weights[falling]) / weights.sum()
        for rate in rates:
            first_kept = min(int(np.searchsorted(reached, rate + 1e-9, side="right")), len(doubts) - 1)
            away = doubts > doubts[falling[first_kept]]
            rows.append(
                {
                    "filter": name,
                    "rate": rate,
                    "discarded": _share(away, weights, np.ones(len(away), dtype=bool)),
                    "positives": _share(away, weights, hidden),
                    "negatives": _share(away, weights, ~hidden),
                }
            )
    return rows


def _share(away: np.ndarray, weights: np.ndarray, among: np.ndarray) -> float:
    return float(weights[away & among].sum() / weights[among].sum())


def weights_of(cases: Sequence[Visible]) -> np.ndarray:
    """(M,) of all candidates of all cases: 1 / cases of their query."""
    number = Counter(case.qid for case in cases)
    return np.concatenate([np.full(len(case.hidden), 1.0 / number[case.qid]) for case in cases])


def as_pool(case: Visible, source: str = "") -> Pool:
    """A case as the pool that a filter looks at: one visible positive, or the mean of several, the judged candidates.

    source: `OF_GRAPH` for similarities from there.
    """
    return Pool(
        case.qid,
        case.positives[:1],
        case.docids,
        case.positive_scores.mean(keepdims=True),
        case.raw,
        {how: case.scores[source + scorer][None] for how, scorer in SIMILAR.items() if source + scorer in case.scores},
    )
