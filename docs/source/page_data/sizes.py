"""What collections past these machines would take by step: computed of what was measured and what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from page_data.speed import at_documents, at_size
from rnnreranker.regress.records import Figures

ASSUMED = Path(__file__).with_name("sizes.yaml")
GPU, CORE = "GPU", "core"


@dataclass(frozen=True)
class Step:
    """A step of a plan.

    Attributes:
        title: of it; on: "GPU" or "core", whose hours are counted.
        by: what the hours are computed of: "assumed" FLOPs and bytes, or "measured" seconds by their slope.
        hours, dollars: of each collection.
    """

    title: str
    on: str
    by: str
    hours: tuple[float, ...]
    dollars: tuple[float, ...]


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
    """The rows of each part of the benchmark, of the last record that has it; quick ones do not count."""
    whole = [record for record in figures.records("benchmark") if not record.outcome.get("quick")]
    rows: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(whole, key=lambda record: record.date):
        rows |= {name: list(part["rows"]) for name, part in record.outcome["parts"].items()}
    return rows


def computed(rows: Mapping[str, list[dict[str, Any]]], assumed: Mapping[str, Any]) -> Sizes:
    """The same of given rows and assumptions."""
    device, model, kept, dollars = (assumed[name] for name in ("device", "model", "kept", "dollars"))
    encoding, products = device["flops"] * device["encoding"], device["flops"] * device["products"]
    width, by_ivf = model["width"], [row for row in rows["graph-size"] if row["search"] == "ivf"]
    stages = {
        name: [row for row in rows["collection"] if row["stage"] == name and row["by"] == "one thread"]
        for name in ("encode", "labels", "batch")
    }
    [graph] = [row for row in rows["peers"] if row["task"].startswith("exact graph") and row["peer"] == "faiss"]
    [terms] = [row for row in rows["peers"] if row["task"] == "BM25, index"]
    one_query = max(row["warm_ms"] for row in rows["corpus"]) / 1000
    count, dimension = (int(part) for part in graph["size"].split(" x "))
    multiplied = count**2 / 2 * dimension / graph["ours_s"]  # multiply-adds a second of one core, selection included

    def passes(of_token: float) -> Callable[[Mapping[str, Any]], float]:
        return lambda one: one["documents"] * one["tokens"] * 2 * of_token / encoding

    def on_device(one: Mapping[str, Any]) -> float:
        pairs = one["documents"] ** 2 / 2
        return float(pairs * 2 * width / products + pairs * device["bytes_a_pair"] / device["bytes_s"])

    def searched(one: Mapping[str, Any]) -> float:
        bytes_read = 2 * one["documents"] * width
        held = bytes_read / 1e9 <= device["memory_gb"]
        work = 2 * assumed["topics"] * one["documents"] * width / products
        return float(work + bytes_read / (device["bytes_s"] if held else assumed["machine"]["disk_bytes_s"]))

    def labelled(one: Mapping[str, Any]) -> float:
        own = stages["labels"]
        return at_documents(own, "processor_s", one["documents"]) * one["queries"] / own[-1]["queries"]

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
            lambda one: at_documents(stages["encode"], "processor_s", one["documents"]),
        ),
        ("BM25, short texts", CORE, "measured", lambda one: terms["ours_s"] / 10_000 * one["documents"]),
        ("exact graph", GPU, "assumed", on_device),
        ("exact graph, processor", CORE, "measured", lambda one: one["documents"] ** 2 / 2 * width / multiplied),
        ("graph by IVF", CORE, "measured", ivf),
        ("labels of the training queries", CORE, "measured", labelled),
        ("exact search of the topics", GPU, "assumed", searched),
        (
            "exact search, processor",
            CORE,
            "measured",
            lambda one: assumed["topics"] * one["documents"] * width / multiplied,
        ),
        (
            "rNN of the topics",
            CORE,
            "measured",
            lambda one: assumed["topics"] * one_query * rows["corpus"][0]["threads"],
        ),
    ]
    steps = []
    for title, on, by, seconds in plan:
        hours = tuple(seconds(one) / 3600 for one in assumed["collections"])
        price = dollars["gpu_hour" if on == GPU else "core_hour"]
        steps.append(Step(title, on, by, hours, tuple(one * price for one in hours)))
    of_stretches = 16 * (kept["neighbours"] + 1 + kept["spare"]) * 8
    bytes_of: dict[str, Callable[[Mapping[str, Any]], float]] = {
        "vectors, float32": lambda one: 4 * width,
        "vectors, float16": lambda one: 2 * width,
        f"vectors, compressed to {kept['code']} bytes": lambda one: kept["code"] + 8,
        "weights of words": lambda one: 3 * kept["weights"],
        "vectors of tokens, float16": lambda one: 2 * model["token_width"] * one["tokens"],
        "graph": lambda one: by_ivf[-1]["graph_MB"] * 1e6 / by_ivf[-1]["documents"],
        "while the exact graph is made on a GPU": lambda one: of_stretches,
        "ids of documents": lambda one: kept["id"] + 20,  # with where each begins, its hash and its row
    }
    gigabytes = {
        title: tuple(of(one) * one["documents"] / 1e9 for one in assumed["collections"])
        for title, of in bytes_of.items()
    }
    gigabytes["in memory: a table of all vectors"] = tuple(
        at_documents(stages["batch"], "RssAnon_MB", one["documents"]) / 1000 for one in assumed["collections"]
    )
    return Sizes(assumed, tuple(steps), gigabytes)


def amount(value: float) -> str:
    """A computed figure, of two digits, which is what it is worth.

    >>> [amount(value) for value in (0.00002, 0.0123, 0.5, 4.44, 45.2, 8755.4)]
    ['< 0.001', '0.012', '0.50', '4.4', '45', '8,800']
    """
    if value >= 100:
        size = 10 ** (len(str(int(value))) - 2)
        return f"{round(value / size) * size:,}"
    for least, shown in ((9.95, ".0f"), (1, ".1f"), (0.1, ".2f"), (0.001, ".2g")):
        if value >= least:
            return f"{value:{shown}}"
    return "< 0.001"
