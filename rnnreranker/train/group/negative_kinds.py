"""Where the negatives of a group come from: the run, the collection at random, both, or the other groups of a batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint

Kind = Literal["run", "random", "mixed", "in-batch"]
AT_RANDOM = ("random", "mixed")  # kinds that read the names of all documents


def shares(kind: Kind, size: int, rng: np.random.Generator) -> tuple[int, int]:
    """How many negatives of a group come from the run and from the collection; of mixed, the odd one by a draw.

    >>> [shares(kind, 3, np.random.default_rng(0)) for kind in ("run", "random", "mixed", "in-batch")]
    [(2, 0), (0, 2), (1, 1), (0, 0)]
    """
    wanted = 0 if kind == "in-batch" else size - 1
    if kind == "mixed":
        half = wanted // 2 + (int(rng.integers(2)) if wanted % 2 else 0)
        return half, wanted - half
    return (0, wanted) if kind == "random" else (wanted, 0)


def sampled(qid: str, known: Collection[str], collection: Sequence[str], count: int, seed: int) -> list[str]:
    """Documents drawn for a query from a whole collection, none of its positives among them.

    Args:
        qid: the query; known: its positives.
        collection: docids, ascending, so that the draw does not depend on how documents stand in a file.
        count: documents wanted; there are fewer where the collection has no more.
        seed: of the draw, which depends on the query besides.
    """
    rng = np.random.default_rng([seed, int(fingerprint("random negatives", qid)[:15], 16)])
    wanted = min(count + len(known), len(collection))
    drawn = rng.choice(len(collection), wanted, replace=False).tolist()
    return [docid for number in drawn if (docid := collection[number]) not in known][:count]


def check_collection(kind: Kind, size: int, collection: Sequence[str]) -> None:
    """Nothing, where a collection has documents for a group.

    Raises:
        InputError: fewer than a positive and its random negatives.
    """
    if kind in AT_RANDOM and len(collection) < size:
        raise InputError(
            f"negatives_from={kind}: {len(collection)} documents in the collection, groups have {size}; give "
            f"{argument('index')} or {argument('documents')} with all documents, or a lower group_size"
        )
