"""How much of the exact late-interaction run a search by nearest tokens finds, by the number of lists it looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.parts.tokens.neighbours import TokenNeighbours
from rnnreranker.parts.tokens.queries import query_tokens

if TYPE_CHECKING:
    from rnnreranker.parts.tokens.source import TokenSource

HITS, DEPTH, MOST = 100, 1024, 256  # first documents that are looked for, nearest tokens, lists at most


def token_search(
    source: TokenSource, topics: Mapping[str, str], threads: int | None = None
) -> list[dict[str, int | float]]:
    """For nprobe 1, 2, 4 and so on: `recall`, the share of the first 100 documents by MaxSim that the search finds.

    Means over the queries that find any; beside it `candidates`, the documents whose MaxSim is computed, as a share of
    all that have tokens. The last nprobe is that of all lists, or 256.

    Args:
        source: the tokens, with a Faiss index beside them; topics: at least one query, its id to its text.
        threads: None = one per core; results do not depend on it.

    Raises:
        InputError, UnavailableError: as `query_tokens`, and an index of other tokens.
    """
    neighbours, asked = TokenNeighbours(source), query_tokens(source, topics, threads)
    wanted = source.search(asked.vectors, asked.offsets, HITS, threads)[1]
    queries = [number for number, rows in enumerate(wanted) if len(rows)]
    filled = int((np.diff(source.offsets) > 0).sum())
    rows: list[dict[str, Any]] = []
    for nprobe in _steps(neighbours.lists):
        recalls, shares = [], []
        for number in queries:
            own = asked.vectors[asked.offsets[number] : asked.offsets[number + 1]]
            candidates = neighbours.documents_of(neighbours.nearest(own, DEPTH, nprobe))
            recalls.append(np.isin(wanted[number], candidates).mean())
            shares.append(len(candidates) / filled)
        recall, share = (round(float(np.mean(values)), 4) if values else 0.0 for values in (recalls, shares))
        rows.append({"nprobe": nprobe, "recall": recall, "candidates": share})
    return rows


def _steps(lists: int) -> list[int]:
    most = min(lists, MOST)
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
