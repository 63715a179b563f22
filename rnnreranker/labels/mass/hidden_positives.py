"""One judged positive of a query stays visible, the others are hidden: what labels made from it give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.labels.judged import Judged, contexts_of

if TYPE_CHECKING:
    from rnnreranker.labels.methods.base import VectorLabeler
    from rnnreranker.runs import Run

QUERIES = 5  # at least so many must have a candidate above a threshold: fewer say nothing of others
EVEN = 0.5  # probability from which on a candidate is rather relevant than not


@dataclass(frozen=True, eq=False)
class HiddenPositives:
    """The candidates of validation queries with one positive visible at a time, every one in turn: M in all.

    query, case: (M,) int64, the number of the query, and of the query with that visible positive; similarity: (M,)
    float64 to the visible positive, by the method; given: (M,) float64, a candidate's part of what leaves the
    positive, by the method's own targets; hidden: (M,) bool, judged positive, too. A candidate without a judgement
    counts as not relevant.
    known: (C,) positives of the query of each case, visible and hidden, those beyond the candidates too; weights: (C,)
    1 / cases of its query, so that every query counts alike.
    """

    query: np.ndarray
    case: np.ndarray
    similarity: np.ndarray
    given: np.ndarray
    hidden: np.ndarray
    known: np.ndarray
    weights: np.ndarray

    @property
    def queries(self) -> int:
        """Queries with a case."""
        return len(np.unique(self.query))

    @property
    def weight(self) -> np.ndarray:
        """(M,): the weight of each candidate's case."""
        return self.weights[self.case]


def hidden_positives(labeler: VectorLabeler, run: Run, judged: Judged) -> HiddenPositives:
    """Every positive of every query in turn, alone with a grade of 1, in front of the run's candidates.

    Args:
        labeler: says how similar candidates are; its parameters cut and share out as in its labels.
        run: candidates of the queries.
        judged: positives of the validation queries, as many as are known.

    Raises:
        InputError: as `VectorLabeler.infer_from`.
    """
    labeler.check(run, judged)
    alone = {qid: [(docid, 1) for docid, _ in pairs] for qid, pairs in judged.items()}
    contexts, _ = contexts_of(run, alone, labeler.params.context, labeler.source_of_rows, apart=True)
    numbers = {qid: number for number, qid in enumerate(dict.fromkeys(one.qid for one in contexts))}
    parts: list[tuple[np.ndarray, ...]] = [()] * len(contexts)
    positives = {qid: {docid for docid, _ in judged[qid]} for qid in numbers}
    for index, similarity, target in labeler.similar(contexts):
        one = contexts[index]
        others = similarity[1:].astype(np.float64), target[1:].astype(np.float64)
        hidden = np.array([docid in positives[one.qid] for docid in one.docids[1 : one.size]], dtype=bool)
        total = others[1].sum()
        parts[index] = (*others[:1], others[1] / (total if total > 0 else 1.0), hidden)
    cases = np.repeat(np.arange(len(contexts)), [len(part[0]) for part in parts])
    query = np.array([numbers[one.qid] for one in contexts], dtype=np.int64)
    similarity, given, target_values = (
        np.concatenate([np.zeros(0, dtype=kind), *(part[at] for part in parts)])
        for at, kind in enumerate((np.float64, np.float64, bool))
    )
    known = np.array([len(positives[one.qid]) for one in contexts])
    weights = 1.0 / np.bincount(query, minlength=len(numbers))[query]
    return HiddenPositives(query[cases], cases, similarity, given, target_values, known, weights)


def likeliest_share(positives: HiddenPositives, threshold: float = -np.inf) -> float:
    """The share of probability that leaves the positives under which the known positives are the likeliest, in [0, 1].

    A relevant document of a case is the visible positive with probability 1 - u, or drawn from what the labels give the
    others with probability u r, or from all candidates alike with u (1 - r): the last is what the labels do not know.
    With every known positive of a query counted alike, u and r of the highest likelihood make the share
    u r / (1 - u + u r): what labels know of hidden positives beside what is visible.

    threshold: only candidates from it on take part, and cases that have such.
    """
    given = np.where(positives.similarity >= threshold, positives.given, 0.0)
    cases = len(positives.known)
    totals = np.bincount(positives.case, given, cases)
    used = totals > 0
    part = given / np.where(used, totals, 1.0)[positives.case]
    each = positives.weights / positives.known  # of one positive of the case
    candidates = np.bincount(positives.case, minlength=cases)
    chosen = positives.hidden & used[positives.case]
    inside = each[positives.case][chosen]
    by_labels, by_chance = part[chosen], 1.0 / candidates[positives.case][chosen]
    beyond = (positives.known - 1 - np.bincount(positives.case, positives.hidden, cases)) * each
    visible, hidden = each[used].sum(), inside.sum() + beyond[used].sum()
    if not inside.size:
        return 0.0
    lost = beyond[used].sum()

    def slope(r: float) -> float:
        """Of the log-likelihood in r."""
        with np.errstate(divide="ignore"):
            return float(
                (inside * (by_labels - by_chance) / (r * by_labels + (1 - r) * by_chance)).sum() - lost / (1 - r)
            )

    from scipy.optimize import brentq

    last = 1.0 - 1e-9
    r = 0.0 if slope(0.0) <= 0 else last if slope(last) >= 0 else brentq(slope, 0.0, last)
    return float(r * hidden / (visible + r * hidden))


def even_threshold(hidden: HiddenPositives) -> float | None:
    """The lowest similarity from which on a candidate is rather relevant than not; None where there is none.

    The probability of relevance rises with the similarity as isotonic regression finds it; it must reach 1/2, and
    `QUERIES` queries must have a candidate there.
    """
    from scipy.optimize import isotonic_regression

    values, inverse = np.unique(hidden.similarity, return_inverse=True)
    if not len(values):
        return None
    weights = np.bincount(inverse, hidden.weight)
    share = np.bincount(inverse, hidden.weight * hidden.hidden) / weights
    likely = isotonic_regression(share, weights=weights).x >= EVEN
    if not likely.any():
        return None
    threshold = float(values[int(np.argmax(likely))])
    enough = len(np.unique(hidden.query[hidden.similarity >= threshold])) >= QUERIES
    return threshold if enough else None
