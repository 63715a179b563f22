"""Paired comparisons, against scipy and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.stats
from refusals import refusal

from rnnreranker.evaluate import Scores, compare, evaluate
from rnnreranker.evaluate.comparison import bootstrap_intervals, holm
from rnnreranker.runs import Run


def scores_of(*values: list[float]) -> Scores:
    """Runs r0, r1, ... with one measure M and the given values per topic."""
    table = np.array(values)[:, :, None]
    names = tuple(f"r{i}" for i in range(len(values)))
    topics = tuple(f"q{i}" for i in range(table.shape[1]))
    share = np.ones(table.shape[:2]) * np.arange(1, len(values) + 1)[:, None] / 10
    return Scores(names, topics, ("M",), table, table.mean(axis=1), share, np.zeros(len(values), int), "trec")


def test_one_comparison_by_hand() -> None:
    base, other = [0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.2, 0.5, 0.3, 0.9]
    (found,) = compare(scores_of(base, other))
    assert (found.run, found.baseline, found.measure) == ("r1", "r0", "M")
    assert (found.value, found.baseline_value) == pytest.approx((0.42, 0.3))
    assert found.difference == pytest.approx(0.12)
    assert (found.wins, found.ties, found.losses) == (3, 1, 1)
    assert (found.baseline_judged, found.judged) == pytest.approx((0.1, 0.2))
    # t by hand: the differences .1 0 .2 -.1 .4 have mean .12, squares about it of sum .148; 4 degrees of freedom
    t = 0.12 / (np.sqrt(0.148 / 4) / np.sqrt(5))
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(t, 4))
    assert found.p_holm == found.p
    assert -0.1 <= found.low < found.difference < found.high <= 0.4


def test_interval_is_near_the_exact_one() -> None:
    # four topics: all 256 resamples can be listed
    differences = np.array([0.0, 0.1, 0.3, 0.8])
    drawn = np.stack(np.meshgrid(*[differences] * 4)).reshape(4, -1).mean(axis=0)
    low, high = bootstrap_intervals(differences[None], 20_000, seed=1)[0]
    assert low == pytest.approx(np.percentile(drawn, 2.5), abs=0.026)
    assert high == pytest.approx(np.percentile(drawn, 97.5), abs=0.051)


def test_what_has_no_spread() -> None:
    (same,) = compare(scores_of([0.5, 0.25, 0.0], [0.5, 0.25, 0.0]))
    assert (same.p, same.low, same.high, same.ties) == (1.0, 0.0, 0.0, 3)
    (shifted,) = compare(scores_of([0.5, 0.25, 0.0], [0.75, 0.5, 0.25]))
    assert (shifted.p, shifted.low, shifted.high, shifted.wins) == (0.0, 0.25, 0.25, 3)  # the surest difference of all
    (single,) = compare(scores_of([0.5], [0.25]))
    assert (single.p, single.low, single.high, single.losses) == (1.0, -0.25, -0.25, 1)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_the_family_is_every_run_and_measure_of_the_call() -> None:
    rng = np.random.default_rng(6)
    rows = [(f"q{q}", f"d{d}", int(rng.integers(4))) for q in range(30) for d in range(20)]
    qrels = pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
    runs = {
        name: Run.from_dict({f"q{q}": {f"d{d}": float(rng.normal()) for d in range(25)} for q in range(30)})
        for name in ("base", "x", "y")
    }
    scores = evaluate(runs, qrels, "nDCG@10 AP")
    found = compare(scores, resamples=50)
    assert [(c.run, c.measure) for c in found] == [("x", "nDCG@10"), ("x", "AP"), ("y", "nDCG@10"), ("y", "AP")]
    assert [c.p_holm for c in found] == holm([c.p for c in found])
    for c in found:
        a, b = scores.per_topic(c.measure, c.run), scores.per_topic(c.measure, "base")
        assert c.p == scipy.stats.ttest_rel(a, b).pvalue
        judged = [np.mean([int(docid[1:]) < 20 for docid, _ in runs[c.run][q][:10]]) for q in runs[c.run]]
        assert c.judged == pytest.approx(np.mean(judged))


def test_what_cannot_be_compared() -> None:
    with refusal("1 run: expected a baseline and at least one run"):
        compare(scores_of([0.5, 1.0]))
