"""The share of probability that leaves the positives, learnt from judgements of validation queries.

It maximises the likelihood of positives hidden in turn, or minimises the loss on held-out positives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.command import phase, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.jobs import one_blas_thread
from rnnreranker.data.splits import by_hash
from rnnreranker.labels import targets
from rnnreranker.labels.methods.base import Judged, JudgedContext, Labeler, VectorLabeler, contexts_of
from rnnreranker.labels.params import LabelParams
from rnnreranker.runs import Run

QUERIES = 5  # at least so many must have a candidate above a threshold: fewer say nothing of others
EVEN = 0.5  # probability from which on a candidate is rather relevant than not


@dataclass(frozen=True, eq=False)
class HiddenPositives:
    """M candidates of validation queries in C cases, one visible positive each.

    query, case: (M,) int64, numbers; similarity: (M,) float64 to the visible positive; given: (M,) float64, share of
    what leaves the positive; hidden: (M,) bool, also judged positive. known: (C,) positives of the query, in the run or
    not; weights: (C,) 1 / cases of the query.
    """

    query: np.ndarray
    case: np.ndarray
    similarity: np.ndarray
    given: np.ndarray
    hidden: np.ndarray
    known: np.ndarray
    weights: np.ndarray


def proportions(
    labeler: VectorLabeler, contexts: Sequence[JudgedContext]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The number of every context, similarities to its positives, and what its other candidates get of 1, (n,)."""
    for number, similarities, _ in labeler.compared(contexts):
        grades = contexts[number].grades
        own = labeler.own_targets(grades, similarities)[1].astype(np.float64)
        own[: len(grades)] = 0.0
        yield number, similarities, own / (own.sum() or 1.0)


def hidden_positives(labeler: VectorLabeler, run: Run, judged: Judged) -> HiddenPositives:
    """Each positive of each query in turn, alone with grade 1, before the run's candidates."""
    alone = {qid: dict.fromkeys(positives, 1) for qid, positives in judged.items()}
    contexts, _ = contexts_of(run, alone, labeler.params.context, labeler.source_of_rows, apart=True)
    counts = np.array([one.size - 1 for one in contexts], dtype=np.int64)
    near, given, ends = np.zeros(counts.sum()), np.zeros(counts.sum()), counts.cumsum()
    for number, similarities, own in proportions(labeler, contexts):
        part = slice(ends[number] - counts[number], ends[number])
        near[part], given[part] = labeler.to_positives(similarities)[1:], own[1:]
    hidden = [docid in judged[one.qid] for one in contexts for docid in one.docids[1 : one.size]]
    cases, query = (
        np.repeat(np.arange(len(contexts)), counts),
        np.unique([one.qid for one in contexts], return_inverse=True)[1],
    )
    known = np.array([len(judged[one.qid]) for one in contexts])
    return HiddenPositives(
        query[cases], cases, near, given, np.array(hidden, dtype=bool), known, 1.0 / np.bincount(query)[query]
    )


def likeliest_share(positives: HiddenPositives, threshold: float = -np.inf) -> float:
    """The share of probability that maximises the likelihood of the known positives, in [0, 1].

    A relevant document is the visible positive with probability 1 - u, drawn by the labels with u r, or uniformly with
    u (1 - r). The best u and r give the share u r / (1 - u + u r).

    threshold: only candidates at or above it count, and cases that have such.
    """
    from scipy.optimize import brentq

    case, cases = positives.case, len(positives.known)
    given = np.where(positives.similarity >= threshold, positives.given, 0.0)
    totals = np.bincount(case, given, cases)
    used = totals > 0
    each = positives.weights / positives.known  # of one positive of the case
    chosen = positives.hidden & used[case]
    if not chosen.any():
        return 0.0
    inside = each[case][chosen]
    by_labels = (given / np.where(used, totals, 1.0)[case])[chosen]
    by_chance = 1.0 / np.bincount(case, minlength=cases)[case][chosen]
    beyond = (positives.known - 1 - np.bincount(case, positives.hidden, cases)) * each
    lost = beyond[used].sum()
    visible, hidden = each[used].sum(), inside.sum() + lost

    def slope(r: float) -> float:
        """Derivative of the log-likelihood in r."""
        with np.errstate(divide="ignore"):
            of_inside = inside * (by_labels - by_chance) / (r * by_labels + (1 - r) * by_chance)
            return float(of_inside.sum() - lost / (1 - r))

    last = 1.0 - 1e-9
    r = 0.0 if slope(0.0) <= 0 else last if slope(last) >= 0 else brentq(slope, 0.0, last)
    return float(r * hidden / (visible + r * hidden))


def even_threshold(hidden: HiddenPositives) -> float | None:
    """The lowest similarity at which isotonic regression gives relevance a probability of 1/2 or more.

    None if there is none, or if fewer than `QUERIES` queries have a candidate there.
    """
    from scipy.optimize import isotonic_regression

    values, inverse = np.unique(hidden.similarity, return_inverse=True)
    weight = hidden.weights[hidden.case]
    weights = np.bincount(inverse, weight)
    share = np.bincount(inverse, weight * hidden.hidden) / weights
    likely = values[isotonic_regression(share, weights=weights).x >= EVEN] if len(values) else values
    enough = len(likely) and len(np.unique(hidden.query[hidden.similarity >= likely[0]])) >= QUERIES
    return float(likely[0]) if enough else None


SHARES = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6)  # that are compared
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003)  # of the map's squared norm; of each share the best is taken
FOLDS = 5
STEPS = 30  # of a fit
SURE = 1.645  # standard errors below a mean that a normal variable exceeds 95 times in 100


@dataclass(frozen=True, eq=False)
class Listwise:
    """C queries with N candidates each, to which a map is fitted.

    queries: (C, d) float32; documents: (C, N, d) float32, 0 at padding; real: (C, N) bool; hard: (C, N) float64, hard
    targets; others: (C, N) float64, the method's targets of other candidates, rows sum to 1 or 0.
    """

    queries: np.ndarray
    documents: np.ndarray
    real: np.ndarray
    hard: np.ndarray
    others: np.ndarray

    def targets(self, share: float) -> np.ndarray:
        """(C, N): hard targets with a share moved to the others, if there are any."""
        given = share * (self.others.sum(axis=1, keepdims=True) > 0)
        return (1.0 - given) * self.hard + given * self.others

    def of(self, chosen: np.ndarray) -> Listwise:
        return Listwise(*(values[chosen] for values in vars(self).values()))

    def products(self, flat: np.ndarray) -> np.ndarray:
        """(C, N) float64: inner products of candidates and queries that a map changes to q + W q, -inf at padding.

        flat: W, (d * d,).
        """
        d = self.queries.shape[1]
        mapped = self.queries + self.queries @ flat.reshape(d, d).astype(np.float32).T
        products = np.matmul(self.documents, mapped[:, :, None])[:, :, 0].astype(np.float64)
        return np.where(self.real, products, -np.inf)


def cross_entropy(wanted: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(C, N): terms of the cross-entropy of targets and the softmax of scores, 0 at padding."""
    from scipy.special import log_softmax

    return -np.multiply(wanted, log_softmax(scores, axis=1), out=np.zeros(wanted.shape), where=wanted > 0)


def held_out_losses(queries: Listwise) -> np.ndarray:
    """(S, C) float64: cross-entropy of hard targets, by maps fitted without the query's fold, with each share's best
    penalty; the search stops at the first penalty that is worse.
    """
    folds = np.arange(len(queries.queries)) % FOLDS
    with one_blas_thread():
        scale, rows = _scale(queries), []
        splits = [(folds == fold, queries.of(folds != fold), queries.of(folds == fold)) for fold in np.unique(folds)]
        for share in SHARES:
            maps = [np.zeros(queries.queries.shape[1] ** 2) for _ in splits]
            best = np.full(len(folds), np.inf)
            for penalty in PENALTIES:
                losses = np.empty(len(folds))
                for fold, (out, rest, held) in enumerate(splits):
                    maps[fold] = fitted(rest, rest.targets(share), maps[fold], penalty, scale)
                    losses[out] = cross_entropy(held.hard, scale * held.products(maps[fold])).sum(axis=1)
                if losses.mean() > best.mean():
                    break
                best = losses
            rows.append(best)
        return np.stack(rows)


def best_share(losses: np.ndarray) -> float:
    """The share with the highest one-sided 95% bound of its gain over the first, 0; 0 if no bound is positive.

    losses: (S, C), of each share and query.
    """
    gains = losses[0] - losses
    errors = gains.std(axis=1) / np.sqrt(max(gains.shape[1], 1))
    return SHARES[int(np.argmax(gains.mean(axis=1) - SURE * errors))]


def fitted(queries: Listwise, wanted: np.ndarray, start: np.ndarray, penalty: float, scale: float) -> np.ndarray:
    """(d * d,) float64: the map W of the lowest mean cross-entropy of q + W q, plus penalty |W|^2; wanted: targets."""
    from scipy.optimize import minimize
    from scipy.special import softmax

    count = len(queries.queries)

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scores = scale * queries.products(flat)
        rest = ((softmax(scores, axis=1) - wanted) * (scale / count))[:, None].astype(np.float32)
        gradient = np.matmul(rest, queries.documents)[:, 0].T @ queries.queries
        loss = cross_entropy(wanted, scores).sum() / count
        return loss + penalty * float(flat @ flat), gradient.astype(np.float64).ravel() + 2 * penalty * flat

    return minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x


def _scale(queries: Listwise) -> float:
    """The factor of inner products before the softmax that makes the positives likeliest."""
    from scipy.optimize import minimize_scalar

    products = queries.products(np.zeros(queries.queries.shape[1] ** 2))
    spread = np.where(queries.real, products, np.nan)
    unit = 1.0 / max(float(np.nanmean(np.nanstd(spread, axis=1))), 1e-12)
    done = minimize_scalar(
        lambda power: cross_entropy(queries.hard, unit * 10.0**power * products).sum(axis=1).mean(),
        bounds=(-1.0, 2.0),
        method="bounded",
    )
    return float(unit * 10.0**done.x)


MOST = 1000  # queries that a share is learnt from
DEPTH = 100  # candidates of each that it is learnt among by the loss, as far as the run has them
SEVERAL = 0.5  # of the queries must have several positives for their judgements to tell the share


@phase("learning the mass")
def learn_mass(labeler: Labeler, run: Run, validation: Judged) -> tuple[LabelParams, dict[str, Any]]:
    """The share of probability that leaves the positives, and with mass=confident the threshold, where not given.

    If half of the validation queries have several positives, the share is `likeliest_share`, else `best_share` of
    `held_out_losses`, which needs vectors. The threshold is `even_threshold`; unjudged candidates count as not
    relevant.

    Args:
        run: candidates of all these queries; validation: all known positives of validation queries.

    Returns:
        The labeler's parameters of labels with `share` and `threshold`, and how they were learnt: `by` "judgements" or
        "loss" of held-out positives, numbers of `queries` and of those with `several` positives, mean `losses`.

    Raises:
        InputError: no validation query with candidates, or a loss without vectors.
    """
    assert isinstance(labeler, VectorLabeler)
    given = labeler.label_params
    confident = given.mass == "confident"
    numbers = {qid: number for number, qid in enumerate(run.qids) if validation.get(qid)}
    qids = by_hash(numbers, "mass")[:MOST]  # whatever their order
    if not qids:
        raise InputError("no query with a positive has candidates in the run: no mass can be learnt; give their run")
    chosen, run = {qid: validation[qid] for qid in qids}, run.of_queries([numbers[qid] for qid in qids])
    several = sum(len(positives) > 1 for positives in chosen.values())
    about: dict[str, Any] = {"by": "judgements", "queries": len(qids), "several": several}
    threshold, share = given.threshold, given.share
    if confident or several >= SEVERAL * len(qids):
        cases = hidden_positives(labeler, run, chosen)
        if confident and threshold is None and (threshold := even_threshold(cases)) is None:
            share = threshold = 0.0
        if share is None:
            share = likeliest_share(cases, -np.inf if threshold is None else threshold)
    elif "vectors" not in labeler.reads:
        raise InputError("mass=share: with one positive a query it is learnt by vectors; expected from=vectors")
    else:
        values = held_out_losses(listwise(labeler, run, chosen))
        share, means = best_share(values), values.mean(axis=1).round(6).tolist()
        about |= {"by": "loss", "losses": {f"{one:g}": mean for one, mean in zip(SHARES, means, strict=True)}}
    above = f", to candidates of similarity {threshold:.3f} and more" if share and threshold else ""
    of_queries = f"{about['by']} of {len(qids)} queries, {several} with several positives"
    say(f"mass learnt by {of_queries}: share {share:.3f}{above}")
    return dataclasses.replace(given, share=share, threshold=threshold), about


def listwise(labeler: VectorLabeler, run: Run, judged: Judged) -> Listwise:
    """The queries of `held_out_losses`: first candidates, hard targets, and labels of the other candidates."""
    vectors, size = labeler.inputs.vectors, labeler.params.context
    labelled, wider = (contexts_of(run, judged, most, vectors)[0] for most in (size, max(size, DEPTH)))
    shape = len(wider), max((one.size for one in wider), default=1)
    documents = np.zeros((*shape, vectors.dimension), dtype=np.float32)
    real, hard, others = np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape)
    for number, one in enumerate(wider):
        vectors.fetch(one.rows, documents[number, : one.size])
        real[number, : one.size] = True
        hard[number, : len(one.grades)] = targets.of_grades(one.grades)
    for number, _, own in proportions(labeler, labelled):
        others[number, : len(own)] = own
    asked = np.array([labeler.of_query[one.qid] for one in wider], dtype=np.float32)
    return Listwise(asked, documents, real, hard, others)
