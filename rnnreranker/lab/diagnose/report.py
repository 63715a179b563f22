"""A diagnosis as rows of text, and as an HTML page with histograms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.base.tables import print_table
from rnnreranker.lab.diagnose.verdict import verdict

WIDTH, HEIGHT = 240, 80  # of a histogram, in units of its drawing
TERMS = {
    "rank": "what decides: rank in the run",
    "run": "what decides: score in the run",
    "query": "what decides: similarity to the query",
    "jaccard": "what decides: neighbours shared with the query",
    "first": "what decides: neighbours shared with the first",
    "nearest": "what decides: scores of the nearest",
}


def print_report(measured: dict[str, Any]) -> None:
    """Print the measurements, then the verdict, on stdout."""
    print_table(("measured", "value", "meaning"), rows(measured))
    print()
    judged = verdict(measured)
    print(f"verdict: {advice(judged, measured['params']['scale'])}")
    for reason in judged["reasons"]:
        print(f"- {reason}")


def advice(judged: dict[str, Any], scale: str) -> str:
    """The word of a verdict, and another scale if it advises one.

    >>> advice({"word": "risky", "scale": "minmax"}, "none")
    'risky; use --scale minmax'
    >>> advice({"word": "risky", "scale": "minmax"}, "minmax")
    'risky'
    """
    word = str(judged["word"])
    return word if scale == judged["scale"] else f"{word}; use --scale {judged['scale']}"


def rows(measured: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each measurement; docs/tables/diagnose.html explains them under the same names."""
    sets, hubs, flat, scale = measured["sets"], measured["hubness"], measured["anisotropy"], measured["scale"]
    hub, overlap = hubs["largest_hub"], measured["overlap"]
    made = [
        ("neighbours of the query", _quartiles(sets["query"]), "candidates; each is near the other: quartiles"),
        ("queries with 0 or 1", _part(sets["query"]["share_at_most_one"]), "such neighbours"),
        ("neighbours of a candidate", _quartiles(sets["candidates"]), "the same of every candidate: quartiles"),
        ("candidates with 0 or 1", _part(sets["candidates"]["share_at_most_one"]), "such neighbours"),
        ("nothing in common", _part(sets["jaccard_zero"]), "candidates that share no neighbour with the query"),
        ("how grouped the candidates are", _number(sets["cohesion"]), "0 = no more than by chance"),
        ("how uneven neighbours are", _quartiles(hubs["skewness"]), "few are near many: quartiles; 0 = evenly spread"),
        (
            "most frequent neighbour",
            _part(hub["share_of_lists"]),
            f"of its query's candidates have {hub['docid']} near",
        ),
        ("similarity across queries", _number(flat["mean_cosine"]), "mean cosine of their candidates; 0 = none"),
        ("common direction", _number(flat["mean_vector"]), "of all vectors: 0 = none, 1 = all point one way"),
        ("similarities", f"{scale['lowest']:.3f} to {scale['highest']:.3f}", "lowest and highest of any query"),
        ("spread of similarities", _quartiles(scale["spread"], 3), "highest less lowest of a query: quartiles"),
        ("spread to the query", _number(scale["query_spread"]), "the same of similarities to the query, mean"),
        ("spread beside the mean", _number(scale["spread_to_level"]), "spread divided by the mean similarity"),
        ("length of vectors", "{:.3f} to {:.3f}".format(*scale["norms"]), "unit" if scale["unit_norm"] else "not unit"),
        ("largest exponent", _number(scale["largest_exponent"]), "of --weight exp; refused above 80"),
        ("negative weights", _part(scale["negative_weights"]), "of neighbours; 0 expected"),
        ("share of the score from neighbours", _part(scale["jaccard_share"]), "the rest is known without them"),
        *(
            (name, f"{_part(term['spread'])} / {_number(term['top_10'])} / {_number(term['agreement'])}", meaning)
            for name, term, meaning in ((TERMS[one], term, _meaning(term)) for one, term in measured["terms"].items())
        ),
        (
            "agreement of run and vectors",
            _number(measured["order"]["agreement"]),
            "1 = both rank alike, 0 = not at all",
        ),
    ]
    if measured["order"]["only_order"]:
        made.append(("run's scores", "none", f"that tell more than the order: {measured['order']['only_order']}"))
    if (words := measured.get("impacts")) is not None:  # an index without them, and earlier diagnoses, have none
        made += [
            ("words of a query", _number(words["query_words"]), "of the impacts' vocabulary, mean"),
            ("words of a document", _number(words["document_words"]), "the same of all documents"),
            ("words in common (FLOPS)", _number(words["flops"]), "of a query and any document, expected"),
        ]
    for one in measured.get("token_search") or ():
        what = f"--nprobe {one['nprobe']}: the 100 best by MaxSim that it has / documents compared"
        made.append(("search by nearest tokens", f"{_part(one['recall'])} / {_part(one['candidates'])}", what))
    if (graph := measured.get("graph")) is not None:
        made += _graph(graph)
    if overlap is not None:
        made += [
            ("agreement before and after", _quartiles(overlap["rbo"], 3), "1 = nothing moves: quartiles over queries"),
            ("first document changes", _part(overlap["top_1_changed"]), "of the queries"),
            ("first ten change", _part(overlap["top_10_changed"]), "of the queries, in which documents they are"),
            ("ranks that a candidate moves", _number(overlap["mean_displacement"]), "mean"),
        ]
    return made


def _graph(graph: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Rows for an index with a graph of its collection."""
    k, cap, both = graph["k"], graph["cap"], f"{_part(graph['kept'])} / {_part(graph['found'])}"
    largest = graph["largest"]
    most = f"{_number(graph['skewness'])} / {_part(graph['nobody'])} / {largest['named']} ({largest['docid']})"
    named = f"documents that have one among their {k} nearest: quartiles"
    return [
        ("pairs that the graph has", _part(graph["pairs"]), "of the candidates of a query"),
        ("near pairs that the graph has", _part(graph["nearest"]), "of a candidate and those near it"),
        ("mutual in both", both, "of the mutual pairs among candidates / in the collection"),
        ("named by others", _quartiles(graph["in_degree"]), named),
        ("most named document", most, "how uneven / documents nobody names / times named"),
        ("named above the cap", _part(cap["edges"]), f"of the pairs in the graph, with a cap of {cap['at']}"),
    ]


def _meaning(term: dict[str, Any]) -> str:
    return (
        f"weight {term['weight']:.3g}: of the score / documents it brings into the first 10 / agreement with the score"
    )


def _quartiles(spread: dict[str, Any], digits: int = 1) -> str:
    return " / ".join(f"{spread[name]:.{digits}f}" for name in ("q1", "median", "q3"))


def _part(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f}%"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def write_diagnosis(path: Path, measured: dict[str, Any]) -> None:
    """Write the page of a diagnosis."""
    shown = [
        ("Neighbours of the query", "per query", measured["sets"]["query"]),
        ("Neighbours of a candidate", "per candidate", measured["sets"]["candidates"]),
        ("How uneven neighbours are", "per query", measured["hubness"]["skewness"]),
        ("Spread of similarities", "per query", measured["scale"]["spread"]),
    ]
    if measured["overlap"] is not None:
        shown.append(("Agreement before and after", "per query", measured["overlap"]["rbo"]))
    if (graph := measured.get("graph")) is not None:
        shown.append(("Named by others", "documents of the graph", graph["in_degree"]))
    histograms = [(name, what, spread, bars(spread)) for name, what, spread in shown]
    said: dict[str, Any] = {"verdict": verdict(measured), "rows": rows(measured), "params": measured["params"]}
    said |= {"measured": measured, "histograms": histograms, "width": WIDTH, "height": HEIGHT}
    write_page(path, render("lab.diagnose", "page.html.j2", **said))


def bars(spread: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns of a histogram: x, y, width, height (the highest has the whole height) and label."""
    counts, edges = spread["counts"], spread["edges"]
    width, highest = WIDTH / len(counts), max(counts)
    return [
        {
            **{"x": round(column * width, 2), "width": round(width - 1, 2)},
            **{"y": round(HEIGHT * (1 - count / highest), 2), "height": round(HEIGHT * count / highest, 2)},
            "label": f"{edges[column]:g} to {edges[column + 1]:g}: {count}",
        }
        for column, count in enumerate(counts)
    ]
