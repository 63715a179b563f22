"""The Markdown page of a spec: published beside measured values, and the plan to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rnnreranker.base.pages import render, table
from rnnreranker.base.record import Record
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.records import is_run
from rnnreranker.regress.specs.entries import Model, QuerySet
from rnnreranker.regress.specs.methods import UNITS, models_in, needs_of, needs_text, use_with_folders
from rnnreranker.regress.specs.spec import Spec, planned

Cell = Mapping[str, Any]  # a published cell that a condition of a spec obtains, of `html.texts`
SIGNS = ("win", "tie", "loss")  # of topics
SHORT_PLAN = 40  # steps: the page shows a plan of at most so many


def spec_page(spec: Spec, records: Sequence[Record], printed: Sequence[Cell] = (), counts: str = "") -> str:
    """The Markdown page of a spec, of its records, oldest first, and the published cells that it obtains."""
    plan = make_plan(spec, works=spec.works)
    shown = make_plan(spec, query_sets=spec.query_sets[:1], works=spec.works)
    in_papers = {cell["condition"] for cell in printed}
    measured = {record.name for record in records if record.kind == "run"}
    lacking = {entry.id: planned(spec, entry) for entry in spec.conditions}
    return render(
        "regress.pages",
        "spec.md.j2",
        spec=spec,
        table=table,
        models=[_model(entry) for entry in spec.models],
        needs=_needs(plan.needs()),
        counts=counts,
        papers=list(dict.fromkeys(cell["paper"] for cell in printed)),
        lines=_lines(spec, printed),
        changed=[
            (_where(cell), cell["measure"], cell["note"])
            for cell in printed
            if cell["state"] == "changed" and cell["note"]
        ],
        tuned=any(cell["tuned"] for cell in printed),
        tables=[table for query_set in spec.query_sets for table in _tables(spec, query_set, records)],
        others=[
            entry
            for entry in spec.conditions
            if entry.id not in in_papers and not lacking[entry.id] and not set(entry.run_names) & measured
        ],
        planned=[(entry, lacking[entry.id]) for entry in spec.conditions if lacking[entry.id]],
        plan=shown.lines(),
        steps=len(shown.steps),
        short_plan=SHORT_PLAN,
    )


def _model(model: Model) -> str:
    """A model in a line: kind and settings, start, training data, needs."""
    begun = next(iter(models_in(model.start)), model.start)
    how = f"{use_with_folders(model.train)}{f' from `{begun}`' if begun else ''}"
    fields = f" ({', '.join(model.text)})" if model.text else ""
    learns = f"on the texts of `{model.documents or model.index}`{fields}"
    if made := model.labels or model.negatives:
        learns = f"on `{model.topics}`, {'labels' if model.labels else 'negatives'} {made.name}"
        learns += f" of `{model.first.name}` in `{model.candidates or model.index}`"
    needs = needs_text(needs_of([*model.step_needs.values(), model.needs]))
    return f"`{model.id}`: {'; '.join(filter(None, [how, learns, needs]))}"


def _needs(needs: dict[str, Any]) -> list[str]:
    """Amounts on one line, then agreements and files."""
    numbers = needs_text({key: needs[key] for key in UNITS if key in needs})
    texts = [value for key in ("agreement", "files") for value in str(needs.get(key, "")).split("; ") if value]
    return [text for text in (numbers, *texts) if text]


def _lines(spec: Spec, printed: Sequence[Cell]) -> list[list[str]]:
    """The table of published values, in the order of the spec's query sets and conditions."""
    sets = {entry.id: rank for rank, entry in enumerate(spec.query_sets)}
    order = {condition.id: rank for rank, condition in enumerate(spec.conditions)}
    several = {entry.id: len(entry.protocols) > 1 for entry in spec.query_sets}
    return [
        [
            *(f"`{cell['condition']}`", cell["query_set"], _where(cell)),
            cell["measure"] + (f", {cell['counted']}" if several[cell["query_set"]] else ""),
            cell["published"] + "†" * cell["tuned"],  # the paper chose parameters on the set that it reports
            *(cell[key] for key in ("measured", "difference", "state")),
        ]
        for cell in sorted(printed, key=lambda cell: (sets[cell["query_set"]], order[cell["condition"]]))
    ]


def _where(cell: Cell) -> str:
    query = f", query {cell['query']}" if cell["query"] else ""
    return f"{cell['paper']} {cell['where']}, {cell['row']}{query}"


def _tables(spec: Spec, query_set: QuerySet, records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The tables of a query set, one for each protocol, of the newest record of each run."""
    newest = {record.name: record for record in records if is_run(record, query_set.id)}
    order = [name for entry in spec.conditions for name in entry.run_names]
    runs = sorted(newest.values(), key=lambda one: order.index(one.name) if one.name in order else len(order))
    for protocol in query_set.protocols:
        if mine := [record for record in runs if protocol in record.outcome["values"]]:
            yield _table(spec, query_set, protocol, mine)


def _table(spec: Spec, query_set: QuerySet, protocol: str, mine: Sequence[Record]) -> dict[str, Any]:
    """Values of one protocol on a query set, for the template."""
    titles = {name: entry.title for entry in spec.conditions for name in entry.run_names if not entry.contexts}
    values = [record.outcome["values"][protocol] for record in mine]  # of measures that the spec had when it was made
    measures = [one for one in spec.measures_of(query_set) if any(one in its for its in values)]
    files = any("file" in record.outcome for record in mine)
    first = protocol == query_set.protocols[0]
    kinds = list(query_set.kinds) if first else []
    compared = [name for name in measures if name in (spec.compare or measures)]
    lines, differences = [], []
    for record, its in zip(mine, values, strict=True):
        title = titles.get(record.name, record.name)
        of_kinds = [record.outcome.get("kinds", {}).get(kind, {}).get(measures[0]) for kind in kinds]
        cells = ["" if one is None else f"{one:.4f}" for one in [*map(its.get, measures), *of_kinds]]
        lines.append([title, *cells, *([record.outcome.get("file", "")] if files else [])])
        if first and (by_run := record.outcome.get("differences")):
            differences.append([title, *(text for name in compared for text in _difference(by_run.get(name)))])
    facts = mine[0].outcome
    return {
        "query_set": query_set,
        "protocol": protocol,
        "topics": max(record.outcome["topics"] for record in mine),
        "measures": [*measures, *(f"{measures[0]} {kind}" for kind in kinds)],
        "lines": lines,  # condition, a text for each measure and kind of topics, and the file of a published run
        "compared": [text for name in compared for text in (name, "p", "w/t/l")],
        "comparisons": sum(bool(p) for line in differences for p in line[2::3]),
        "differences": differences,  # a reranked run; for each compared measure difference, p, won/tied/lost
        "made": list(dict.fromkeys(map(_made, mine))),
        "judged": f"{facts['unjudgeable']} of {facts['judged']}" if "unjudgeable" in facts else "",
        "files": files,
    }


def _difference(difference: dict[str, Any] | None) -> list[str]:
    """Difference with its interval, p, topics won/tied/lost."""
    if difference is None:
        return ["", "", ""]
    interval = f"{difference['difference']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]"
    p = difference["p_holm"]
    return [interval, "<.001" if p < 0.001 else f"{p:.3f}", "/".join(str(difference[key]) for key in SIGNS)]


def _made(record: Record) -> str:
    """Date, commit and machine of a measured run, its documents and inputs."""
    documents = record.outcome.get("documents")
    about = [f"{documents:,} documents" if documents else "", f"measured on {record.date[:10]}" if record.date else ""]
    about += [f"at commit `{record.commit}`" if record.commit else "", record.machine]
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    indexes = ", ".join(f"{name} `{value}`" for name, value in record.inputs.items() if name.startswith("index"))
    return "; ".join(filter(None, (" ".join(filter(None, about[1:3])), about[0], about[3], versions, indexes)))
