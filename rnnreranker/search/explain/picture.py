"""The neighbourhood as a drawing: the query in the centre, candidates around it, the nearer the higher their new rank.

A candidate's distance from the centre is its new rank, its direction comes from its company: candidates with similar
neighbours stand side by side. An arrow along the ray leads from where the old rank would put it. A candidate that is a
probe, as the run's first is, has links of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnnreranker.search.explain.neighbourhood import Candidate, Neighbourhood

QUERY_WIDTHS = (1.5, 9.0)  # pixels of the query's thinnest and thickest link
PROBE_WIDTHS = (1.2, 6.0)  # of a candidate that is a probe
WIDTHS = (0.6, 4.0)  # of the links among candidates
INNER = 5.0  # node radii from the centre to the first rank
RINGS = (1, 5, 10, 20, 40, 60, 80)  # ranks that are marked
ROUNDS = 300  # of pushing apart nodes that overlap

Arrow = tuple[float, float, float, float]  # from (x, y) to (x, y)


@dataclass(frozen=True)
class Node:
    """A candidate at (x, y) pixels from the centre; `direction` is up, down or same.

    name: written below the node; empty for all but the first. arrow: None where it stayed or the arrow would lie inside
    the node.
    """

    candidate: Candidate
    x: float
    y: float
    direction: str
    name: str
    arrow: Arrow | None

    @property
    def move(self) -> str:
        return move_label(self.candidate.moved)


@dataclass(frozen=True)
class Link:
    """A line between two elements: `path` in SVG, `width` in pixels.

    kind: "query" and "near" lead from a probe, the query or a candidate, to a member of its set, which it may belong to
    only by the extension (extended); "between" joins others.
    """

    first: int
    second: int
    path: str
    width: float
    weight: float
    kind: str
    extended: bool = False


@dataclass(frozen=True)
class Picture:
    """A square drawing of `size` pixels around the query at (0, 0); rings: ranks with the radius of their circle."""

    name: str
    size: int
    node_radius: float
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    rings: tuple[tuple[int, float], ...]


def move_label(moved: int) -> str:
    """A move in ranks, in a form that needs no colour.

    >>> move_label(3), move_label(-2), move_label(0)
    ('▲3', '▼2', '=')
    """
    return f"▲{moved}" if moved > 0 else f"▼{-moved}" if moved < 0 else "="


def picture(
    neighbourhood: Neighbourhood, name: str, *, size: int, node_radius: float, limit: int, named: int, name_length: int
) -> Picture:
    """The drawing of the first candidates of a neighbourhood.

    Args:
        neighbourhood: the neighbourhood.
        name: tells the drawings of a page apart.
        size: width and height in pixels.
        node_radius: of a candidate, in pixels.
        limit: candidates drawn, by their new rank.
        named: how many of them have their docid written beneath.
        name_length: characters of a docid that are written.
    """
    drawn = neighbourhood.candidates[:limit]
    lowest = max(max(candidate.after for candidate in drawn), 2)
    inner, outer = node_radius * INNER, size / 2 - node_radius - 12

    def radius(rank: int) -> float:
        part = min(max((rank - 1) / (lowest - 1), 0.0), 1.0)  # those from further out start at the rim
        return math.sqrt(inner**2 + part * (outer**2 - inner**2))  # every rank has the same area

    radii = np.array([radius(candidate.after) for candidate in drawn])
    gaps = np.where(np.arange(len(drawn)) < named, 4.6, 2.6) * node_radius
    angles = spread(directions(neighbourhood, [candidate.element for candidate in drawn]), radii, gaps)
    spots = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    nodes = []
    for index, (candidate, (x, y)) in enumerate(zip(drawn, spots.tolist(), strict=True)):
        name_below = shortened(candidate.docid, name_length) if index < named else ""
        way = "up" if candidate.moved > 0 else "down" if candidate.moved < 0 else "same"
        arrow = _arrow(float(radii[index]), radius(candidate.before), float(angles[index]), node_radius)
        nodes.append(Node(candidate, round(x, 1), round(y, 1), way, name_below, arrow))
    spot_of = {node.candidate.element: (node.x, node.y) for node in nodes}
    rings = tuple((rank, round(radius(rank), 1)) for rank in RINGS if rank <= lowest)
    return Picture(name, size, node_radius, tuple(nodes), _links(neighbourhood, spot_of), rings)


def directions(neighbourhood: Neighbourhood, elements: list[int]) -> np.ndarray:
    """(n,) float64: an angle for each element, similar for those whose expanded weights are similar.

    The angle in the plane of the second and third eigenvectors of the elements' cosine similarities, as ranks on a full
    circle, so that no direction stays empty.
    """
    rows = neighbourhood.steps.expanded[elements]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    alike = rows @ rows.T
    alike = alike - alike.mean(axis=0) - alike.mean(axis=1)[:, None] + alike.mean()
    vectors = np.linalg.eigh(alike)[1][:, ::-1][:, :2]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])])
    plane = np.pad(vectors * signs, ((0, 0), (0, 2 - vectors.shape[1])))
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    order = np.argsort(angles, kind="stable")
    result = np.empty(len(elements))
    result[order] = np.arange(len(elements)) * 2 * math.pi / len(elements)
    return result


def spread(angles: np.ndarray, radii: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """(n,) float64: the angles, turned a little at a time until nodes at these radii no longer overlap, if they can.

    gaps: (n,) pixels that a node wants between its centre and that of another.
    """
    angles = angles.copy()
    wanted = np.maximum(gaps[:, None], gaps)
    np.fill_diagonal(wanted, 0)
    for _ in range(ROUNDS):
        x, y = radii * np.cos(angles), radii * np.sin(angles)
        lacking = np.maximum(wanted - np.hypot(x[:, None] - x, y[:, None] - y), 0)
        if not lacking.any():
            break
        turn = np.angle(np.exp(1j * (angles[:, None] - angles)))  # in (-pi, pi], the way from the other to this one
        side = np.where(turn == 0, np.sign(np.arange(len(angles))[:, None] - np.arange(len(angles))), np.sign(turn))
        angles = angles + 0.3 * (lacking * side).sum(axis=1) / radii
    return angles


def shortened(text: str, length: int) -> str:
    """The text, or its first characters and an ellipsis, `length` characters at most."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _arrow(at: float, was: float, angle: float, node_radius: float) -> Arrow | None:
    """From where the old rank would put a node to its edge; None where it would lie inside the node."""
    if abs(was - at) <= node_radius + 6:
        return None
    tip = at + math.copysign(node_radius + 2, was - at)
    cosine, sine = math.cos(angle), math.sin(angle)
    return round(was * cosine, 1), round(was * sine, 1), round(tip * cosine, 1), round(tip * sine, 1)


def _links(neighbourhood: Neighbourhood, spot_of: dict[int, tuple[float, float]]) -> tuple[Link, ...]:
    """Links among the drawn elements; those of the probes last, the query's at the end, so that they lie on top."""
    spot_of = {0: (0.0, 0.0), **spot_of}
    own: dict[int, list[Link]] = {}
    taken: set[frozenset[int]] = set()
    for probe in (one for one in neighbourhood.probes if one in spot_of):
        links_of = _own_links(neighbourhood, spot_of, probe)
        own[probe] = [link for link in links_of if frozenset((link.first, link.second)) not in taken]
        taken |= {frozenset((link.first, link.second)) for link in links_of}
    pairs = [(i, j, w) for i, j, w in neighbourhood.links() if i in spot_of and j in spot_of and {i, j} not in taken]
    largest = max((abs(weight) for _, _, weight in pairs), default=0.0)
    links = [
        Link(i, j, _curve(spot_of[i], spot_of[j]), _width(weight, largest, WIDTHS), weight, "between")
        for i, j, weight in pairs
    ]
    return (*links, *(link for probe in reversed(neighbourhood.probes) for link in own.get(probe, ())))


def _own_links(neighbourhood: Neighbourhood, spot_of: dict[int, tuple[float, float]], probe: int) -> list[Link]:
    """The links of a probe to the members of its set; of a candidate, none to the query, which may have its own."""
    weights = {
        element: float(neighbourhood.steps.weights[probe, element])
        for element in sorted(neighbourhood.steps.sets[probe])
    }
    weights = {element: w for element, w in weights.items() if element in spot_of and element not in (0, probe)}
    largest = max(map(abs, weights.values()), default=0.0)
    kind, widths = ("near", PROBE_WIDTHS) if probe else ("query", QUERY_WIDTHS)
    return [
        Link(
            probe,
            element,
            _curve(spot_of[probe], spot_of[element]) if probe else "M0 0L{} {}".format(*spot_of[element]),
            _width(weight, largest, widths),
            weight,
            kind,
            element not in neighbourhood.reciprocal[probe],
        )
        for element, weight in weights.items()
    ]


def _width(weight: float, largest: float, limits: tuple[float, float]) -> float:
    part = abs(weight) / largest if largest else 0.0
    return round(limits[0] + part * (limits[1] - limits[0]), 2)


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line bent a little towards the centre, so that those among neighbours on a ring can be told apart."""
    x, y = (start[0] + end[0]) * 0.42, (start[1] + end[1]) * 0.42
    return f"M{start[0]} {start[1]}Q{x:.1f} {y:.1f} {end[0]} {end[1]}"
