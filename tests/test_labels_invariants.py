"""Soft labels that are not such: every fault is refused in one line with the file and the query, none is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from labelers import soft_labels
from refusals import refusal

from rnnreranker.base.errors import InputError
from rnnreranker.labels import SoftLabels
from rnnreranker.labels.soft import described, write_joined

METADATA = {"method": "made up", "index": "0123456789abcdef"}
ROWS: dict[str, list[Any]] = {
    "qid": ["q1", "q2", "q3"],
    "docids": [["a", "b"], ["c", "d", "e"], ["a"]],
    "scores": [[1.0, float("-inf")], [3.0, 2.0, 1.0], [0.5]],
    "targets": [[0.75, 0.25], [0.5, 0.5, 0.0], [1.0]],
    "positive": [[True, False], [False, True, False], [True]],
}
SAID = json.dumps(METADATA).encode()


def write(path: Path, changed: dict[str, Any] | None = None, metadata: bytes | None = SAID) -> Path:
    """A label file as any other tool would write it, with columns put in the place of those of ROWS."""
    columns = {**ROWS, **(changed or {})}
    table = pyarrow.table({name: column for name, column in columns.items() if column is not None})
    parquet.write_table(table.replace_schema_metadata(None if metadata is None else {b"rnnreranker": metadata}), path)
    return path


def with_second(name: str, values: Any) -> dict[str, Any]:
    """ROWS' column with other values for q2."""
    return {name: [ROWS[name][0], values, ROWS[name][2]]}


INF, NAN = float("inf"), float("nan")
LIST = pyarrow.list_(pyarrow.float32())
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "short docids": (with_second("docids", ["c", "d"]), "query q2: docids and scores differ in length"),
    "no candidates": ({name: [[], *ROWS[name][1:]] for name in list(ROWS)[1:]}, "offsets .* 3 queries"),
    "null docid": (with_second("docids", ["c", None, "e"]), "a null in docids"),
    "null target": (with_second("targets", [0.5, None, 0.5]), "a null in targets"),
    "empty docid": (with_second("docids", ["c", "", "e"]), "query q2: docid ''; expected distinct strings"),
    "docid twice": (with_second("docids", ["c", "d", "c"]), "query q2: docid 'c'; expected distinct strings"),
    "null qid": ({"qid": ["q1", None, "q3"]}, "query id None; expected distinct strings"),
    "qid twice": ({"qid": ["q1", "q2", "q1"]}, "query id 'q1'; expected distinct strings"),
    "below 0": (with_second("targets", [0.75, 0.75, -0.5]), "query q2: target -0.5 of e; expected a probability"),
    "NaN": (with_second("targets", [NAN, 0.5, 0.5]), "query q2: target nan of c"),
    "sum .998": (with_second("targets", [0.5, 0.498, 0.0]), r"sum to 0\.998; expected 1 \(within 0\.001\)"),
    "no positives": (with_second("positive", [False] * 3), "query q2: no positive"),
    "score NaN": (with_second("scores", [1.0, NAN, 0.0]), "query q2: score nan of d"),
    "qid list": ({"qid": [["q1"]] * 3}, "no soft labels, or damaged ones .*ast"),
    "without": ({"scores": None}, "no soft labels, or damaged ones .*scores"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_with_a_fault_is_refused_with_its_name_and_query(tmp_path: Path, fault: str) -> None:
    changed, said = FAULTS[fault]
    path = write(tmp_path / "x.parquet", changed)
    with refusal(rf"^{path}: .*{said}") as refused:
        SoftLabels.read(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (b"[1]", "its metadata, key rnnreranker: a JSON .*; expected an object"),
        (b"{", "its metadata, key rnnreranker: not JSON"),
        (b"\xff\xfe", "no soft labels, or damaged ones .*utf-8"),
        (b"[" * 100_000, "its metadata, key rnnreranker: not JSON"),
        (None, "its metadata, key rnnreranker: not JSON"),
    ],
)
def test_metadata_that_are_none(tmp_path: Path, metadata: bytes | None, said: str) -> None:
    path = write(tmp_path / "x.parquet", metadata=metadata)
    for read in (SoftLabels.read, described):
        with refusal(rf"^{path}: .*{said}.*; expected a file of .*labels$"):
            read(path)


def rows_of(labels: SoftLabels) -> dict[str, list[Any]]:
    """The columns of labels as lists, in the form of ROWS."""
    every = [(one.qid, one.docids, one.scores.tolist(), one.targets.tolist(), one.positive.tolist()) for one in labels]
    return {name: [row[place] for row in every] for place, name in enumerate(ROWS)}


def test_what_other_tools_write_is_read(tmp_path: Path) -> None:
    """64-bit floats, large lists, whole numbers, row groups of one query, other columns in another order."""
    large = pyarrow.large_list(pyarrow.large_string())
    order = {name: ROWS[name] for name in reversed(ROWS)} | {"docids": pyarrow.array(ROWS["docids"], large)}
    table = pyarrow.table({"note": [1, 2, 3], **order}).replace_schema_metadata({b"rnnreranker": SAID})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=1)
    found = SoftLabels.read(tmp_path / "x.parquet")
    assert (rows_of(found), found.metadata) == (ROWS, METADATA)
    write_joined(tmp_path / "joined.parquet", [tmp_path / "x.parquet"], METADATA)
    found.write(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "joined.parquet").read_bytes()
    soft_labels([], [], [], [], []).write(tmp_path / "none.parquet")
    assert len(SoftLabels.read(tmp_path / "none.parquet")) == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"offsets": np.array([0, 2, 1, 6])}, "offsets .* for 3 queries"),
        ({"docids": np.array(list("abcdea"))}, "docids: ndarray"),
        ({"docids": np.array(["a", "b", 3, "d", "e", "a"], dtype=object)}, "query q2: docid 3"),
        ({"targets": np.array([1.0])}, r"targets: ndarray of shape \(1,\)"),
        ({"positive": np.array([1, 0, 0, 1, 0, 1])}, "positive: .* int64"),
    ],
)
def test_the_constructor_checks_too(changed: dict[str, Any], said: str) -> None:
    whole = soft_labels(*(ROWS[name] for name in ROWS), METADATA)
    names = ("qids", "offsets", "docids", "scores", "targets", "positive", "metadata")
    with refusal(said):
        SoftLabels(**({name: getattr(whole, name) for name in names} | changed))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "docids": st.sampled_from(["a", "b", "c", "d", "e", "", "é", None]),
    "scores": st.sampled_from([0.0, 1.0, -INF, INF, NAN, None]),
    "targets": st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1e-9, -0.5, 10.0, NAN, INF, None]),
    "positive": st.sampled_from([True, False, None]),
}


def valid(columns: dict[str, list[Any]]) -> bool:
    """Whether these are labels, said slowly and from their description alone."""
    if None in columns["qid"] or "" in columns["qid"] or len(set(columns["qid"])) < len(columns["qid"]):
        return False
    for place in range(len(columns["qid"])):
        row = {name: columns[name][place] for name in VALUES}
        if None in row.values() or any(None in values for values in row.values()):
            return False
        if len({len(values) for values in row.values()}) > 1 or len(set(row["docids"])) < len(row["docids"]):
            return False
        if "" in row["docids"] or not any(row["positive"]) or any(s != s or s == INF for s in row["scores"]):
            return False
        if not all(0 <= t <= 1 for t in row["targets"]) or abs(sum(row["targets"]) - 1) > 1e-3:
            return False
    return True


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_values_are_read_as_they_are_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    columns = {name: [list(v) if isinstance(v, list) else v for v in values] for name, values in ROWS.items()}
    for _ in range(data.draw(st.integers(0, 3))):
        name, place = data.draw(st.sampled_from(list(ROWS))), data.draw(st.integers(0, 2))
        if name == "qid":
            columns[name][place] = data.draw(st.sampled_from(["q1", "q2", "q9", "", None]))
        elif data.draw(st.integers(0, 9)) == 0 or not columns[name][place]:
            columns[name][place] = data.draw(st.sampled_from([None, []]))
        else:
            at, value = data.draw(st.integers(0, len(columns[name][place]) - 1)), data.draw(VALUES[name])
            how = data.draw(st.sampled_from(["set", "set", "add", "drop"]))
            columns[name][place][at : at + (how != "add")] = [] if how == "drop" else [value]
    kinds = [
        pyarrow.string(),
        *map(pyarrow.list_, (pyarrow.string(), pyarrow.float64(), LIST.value_type, pyarrow.bool_())),
    ]
    arrays = {name: pyarrow.array(columns[name], kind) for name, kind in zip(ROWS, kinds, strict=True)}
    check(write(tmp_path / "x.parquet", arrays), columns if valid(columns) else None)


def check(path: Path, expected: dict[str, list[Any]] | None) -> None:
    """Read a file: these columns, or one line that names it; NaN differs from everything, and is never read."""
    refused = None
    try:
        found = rows_of(SoftLabels.read(path))
    except InputError as error:
        refused = str(error)
    if refused is not None:
        assert expected is None, refused
        assert refused.startswith(f"{path}: ")
        assert "\n" not in refused
        return
    assert expected is not None, found
    for name in ("scores", "targets"):
        expected = expected | {name: [np.float32(values).tolist() for values in expected[name]]}
    assert found == expected
