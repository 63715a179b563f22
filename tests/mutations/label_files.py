"""Soft labels in parquet: damaged bytes, and whole files with other columns, types, values and metadata."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

from mutations.format import Format
from rnnreranker.labels import SoftLabels
from rnnreranker.labels.soft import write_joined

FIRST = SoftLabels.from_lists(
    ["q1", "q2"], [["a", "b"], ["c"]], [[1.5, -math.inf], [2.0]], [[0.75, 0.25], [1.0]], [[True, False], [True]],
    {"method": "uniform", "params": {"k": 3}},
)  # fmt: skip
SECOND = SoftLabels.from_lists(["q3"], [["a"]], [[0.5]], [[1.0]], [[True]], {"method": "uniform"})
COLUMNS = ("qid", "docids", "scores", "targets", "positive")


def _read(path: Path) -> Any:
    labels = SoftLabels.read(path)
    found = [[one.qid, one.docids, one.scores.tolist(), one.targets.tolist(), one.positive.tolist()] for one in labels]
    return [found, labels.metadata]


def _slow(path: Path) -> Any:
    """Arrow's own view of the file, row by row, with every promise of soft labels looked at one by one."""
    import numpy as np
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    metadata = json.loads(table.schema.metadata[b"rnnreranker"], object_pairs_hook=_each_once)
    assert isinstance(metadata, dict)
    found = []
    for row in table.to_pylist():
        qid, docids, scores, targets, positive = (row[name] for name in COLUMNS)
        assert isinstance(qid, str)
        assert qid
        assert len(docids) == len(scores) == len(targets) == len(positive)
        assert len(set(docids)) == len(docids)
        assert all(isinstance(docid, str) and docid for docid in docids)
        scores = [float(np.float32(score)) for score in scores]
        targets = [float(np.float32(target)) for target in targets]
        assert not any(math.isnan(score) or score == math.inf for score in scores)
        assert all(0 <= target <= 1.001 for target in targets)
        assert abs(sum(targets) - 1) <= 0.001 + 1e-9
        assert any(positive)
        found.append([qid, docids, scores, targets, positive])
    assert len({row[0] for row in found}) == len(found)
    return [found, metadata]


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def other_table(rng: Random, path: Path) -> None:
    """A whole parquet file with something else in a column, another type, or other metadata."""
    import pyarrow
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    types = {name: table.schema.field(name).type for name in table.column_names}
    metadata = dict(table.schema.metadata or {})
    kind = rng.choice(["value", "value", "value", "type", "drop", "metadata", "empty", "row", "length"])
    name = rng.choice(list(columns))
    row = rng.randrange(len(table))
    if kind == "value":
        odd = [None, "", "x", math.nan, math.inf, -1.0, 0.0, 1e30, 0.3, True, False, "\u2028", "a" * 5000]
        value = rng.choice(odd)
        if name == "qid" or rng.random() < 0.1:
            columns[name][row] = value
        else:
            columns[name][row][rng.randrange(len(columns[name][row]))] = value
    elif kind == "length":
        if name != "qid":
            columns[name][row] = rng.choice([[], columns[name][row] * 2, columns[name][row][:-1], None])
    elif kind == "type":
        floats = [
            pyarrow.list_(pyarrow.float64()),
            pyarrow.large_list(pyarrow.float32()),
            pyarrow.list_(pyarrow.int8()),
        ]
        texts = [pyarrow.large_string(), pyarrow.binary(), pyarrow.list_(pyarrow.large_string())]
        types[name] = rng.choice([*floats, *texts, pyarrow.list_(pyarrow.bool_()), pyarrow.int64(), pyarrow.null()])
    elif kind == "drop":
        del columns[name]
    elif kind == "row":
        for values in columns.values():
            values.append(values[row])
    elif kind == "empty":
        columns = {one: [] for one in columns}
    else:
        texts = [
            b"",
            b"null",
            b"[]",
            b"3",
            b'"x"',
            b"{",
            b"\xff",
            b'{"a": 1, "a": 2}',
            b'{"a": NaN}',
            b"{}",
            b"[" * 9**5,
        ]
        metadata[b"rnnreranker"] = rng.choice(texts)
    try:
        arrays = [pyarrow.array(values, types[one]) for one, values in columns.items()]
        table = pyarrow.table(dict(zip(columns, arrays, strict=True))).replace_schema_metadata(metadata)
    except (pyarrow.ArrowException, TypeError, ValueError):
        return  # no such table can be
    options = {"compression": rng.choice(["zstd", "snappy", "none"]), "use_dictionary": rng.random() < 0.5}
    parquet.write_table(table, path, **options, row_group_size=rng.choice([1, 2, 1000]))


def _make(folder: Path) -> None:
    FIRST.write(folder / "labels.parquet")


def _make_shards(folder: Path) -> None:
    FIRST.write(folder / "000000.parquet")
    SECOND.write(folder / "000001.parquet")


def _read_joined(folder: Path) -> Any:
    shards = [folder / "000000.parquet", folder / "000001.parquet"]
    write_joined(folder / "all.parquet", shards, {})
    return _read(folder / "all.parquet")[0]


def _slow_joined(folder: Path) -> Any:
    rows = [row for shard in ("000000.parquet", "000001.parquet") for row in _slow(folder / shard)[0]]
    assert len({row[0] for row in rows}) == len(rows)
    return rows


FORMATS = [
    Format(
        "labels, parquet", _make, ("labels.parquet",), lambda folder: _read(folder / "labels.parquet"),
        lambda folder: _slow(folder / "labels.parquet"), 2.0, (other_table,),
    ),
    Format(
        "shards of labels", _make_shards, ("000000.parquet", "000001.parquet"), _read_joined, _slow_joined, 0.7,
        (other_table,),
    ),
]  # fmt: skip
