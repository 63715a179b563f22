"""Fusion of runs by reciprocal ranks or scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.command import notice, phase
from rnnreranker.base.errors import InputError, argument, nearest
from rnnreranker.base.settings import Params, Written, hints_of, setting
from rnnreranker.runs.columns import Docids, numbered
from rnnreranker.runs.ordering import ascending, steps
from rnnreranker.runs.run import Run

if TYPE_CHECKING:
    import pyarrow

METHODS_HELP = (
    "rrf: sum of 1 / (k + rank); mean of scores, over the runs that have the document or (mean-zero) over all; "
    "minmax, zscore: sum of scores brought to [0, 1], or to mean 0 and deviation 1, query by query, equal ones to 1"
)


@dataclass(frozen=True)
class FuseParams(Params):
    """How runs are fused."""

    fuse: Literal["rrf", "mean", "mean-zero", "minmax", "zscore"] = setting("rrf", METHODS_HELP)
    k: float = setting(60.0, "of rrf: the larger, the less first ranks stand out", at_least=0)
    weights: str | None = setting(None, "a number for each run, joined by commas; none: 1 each")

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            values = self.weight_of_runs
        except ValueError:
            values = (-1.0,)
        if values is not None and not (all(math.isfinite(one) and one >= 0 for one in values) and any(values)):
            raise InputError(f"weights={self.weights!r}: expected numbers >= 0, not all 0, joined by commas")

    @property
    def weight_of_runs(self) -> tuple[float, ...] | None:
        """None = 1 each."""
        return None if self.weights is None else tuple(float(one) for one in self.weights.split(","))


METHODS = tuple(hints_of(FuseParams)["fuse"].words)


def fusion(form: str | Mapping[str, Any] | Written, count: int, of: str) -> FuseParams:
    """The parameters of a written form, `rrf:k=60` or `minmax:weights="1,2"`; count: of runs, 0 = any; of: the
    argument.

    Raises:
        InputError: no such method, values out of range, another number of weights, k with another method.
    """
    written = Written.read(form)
    shown = argument(of, str(written))
    if written.name not in METHODS:
        raise InputError(f"{shown}: no such fusion; {nearest(written.name, METHODS)}")
    params = FuseParams.of(written.given, shown, fuse=written.name)
    weights = params.weight_of_runs
    if weights is not None and count and len(weights) != count:
        raise InputError(f"{shown}: {len(weights)} weights for {count} runs; expected one for each")
    if "k" in written.params and params.fuse != "rrf":
        raise InputError(f"{shown}: k is of rrf, not of {params.fuse}")
    return params


@phase("fusing")
def fuse(
    runs: Sequence[Run], how: FuseParams | None = None, *, hits: int | None = None, names: Sequence[str] = ()
) -> Run:
    """One run with the documents of one or more, for the queries of all in order of first appearance.

    A run without entries for a query does not count for it (with "mean-zero" as 0). Scores are rounded to float32, the
    precision of trec_eval; ties by ascending docid.

    Args:
        how: with as many weights w as runs; None = rrf. "rrf" = sum of w / (k + rank) (Cormack et al. 2009, with
            weights); "mean" = weighted mean of scores over the runs that have the document, none if of weight 0;
            "mean-zero" = over all runs; "minmax" = sum of w (s - min) / (max - min) over a query's scores in a run;
            "zscore" = sum of w (s - mean) / deviation. Equal scores of a query count w each in both.
        hits: entries kept of every query; None = all.
        names: of the runs, in notices about runs that do not fit together; none = no notices.

    Raises:
        InputError: scores beyond float32.
    """
    how = how or FuseParams()
    method, weights = how.fuse, how.weight_of_runs or [1.0] * len(runs)
    qids = tuple(dict.fromkeys(qid for run in runs for qid in run.qids))
    docids, rows_of, pairs = _numbered(runs, qids)
    if names:
        _notice_unlike(runs, names, qids, docids, rows_of, method)
    order = ascending(pairs, len(qids) * len(docids))
    pairs = pairs[order]
    first = np.flatnonzero(np.append(True, np.diff(pairs) > 0)[: len(pairs)])  # of the entries of one document
    values = np.concatenate([weight * _values(run, how) for run, weight in zip(runs, weights, strict=True)])
    with np.errstate(over="ignore"):
        scores = np.add.reduceat(values[order], first)
        if method == "mean":
            of_entries = np.repeat(weights, [len(run.rows) for run in runs])[order]
            total = np.add.reduceat(of_entries, first)
            scores, first = scores[total > 0] / total[total > 0], first[total > 0]
        elif method == "mean-zero":
            scores = scores / sum(weights)
    fused = Run.from_pairs(qids, Docids(docids), pairs[first], scores, "fuse: a fused score")
    return fused if hits is None else fused.head(hits)


def _numbered(runs: Sequence[Run], qids: tuple[str, ...]) -> tuple[pyarrow.Array, list[np.ndarray], np.ndarray]:
    """The V docids of all runs, each run's rows among them, and query number x V + row for every entry, run by run."""
    import pyarrow

    docids, codes = numbered(pyarrow.chunked_array([run.ids.names for run in runs]))
    rows_of = np.split(codes, np.cumsum([len(run.ids) for run in runs])[:-1])
    number_of = {qid: number for number, qid in enumerate(qids)}
    pairs = [
        np.array([number_of[qid] for qid in run.qids], dtype=np.int64)[run.queries] * len(docids) + rows[run.rows]
        for run, rows in zip(runs, rows_of, strict=True)
    ]
    return docids, rows_of, np.concatenate(pairs)


def _notice_unlike(
    runs: Sequence[Run],
    names: Sequence[str],
    qids: tuple[str, ...],
    docids: pyarrow.Array,
    rows_of: Sequence[np.ndarray],
    method: str,
) -> None:
    """Report runs that lack queries or share no docid, and negative scores with `mean-zero`."""
    lacking = [len(qids) - np.count_nonzero(np.diff(run.offsets)) for run in runs]
    if any(lacking):
        shown = ", ".join(f"{name} lacks {count:,}" for name, count in zip(names, lacking, strict=True) if count)
        notice(f"of {len(qids):,} queries {shown}; a query that a run lacks is fused of the others alone")
    times = np.bincount(np.concatenate(rows_of), minlength=len(docids))
    for name, rows in zip(names, rows_of, strict=True):
        if len(rows) and len(runs) > 1 and times[rows].max() == 1:
            other = next((one[0] for one in rows_of if len(one) and one is not rows), rows[0])
            notice(
                f"{name}: none of its {len(rows):,} docids is in another run (it has {docids[int(rows[0])]}, the other "
                f"{docids[int(other)]}); give runs of one collection"
            )
    if method == "mean-zero":
        for name, run in zip(names, runs, strict=True):
            if below := np.count_nonzero(run.scores < 0):
                notice(
                    f"{name}: {below:,} of {len(run.rows):,} scores are below 0, the score that mean-zero gives to a "
                    "document that a run lacks; use mean, minmax or rrf"
                )


def _values(run: Run, how: FuseParams) -> np.ndarray:
    """(L,) float64: what each entry adds to its document, before weights."""
    if how.fuse == "rrf":
        return 1 / (how.k + run.ranks)
    if how.fuse.startswith("mean"):
        return run.scores
    scores, queries = run.scores, run.queries
    first, last = run.offsets[queries], run.offsets[queries + 1] - 1  # of the query of every entry
    if how.fuse == "minmax":
        low, spread = scores[last], scores[first] - scores[last]
    else:
        sizes = last - first + 1
        low = np.bincount(queries, weights=scores)[queries] / sizes
        spread = np.sqrt(np.bincount(queries, weights=(scores - low) ** 2)[queries] / sizes)
    with np.errstate(over="ignore"):
        numbers = steps(scores.astype(np.float32))
    apart = numbers[first] - numbers[last] > last - first  # a file has equal scores one step apart
    return np.divide(scores - low, spread, out=np.ones_like(scores), where=apart & (spread > 0))
