"""Jaccard similarity over plain nearest neighbours: an engine in which no neighbour need be reciprocal."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rnn.engines.numpy import score_contexts

if TYPE_CHECKING:
    from rnnreranker.rnn.engines.setting import EngineSetting


def plain_sets(order: np.ndarray, m: int, setting: EngineSetting) -> np.ndarray:
    """(m, m) bool: row i = the members of list(i), extended when the setting says so."""
    members, columns = _mask(order), setting.columns[m]
    if columns < 0:
        return members
    short = _mask(order[:, :columns]).astype(np.float32)
    shared, sizes = members.astype(np.float32) @ short.T, short.sum(axis=1)  # small integers, exact
    enough = 3 * shared > 2 * sizes if setting.authors else 3 * shared >= 2 * sizes
    return members | ((enough & members).astype(np.float32) @ short > 0)


def _mask(order: np.ndarray) -> np.ndarray:
    listed = np.zeros((len(order), len(order)), dtype=bool)
    listed[np.arange(len(order))[:, None], order] = True
    return listed


with_plain_neighbours = functools.partial(score_contexts, sets=plain_sets)  # an engine, see `chunks.Engine`
