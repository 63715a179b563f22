"""Published training pairs, as MS MARCO's triples: a query, a relevant document and another."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.base.process.phases import phase
from rnnreranker.data import irds
from rnnreranker.data.names import is_file
from rnnreranker.runs import Run
from rnnreranker.runs.columns import columns_of


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
    number_of: dict[str, int] = {}
    others: dict[str, array[int]] = {}
    for qid, docid in progress(_pairs(name), unit="pair", what="pairs"):
        number = number_of.setdefault(docid, len(number_of))
        others.setdefault(qid, array("i")).append(number)  # four bytes a pair: there are 400 million
    if not others:
        raise InputError(f"{name}: no pairs; expected lines qid<TAB>docid<TAB>docid")
    rows = [np.fromiter(dict.fromkeys(numbers), dtype=np.int32)[:depth] for numbers in others.values()]
    scores = np.concatenate([np.arange(len(one), 0, -1, dtype=np.float64) for one in rows])
    offsets = np.cumsum([0, *map(len, rows)])
    return Run(tuple(others), offsets, np.array(list(number_of), dtype=object), np.concatenate(rows), scores)


def _pairs(name: str) -> Iterator[tuple[str, str]]:
    """Query and other document of each pair."""
    if is_file(name, "pairs"):
        for number, line in read_lines(path := Path(name).expanduser(), "file of pairs"):
            columns = columns_of(line, where := f"{path}:{number}")
            if len(columns) != 3:
                raise InputError(f"{where}: {len(columns)} columns; expected qid<TAB>docid<TAB>docid")
            yield columns[0], columns[2]
        return
    for pair in irds.items(name, "docpairs"):
        yield pair.query_id, pair.doc_id_b
