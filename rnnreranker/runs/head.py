"""New scores for the first entries of every query, the rest below."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.runs.ordering import by_docid, offsets_of
from rnnreranker.runs.run import Run


def order_by_score(scores: np.ndarray, docids: np.ndarray) -> np.ndarray:
    """Positions that sort the scores of a query in descending order, ties by docid.

    scores: (n,) float; docids: (n,) strings.

    >>> order_by_score(np.array([1.0, 2.0, 1.0]), np.array(["c", "a", "b"])).tolist()
    [1, 2, 0]
    """
    return np.lexsort((docids.astype(str), -scores))


def place_below(last_score: float, scores: np.ndarray) -> np.ndarray:
    """(n,) float64: the scores of a run's rest, (n,) non-increasing, moved as a block below `last_score`.

    The step down is the block's range, or 1 if that is 0. If float64 cannot hold the differences at such a height,
    equal steps replace them.

    >>> place_below(0.5, np.array([9.0, 8.0, 8.0])).tolist()
    [-0.5, -1.5, -1.5]
    >>> place_below(1e17, np.array([9.0, 8.0, 8.0])).tolist()
    [9.999999999999994e+16, 9.999999999999987e+16, 9.999999999999987e+16]
    """
    if scores.size == 0:
        return scores
    falls = np.diff(scores) < 0
    with np.errstate(all="ignore"):
        spread = float(scores[0] - scores[-1])
        below = last_score - (spread if spread > 0 else 1.0) - (scores[0] - scores)
        if below[0] < last_score and (np.diff(below)[falls] < 0).all() and np.isfinite(below[-1]):
            return below
    unit = max(1.0, 4.0 * float(np.spacing(abs(last_score))))
    return last_score - unit * np.concatenate([[1], 1 + np.cumsum(falls)])


def starts_of(chosen: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(Q+1,) int64: how many chosen entries precede each query, and in all.

    chosen: (L,) bool; offsets: (Q+1,) int64 of the queries' entries.
    """
    return np.concatenate([[0], np.cumsum(chosen)])[offsets]


def choose_head(run: Run, depth: int, usable: np.ndarray | None = None) -> np.ndarray:
    """(L,) bool: whether an entry is among the first `depth` usable ones of its query; usable: (V,) bool, None = all.

    >>> run = Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}})
    >>> choose_head(run, 1, np.array([False, True, True])).tolist()
    [False, True, False]
    """
    if usable is None:
        return run.ranks <= depth
    able = usable[run.rows]
    rank = np.cumsum(able) - np.repeat(starts_of(able, run.offsets)[:-1], np.diff(run.offsets))
    return able & (rank <= depth)


def with_new_head(run: Run, chosen: np.ndarray, new_scores: np.ndarray, kept: np.ndarray | None = None) -> Run:
    """The run with the chosen entries first, by descending new score, ties by docid; the others follow in their
    order, as a block (`place_below`), below 0 if none is chosen.

    chosen: (L,) bool; new_scores: (C,) float of the chosen entries, finite; kept: (L,) bool, entries whose ties stay.

    >>> run = Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}})
    >>> with_new_head(run, np.array([True, True, False]), np.array([0.1, 0.7]))["q1"]
    [('b', 0.7), ('a', 0.1), ('c', -0.9)]
    """
    scores = run.scores.copy()
    scores[chosen] = new_scores
    starts = starts_of(chosen, run.offsets)
    for query in np.flatnonzero(np.diff(starts) < np.diff(run.offsets)):
        own = slice(run.offsets[query], run.offsets[query + 1])
        head = scores[own][chosen[own]]
        scores[own][~chosen[own]] = place_below(head.min() if len(head) else 0.0, run.scores[own][~chosen[own]])
    queries, head = run.queries, np.flatnonzero(chosen)
    head = head[np.lexsort((-scores[head], queries[head]))]
    tied = (np.diff(scores[head]) == 0) & (np.diff(queries[head]) == 0)
    if kept is not None:
        tied &= ~kept[head[1:]]
    head = head[by_docid(tied, run.ids, run.rows[head])]
    order = np.concatenate([head, np.flatnonzero(~chosen)])  # in their new order, once sorted by query
    order = order[np.argsort(queries[order], kind="stable")]
    return Run(run.qids, run.offsets, run.ids, run.rows[order], scores[order])


def joined_by(run: Run, above: int, counts: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> Run:
    """A run with more entries a query: its first ones, then the given ones by their scores, then the others.

    above: how many entries of each query stay first; counts: (Q,) int64, entries given for each query; rows: (J,) int,
    their rows in `run.docids`, distinct within a query and not among the first `above`; scores: (J,) float64, below
    theirs.

    >>> run = Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"d": 1.0}})
    >>> joined_by(run, 1, np.array([2, 0]), np.array([2, 3]), np.array([2.5, 2.4]))["q1"]
    [('a', 3.0), ('c', 2.5), ('d', 2.4), ('b', 1.4)]
    """
    of_given = np.repeat(np.arange(len(counts)), counts)
    kept = ~np.isin(run.queries * len(run.docids) + run.rows, of_given * len(run.docids) + rows)
    queries = np.concatenate([run.queries[kept], of_given])
    order = np.argsort(queries, kind="stable")
    all_rows, all_scores = np.concatenate([run.rows[kept], rows]), np.concatenate([run.scores[kept], scores])
    first = np.concatenate([(run.ranks <= above)[kept], np.zeros(len(rows), dtype=bool)])[order]
    chosen = first | (order >= kept.sum())
    joined = Run(run.qids, offsets_of(queries, len(run)), run.ids, all_rows[order], all_scores[order])
    return with_new_head(joined, chosen, joined.scores[chosen], first)


ENOUGH = 3  # entries of a query whose scores can show a rule
ALONE = 5  # entries where one query must show it
NEAR = 1e-5  # of the range of the scores: what a rule may be missed by, as scores are written with few digits


def why_useless(scores: np.ndarray, offsets: np.ndarray) -> str | None:
    """Why the scores of a run say nothing beyond its order, in words; None if they do.

    All scores of every query are equal; or they follow from the rank: the same for all queries of 3 entries or more,
    counted from the first or from the last entry, or of a lone query a straight line or 1 / (c + rank).

    scores: (L,) float64 of a `Run`; offsets: (Q+1,) int64.

    >>> why_useless(np.array([3.0, 2.0, 1.0, 3.0, 2.0, 1.0]), np.array([0, 3, 6]))
    'its scores follow from the rank, they are the same for all queries'
    """
    counts = np.diff(offsets)
    queries = np.repeat(np.arange(len(counts)), counts)
    steps = np.diff(scores)[np.diff(queries) == 0]
    if len(steps) and not steps.any():
        return "the scores of a query are equal"
    telling = np.flatnonzero(counts >= ENOUGH)
    if not len(telling):
        return None
    longest = telling[np.argmax(counts[telling])]
    model = scores[offsets[longest] : offsets[longest + 1]]
    if len(telling) == 1:
        forms = [model, 1 / model] if model[-1] > 0 else [model]
        straight = any(
            np.abs(form - np.linspace(form[0], form[-1], len(form))).max() <= NEAR * abs(form[0] - form[-1])
            for form in forms
        )
        return "its scores follow from the rank" if len(model) >= ALONE and straight else None
    inside = np.isin(queries, telling)
    numbers, near = np.arange(len(scores)), NEAR * (model[0] - model[-1])
    above, below = numbers - np.repeat(offsets[:-1], counts), np.repeat(offsets[1:], counts) - numbers
    same = any(np.abs(scores - model[ranks])[inside].max() <= near for ranks in (above, -below))
    return "its scores follow from the rank, they are the same for all queries" if same else None


def scores_of_use(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(L,) float64: the scores; zeros, with a notice, if they say nothing beyond the order (`why_useless`)."""
    if (why := why_useless(scores, offsets)) is None:
        return scores
    notice(f"the run tells only its order ({why}): ranks are used, scores are not")
    return np.zeros(len(scores))
