"""The Markdown page of a spec: published beside measured values, and the plan to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base.command import interval
from rnnreranker.base.pages import render
from rnnreranker.base.record import Record
from rnnreranker.evaluate.comparison import holm
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.specs.entries import UNITS, Spec, models_in, needs_of, needs_text, with_folders

SHORT_PLAN = 40  # steps: the page shows a plan of at most so many


def spec_page(
    spec: Spec, records: Sequence[Record], printed: Sequence[Mapping[str, Any]] = (), counts: str = ""
) -> str:
    """The Markdown page of a spec.

    Args:
        records: of its runs, oldest first.
        printed: the published cells that it obtains, of `site.shown`; counts: their states in words.
    """
    shown = make_plan(spec, query_sets=[*spec.query_sets.values()][:1], works=spec.works)
    needs = make_plan(spec, works=spec.works).needs()
    numbers = needs_text({key: needs[key] for key in UNITS if key in needs})
    texts = [text for key in ("agreement", "files") for text in needs.get(key, "").split("; ")]
    sets, order, conditions = [*spec.query_sets], [*spec.conditions], spec.conditions.values()
    runs = [name for entry in conditions for name in entry.run_names]
    newest = {(one.outcome["query_set"], one.name): one for one in records if one.kind == "run"}
    done = {cell["condition"] for cell in printed} | {one.name for one in newest.values()}
    tables = []
    for query_set in spec.query_sets.values():
        mine = [one for one in newest.values() if one.outcome["query_set"] == query_set.id]
        mine.sort(key=lambda one: runs.index(one.name) if one.name in runs else len(runs))
        for protocol in query_set.protocols:
            if of_protocol := [one for one in mine if protocol in one.outcome["values"]]:
                tables.append(_table(spec, query_set, protocol, of_protocol))
    return render(
        "regress.pages",
        "spec.md.j2",
        spec=spec,
        functions={one.__name__: one for one in (models_in, with_folders, needs_of, needs_text, interval)},
        needs=[*filter(None, [numbers, *texts])],
        counts=counts,
        printed=sorted(printed, key=lambda cell: (sets.index(cell["query_set"]), order.index(cell["condition"]))),
        tables=tables,
        others=[entry for entry in conditions if not done & {entry.id, *entry.run_names}],
        titles={name: entry.title for entry in conditions for name in entry.run_names if not entry.contexts},
        plan=shown,
        short_plan=SHORT_PLAN,
    )


def _table(spec: Spec, query_set: Any, protocol: str, mine: Sequence[Record]) -> dict[str, Any]:
    """The runs of a query set under a protocol, for the template."""
    known = {name for one in mine for name in one.outcome["values"][protocol]}  # of measures that the spec had then
    measures = [name for name in spec.measures_of(query_set) if name in known]
    first = protocol == query_set.protocols[0]
    compared = [name for name in measures if name in (spec.compare or measures)]
    differing = [one for one in mine if first and one.outcome.get("differences")]
    p_values = {
        (one.name, name): gap["p"]
        for one in differing
        for name, gap in one.outcome["differences"].items()
        if name in compared
    }
    return {
        **{"query_set": query_set, "protocol": protocol, "runs": mine, "measures": measures, "compared": compared},
        "kinds": query_set.kinds if first else (),
        "differing": differing,
        "p_holm": dict(zip(p_values, holm([*p_values.values()]), strict=True)),
    }
