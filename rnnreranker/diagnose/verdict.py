"""The measurements in plain words: does reranking likely help, which scale, and why.

The limits were set looking at five collections and one encoder (docs/diagnose.md has the figures), so how well the
words fit those collections says nothing about others. Each limit has a reason besides.
"""

from __future__ import annotations

from typing import Any

from rnnreranker.rnn import RnnParams, mixing
from rnnreranker.rnn.reference import EXPONENT_LIMIT

HELPS, LITTLE, RISKY = "likely helps", "little effect", "risky"

# Of the score's spread more than half comes from J, which is coarse: the order is no longer that of the similarities
# corrected, but that of J. Measured: 0.27 to 0.35 with the default on dense candidates, 0.74 to 0.82 as published.
JACCARD_SHARE = 0.5
# The run's order and that of the vectors differ: where neither rank nor score of the run has a weight, reranking drops
# what they told. Measured: 1 on dense candidates, 0.64 and below on BM25 and hybrid ones.
AGREEMENT = 0.9
# More than one in a hundred members of sets has a negative weight: J is then no overlap and can leave [0, 1].
NEGATIVE = 0.01
# Neighbours of an element are hardly more often neighbours than chance has it: J has no groups to find. Isotropic noise
# gives 0.01 in 384 dimensions and 0.09 in 32 (0.24 in 8, where directions are few), collections 0.26 and above.
COHESION = 0.15
# The orders before and after are all but the same.
SAME = 0.98


def verdict(measured: dict[str, Any], params: RnnParams) -> dict[str, Any]:
    """The word, the scale to use, and a line for each reason.

    measured: the parts `sets`, `scale`, `order` and `overlap` of a diagnosis. Returns word: "likely helps", "little
    effect" or "risky" (any ground for risk outweighs the rest); scale: "minmax"; reasons: the grounds, one line each.
    """
    risks, little = _risks(measured, params), _little(measured)
    word = RISKY if risks else LITTLE if little else HELPS
    reasons = risks or little or _helps(measured, params)
    return {"word": word, "scale": "minmax", "reasons": [*reasons, *_scale(measured, params)]}


def _risks(measured: dict[str, Any], params: RnnParams) -> list[str]:
    scale, order = measured["scale"], measured["order"]
    reasons = []
    if params.weight == "exp" and not scale["exp_safe"]:
        reasons.append(
            f"the exponential weight would overflow: its largest exponent is {scale['largest_exponent']:g}, expected "
            f"at most {EXPONENT_LIMIT:g}; the reranker refuses these parameters"
        )
    share = scale["jaccard_share"]
    if share is not None and share > JACCARD_SHARE:
        reasons.append(
            f"J makes {share:.0%} of the score's spread (limit {JACCARD_SHARE:.0%}): the query's similarities hardly "
            "count any more"
        )
    if scale["negative_weights"] > NEGATIVE:
        reasons.append(
            f"{scale['negative_weights']:.1%} of the set members have negative weights (limit {NEGATIVE:.0%}): J is "
            "then no overlap"
        )
    if order["agreement"] < AGREEMENT and not _counts_run(params):
        reasons.append(
            f"the run's order is not that of the vectors (RBO {order['agreement']:.2f}, limit {AGREEMENT}): its scores "
            "are dropped, so this gains where the encoder ranks better than the run and loses where it does not"
        )
    return reasons


def _little(measured: dict[str, Any]) -> list[str]:
    cohesion, overlap = measured["sets"]["cohesion"], measured["overlap"]
    reasons = []
    if cohesion < COHESION:
        reasons.append(
            f"candidates form no groups: cohesion {cohesion:.2f} (limit {COHESION}, chance 0), so what J moves it "
            "moves by accident: expect little gain"
        )
    if overlap is not None and overlap["rbo"]["mean"] > SAME:
        reasons.append(f"before and after are all but the same: RBO {overlap['rbo']['mean']:.3f} (limit {SAME})")
    return reasons


def _counts_run(params: RnnParams) -> bool:
    """Whether what the run says of its candidates has a weight in the score."""
    return params.scale == "minmax" and bool(params.rank_weight or params.run_weight)


def _helps(measured: dict[str, Any], params: RnnParams) -> list[str]:
    share, cohesion = measured["scale"]["jaccard_share"], measured["sets"]["cohesion"]
    return [
        f"candidates form groups: cohesion {cohesion:.2f} (limit {COHESION}, chance 0)",
        f"J corrects the similarities and does not replace them: {share:.0%} of the score's spread "
        f"(limit {JACCARD_SHARE:.0%})",
        _order(measured["order"], params),
    ]


def _order(order: dict[str, Any], params: RnnParams) -> str:
    agreement = f"RBO {order['agreement']:.2f}"
    if order["agreement"] >= AGREEMENT:
        return f"the run's order is that of the vectors ({agreement}, limit {AGREEMENT})"
    weights = mixing.weights(params)
    part = params.lam * (weights[0] + (0 if order["only_order"] else weights[1]))
    what = f"its ranks count ({order['only_order']})" if order["only_order"] else "its ranks and scores count"
    return f"the run's order is not that of the vectors ({agreement}), but {what}: {part:.0%} of the weight is theirs"


def _scale(measured: dict[str, Any], params: RnnParams) -> list[str]:
    scale = measured["scale"]
    norms = "unit" if scale["unit_norm"] else "other than unit"
    now = "as it is set" if params.scale == "minmax" else f"in place of {params.scale}"
    return [
        f"scale minmax, {now}: norms are {norms}, raw similarities of a query span {scale['query_spread']:.3g} beside "
        "the 0 to 1 of J, and minmax makes both alike"
    ]
