"""What the papers' figures show, by our own results: how the size of the context changes quality and time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rnnreranker.base.errors import nearest, refuse
from rnnreranker.base.record import Record
from rnnreranker.regress.plans.step import PASTE_FOLDER, index_name, run_files
from rnnreranker.regress.records import last_run
from rnnreranker.regress.specs.entries import QuerySet
from rnnreranker.regress.specs.spec import Spec

BASE = "dense"  # the condition whose run is reranked


@dataclass(frozen=True)
class Drawn:
    """A figure of the page, as a table."""

    title: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a number of candidates each; before them the run that is reranked
    commands: tuple[str, ...]  # that measure it again


def figures(sweeps: Sequence[Record], sets: Mapping[str, tuple[Spec, QuerySet]], runs: Sequence[Record]) -> list[Drawn]:
    """A figure for each query set with context sweeps on record.

    Quality (with 95% intervals) and time a query against the number N of reranked candidates, as in figures 3 to 9 of
    paper 000; the first row is the run before reranking.

    Raises:
        InputError: a record of an unknown query set.
    """
    by_set: dict[str, dict[str, Record]] = {}
    for record in sweeps:
        by_set.setdefault(record.outcome["query_set"], {})[record.outcome["measure"]] = record
    said = "context sweep of {}: no such query set; {}"
    refuse(*((name not in sets, said.format(name, nearest(name, sets))) for name in by_set))
    return [_drawn(*sets[name], mine, runs) for name, mine in by_set.items()]


def sweep_command(spec: Spec, query_set: QuerySet, measure: str) -> str:
    """The line that measures a context sweep again, after the steps of the spec's page."""
    words = ["python", "-m", "rnnreranker.tune", "--trials", "0", "--sweep", "context"]
    words += ["--index", index_name(spec.indexes[0], PASTE_FOLDER)]
    words += ["--topics", query_set.topics, "--qrels", query_set.qrels, "--protocol", query_set.protocols[0]]
    words += ["--run", str(run_files(spec, PASTE_FOLDER, spec.condition(BASE), query_set)[0])]
    words += ["--hits", str(spec.hits), "--measure", measure]
    return shlex.join([*words, "--record", str(PASTE_FOLDER / f"context.{query_set.id}.{measure}.json")])


def _drawn(spec: Spec, query_set: QuerySet, sweeps: Mapping[str, Record], runs: Sequence[Record]) -> Drawn:
    last = last_run(runs, query_set.id, BASE)
    before = last.outcome["values"].get(query_set.protocols[0], {}) if last else {}
    order = {measure: rank for rank, measure in enumerate(spec.measures)}
    sweeps = dict(sorted(sweeps.items(), key=lambda entry: order.get(entry[0], len(order))))
    by_measure = {measure: record.outcome["sweeps"]["context"] for measure, record in sweeps.items()}
    topics = next(iter(sweeps.values())).outcome["topics"]
    title = spec.title if len(spec.query_sets) == 1 else f"{query_set.title or query_set.id}, {spec.title}"
    caption = (
        f"{' and '.join(sweeps)} over {topics} topics (with 95% intervals) and processor time a query, by the number "
        f"of candidates that rNN at its defaults reranks. Candidates and vectors: {spec.dense_encoder}."
    )
    shown = [
        {row["context"]: f"{row['value']:.4f} [{row['low']:.4f}, {row['high']:.4f}]" for row in rows}
        for rows in by_measure.values()
    ]
    shown.append({row["context"]: f"{row['milliseconds']:.2f}" for row in next(iter(by_measure.values()))})
    first = ["none", *("" if (value := before.get(measure)) is None else f"{value:.4f}" for measure in sweeps), ""]
    rest = [(str(context), *(column.get(context, "") for column in shown)) for context in sorted(shown[-1])]
    return Drawn(
        title,
        caption,
        ("candidates", *sweeps, "ms a query"),
        (tuple(first), *rest),
        tuple(sweep_command(spec, query_set, measure) for measure in sweeps),
    )
