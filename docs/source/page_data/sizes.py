"""What collections past these machines would take by step: computed of what was measured and what is assumed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rnnreranker.regress.records import Figures

ASSUMED = Path(__file__).with_name("sizes.yaml")
GPU, CORE = "GPU", "core"
BY_GRAPH = "encoding by the exported graph"


@dataclass(frozen=True)
class Step:
    """A step of a plan.

    Attributes:
        title: of it; on: "GPU" or "core", whose hours are counted.
        by: what the hours are computed of: "assumed" FLOPs and bytes, or "measured" seconds.
        hours: of each collection.
    """

    title: str
    on: str
    by: str
    hours: tuple[float, ...]


@dataclass(frozen=True)
class Sizes:
    """Every step's time, what each representation takes on disk, and the assumptions, of each collection.

    Attributes:
        gigabytes: title of what is kept → GB of each collection.
    """

    assumed: Mapping[str, Any]
    steps: tuple[Step, ...]
    gigabytes: Mapping[str, tuple[float, ...]]

    @property
    def titles(self) -> list[str]:
        """Of the collections."""
        return [one["title"] for one in self.assumed["collections"]]

    def step(self, title: str) -> Step:
        """The step of a title."""
        return next(step for step in self.steps if step.title == title)


def sizes(figures: Figures) -> Sizes:
    """The steps and what is kept, of the collections of `sizes.yaml`."""
    return computed(measured_rows(figures), yaml.safe_load(ASSUMED.read_text(encoding="utf-8")))


def measured_rows(figures: Figures) -> dict[str, list[dict[str, Any]]]:
    """The rows of each benchmark by its name."""
    return {one.name: list(one.outcome["rows"]) for one in figures.records("benchmark")}


def computed(rows: Mapping[str, list[dict[str, Any]]], assumed: Mapping[str, Any]) -> Sizes:
    """The same of given rows and assumptions."""
    device, model, kept = (assumed[name] for name in ("device", "model", "kept"))
    encoding = device["flops"] * device["encoding"]
    width, by_ivf = model["width"], [row for row in rows["graphs"] if row["search"] == "ivf"]
    exact = [row for row in rows["graphs"] if row["search"] == "exact"][-1]
    dimension = 384  # of the benchmark's vectors
    [terms], [encoded] = ([row for row in rows["peers"] if row["task"] == task] for task in ("BM25, index", BY_GRAPH))
    [reranked] = [row for row in rows["kernel"] if (row["N"], row["d"], row["setting"]) == (60, 768, "default")]
    pairs = exact["documents"] ** 2 / 2
    multiplied = pairs * dimension / exact["processor_s"]  # multiply-adds a second of one core, selection included

    def passes(of_token: float) -> Callable[[Mapping[str, Any]], float]:
        return lambda one: one["documents"] * one["tokens"] * 2 * of_token / encoding

    def on_processor(one: Mapping[str, Any]) -> float:
        return float(one["documents"] ** 2 * dimension / multiplied)  # too many for lists that use a product twice

    def on_device(one: Mapping[str, Any]) -> float:
        if 2 * one["documents"] * dimension > device["memory_gb"] * 1e9:
            return math.inf
        first, last = ((row["gpu_s"], int(row["size"].split()[0])) for row in rows["gpu, graphs"])
        of_pair = (last[0] / last[1] - first[0] / first[1]) / (last[1] - first[1])  # seconds: a N + b N^2
        return float(one["documents"] * (last[0] / last[1] + of_pair * (one["documents"] - last[1])))

    def ivf(one: Mapping[str, Any]) -> float:
        known = [row["documents"] for row in by_ivf], [row["processor_s"] for row in by_ivf]
        return at_size(*known, one["documents"])

    parameters, words = model["parameters"], model["parameters"] + width * model["words"]
    plan: list[tuple[str, str, str, Callable[[Mapping[str, Any]], float]]] = [
        ("vectors, or vectors of tokens", GPU, "assumed", passes(parameters)),
        ("weights of words (SPLADE)", GPU, "assumed", passes(words)),
        (
            "vectors by MiniLM's graph, short texts",
            CORE,
            "measured",
            lambda one: encoded["ours_s"] / int(encoded["size"].split()[0]) * one["documents"],
        ),
        ("BM25, short texts", CORE, "measured", lambda one: terms["ours_s"] / 10_000 * one["documents"]),
        ("exact graph", GPU, "measured", on_device),
        ("exact graph, processor", CORE, "measured", on_processor),
        ("graph by IVF", CORE, "measured", ivf),
        (
            "exact search, processor",
            CORE,
            "measured",
            lambda one: assumed["topics"] * one["documents"] * width / multiplied,
        ),
        ("rNN of the topics", CORE, "measured", lambda one: assumed["topics"] * reranked["ours_us"] / 1e6),
    ]
    steps = []
    for title, on, by, seconds in plan:
        steps.append(Step(title, on, by, tuple(seconds(one) / 3600 for one in assumed["collections"])))
    bytes_of: dict[str, Callable[[Mapping[str, Any]], float]] = {
        "vectors, float32": lambda one: 4 * width,
        "vectors, float16": lambda one: 2 * width,
        f"vectors, compressed by Faiss to {kept['code']} bytes": lambda one: kept["code"] + 8,
        "weights of words": lambda one: 3 * kept["weights"],
        "vectors of tokens, float16": lambda one: 2 * model["token_width"] * one["tokens"],
        "graph": lambda one: by_ivf[-1]["graph_MB"] * 1e6 / by_ivf[-1]["documents"],
        "ids of documents": lambda one: kept["id"] + 20,  # with where each begins, its hash and its row
    }
    gigabytes = {
        title: tuple(of(one) * one["documents"] / 1e9 for one in assumed["collections"])
        for title, of in bytes_of.items()
    }
    return Sizes(assumed, tuple(steps), gigabytes)


def amount(value: float) -> str:
    """A computed figure, of two digits, which is what it is worth.

    >>> [amount(value) for value in (0.00002, 0.0123, 0.5, 4.44, 45.2, 8755.4, math.inf)]
    ['< 0.001', '0.012', '0.50', '4.4', '45', '8,800', '-']
    """
    if value == math.inf:
        return "-"
    if value >= 100:
        size = 10 ** (len(str(int(value))) - 2)
        return f"{round(value / size) * size:,}"
    for least, shown in ((9.95, ".0f"), (1, ".1f"), (0.1, ".2f"), (0.001, ".2g")):
        if value >= least:
            return f"{value:{shown}}"
    return "< 0.001"


def cell(value: Any) -> str:
    """A value as a table shows it.

    >>> [cell(value) for value in (None, 12345, 12345.6, 45.67, 1.2345, 0.00123, "aim")]
    ['-', '12345', '12346', '45.7', '1.23', '0.0012', 'aim']
    """
    if value is None or value == "":
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value and abs(value) < 0.1:
        return f"{value:.2g}"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of the least-squares line through (log size, log cost): the power of the size that the cost grows with.

    >>> round(slope([10, 100, 1000], [2, 200, 20000]), 6)
    2.0
    """
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    middle_x, middle_y = statistics.fmean(x), statistics.fmean(y)
    above = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle_x) ** 2 for a in x)


def at_size(sizes: Sequence[float], costs: Sequence[float], size: float) -> float:
    """The cost at another size, on the line of `slope`.

    >>> round(at_size([10, 100, 1000], [2, 200, 20000], 1e4), 3)
    2000000.0
    """
    middle = statistics.fmean(math.log(cost) for cost in costs)
    distance = math.log(size) - statistics.fmean(math.log(size) for size in sizes)
    return math.exp(middle + slope(sizes, costs) * distance)
