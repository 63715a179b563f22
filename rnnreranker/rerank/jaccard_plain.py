"""Jaccard similarity over plain nearest neighbours: rNN without the demand that neighbours be reciprocal."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rerank.rnn import RnnReranker

if TYPE_CHECKING:
    from rnnreranker.rnn.engine_setting import EngineSetting


class PlainJaccardReranker(RnnReranker):
    """As `RnnReranker` in every step and parameter but one: R(i) is list(i) itself.

    The extension (tau > 0) takes the first columns of a member's list as its T, not the reciprocal ones among them.
    What the difference to rnn shows is therefore what reciprocity is worth.

    Args and Raises: as `Reranker`; params: the rNN parameters.
    """

    name = "jaccard-plain"
    takes_device = False

    def _similar(
        self, queries: np.ndarray, candidates: np.ndarray, base: np.ndarray | None, lengths: np.ndarray
    ) -> np.ndarray:
        """(B, N) float32: s* over plain neighbours."""
        from rnnreranker.rnn.fallback import score_contexts
        from rnnreranker.rnn.similarity import similarity_by

        run = functools.partial(score_contexts, sets=_sets)
        return similarity_by(run, queries, candidates, self.params, base, lengths, self.threads)


def _sets(order: np.ndarray, m: int, setting: EngineSetting) -> np.ndarray:
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
