"""The page of sizes is computed of rows of the benchmark and of the assumptions of one file, by known arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from page_data.sizes import ASSUMED, computed


def rows() -> dict[str, list[dict[str, Any]]]:
    """Of a machine that multiplies 5e9 numbers a second and encodes 100 texts."""
    peers = [
        {"task": "encoding by the exported graph", "size": "200 texts of pydoc, minilm", "ours_s": 2.0},
        {"task": "BM25, index", "peer": "bm25s", "size": "10000 texts", "ours_s": 3.6},
    ]
    graphs = [
        {"search": "ivf", "documents": 1000, "processor_s": 1.0, "graph_MB": 0.1},
        {"search": "ivf", "documents": 10_000, "processor_s": 100.0, "graph_MB": 1.0},
        {"search": "exact", "documents": 10_000, "processor_s": 3.84, "graph_MB": 1.0},
    ]
    kernel = [{"N": 60, "d": 768, "setting": "default", "ours_us": 100.0}]
    on_gpu = [{"size": "1000 x 384", "gpu_s": 1.1}, {"size": "2000 x 384", "gpu_s": 2.4}]  # N / 1000 + N^2 / 10^7
    return {"peers": peers, "graphs": graphs, "kernel": kernel, "gpu, graphs": on_gpu}


@pytest.fixture
def assumed() -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(ASSUMED.read_text(encoding="utf-8"))
    given["collections"] = [
        {"title": "small", "documents": 10**6, "tokens": 50},
        {"title": "large", "documents": 10**9, "tokens": 50},
    ]
    given["device"] |= {"flops": 1e15, "encoding": 0.5}
    given["model"] |= {"parameters": 1e8, "width": 100}
    return given


def test_hours_are_those_of_the_arithmetic(assumed: dict[str, Any]) -> None:
    made = computed(rows(), assumed)
    seconds = {step.title: [3600 * hours for hours in step.hours] for step in made.steps}
    assert seconds["vectors, or vectors of tokens"][0] == pytest.approx(1e6 * 50 * 2 * 1e8 / 5e14)
    assert seconds["exact graph"] == pytest.approx([1e3 + 1e5, float("inf")])  # 768 GB of vectors
    assert seconds["exact graph, processor"][0] == pytest.approx(1e12 * 384 / 5e9)
    assert seconds["graph by IVF"][0] == pytest.approx(1e6)  # the square of the documents
    assert seconds["vectors by MiniLM's graph, short texts"][0] == pytest.approx(1e4)
    assert seconds["BM25, short texts"][0] == pytest.approx(360)
    assert seconds["rNN of the topics"] == pytest.approx([0.698, 0.698])
    assert {step.title for step in made.steps if step.by == "assumed"} == {
        "vectors, or vectors of tokens",
        "weights of words (SPLADE)",
    }


def test_disk(assumed: dict[str, Any]) -> None:
    made = computed(rows(), assumed)
    assert made.gigabytes["vectors, float16"] == pytest.approx((0.2, 200))
    assert made.gigabytes["graph"] == pytest.approx((0.1, 100))
    assert made.gigabytes["ids of documents"] == pytest.approx((0.029, 29))
