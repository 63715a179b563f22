"""Published training pairs, as MS MARCO's triples: a query, a relevant document and another."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import phase, progress
from rnnreranker.base.errors import InputError
from rnnreranker.data import irds
from rnnreranker.data.names import is_file
from rnnreranker.data.records import PAIRS, read_rows
from rnnreranker.runs import Run


@phase("reading pairs")
def load_pairs(name: str, depth: int) -> Run:
    """The other document of each pair as a candidate of its query, in the order of the pairs.

    Args:
        name: a file (`qid docid docid`, plain or .gz), or an ir_datasets id with docpairs, as
            `msmarco-passage/train/triples-v2`.
        depth: the most candidates of a query.

    Raises:
        InputError: an unknown name, a data set without pairs, a malformed line (with file:line), no pairs.
        UnavailableError: data that cannot be downloaded here.
    """
    numbers: dict[str, int] = {}
    others: dict[str, array[int]] = {}
    file = is_file(name, "pairs")
    pairs: Any = read_rows(Path(name).expanduser(), PAIRS) if file else irds.items(name, "docpairs")
    for qid, _, docid, *_ in progress(pairs, unit="pair", what="pairs"):
        number = numbers.setdefault(docid, len(numbers))
        others.setdefault(qid, array("i")).append(number)  # four bytes a pair: there are 400 million
    if not others:
        raise InputError(f"{name}: no pairs; expected lines qid<TAB>docid<TAB>docid")
    rows = [np.fromiter(dict.fromkeys(own), dtype=np.int32)[:depth] for own in others.values()]
    scores = np.concatenate([np.arange(len(one), 0, -1, dtype=np.float64) for one in rows])
    offsets = np.cumsum([0, *map(len, rows)])
    return Run(tuple(others), offsets, np.array(list(numbers), dtype=object), np.concatenate(rows), scores)
