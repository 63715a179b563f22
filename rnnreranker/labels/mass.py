"""The share of probability that leaves the positives, learnt from judgements of validation queries.

It maximises the likelihood of positives hidden in turn, or minimises the loss on held-out positives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.phases import phase
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.labels import targets
from rnnreranker.labels.judged import Judged, contexts_of
from rnnreranker.labels.methods.base import Labeler, VectorLabeler
from rnnreranker.labels.params import LabelParams

if TYPE_CHECKING:
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


def hidden_positives(labeler: VectorLabeler, run: Run, judged: Judged) -> HiddenPositives:
    """Each positive of each query in turn, alone with grade 1, before the run's candidates; errors as `infer_from`."""
    labeler.check(run, judged)
    alone = {qid: [(docid, 1) for docid, _ in pairs] for qid, pairs in judged.items()}
    contexts, _ = contexts_of(run, alone, labeler.params.context, labeler.source_of_rows, apart=True)
    numbers = {qid: number for number, qid in enumerate(dict.fromkeys(one.qid for one in contexts))}
    positives = {qid: {docid for docid, _ in judged[qid]} for qid in numbers}
    near, given = ([np.zeros(0)] * len(contexts) for _ in range(2))
    for index, similarities, _ in labeler.compared(contexts):
        own = labeler.own_targets(contexts[index].grades, similarities)[1][1:].astype(np.float64)
        near[index], given[index] = labeler.to_positives(similarities)[1:], own / (own.sum() or 1.0)
    hidden = [docid in positives[one.qid] for one in contexts for docid in one.docids[1 : one.size]]
    cases = np.repeat(np.arange(len(contexts)), [len(one) for one in near])
    query = np.array([numbers[one.qid] for one in contexts], dtype=np.int64)
    known = np.array([len(positives[one.qid]) for one in contexts])
    weights = 1.0 / np.bincount(query, minlength=len(numbers))[query]
    near_all, given_all = (np.concatenate([np.zeros(0), *one]) for one in (near, given))
    return HiddenPositives(query[cases], cases, near_all, given_all, np.array(hidden, dtype=bool), known, weights)


def likeliest_share(positives: HiddenPositives, threshold: float = -np.inf) -> float:
    """The share of probability that maximises the likelihood of the known positives, in [0, 1].

    A relevant document is the visible positive with probability 1 - u, drawn by the labels with u r, or uniformly with
    u (1 - r). The best u and r give the share u r / (1 - u + u r).

    threshold: only candidates at or above it count, and cases that have such.
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
        """Derivative of the log-likelihood in r."""
        with np.errstate(divide="ignore"):
            return float(
                (inside * (by_labels - by_chance) / (r * by_labels + (1 - r) * by_chance)).sum() - lost / (1 - r)
            )

    from scipy.optimize import brentq

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
    likely = len(values) and isotonic_regression(share, weights=weights).x >= EVEN
    if not np.any(likely):
        return None
    threshold = float(values[int(np.argmax(likely))])
    enough = len(np.unique(hidden.query[hidden.similarity >= threshold])) >= QUERIES
    return threshold if enough else None


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

    def __len__(self) -> int:
        return len(self.queries)

    def targets(self, share: float) -> np.ndarray:
        """(C, N): hard targets with a share moved to the others, if there are any."""
        given = share * (self.others.sum(axis=1, keepdims=True) > 0)
        return (1.0 - given) * self.hard + given * self.others

    def of(self, chosen: np.ndarray) -> Listwise:
        return Listwise(*(values[chosen] for values in vars(self).values()))


def held_out_losses(queries: Listwise, folds: np.ndarray, shares: Sequence[float] = SHARES) -> np.ndarray:
    """(S, C) float64: cross-entropy of hard targets, by maps fitted without the query's fold, with each share's best
    penalty.

    folds: (C,) from 0.
    """
    with one_blas_thread():
        scale = _scale(queries)
        parts = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]
        splits = [(queries.of(rest), queries.of(out), out) for rest, out in parts]
        return np.stack([_best_penalty(splits, len(queries), share, scale) for share in shares])


def best_share(losses: np.ndarray, shares: Sequence[float] = SHARES) -> float:
    """The share with the highest one-sided 95% bound of its gain over the first, 0; 0 if no bound is positive.

    losses: (S, C), of each share and query.
    """
    gains = losses[0] - losses
    errors = gains.std(axis=1) / np.sqrt(max(gains.shape[1], 1))
    return shares[int(np.argmax(gains.mean(axis=1) - SURE * errors))]


def _best_penalty(
    splits: Sequence[tuple[Listwise, Listwise, np.ndarray]], count: int, share: float, scale: float
) -> np.ndarray:
    """(C,): losses with the best penalty; the search stops at the first penalty that is worse."""
    d = splits[0][0].queries.shape[1]
    maps = [np.zeros(d * d) for _ in splits]
    best = np.full(count, np.inf)
    for penalty in PENALTIES:
        losses = np.empty(count)
        for fold, (rest, out, rows) in enumerate(splits):
            maps[fold] = fitted(rest, rest.targets(share), maps[fold], penalty, scale)
            losses[rows] = _losses(_products(out, maps[fold]), out, scale)
        if losses.mean() > best.mean():
            break
        best = losses
    return best


def fitted(queries: Listwise, targets: np.ndarray, start: np.ndarray, penalty: float, scale: float) -> np.ndarray:
    """(d * d,) float64: the map W of the lowest mean cross-entropy of q + W q, plus penalty |W|^2."""
    from scipy.optimize import minimize

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        logs = _log_shares(scale * _products(queries, flat), queries.real)
        shares = np.where(queries.real, np.exp(logs), 0.0)
        rest = ((shares - targets) * (scale / len(queries)))[:, None].astype(np.float32)
        gradient = np.matmul(rest, queries.documents)[:, 0].T @ queries.queries
        loss = -(targets * logs).sum() / len(queries)
        return loss + penalty * float(flat @ flat), gradient.astype(np.float64).ravel() + 2 * penalty * flat

    return minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x


def _products(queries: Listwise, flat: np.ndarray) -> np.ndarray:
    """(C, N) float64: inner products of mapped queries and candidates."""
    d = queries.queries.shape[1]
    mapped = queries.queries + queries.queries @ flat.reshape(d, d).astype(np.float32).T
    return np.matmul(queries.documents, mapped[:, :, None])[:, :, 0].astype(np.float64)


def _log_shares(scores: np.ndarray, real: np.ndarray) -> np.ndarray:
    """(C, N): log softmax over the real candidates, 0 at padding."""
    from scipy.special import log_softmax

    return np.where(real, log_softmax(np.where(real, scores, -np.inf), axis=1), 0.0)


def _losses(products: np.ndarray, queries: Listwise, scale: float) -> np.ndarray:
    return -(queries.hard * _log_shares(scale * products, queries.real)).sum(axis=1)


def _scale(queries: Listwise) -> float:
    """The factor of inner products before the softmax that makes the positives likeliest."""
    from scipy.optimize import minimize_scalar

    products = _products(queries, np.zeros(queries.queries.shape[1] ** 2))
    spread = np.where(queries.real, products, np.nan)
    unit = 1.0 / max(float(np.nanmean(np.nanstd(spread, axis=1))), 1e-12)
    done = minimize_scalar(
        lambda power: _losses(products, queries, unit * 10.0**power).mean(), bounds=(-1.0, 2.0), method="bounded"
    )
    return float(unit * 10.0**done.x)


MOST = 1000  # queries that a share is learnt from
DEPTH = 100  # candidates of each that it is learnt among by the loss, as far as the run has them
SEVERAL = 0.5  # of the queries must have several positives for their judgements to tell the share


@dataclass(frozen=True)
class LearntMass:
    """A learnt mass.

    Attributes:
        params: of the labels, with `share` and `threshold`.
        by: "judgements" or "loss", of held-out positives; losses: share → mean loss.
        queries: number of validation queries; several: those with several positives.
    """

    params: LabelParams
    by: str
    queries: int
    several: int
    losses: dict[float, float]

    def to_dict(self) -> dict[str, Any]:
        losses = {f"{share:g}": round(loss, 6) for share, loss in self.losses.items()}
        about = {"by": self.by, "queries": self.queries, "several": self.several}
        return about | ({"losses": losses} if losses else {})

    def __str__(self) -> str:
        share, threshold = self.params.share or 0.0, self.params.threshold
        above = f", to candidates of similarity {threshold:.3f} and more" if share and threshold else ""
        about = f"{self.queries} queries, {self.several} with several positives"
        return f"mass learnt by {self.by} of {about}: share {share:.3f}{above}" + ("" if share else ", labels are hard")


@phase("learning the mass")
def learn_mass(labeler: Labeler, mass: str, run: Run, validation: Judged) -> LearntMass:
    """The share of probability that leaves the positives, and with "confident" the threshold of similarity.

    If half of the validation queries have several positives, the share is `likeliest_share`, else `best_share` of
    `held_out_losses`. The threshold is `even_threshold`; unjudged candidates count as not relevant.

    Args:
        mass: "share" or "confident".
        run: candidates of all these queries; validation: all known positives of validation queries.

    Raises:
        InputError: no validation query with candidates, or a loss without vectors.
    """
    if not isinstance(labeler, VectorLabeler):
        raise InputError(f"mass={mass}: takes rNN similarities, which the method {labeler.name} has not; expected own")
    numbers = {qid: number for number, qid in enumerate(run.qids) if validation.get(qid)}
    qids = sorted(numbers, key=lambda qid: (fingerprint("mass", qid), qid))[:MOST]  # whatever their order
    chosen = {qid: validation[qid] for qid in qids}
    if not chosen:
        raise InputError("no query with a positive has candidates in the run: no mass can be learnt; give their run")
    run = run.of_queries([numbers[qid] for qid in qids])
    several = sum(len(pairs) > 1 for pairs in chosen.values())
    queries, threshold, losses = len(chosen), None, dict[float, float]()
    if mass == "confident" or several >= SEVERAL * queries:
        by, cases = "judgements", hidden_positives(labeler, run, chosen)
        if mass == "confident":
            threshold = even_threshold(cases)
        share = likeliest_share(cases, -np.inf if threshold is None else threshold)
        if mass == "confident" and threshold is None:
            share = threshold = 0.0
    elif labeler.inputs.has("vectors") and labeler.inputs.has("query vectors"):
        by, learner = "loss", listwise(labeler, run, chosen)
        values = held_out_losses(learner, np.arange(queries) % FOLDS)
        share, losses = best_share(values), dict(zip(SHARES, values.mean(axis=1).tolist(), strict=True))
    else:
        raise InputError(
            f"{several} of {queries} queries have several positives: the mass is learnt by the loss on held-out "
            "positives, which needs vectors of queries and documents; give them, several positives, or a share"
        )
    learnt: dict[str, Any] = {"mass": mass, "share": share, "threshold": threshold}
    return LearntMass(dataclasses.replace(labeler.label_params, **learnt), by, queries, several, losses)


def listwise(labeler: VectorLabeler, run: Run, judged: Judged) -> Listwise:
    """The queries of `held_out_losses`: first candidates, hard targets, and labels of the other candidates."""
    labeler.check(run, judged)
    vectors, queries = labeler.inputs.vectors, labeler.inputs.query_vectors
    labelled, _ = contexts_of(run, judged, labeler.params.context, labeler.source_of_rows)
    wider, _ = contexts_of(run, judged, max(labeler.params.context, DEPTH), labeler.source_of_rows)
    shape = len(wider), max((one.size for one in wider), default=1)
    documents = np.zeros((*shape, vectors.dimension), dtype=np.float32)
    real, hard, others = np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape)
    for index, one in enumerate(wider):
        vectors.fetch(one.rows, documents[index, : one.size])
        real[index, : one.size] = True
        hard[index, : len(one.grades)] = targets.of_grades(one.grades)
    for index, similarities, _ in labeler.compared(labelled):
        grades = labelled[index].grades
        given = labeler.own_targets(grades, similarities)[1]
        others[index, len(grades) : len(given)] = given[len(grades) :]
    totals = others.sum(axis=1, keepdims=True)
    asked = queries.of([one.qid for one in wider]).vectors.astype(np.float32)
    return Listwise(asked, documents, real, hard, others / np.where(totals > 0, totals, 1.0))
