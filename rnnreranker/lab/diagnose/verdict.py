"""The verdict: is reranking likely to help, with which scale, and why; and the report of a diagnosis.

`limit` of docs/source/page_data/learnt_limit.py gives `LIKELY` for the runs on record; docs/forecasts.md says how often
it is right on other collections. The other limits come from five collections and one encoder.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any

from rnnreranker.base.tables import print_table
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
        "what the other does not: of the runs on record at or below the limit at least nine in ten gained"
        if agreement <= LIKELY
        else f"the vectors rank much as the run does (agreement {agreement:.3f}, limit {LIKELY:.3f}): of such runs on "
        "record some gained and some did not; judge a few topics and compare",
        f"candidates form groups: {cohesion:.3f} (limit {COHESION}, chance 0)",
        f"neighbours correct the score and do not replace it: {share:.0%} of it comes from them (limit "
        f"{NEIGHBOURS:.0%})",
    ]
    if counts_run:
        weights, what = mixture.weights(params), f"its ranks count ({order['only_order']})"
        part = params.lam * (weights[0] + (0 if order["only_order"] else weights[1]))
        what = what if order["only_order"] else "its ranks and scores count"
        helping.append(f"what the run knew is kept: {what}, {part:.0%} of the weight is theirs")
    return {"word": HELPS if agreement <= LIKELY else MAY, "scale": "minmax", "reasons": [*helping, of_scale]}


TERMS = {
    "rank": "rank in the run",
    "run": "score in the run",
    "query": "similarity to the query",
    "jaccard": "neighbours shared with the query",
    "first": "neighbours shared with the first",
    "nearest": "scores of the nearest",
}
ROWS = (  # name, value and meaning; left out if the first group of measurements of the value is None
    ("neighbours of the query", "{sets[query]:.1f}", "candidates; each is near the other: quartiles"),
    ("queries with 0 or 1", "{sets[query][share_at_most_one]:.1%}", "such neighbours"),
    ("neighbours of a candidate", "{sets[candidates]:.1f}", "the same of every candidate: quartiles"),
    ("candidates with 0 or 1", "{sets[candidates][share_at_most_one]:.1%}", "such neighbours"),
    ("nothing in common", "{sets[jaccard_zero]:.1%}", "candidates that share no neighbour with the query"),
    ("how grouped the candidates are", "{sets[cohesion]:.3f}", "0 = no more than by chance"),
    ("how uneven neighbours are", "{hubness[skewness]:.1f}", "few are near many: quartiles; 0 = evenly spread"),
    (
        "most frequent neighbour",
        "{hubness[largest_hub][share_of_lists]:.1%}",
        "of its query's candidates have {hubness[largest_hub][docid]} near",
    ),
    ("similarity across queries", "{anisotropy[mean_cosine]:.3f}", "mean cosine of their candidates; 0 = none"),
    ("common direction", "{anisotropy[mean_vector]:.3f}", "of all vectors: 0 = none, 1 = all point one way"),
    ("similarities", "{scale[lowest]:.3f} to {scale[highest]:.3f}", "lowest and highest of any query"),
    ("spread of similarities", "{scale[spread]:.3f}", "highest less lowest of a query: quartiles"),
    ("spread to the query", "{scale[query_spread]:.3f}", "the same of similarities to the query, mean"),
    ("spread beside the mean", "{scale[spread_to_level]:.3f}", "spread divided by the mean similarity"),
    ("length of vectors", "{scale[norms][0]:.3f} to {scale[norms][1]:.3f}", "{length}"),
    ("largest exponent", "{scale[largest_exponent]:.3f}", "of --weight exp; refused above 80"),
    ("negative weights", "{scale[negative_weights]:.1%}", "of neighbours; 0 expected"),
    ("share of the score from neighbours", "{scale[jaccard_share]:.1%}", "the rest is known without them"),
    ("agreement of run and vectors", "{order[agreement]:.3f}", "1 = both rank alike, 0 = not at all"),
    ("run's scores", "{useless:}", "that tell more than the order: {order[only_order]}"),
    ("words of a query", "{impacts[query_words]:.3f}", "of the impacts' vocabulary, mean"),
    ("words of a document", "{impacts[document_words]:.3f}", "the same of all documents"),
    ("words in common (FLOPS)", "{impacts[flops]:.3f}", "of a query and any document, expected"),
    ("pairs that the graph has", "{graph[pairs]:.1%}", "of the candidates of a query"),
    ("near pairs that the graph has", "{graph[nearest]:.1%}", "of a candidate and those near it"),
    (
        "mutual in both",
        "{graph[kept]:.1%} / {graph[found]:.1%}",
        "of the mutual pairs among candidates / in the collection",
    ),
    (
        "named by others",
        "{graph[in_degree]:.1f}",
        "documents that have one among their {graph[k]} nearest: quartiles",
    ),
    (
        "most named document",
        "{graph[skewness]:.3f} / {graph[nobody]:.1%} / {graph[largest][named]} ({graph[largest][docid]})",
        "how uneven / documents nobody names / times named",
    ),
    ("named above the cap", "{graph[cap][edges]:.1%}", "of the pairs in the graph, with a cap of {graph[cap][at]}"),
    ("agreement before and after", "{overlap[rbo]:.3f}", "1 = nothing moves: quartiles over queries"),
    ("first document changes", "{overlap[top_1_changed]:.1%}", "of the queries"),
    ("first ten change", "{overlap[top_10_changed]:.1%}", "of the queries, in which documents they are"),
    ("ranks that a candidate moves", "{overlap[mean_displacement]:.3f}", "mean"),
)
OF_TERM = (
    "what decides: {name}",
    "{spread:.1%} / {top_10:.3f} / {agreement:.3f}",
    "weight {weight:.3g}: of the score / documents it brings into the first 10 / agreement with the score",
)
OF_TOKENS = (
    "search by nearest tokens",
    "{recall:.1%} / {candidates:.1%}",
    "--nprobe {nprobe}: the 100 best by MaxSim that it has / documents compared",
)


class _Cell(string.Formatter):
    """Formats a distribution as its quartiles and None as "-"."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, dict):
            return " / ".join(format(value[name], format_spec) for name in ("q1", "median", "q3"))
        return "-" if value is None else format(value, format_spec)


def rows(measured: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Name, value and meaning of each measurement; docs/tables/diagnose.html explains them under the same names."""
    more = {"length": "unit" if measured["scale"]["unit_norm"] else "not unit"}
    several: list[tuple[tuple[tuple[str, ...], ...], dict[str, Any]]] = [
        (ROWS, measured | more | {"useless": measured["order"]["only_order"] and "none"})
    ]
    several += [((OF_TERM,), term | {"name": TERMS[name]}) for name, term in measured["terms"].items()]
    several += [((OF_TOKENS,), one) for one in measured.get("token_search") or ()]
    for table, values in several:
        for row in table:
            group = row[1][1:].partition("}")[0].partition("[")[0].partition(":")[0]
            if table is not ROWS or values.get(group) is not None:
                yield tuple(_Cell().vformat(cell, (), values) for cell in row)


def print_report(measured: dict[str, Any]) -> None:
    """Print the measurements, then the verdict, on stdout; another scale if it advises one."""
    print_table(("measured", "value", "meaning"), rows(measured))
    judged = verdict(measured)
    advice = "" if measured["params"]["scale"] == judged["scale"] else f"; use --scale {judged['scale']}"
    print(f"\nverdict: {judged['word']}{advice}")
    for reason in judged["reasons"]:
        print(f"- {reason}")
