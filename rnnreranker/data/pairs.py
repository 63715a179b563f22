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
from rnnreranker.runs.columns import check_id


@phase("reading pairs")
def load_pairs(name: str, depth: int) -> Run:
    """The other document of each pair as a candidate of its query, in the order of the pairs.

    Args:
        name: a file (`qid<TAB>docid<TAB>docid`, plain or .gz), or an ir_datasets id with docpairs, as
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
    sizes = [len(one) for one in rows]
    scores = np.concatenate([np.arange(size, 0, -1, dtype=np.float64) for size in sizes])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Run.from_parts(list(others), offsets, np.array(list(number_of), dtype=object), np.concatenate(rows), scores)


def _pairs(name: str) -> Iterator[tuple[str, str]]:
    """Query and other document of each pair."""
    if is_file(name, "pairs"):
        path = Path(name).expanduser()
        for number, line in read_lines(path, "file of pairs"):
            columns = line.rstrip("\r\n").split("\t")
            if len(columns) != 3:
                raise InputError(f"{path}:{number}: {line.strip()[:80]!r}; expected qid<TAB>docid<TAB>docid")
            for what, word in zip(("query", "docid", "docid"), columns, strict=True):
                check_id(word, what, f"{path}:{number}")
            yield columns[0], columns[2]
        return
    dataset = irds.load(name)
    with irds.reading(name, "docpairs"):
        for pair in dataset.docpairs_iter():
            yield pair.query_id, pair.doc_id_b
