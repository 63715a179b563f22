"""Where moves are written: at the corner of a node where they cover no other node, arrow or move, if it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIZE = 11.5  # pixels of a move's letters
SIGN, DIGIT = 9.0, 7.5  # pixels that a triangle and a digit of it take
CORNERS = ((1, -1), (-1, -1), (1, 1), (-1, 1))  # right or left, below or above; the first that is free
POINTS = 12  # of an arrow that are kept clear

Box = tuple[float, float, float, float]  # left, top, right, bottom
Arrow = tuple[float, float, float, float]  # from (x, y) to (x, y)


@dataclass(frozen=True)
class Badge:
    """A move beside its node: the baseline's beginning, or its end where `right` is not set, pixels from the centre."""

    x: float
    y: float
    right: bool


def badges(
    labels: Sequence[str], spots: np.ndarray, rims: Sequence[float], arrows: Sequence[Arrow | None], centre: float
) -> tuple[list[Badge | None], list[Box]]:
    """The badge of every node, None where the label is empty, and the boxes that they fill, from the centre.

    Args:
        labels: of n nodes.
        spots: (n, 2) their centres.
        rims: their outermost radii.
        arrows: that lead to them.
        centre: the radius of the query's disc around (0, 0).
    """
    circles = np.vstack([np.column_stack([spots, np.asarray(rims)]), [[0.0, 0.0, centre]]])
    steps = np.linspace(0, 1, POINTS)[:, None]
    drawn = [np.array(arrow[:2]) + steps * (np.array(arrow[2:]) - arrow[:2]) for arrow in arrows if arrow is not None]
    ink = np.vstack([np.zeros((0, 2)), *drawn])
    made: list[Badge | None] = []
    taken: list[Box] = []
    for own, label in enumerate(labels):
        if not label:
            made.append(None)
            continue
        others = np.delete(circles, own, axis=0)
        corners = [_corner(label, spots[own], rims[own], right, down) for right, down in CORNERS]
        best = min(corners, key=lambda corner: _covered(corner[1], others, ink, taken))
        made.append(best[0])
        taken.append(best[1])
    return made, taken


def _corner(label: str, spot: np.ndarray, rim: float, right: int, down: int) -> tuple[Badge, Box]:
    away, wide = rim * 0.75, SIGN + DIGIT * (len(label) - 1)
    baseline = -away if down < 0 else away + SIZE * 0.75
    left, bottom = float(spot[0]) + (away if right > 0 else -away - wide), float(spot[1]) + baseline
    return Badge(right * away, baseline, right > 0), (left, bottom - SIZE * 0.8, left + wide, bottom + 1)


def _covered(box: Box, circles: np.ndarray, ink: np.ndarray, taken: Sequence[Box]) -> float:
    """How many pixels, roughly, of other nodes, of arrows and of other moves lie beneath a box."""
    left, top, right, bottom = box
    nearest = np.column_stack([np.clip(circles[:, 0], left, right), np.clip(circles[:, 1], top, bottom)])
    deep = np.maximum(circles[:, 2] + 1 - np.hypot(*(nearest - circles[:, :2]).T), 0)
    crossed = (ink[:, 0] > left - 2) & (ink[:, 0] < right + 2) & (ink[:, 1] > top - 2) & (ink[:, 1] < bottom + 2)
    shared = [
        max(min(right, other[2]) - max(left, other[0]) + 1, 0) * max(min(bottom, other[3]) - max(top, other[1]) + 1, 0)
        for other in taken
    ]
    return float((deep * SIZE).sum() + 4 * crossed.sum() + sum(shared))
