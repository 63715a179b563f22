"""The verdict: is reranking likely to help, with which scale, and why; and the report of a diagnosis.

`limit` of docs/source/page_data/learnt_limit.py gives `LIKELY` for the runs on record; docs/forecasts.md says how often
it is right on other collections. The other limits come from five collections and one encoder.
"""

from __future__ import annotations

from typing import Any

from rnnreranker.lab.shared import print_report
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.reference import EXPONENT_LIMIT

HELPS, MAY, LITTLE, RISKY = "likely helps", "may help", "little effect", "risky"
NONE = "no verdict"  # of vectors that do not belong together

# The largest agreement of run and vectors on record at or below which nine runs in ten gained with the default.
LIKELY = 0.6358
HELD_OUT = "14 of 16"  # runs at or below the limit of the other collections that gained; the pages check it
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
    params, scale, overlap = RnnParams(**measured["params"]), measured["scale"], measured["overlap"]
    order, cohesion, share = measured["order"], measured["sets"]["cohesion"], scale["jaccard_share"] or 0.0
    agreement, same = order["agreement"], overlap["rbo"]["mean"] if overlap else 0.0
    counts_run = params.scale == "minmax" and bool(params.rank_weight or params.run_weight)
    risks = {
        f"the exponential weight would overflow: its largest exponent is {scale['largest_exponent']:g}, expected at "
        f"most {EXPONENT_LIMIT:g}; the reranker refuses these parameters": params.weight == "exp"
        and not scale["exp_safe"],
        f"{share:.0%} of the score comes from neighbours (limit {NEIGHBOURS:.0%}): the similarities to the query "
        "hardly count any more": share > NEIGHBOURS,
        f"{scale['negative_weights']:.1%} of the neighbours have negative weights (limit {NEGATIVE:.0%}): what two "
        "candidates have in common can then not be measured": scale["negative_weights"] > NEGATIVE,
        f"the run and the vectors rank differently (agreement {agreement:.3f}, limit {AGREEMENT}), and the run's ranks "
        "and scores are dropped: this gains where the encoder ranks better than the run and loses where it does "
        "not": agreement < AGREEMENT and not counts_run,
    }
    little = {
        f"candidates form no groups: {cohesion:.3f} (limit {COHESION}, chance 0), so what neighbours move they move by "
        "accident: expect little gain": cohesion < COHESION,
        f"before and after are all but the same: agreement {same:.3f} (limit {SAME})": same > SAME,
    }
    norms = "unit" if scale["unit_norm"] else "other than unit"
    now = "as it is set" if params.scale == "minmax" else f"in place of {params.scale}"
    of_scale = (
        f"scale minmax, {now}: vectors have {norms} length, similarities to a query span {scale['query_spread']:.3g}, "
        "and what neighbours say spans 1: minmax makes both alike"
    )
    for word, reasons in ((RISKY, risks), (LITTLE, little)):
        if holding := [reason for reason, holds in reasons.items() if holds]:
            return {"word": word, "scale": "minmax", "reasons": [*holding, of_scale]}
    helping = [
        f"the run and the vectors rank differently (agreement {agreement:.3f}, limit {LIKELY:.3f}), so that each knows "
        f"what the other does not: on collections left out {HELD_OUT} runs at or below such a limit gained"
        if agreement <= LIKELY
        else f"the vectors rank much as the run does (agreement {agreement:.3f}, limit {LIKELY:.3f}): of such runs on "
        "record some gained and some did not; judge a few topics and compare",
        f"candidates form groups: {cohesion:.3f} (limit {COHESION}, chance 0)",
        f"neighbours correct the score and do not replace it: {share:.0%} of it comes from them (limit "
        f"{NEIGHBOURS:.0%})",
    ]
    if counts_run:
        only, counts = order["only_order"], "its ranks and scores count"
        known, what = (["rank"], f"its ranks count ({only})") if only else (["rank", "run"], counts)
        part = sum(term["weight"] for name, term in measured["terms"].items() if name in known)
        helping.append(f"what the run knew is kept: {what}, {part:.0%} of the weight is theirs")
    return {"word": HELPS if agreement <= LIKELY else MAY, "scale": "minmax", "reasons": [*helping, of_scale]}


def print_diagnosis(measured: dict[str, Any]) -> None:
    """Print the measurements, then the verdict, on stdout; another scale if it advises one."""
    print_report("diagnosis", **measured)
    judged = verdict(measured)
    advice = "" if measured["params"]["scale"] == judged["scale"] else f"; use --scale {judged['scale']}"
    print(f"\nverdict: {judged['word']}{advice}")
    for reason in judged["reasons"]:
        print(f"- {reason}")
