"""Whatever a public function is given, it answers, or refuses it in one line: no error of Python's comes through."""

import decimal
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from rnnreranker import (
    LabelParams,
    QueryVectors,
    RnnParams,
    RnnReranker,
    SoftLabels,
    build_index,
    label_distribution,
    open_index,
    open_neighbours,
    open_vectors,
    smooth_labels,
)
from rnnreranker.base.errors import RnnrerankerError
from tests.tiny_encoder import make_queries, make_run, make_source

HOSTILE: list[Any] = [None, True, 0, -1, 2.0, 1.5, math.nan, math.inf, 10**30, 1e308]
HOSTILE += ["", " ", "x", "10", "none", "\0", "a\nb", "\ud800", "x" * 5000, "..", "~", "/dev/null", ":", "rnn:k=0"]
HOSTILE += [b"x", [], (), {}, {1}, {"x"}, [None], [[]], ["x", "x"], [1], [0, 0], [math.nan], ["a", 1], {"a": 1}, {1: 2}]
HOSTILE += [{"a": None}, {"a": math.nan}, {"a": {"b": {}}}, {"q1": {"d1": "x"}}, np.int64(3), np.float64("nan")]
HOSTILE += [np.bool_(True), np.array(3), np.array([]), np.zeros((2, 2)), np.zeros((2, 3), object), np.ones((3, 2, 2))]
HOSTILE += [np.full((4, 8), np.nan), np.ones((4, 8), complex), np.ma.masked_array([1.0, 2.0], [0, 1])]
HOSTILE += [1j, object(), print, iter([1]), Path("/nonexistent"), decimal.Decimal("1.5"), int, ..., slice(1)]
HOSTILE += [pandas.DataFrame({"a": [1]}), pandas.Series([1, 2]), pandas.NA, RnnParams()]

VECTORS = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)


def calls(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Public functions, each with arguments that it takes."""
    source, run, queries = make_source(folder / "index"), make_run(), make_queries()
    smooth = {"query": VECTORS[0], "candidates": VECTORS[1:], "positives": [0], "params": RnnParams()}
    weights = {"query_weights": {"a": 0.5}, "document_weights": {"a": 0.2}, "products": "mean", "scale": 1.0}
    build = {"documents": [("d1", "text")], "output": folder / "made", "threads": 1, "overwrite": False}
    return {
        "RnnParams": (RnnParams, RnnParams().to_dict()),
        "LabelParams": (LabelParams, LabelParams().to_dict()),
        "preset": (RnnParams.preset, {"name": "tas-b"}),
        "named": (RnnParams.named, {"text": "tas-b"}),
        "of": (RnnParams.of, {"values": {"k": 5}}),
        "smooth_labels": (smooth_labels, smooth | {"label_params": None, "grades": None}),
        "label_distribution": (label_distribution, weights),
        "QueryVectors": (QueryVectors, {"qids": ("a", "b"), "vectors": np.ones((2, 3))}),
        "QueryVectors.of": (queries.of, {"qids": ["q0"]}),
        "open_vectors": (open_vectors, {"path": folder / "index"}),
        "rows": (source.rows, {"docids": ["d0"]}),
        "fetch": (source.fetch, {"rows": [0], "out": None}),
        "search": (source.search, {"queries": queries.vectors[:2], "hits": 5}),
        "open_index": (open_index, {"name": folder / "index"}),
        "open_neighbours": (open_neighbours, {"path": folder / "none"}),
        "SoftLabels.read": (SoftLabels.read, {"path": folder / "none"}),
        "RnnReranker": (
            RnnReranker,
            {"inputs": source, "params": None, "source": None, "queries": None, "threads": None},
        ),
        "rerank": (RnnReranker(source).rerank, {"run": run, "query_vectors": queries}),
        "build_index": (build_index, build | {"parts": "terms"}),
    }


REFUSED = {"open_neighbours", "SoftLabels.read"}  # of these there is none in the folder


@pytest.mark.parametrize(
    "name",
    [
        *("RnnParams", "LabelParams", "preset", "named", "of", "smooth_labels", "label_distribution", "QueryVectors"),
        *("QueryVectors.of", "open_vectors", "rows", "fetch", "search", "open_index", "open_neighbours"),
        *("SoftLabels.read", "RnnReranker", "rerank", "build_index"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, sound = calls(tmp_path)[name]
    if name not in REFUSED:
        function(**sound)
    through, refused = {}, list[str]()
    for argument in sound:
        for value in HOSTILE:
            if name == "build_index" and argument == "output" and isinstance(value, str | Path):
                continue  # written to
            try:
                function(**{**sound, argument: value})
            except RnnrerankerError as error:
                refused.append(str(error))
            except Exception as error:
                through[argument, type(value).__name__, str(value)[:40]] = repr(error)[:200]
    assert through == {}
    assert [message for message in refused if "\n" in message or len(message) > 8000] == []


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("QueryVectors", {"qids": "ab"}, "qids='ab': expected a list of ids"),
        ("rows", {"docids": "d0"}, "docids='d0': expected a list of ids"),
        ("smooth_labels", {"grades": [math.nan]}, r"grades=\[nan\]: expected finite numbers of shape \(1,\)"),
        (
            "smooth_labels",
            {"candidates": np.ones((4, 8), complex)},
            "candidates: a ndarray of complex128; expected numbers",
        ),
        ("label_distribution", {"query_weights": {"a": math.nan}}, "query_weights=.*: expected finite numbers"),
        ("RnnReranker", {"source": "graph"}, "source='graph': expected one of vectors, neighbours, tokens"),
        ("build_index", {"threads": "two"}, "threads='two': expected an integer >= 1"),
    ],
)
def test_what_is_said(name: str, given: Mapping[str, Any], said: str, tmp_path: Path) -> None:
    function, sound = calls(tmp_path)[name]
    with pytest.raises(RnnrerankerError, match=f"^{said}" if "type" not in said else said):
        function(**{**sound, **given})
