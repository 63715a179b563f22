"""The verdict: is reranking likely to help, with which scale, and why.

`limit` of docs/source/page_data/learnt_limit.py gives `LIKELY` for the runs on record; docs/forecasts.md says how often
it is right on other collections. The other limits come from five collections and one encoder.
"""

from __future__ import annotations

from typing import Any

from rnnreranker.rnn import RnnParams, mixture
from rnnreranker.rnn.reference import EXPONENT_LIMIT

HELPS, MAY, LITTLE, RISKY = "likely helps", "may help", "little effect", "risky"
NONE = "no verdict"  # of vectors that do not belong together

# The largest agreement of run and vectors on record at or below which nine runs in ten gained with the default.
LIKELY = 0.6358
# Of the score's spread more than half comes from the neighbours, which are coarse: the order is no longer that of what
# is known without them corrected, but theirs. Measured: 0.27 to 0.35 with the default on dense candidates, 0.74 to 0.82
# as published.
NEIGHBOURS = 0.5
# The run's order and that of the vectors differ: where neither rank nor score of the run has a weight, reranking drops
# what they said. Measured: 1 on dense candidates, 0.64 and below on BM25 and hybrid ones.
AGREEMENT = 0.9
# More than one in a hundred neighbours has a negative weight: the overlap J is then none and can leave [0, 1].
NEGATIVE = 0.01
# Neighbours of an element are hardly more often neighbours than chance has it: there are no groups to find. Isotropic
# noise gives 0.01 in 384 dimensions and 0.09 in 32 (0.24 in 8, where directions are few), collections 0.26 and above.
COHESION = 0.15
# The orders before and after are all but the same.
SAME = 0.98


def verdict(measured: dict[str, Any]) -> dict[str, Any]:
    """The word, the scale to use, and a line for each reason.

    measured: a diagnosis; `mismatch` if vectors do not belong together. Returns word: "likely helps", "may help",
    "little effect", "risky" (outweighs the rest) or "no verdict" (for a mismatch); scale: "minmax"; reasons.
    """
    if said := measured.get("mismatch"):
        return {"word": NONE, "scale": measured["params"]["scale"], "reasons": [said]}
    params = RnnParams(**measured["params"])
    risks, little = _risks(measured, params), _little(measured)
    word = RISKY if risks else LITTLE if little else HELPS if measured["order"]["agreement"] <= LIKELY else MAY
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
    if share is not None and share > NEIGHBOURS:
        reasons.append(
            f"{share:.0%} of the score comes from neighbours (limit {NEIGHBOURS:.0%}): the similarities to the query "
            "hardly count any more"
        )
    if scale["negative_weights"] > NEGATIVE:
        reasons.append(
            f"{scale['negative_weights']:.1%} of the neighbours have negative weights (limit {NEGATIVE:.0%}): what two "
            "candidates have in common can then not be measured"
        )
    if order["agreement"] < AGREEMENT and not _counts_run(params):
        reasons.append(
            f"the run and the vectors rank differently (agreement {order['agreement']:.3f}, limit {AGREEMENT}), and "
            "the run's ranks and scores are dropped: this gains where the encoder ranks better than the run and loses "
            "where it does not"
        )
    return reasons


def _little(measured: dict[str, Any]) -> list[str]:
    cohesion, overlap = measured["sets"]["cohesion"], measured["overlap"]
    reasons = []
    if cohesion < COHESION:
        reasons.append(
            f"candidates form no groups: {cohesion:.3f} (limit {COHESION}, chance 0), so what neighbours move they "
            "move by accident: expect little gain"
        )
    if overlap is not None and overlap["rbo"]["mean"] > SAME:
        reasons.append(f"before and after are all but the same: agreement {overlap['rbo']['mean']:.3f} (limit {SAME})")
    return reasons


def _counts_run(params: RnnParams) -> bool:
    """Whether rank or score of the run has a weight in the score."""
    return params.scale == "minmax" and bool(params.rank_weight or params.run_weight)


def _helps(measured: dict[str, Any], params: RnnParams) -> list[str]:
    share, cohesion = measured["scale"]["jaccard_share"], measured["sets"]["cohesion"]
    reasons = [
        _order(measured["order"]),
        f"candidates form groups: {cohesion:.3f} (limit {COHESION}, chance 0)",
        f"neighbours correct the score and do not replace it: {share:.0%} of it comes from them (limit "
        f"{NEIGHBOURS:.0%})",
    ]
    return [*reasons, _kept(measured["order"], params)] if _counts_run(params) else reasons


def _order(order: dict[str, Any]) -> str:
    agreement = f"agreement {order['agreement']:.3f}"
    if order["agreement"] <= LIKELY:
        return (
            f"the run and the vectors rank differently ({agreement}, limit {LIKELY:.3f}), so that each knows what the "
            "other does not: of the runs on record at or below the limit at least nine in ten gained"
        )
    return (
        f"the vectors rank much as the run does ({agreement}, limit {LIKELY:.3f}): of such runs on record some gained "
        "and some did not; judge a few topics and compare"
    )


def _kept(order: dict[str, Any], params: RnnParams) -> str:
    weights = mixture.weights(params)
    part = params.lam * (weights[0] + (0 if order["only_order"] else weights[1]))
    what = f"its ranks count ({order['only_order']})" if order["only_order"] else "its ranks and scores count"
    return f"what the run knew is kept: {what}, {part:.0%} of the weight is theirs"


def _scale(measured: dict[str, Any], params: RnnParams) -> list[str]:
    scale = measured["scale"]
    norms = "unit" if scale["unit_norm"] else "other than unit"
    now = "as it is set" if params.scale == "minmax" else f"in place of {params.scale}"
    return [
        f"scale minmax, {now}: vectors have {norms} length, similarities to a query span {scale['query_spread']:.3g}, "
        "and what neighbours say spans 1: minmax makes both alike"
    ]
