"""The page that explains one query's reranking: one self-contained HTML file, and its picture.

The query is in the centre of the picture. A candidate's distance is its new rank, and its direction comes from its
neighbours: candidates with similar ones are side by side. An arrow starts at its old rank.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import say
from rnnreranker.base.pages import render, write_page
from rnnreranker.search.explain.neighbourhood import Candidate, Neighbourhood, ScorePart, taken_apart
from rnnreranker.search.inputs import texts_in
from rnnreranker.search.show import first_line

if TYPE_CHECKING:
    from rnnreranker.index.opening import Index
    from rnnreranker.methods.rerank.rnn import RnnReranker
    from rnnreranker.runs import Run

USUAL: dict[str, Any] = {"source": "", "useless": "", "grades": {}, "relevant_from": 1}  # of a page without judgements
SIZES = {  # of the picture, in a wide window and on a phone: pixels, those of a node's radius, nodes, of these named
    "wide": (1000, 15.0, 80, 12),
    "narrow": (380, 13.0, 14, 6),
}
RINGS = (1, 5, 10, 20, 40, 60, 80)  # ranks that are marked
ROUNDS = 300  # of pushing apart nodes that overlap
TITLES = {
    "rank": "rank in the run",
    "run": "score in the run",
    "geo": "similarity to the query",
    "lent": "mean score of the nearest candidates",
}


def explain(
    path: Path, index: Index, base: Run, reranked: Run, reranker: RnnReranker, *, qid: str, **shown: Any
) -> None:
    """Write the page of one query and print its path.

    index: has the texts of candidates; base, reranked, reranker, qid: as in `taken_apart`; shown: the other arguments
    of `explanation`.
    """
    explained, useless = taken_apart(base, reranked, reranker, qid)
    known, docids = texts_in(index), [candidate.docid for candidate in explained.candidates]
    texts = {docid: first_line(docid, known[docid]) for docid in docids if docid in known}
    write_page(path, explanation(explained, qid=qid, texts=texts, useless=useless, **shown))
    say(f"explanation of {qid}: {path}")


def explanation(neighbourhood: Neighbourhood, **shown: Any) -> str:
    """The HTML of the page.

    shown: qid, query; texts = a line of text by docid, may lack docids; source = of the candidates, for the head of the
    page; useless = why the scores of the run say nothing beyond its order, "" if they do; grades = docid → judged
    grade, relevant from `relevant_from` on.
    """
    widest = max(sum(map(abs, one.amounts)) for one in neighbourhood.candidates)
    made = {"candidates": neighbourhood.candidates, "title": title, "membership": membership}
    made |= {"pictures": [picture(neighbourhood, name) for name in SIZES], "widest": max(widest, 1e-12)}
    return render("search.explain", "page.html.j2", **{**USUAL, "found": neighbourhood, **made, **shown})


def drawing(neighbourhood: Neighbourhood, size: str, **shown: Any) -> str:
    """The picture alone, an <svg>; size: of `SIZES`; shown: query and texts, as in `explanation`."""
    own = {"picture": picture(neighbourhood, size), "found": neighbourhood}
    return render("search.explain", "drawing.html.j2", **USUAL, **own, **shown)


def picture(neighbourhood: Neighbourhood, name: str) -> dict[str, Any]:
    """The geometry of the picture for its template, the query at (0, 0); name: of `SIZES`.

    Returns:
        nodes with x, y, angle in degrees, and the radii of both ranks, `at` and `was`; links with their ends and the
            share
        of the largest weight of their kind; rings: ranks and radii.
    """
    size, node_radius, limit, named = SIZES[name]
    drawn = neighbourhood.candidates[:limit]
    lowest = max(2, *(candidate.after for candidate in drawn))
    inner, outer = 5 * node_radius, size / 2 - node_radius - 12

    def radius(rank: int) -> float:
        part = min(max((rank - 1) / (lowest - 1), 0.0), 1.0)  # those from further out start at the rim
        return math.sqrt(inner**2 + part * (outer**2 - inner**2))  # every rank has the same area

    radii = np.array([radius(candidate.after) for candidate in drawn])
    gaps = np.where(np.arange(len(drawn)) < named, 4.6, 2.6) * node_radius
    angles = spread(directions(neighbourhood, [candidate.element for candidate in drawn]), radii, gaps)
    nodes = [
        {"candidate": one, "x": at * math.cos(angle), "y": at * math.sin(angle), "angle": math.degrees(angle)}
        | {"at": at, "was": radius(one.before), "named": index < named}
        for index, (one, angle, at) in enumerate(zip(drawn, angles.tolist(), radii.tolist(), strict=True))
    ]
    spots: dict[int, Any] = {node["candidate"].element: node for node in nodes} | {0: {"x": 0.0, "y": 0.0}}
    links = [link for link in neighbourhood.links() if {link.first, link.second} <= set(spots)]
    largest: dict[int, float] = {}  # of the links of each probe, and of those between others
    owners = [-1 if link.kind == "between" else link.first for link in links]
    for owner, link in zip(owners, links, strict=True):
        largest[owner] = max(largest.get(owner, 0.0), abs(link.weight))
    return {
        **{"name": name, "size": size, "node_radius": node_radius, "nodes": nodes},
        "links": [
            {"of": link, "ends": (spots[link.first], spots[link.second])}
            | {"share": abs(link.weight) / (largest[owner] or 1.0)}
            for owner, link in zip(owners, links, strict=True)
        ],
        "rings": [(rank, radius(rank)) for rank in RINGS if rank <= lowest],
    }


def directions(neighbourhood: Neighbourhood, elements: list[int]) -> np.ndarray:
    """(n,) float64: an angle for each element; elements with similar expanded weights have similar angles.

    The order of angles in the plane of the first two principal components, evenly spaced on a full circle.
    """
    rows = neighbourhood.steps.expanded[elements]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, 1.0)
    plane = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[0][:, :2]
    plane = plane * np.sign(plane[np.abs(plane).argmax(axis=0), range(plane.shape[1])])
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    order = np.argsort(np.arctan2(plane[:, 1], plane[:, 0]), kind="stable")
    return np.argsort(order) * 2 * math.pi / len(elements)


def spread(angles: np.ndarray, radii: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """(n,) float64: the angles, turned in small steps until nodes at these radii no longer overlap, if possible.

    gaps: (n,) pixels between the centre of a node and that of another.
    """
    angles, numbers = angles.copy(), np.arange(len(angles))
    wanted = np.maximum(gaps[:, None], gaps)
    np.fill_diagonal(wanted, 0)
    for _ in range(ROUNDS):
        x, y = radii * np.cos(angles), radii * np.sin(angles)
        lacking = np.maximum(wanted - np.hypot(x[:, None] - x, y[:, None] - y), 0)
        if not lacking.any():
            break
        turn = np.angle(np.exp(1j * (angles[:, None] - angles)))  # in (-pi, pi], the way from the other to this one
        side = np.sign(np.where(turn == 0, numbers[:, None] - numbers, turn))
        angles = angles + 0.3 * (lacking * side).sum(axis=1) / radii
    return angles


def title(neighbourhood: Neighbourhood, part: ScorePart) -> str:
    probe = neighbourhood.of_element[part.probe].docid if part.probe else "the query"
    return TITLES.get(part.kind) or f"J with {probe}"


def membership(neighbourhood: Neighbourhood, candidate: Candidate) -> str:
    reasons, element = [], candidate.element
    for probe in neighbourhood.probes:
        whose = f"the set of {neighbourhood.of_element[probe].docid}" if probe else "the query's set"
        if probe == element:
            reasons.append("its own, as a probe: J with itself is 1")
        elif element in neighbourhood.reciprocal[probe]:
            reasons.append(f"{whose} as a reciprocal neighbour")
        elif element in neighbourhood.steps.sets[probe]:
            reasons.append(f"{whose} through the extension")
    return f"It is in {' and in '.join(reasons)}." if reasons else "It is in no set that counts."


def file_name(qid: str) -> str:
    """A file name for the page of a query that every file system takes.

    >>> file_name("q 1/../x"), file_name("31_1"), file_name("..")
    ('q_1_.._x.html', '31_1.html', 'query.html')
    """
    safe = re.sub(r"[^\w.-]+", "_", qid, flags=re.ASCII).lstrip("._-")[:100]
    return f"{safe or 'query'}.html"
