"""The papers' figures that our own results can draw: how the size of the context changes quality and time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError
from rnnreranker.files import read_text
from rnnreranker.papers.chart import Line, Panel, chart
from rnnreranker.regress.plan import index_name, make_plan
from rnnreranker.regress.report import PASTE_FOLDER
from rnnreranker.regress.results import read_results, results_file
from rnnreranker.regress.spec import QuerySet, Spec, read_spec

BASE = "dense"  # the condition whose run is reranked


@dataclass(frozen=True)
class Drawn:
    """A figure of the page."""

    title: str
    caption: str
    svg: str
    commands: tuple[str, ...]  # that measure it again


def figures(records: Path, folder: Path) -> list[Drawn]:
    """A figure for each query set with context sweeps in `records/SPEC.QUERYSET.MEASURE.json`.

    Quality (with 95% intervals) and time a query against the number N of reranked candidates, as in figures 3 to 9 of
    paper 000; the dashed level is the run before reranking, from the results of the spec.

    Args:
        records: folder of what `python -m rnnreranker.tune --sweep context --json` wrote.
        folder: of the specs.

    Raises:
        InputError: a file that is no record of a sweep, or of no spec.
    """
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for path in sorted(records.glob("*.json")):
        spec, _, rest = path.stem.partition(".")
        query_set, _, measure = rest.partition(".")
        found.setdefault((spec, query_set), {})[measure] = _record(path, measure)
    return [_drawn(read_spec(spec, folder), name, sweeps, folder) for (spec, name), sweeps in found.items()]


def sweep_command(spec: Spec, query_set: QuerySet, measure: str) -> str:
    """The line that measures a context sweep again, after the steps of the spec's page."""
    plan = make_plan(spec, PASTE_FOLDER / spec.name)
    words = ["python", "-m", "rnnreranker.tune", "--trials", "0", "--sweep", "context"]
    words += ["--index", index_name(spec, plan.folder), "--topics", query_set.topics, "--qrels", query_set.qrels]
    words += ["--protocol", query_set.protocol, "--run", str(plan.run_file(BASE, query_set.id))]
    words += ["--hits", str(spec.hits), "--measure", measure]
    return shlex.join([*words, "--json", f"docs/contexts/{spec.name}.{query_set.id}.{measure}.json"])


def _record(path: Path, measure: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(read_text(path, "record of a sweep"))
        for row in record["sweeps"]["context"]:
            _ = [row[key] + 0.0 for key in ("context", "value", "low", "high", "milliseconds")]
        if not record["sweeps"]["context"] or record["measure"] != measure:
            raise ValueError(f"measure {record['measure']}")
        return record
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not a context sweep of {measure} ({type(error).__name__} {error}); "
            "tune --sweep context --json writes them"
        ) from None


def _drawn(spec: Spec, name: str, sweeps: Mapping[str, Mapping[str, Any]], folder: Path) -> Drawn:
    query_set = next((entry for entry in spec.query_sets if entry.id == name), None)
    if query_set is None:
        known = ", ".join(entry.id for entry in spec.query_sets)
        raise InputError(f"context sweep {spec.name}.{name}: {spec.name} has no such query set; known: {known}")
    results = read_results(results_file(folder, spec))
    before = results[-1].values.get(name, {}).get(BASE, {}) if results else {}
    order = {measure: place for place, measure in enumerate(spec.measures)}
    sweeps = dict(sorted(sweeps.items(), key=lambda entry: order.get(entry[0], len(order))))
    quality = [_line(measure, sweep["sweeps"]["context"], before.get(measure)) for measure, sweep in sweeps.items()]
    first = next(iter(sweeps.values()))
    rows = first["sweeps"]["context"]
    time = Line("rNN", [row["context"] for row in rows], [row["milliseconds"] for row in rows])
    title = spec.title if len(spec.query_sets) == 1 else f"{name.upper()}, {spec.title}"
    caption = (
        f"{' and '.join(sweeps)} over {first['topics']} topics (bands: 95% intervals; dashed: before reranking) and "
        f"processor time a query, by the number of candidates that rNN at its defaults reranks. "
        f"Candidates and vectors: {spec.encoder}."
    )
    panels = [Panel("measured", quality, 190), Panel("milliseconds a query", [time], 70, from_zero=True)]
    commands = tuple(sweep_command(spec, query_set, measure) for measure in sweeps)
    return Drawn(title, caption, chart(panels, "reranked candidates N", title), commands)


def _line(measure: str, rows: list[dict[str, Any]], level: float | None) -> Line:
    x, y, low, high = ([row[key] for row in rows] for key in ("context", "value", "low", "high"))
    return Line(measure, x, y, low, high, level)
