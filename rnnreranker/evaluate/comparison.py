"""Comparison of runs with a baseline, paired by topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.command import counted, phase, print_table, say
from rnnreranker.base.errors import InputError
from rnnreranker.evaluate.scores import Scores

RESAMPLES = 10_000
CONFIDENCE = 0.95
SAME = 1e-9  # values closer than this are ties: the same ranking may be summed in another order
DRAWN = 4_000_000  # topic numbers drawn at a time: bounds the memory


@dataclass(frozen=True)
class Comparison:
    """A run against the baseline in one measure, paired over the topics.

    Attributes:
        value, baseline_value: means over the topics.
        difference: mean of the differences, run minus baseline.
        low, high: 95% percentile bootstrap interval of that mean.
        p: paired t-test, two-sided; 1 for one topic or no difference.
        p_holm: p after Holm's correction over all comparisons of the call.
        wins, ties, losses: topics in which the run scores higher, the same, lower.
        judged, baseline_judged: mean share of judged documents among the first ten.
    """

    run: str
    baseline: str
    measure: str
    value: float
    baseline_value: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    judged: float
    baseline_judged: float


@phase("comparing")
def compare(scores: Scores, resamples: int = RESAMPLES, seed: int = 0) -> list[Comparison]:
    """Every run after the first against the first, in every measure, by run, then by measure.

    resamples >= 1, seed: of the bootstrap; equal seeds give equal intervals, whatever else is compared.

    Raises:
        InputError: fewer than two runs.
    """
    if len(scores.runs) < 2:
        raise InputError(f"{len(scores.runs)} run: expected a baseline and at least one run to compare with it")
    values = {(run, m): scores.values[run, :, m] for run, m in np.ndindex(len(scores.runs), len(scores.measures))}
    pairs = [((run, m), (0, m)) for run, m in values if run]
    rows = differences(values, pairs, resamples, seed)
    judged, comparisons = scores.judged.mean(axis=1).tolist(), []
    for ((run, m), base), row in zip(pairs, rows, strict=True):
        gaps, means = values[run, m] - values[base], (float(values[one].mean()) for one in ((run, m), base))
        counts = (int(one.sum()) for one in (gaps > SAME, np.abs(gaps) <= SAME, gaps < -SAME))
        fields: list[Any] = [scores.runs[run], scores.runs[0], scores.measures[m], *means, *row.values(), *counts]
        comparisons.append(Comparison(*fields, *(judged[one] for one in (run, 0))))
    return comparisons


def bootstrap_intervals(differences: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """(C, 2) float64: 95% percentile intervals of the mean of each of C rows of differences, (C, T) float64.

    All rows have the same draws of topics, and are sorted first: the order of topics does not matter.
    """
    in_order = np.sort(differences, axis=1)
    topics = in_order.shape[1]
    generator = np.random.default_rng(seed)
    means = np.empty((len(in_order), resamples))
    step = max(1, DRAWN // topics)
    for first in range(0, resamples, step):
        last = min(first + step, resamples)
        drawn = generator.integers(topics, size=(last - first, topics))
        for row, values in enumerate(in_order):
            means[row, first:last] = values[drawn].mean(axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    return np.percentile(means, [tail, 100 - tail], axis=1).T


def paired_t_test(values: np.ndarray, baseline: np.ndarray) -> float:
    """The two-sided p value; 1 for one topic or no difference, 0 for a constant one."""
    differences = values - baseline
    if len(differences) < 2 or np.abs(differences).max() <= SAME:
        return 1.0
    if np.ptp(differences) <= SAME:  # no spread at all: the limit of the test
        return 0.0
    from scipy.stats import ttest_rel

    return float(ttest_rel(values, baseline).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for their number m by Holm's step-down method: the i-th smallest (from 0) times m - i, at
    least the one before, at most 1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected.tolist()


def differences(
    values: Mapping[Any, np.ndarray], pairs: Sequence[tuple[Any, Any]], resamples: int = RESAMPLES, seed: int = 0
) -> list[dict[str, float]]:
    """Paired differences of values, a row a pair, as one family of tests.

    values: by name, (T,) float64 of the same topics; pairs: names of values and of their baselines. Rows have the
    fields of `Comparison`.
    """
    if not pairs:
        return []
    gaps = np.stack([values[one] - values[other] for one, other in pairs])
    tests = [paired_t_test(values[one], values[other]) for one, other in pairs]
    rows = zip(gaps.mean(axis=1), *bootstrap_intervals(gaps, resamples, seed).T, tests, holm(tests), strict=True)
    return [dict(zip(("difference", "low", "high", "p", "p_holm"), map(float, row), strict=True)) for row in rows]


def print_scores(header: Sequence[object], rows: Iterable[Sequence[object]], protocol: str) -> None:
    """Print a table of runs; a protocol other than `trec` gets a column."""
    named = {} if protocol == "trec" else {"protocol": protocol}
    print_table([header[0], *named, *header[1:]], [[row[0], *named.values(), *row[1:]] for row in rows])


def print_comparisons(scores: Scores, comparisons: Sequence[Comparison]) -> None:
    """Print a row per run and measure, and the baseline on stderr."""
    say(f"baseline: {scores.runs[0]}; {counted(len(scores.topics), 'topic')}, protocol {scores.protocol}")
    header = ["run", "measure", "baseline", "value", "difference", "low", "high", "p", "p (Holm)", "win/tie/loss"]
    header += ["judged@10 baseline", "judged@10"]
    rows = [
        [
            one.run,
            one.measure,
            f"{one.baseline_value:.4f}",
            f"{one.value:.4f}",
            f"{one.difference:+.4f}",
            f"{one.low:+.4f}",
            f"{one.high:+.4f}",
            f"{one.p:.3g}",
            f"{one.p_holm:.3g}",
            f"{one.wins}/{one.ties}/{one.losses}",
            f"{one.baseline_judged:.3f}",
            f"{one.judged:.3f}",
        ]
        for one in comparisons
    ]
    print_scores(header, rows, scores.protocol)
