"""A diagnosis as rows of text, for the terminal and the page."""

from __future__ import annotations

from typing import Any

from rnnreranker.tables import print_table

TERMS = {
    "rank": "term: rank in the run",
    "run": "term: score in the run",
    "query": "term: similarity",
    "jaccard": "term: J with the query",
    "first": "term: J with the first",
    "nearest": "term: the nearest's scores",
}


def print_report(found: dict[str, Any]) -> None:
    """Print the table of measurements, then the verdict, on stdout."""
    print_table(("measured", "value", "meaning"), rows(found))
    print()
    print(f"verdict: {advice(found)}")
    for reason in found["verdict"]["reasons"]:
        print(f"- {reason}")


def advice(found: dict[str, Any]) -> str:
    """The word of the verdict, and the scale to use where it is another than the one that was judged.

    >>> advice({"verdict": {"word": "risky", "scale": "minmax"}, "params": {"scale": "none"}})
    'risky; use --scale minmax'
    >>> advice({"verdict": {"word": "risky", "scale": "minmax"}, "params": {"scale": "minmax"}})
    'risky'
    """
    word, scale = found["verdict"]["word"], found["verdict"]["scale"]
    return str(word) if found["params"]["scale"] == scale else f"{word}; use --scale {scale}"


def rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The measurements: name, value, what it means."""
    sets, hubs, flat, scale = found["sets"], found["hubness"], found["anisotropy"], found["scale"]
    hub, overlap = hubs["largest_hub"], found["overlap"]
    made = [
        ("query's set", _quartiles(sets["query"]), "reciprocal neighbours of the query: quartiles"),
        ("query's set <= 1", _part(sets["query"]["share_at_most_one"]), "queries with at most one such neighbour"),
        ("candidates' sets", _quartiles(sets["candidates"]), "the same of each candidate: quartiles"),
        ("candidates' sets <= 1", _part(sets["candidates"]["share_at_most_one"]), "candidates with at most one"),
        ("Jaccard 0", _part(sets["jaccard_zero"]), "candidates that share nothing with the query"),
        ("cohesion", _number(sets["cohesion"]), "how much more than chance neighbours' neighbours are neighbours"),
        ("hub skewness", _quartiles(hubs["skewness"]), "of how often an element is listed: quartiles over queries"),
        ("largest hub", _part(hub["share_of_lists"]), f"of its context's lists hold {hub['docid']}"),
        ("mean cosine", _number(flat["mean_cosine"]), "of candidates of different queries; 0 = isotropic"),
        ("mean vector", _number(flat["mean_vector"]), "its norm beside the mean norm; 0 = isotropic"),
        ("similarities", f"{scale['lowest']:.3f} to {scale['highest']:.3f}", "lowest and highest in any context"),
        ("range", _quartiles(scale["spread"], 3), "highest less lowest of a context: quartiles over queries"),
        ("range of the query", _number(scale["query_spread"]), "of its similarities to a context's candidates, mean"),
        ("range / level", _number(scale["spread_to_level"]), "mean range beside the mean level"),
        ("norms", "{:.3f} to {:.3f}".format(*scale["norms"]), "unit" if scale["unit_norm"] else "not unit"),
        ("largest exponent", _number(scale["largest_exponent"]), "of --weight exp; safe to 80"),
        ("negative weights", _part(scale["negative_weights"]), "of set members"),
        ("J in the spread", _part(scale["jaccard_share"]), "of the score; the rest is known without neighbours"),
        *(
            (name, f"{_part(term['spread'])} / {_number(term['top_10'])} / {_number(term['agreement'])}", meaning)
            for name, term, meaning in ((TERMS[one], term, _meaning(term)) for one, term in found["terms"].items())
        ),
        ("order agrees", _number(found["order"]["agreement"]), "RBO of the run's order and the vectors'"),
    ]
    if found["order"]["only_order"]:
        made.append(("run's scores", "none", f"that tell more than the order: {found['order']['only_order']}"))
    if (words := found.get("impacts")) is not None:  # an index without them, and earlier diagnoses, have none
        made += [
            ("words of a query", _number(words["query_words"]), "of the impacts' vocabulary, mean"),
            ("words of a document", _number(words["document_words"]), "the same of all documents"),
            (
                "FLOPS",
                _number(words["flops"]),
                "products of a query and a document: Σ p(query has t) p(document has t)",
            ),
        ]
    for one in found.get("token_search") or ():
        what = f"--nprobe {one['nprobe']}: of the 100 best by MaxSim, found / documents compared"
        made.append(("search of tokens", f"{_part(one['recall'])} / {_part(one['candidates'])}", what))
    if (graph := found.get("graph")) is not None:
        made += _graph(graph)
    if overlap is not None:
        made += [
            ("RBO", _quartiles(overlap["rbo"], 3), f"before and after, p = {overlap['p']}: quartiles over queries"),
            ("top 1 changed", _part(overlap["top_1_changed"]), "of the queries"),
            ("top 10 changed", _part(overlap["top_10_changed"]), "of the queries, in its membership"),
            ("displacement", _number(overlap["mean_displacement"]), "places, mean over the context"),
        ]
    return made


def _graph(graph: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The rows of an index with a graph of its collection."""
    k, cap, both = graph["k"], graph["cap"], f"{_part(graph['kept'])} / {_part(graph['found'])}"
    made = [
        ("pairs in the graph", _part(graph["pairs"]), "of a context's candidates; one is a neighbour of the other"),
        ("lists in the graph", _part(graph["nearest"]), "of the pairs of a candidate and its nearest candidates"),
        ("reciprocal in both", both, "of pairs reciprocal among candidates / in the collection"),
        ("in-degree", _quartiles(graph["in_degree"]), f"documents that have one among their {k} nearest: quartiles"),
        ("hubs of the graph", _hubs(graph), "skewness of the in-degree / documents nobody names / most named"),
    ]
    if (mutual := graph["mutual"]) is not None:
        made.append(("by mutual proximity", _hubs(mutual), f"the same, with each document's {k} nearest chosen by it"))
    made.append(("in-degree cut", _part(cap["edges"]), f"of the edges are beyond an in-degree of {cap['at']}"))
    return made


def _hubs(graph: dict[str, Any]) -> str:
    largest = graph["largest"]
    return f"{_number(graph['skewness'])} / {_part(graph['nobody'])} / {largest['named']} ({largest['docid']})"


def _meaning(term: dict[str, Any]) -> str:
    return f"weight {term['weight']:.3g}; of the spread / documents it brings into the first 10 / RBO with the score"


def _quartiles(spread: dict[str, Any], digits: int = 1) -> str:
    return " / ".join(f"{spread[name]:.{digits}f}" for name in ("q1", "median", "q3"))


def _part(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f}%"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
