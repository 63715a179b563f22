"""What soft labels must be, looked at wherever they are made or read; and what the columns of a label file must be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    import pyarrow

TOLERANCE = 1e-3  # how far the targets of a query may be from 1 in sum; float32 alone is within 1e-5
LISTS = {
    "docids": ("strings", str),
    "scores": ("floats", float),
    "targets": ("floats", float),
    "positive": ("bools", bool),
}


def check_labels(labels: Any) -> None:
    """Look at every invariant that `SoftLabels` states, which is what `labels` are.

    Raises:
        InputError: with the query and what is wrong of it.
    """
    _check_shapes(labels)
    _check_names(labels)
    targets, scores = labels.targets, labels.scores
    _refuse(
        labels,
        ~((targets >= 0) & (targets <= 1 + TOLERANCE)),
        lambda at: f"target {targets[at]:g} of {labels.docids[at]}; expected a probability in 0..1",
    )
    _refuse(
        labels,
        np.isnan(scores) | np.isposinf(scores),
        lambda at: f"score {scores[at]:g} of {labels.docids[at]}; expected a finite one, or -inf for none",
    )
    sums = _by_query(targets.astype(np.float64), labels.offsets)
    if (off := np.flatnonzero(np.abs(sums - 1) > TOLERANCE)).size:
        raise InputError(
            f"query {labels.qids[off[0]]}: targets sum to {sums[off[0]]:.6g}; expected 1 (within {TOLERANCE:g})"
        )
    if (none := np.flatnonzero(_by_query(labels.positive.astype(np.float64), labels.offsets) == 0)).size:
        raise InputError(f"query {labels.qids[none[0]]}: no positive; expected a candidate that is judged relevant")


def check_columns(table: pyarrow.Table) -> None:
    """Look at the types of the columns of a label file, at null values, and at lists of one row in several lengths.

    Raises:
        InputError: with the column, and the query or row.
    """
    import pyarrow.compute as compute

    kind = table.schema.field("qid").type
    if not _is_a(kind, str):
        raise InputError(f"column qid has the type {_shown(kind)}; expected strings")
    if table.column("qid").null_count:
        row = compute.index(compute.is_null(table.column("qid")), True).as_py()
        raise InputError(f"row {row + 1}: qid is null; expected a query id")
    lengths: dict[str, np.ndarray] = {}
    for name, (words, wanted) in LISTS.items():
        kind, column = table.schema.field(name).type, table.column(name)
        if not (_is_list(kind) and _is_a(kind.value_type, wanted)):
            raise InputError(f"column {name} has the type {_shown(kind)}; expected lists of {words}")
        if column.null_count:
            raise InputError(
                f"query {_qid(table, compute.is_null(column))}: {name} is null; expected a list of {words}"
            )
        lengths[name] = compute.list_value_length(column).to_numpy().astype(np.int64)
        if any(chunk.flatten().null_count for chunk in column.chunks):
            nulls = np.concatenate([[one.null_count for one in _lists(chunk)] for chunk in column.chunks]) > 0
            raise InputError(f"query {_qid(table, nulls)}: a null among its {name}; expected {words}")
    for name, counts in lengths.items():
        if (other := np.flatnonzero(counts != lengths["docids"])).size:
            row = int(other[0])
            raise InputError(
                f"query {table.column('qid')[row]}: {lengths['docids'][row]} docids but {counts[row]} {name}; "
                "expected as many"
            )


def _check_shapes(labels: Any) -> None:
    offsets, count = labels.offsets, len(labels.docids)
    if not isinstance(labels.metadata, dict):
        raise InputError(f"metadata is a {type(labels.metadata).__name__}; expected an object of names and values")
    if (
        offsets.shape != (len(labels.qids) + 1,)
        or offsets.dtype.kind != "i"
        or offsets[0] != 0
        or offsets[-1] != count
        or (np.diff(offsets) < 0).any()
    ):
        raise InputError(
            f"offsets of shape {offsets.shape} and type {offsets.dtype} for {len(labels.qids)} queries and {count} "
            "candidates; expected one more integer than queries, from 0 ascending to the number of candidates"
        )
    for name, kind in (("docids", "O"), ("scores", "f"), ("targets", "f"), ("positive", "b")):
        values = getattr(labels, name)
        if values.shape != (count,) or values.dtype.kind != kind:
            raise InputError(f"{name} have shape {values.shape} and type {values.dtype}; expected one for each docid")


def _check_names(labels: Any) -> None:
    """Query ids and, within a query, docids: strings that are not empty, each once."""
    if not all(isinstance(qid, str) and qid for qid in labels.qids):
        bad = next(qid for qid in labels.qids if not isinstance(qid, str) or not qid)
        raise InputError(f"query id {bad!r}: expected a string that is not empty")
    if len(set(labels.qids)) < len(labels.qids):
        raise InputError(f"query {_repeated(labels.qids)} is there twice; expected every query once")
    docids = labels.docids.tolist()
    ends = labels.offsets.tolist()
    for query, qid in enumerate(labels.qids):
        own = docids[ends[query] : ends[query + 1]]
        distinct = set(own)
        if "" in distinct or not set(map(type, own)) <= {str}:
            bad = next(docid for docid in own if not isinstance(docid, str) or not docid)
            raise InputError(f"query {qid}: docid {bad!r}; expected a string that is not empty")
        if len(distinct) < len(own):
            raise InputError(f"query {qid}: docid {_repeated(own)} is there twice; expected every candidate once")


def _refuse(labels: Any, wrong: np.ndarray, says: Any) -> None:
    """An error for the first entry that is wrong: its query, and what `says` makes of its index."""
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"query {labels.qids[np.searchsorted(labels.offsets, at, side='right') - 1]}: {says(at)}")


def _by_query(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(Q,) float64: the sum of each query's values."""
    totals = np.concatenate([[0.0], np.cumsum(values)])
    sums: np.ndarray = totals[offsets[1:]] - totals[offsets[:-1]]
    return sums


def _repeated(names: Any) -> str:
    return next(name for name, times in Counter(names).items() if times > 1)


def _is_list(kind: pyarrow.DataType) -> bool:
    import pyarrow.types as types

    return types.is_list(kind) or types.is_large_list(kind)


def _is_a(kind: pyarrow.DataType, wanted: type) -> bool:
    import pyarrow.types as types

    if wanted is str:
        return types.is_string(kind) or types.is_large_string(kind)
    return types.is_floating(kind) if wanted is float else types.is_boolean(kind)


def _shown(kind: pyarrow.DataType) -> str:
    return " ".join(str(kind).split())[:80]


def _lists(chunk: pyarrow.ListArray) -> list[Any]:
    return [one.values for one in chunk]


def _qid(table: pyarrow.Table, wrong: Any) -> str:
    """The id of the first query where something is wrong."""
    return str(table.column("qid")[int(np.argmax(np.asarray(wrong)))])
