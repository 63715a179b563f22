"""Files of arrays and ids that are not what they say: each is refused in one line with its name, none is misread."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from query_sets import write_queries
from refusals import refusal

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors import QueryVectors, ids, open_vectors
from rnnreranker.parts.vectors.ids import IdTable, read_ids
from rnnreranker.parts.vectors.npy_files import map_matrix
from rnnreranker.parts.vectors.source import load_encoded_queries

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def saved(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


FAULTS = {
    "pickle": (b"\x80\x04cos\nsystem\n", "the magic string is not correct"),
    "objects": (saved(np.array([[{}]], dtype=object), allow_pickle=True), "Python objects"),
    "nested": (b"\x93NUMPY\x01\x00" + (5000).to_bytes(2, "little") + b"(" * 5000, "not a whole .npy file"),
    "float64": (saved(MATRIX.astype(np.float64)), "has shape .* and type float64; expected"),
    "one dimension": (saved(MATRIX[0]), r"has shape \(3,\) and type float32; expected"),
    "no rows": (saved(MATRIX[:0]), r"has shape \(0, 3\) and type float32; expected"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_no_matrix(tmp_path: Path, fault: str) -> None:
    content, said = FAULTS[fault]
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    (tmp_path / "v.ids").write_text("a\nb\nc\nd\n")
    for read in (map_matrix, open_vectors, load_encoded_queries):
        with refusal(rf"^{re.escape(str(path))}: .*{said}") as refused:
            read(path)
        assert "\n" not in str(refused.value)


@pytest.mark.filterwarnings("error")
def test_values_that_are_none(tmp_path: Path) -> None:
    matrix = MATRIX.copy()
    matrix[2, 1] = -np.inf
    write_queries(tmp_path / "v.npy", "abcd", matrix)
    source = open_vectors(tmp_path / "v.npy")
    for ask in (lambda: source.fetch(np.array([0, 2])), lambda: source.search(MATRIX[:1], 2)):
        with refusal(r"v\.npy: the vector of c has NaN or infinite values"):
            ask()
    with refusal("the vector of query c has NaN or infinite values"):
        load_encoded_queries(tmp_path / "v.npy")


@pytest.mark.filterwarnings("error")
def test_vectors_so_long_that_float32_overflows_are_searched_exactly_and_silently(tmp_path: Path) -> None:
    write_queries(tmp_path / "v.npy", "abcd", MATRIX * np.float32(1e30))
    source = open_vectors(tmp_path / "v.npy")
    scores, rows = source.search(MATRIX[1:2] * np.float32(1e30), 2)
    assert rows[0].tolist() == [3, 2]
    np.testing.assert_allclose(scores[0], [122e60, 86e60], rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a\nb\nc\n", "has 3 docids but .* has 4 rows"),
        (b"", "has 0 docids but .* has 4 rows"),
        (b"a\nb\n\nd\n", r"ids:3: empty line"),
        (b"a\nb c\nc\nd\n", r"ids:2: id 'b c'; expected one that is not empty and has no white space"),
        (b"a\nb\nc\td\nd\n", r"ids:3: id 'c\\td'"),
        (b"a\nb\x00\nc\nd\n", r"ids:2: a NUL byte"),
        (b"a\nb\nc\nb\n", r"ids:4: b is already on line 2"),
        (b"a\nb\n\xff\nd\n", r"ids:3: not UTF-8"),
    ],
)
@pytest.mark.parametrize("large", [ids.LARGE, 0], ids=["list", "table"])
def test_ids_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str, large: int
) -> None:
    monkeypatch.setattr(ids, "LARGE", large)
    np.save(tmp_path / "v.npy", MATRIX)
    (tmp_path / "v.ids").write_bytes(content)
    with refusal(rf"^{tmp_path}/v\..*{said.removeprefix('ids')}"):
        open_vectors(tmp_path / "v.npy")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6), st.sampled_from(["flip", "cut", "drop", "twice"]), st.booleans())
def test_changed_matrices_are_read_as_they_are_or_refused(tmp_path: Path, at: int, how: str, by_columns: bool) -> None:
    """As numpy reads all of their bytes, or one line."""
    content, path = saved(np.asfortranarray(MATRIX) if by_columns else MATRIX), tmp_path / "v.npy"
    at %= len(content)
    flipped, again = bytes([content[at] ^ (1 << at % 8)]), content[max(0, at - 5) :]
    end = {"flip": flipped + content[at + 1 :], "cut": b"", "drop": content[at + 5 :], "twice": again}
    path.write_bytes(content[:at] + end[how])
    matrix, refused = None, f"{path}: "
    try:
        matrix = map_matrix(path)
    except InputError as error:
        refused = str(error)
    if matrix is not None:
        assert matrix.offset + matrix.nbytes == path.stat().st_size
        np.testing.assert_array_equal(matrix, np.load(path))
    assert refused.startswith(f"{path}: ")
    assert "\n" not in refused


@pytest.mark.parametrize("content", ["b\na\né1\n", "\ufeffb\r\na\r\né1", "b\na\né1"])
def test_ids_of_a_large_file_are_looked_up_in_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    path, names, wanted = tmp_path / "docid", ["b", "a", "é1"], ["é1", "c", "a", "a\nb", "", "a\n", "b"]
    path.write_text(content, encoding="utf-8", newline="")
    listed = read_ids(path)
    monkeypatch.setattr(ids, "LARGE", 0)
    monkeypatch.setattr(ids, "BLOCK", 2)
    for _ in range(2):  # made, and opened again
        found = read_ids(path)
        assert isinstance(found.names, IdTable)
        assert [*found.names] == [found.names[row] for row in range(-3, 0)] == found.names[:] == listed.names == names
        assert found.rows(wanted).tolist() == listed.rows(wanted).tolist() == [2, -1, 1, -1, -1, -1, 0]
        assert found.rows([]).tolist() == []
        assert found.docid_ranks.tolist() == listed.docid_ranks.tolist() == [1, 0, 2]
        assert found.mark == listed.mark
        with refusal("docids: 3 is no text"):
            found.rows([3])  # type: ignore[list-item]
        monkeypatch.setattr(ids, "_write_table", None)
    monkeypatch.undo()
    monkeypatch.setattr(ids, "LARGE", 0)
    path.write_text("z\n")
    assert [*read_ids(path).names] == ["z"]


def test_query_vectors_check_themselves() -> None:
    with refusal("query id a is given twice"):
        QueryVectors(("a", "a"), MATRIX[:2])
