"""The tables of the matrix as its pages show them: rows and columns as printed, what stands in each cell, its twins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rnnreranker.regress.papers.cells import STATES, group_of, headed, query_of, slug
from rnnreranker.regress.papers.twins import TwinSet

Twins = Mapping[tuple[str, str], Sequence[TwinSet]]  # of a paper and table
TALL = 30  # columns: a table with more is shown with rows and columns exchanged, and closed


def tables_of(
    entries: Sequence[Mapping[str, Any]],
    captions: Mapping[tuple[str, str], str],
    notes: Mapping[tuple[str, str], str],
    twins: Twins,
    twin_notes: Mapping[tuple[str, str], str],
) -> list[dict[str, Any]]:
    """The tables of one paper, in their order, as the templates show them.

    Args:
        entries: of the paper, as `cells.entries` makes them.
        captions: paper and table → its caption; notes: → a remark on it.
        twins: paper and table → what runs here in the place of its rows, a query set each.
        twin_notes: paper and table → a remark on its twins.
    """
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        numbers.setdefault((entry["paper"], entry["table"]), []).append(number)
    tables = []
    for (paper, name), members in numbers.items():
        mine = [entries[number] for number in members]
        columns = list(dict.fromkeys((entry["dataset"], entry["measure"]) for entry in mine))
        rows = list(dict.fromkeys(entry["row"] for entry in mine))
        shown = {
            (entry["row"], entry["dataset"], entry["measure"]): {
                **entry,
                "number": number,  # in the list of cells, by which the page's script looks it up
                "sign": STATES[entry["state"]][0],
            }
            for number, entry in zip(members, mine, strict=True)
        }
        tall = len(columns) > TALL
        if tall:
            groups = [{"name": _common(columns), "columns": rows}]
            lines = [(_line(d, m, columns), [shown.get((row, d, m)) for row in rows]) for d, m in columns]
        else:
            groups = [
                {"name": dataset, "columns": [measure for _, measure in same]}
                for dataset, same in groupby(columns, key=lambda column: column[0])
            ]
            lines = [(row, [shown.get((row, d, m)) for d, m in columns]) for row in rows]
        tables.append(
            {
                "paper": paper,
                "name": headed(name),
                "label": f"T{name}" if name.isdigit() else name.replace("Section ", "§").replace("Figure ", "F"),
                "anchor": f"{paper}-table-{slug(name)}",
                "caption": captions.get((paper, name), ""),
                "note": notes.get((paper, name), ""),
                "corner": "query" if tall else "row",  # what the rows are
                "groups": groups,  # columns under a common heading
                "rows": lines,  # of cells; None = the paper has no value there
                "printed": [(row, [shown.get((row, d, m)) for d, m in columns]) for row in rows],  # never exchanged
                "size": len(mine),
                "letters": {entry["row"]: entry["letter"] for entry in mine if entry["letter"]},
                "counts": count_states(mine),
                "differing": _differing(mine),
                "twins": twins.get((paper, name), []) if not tall else [],  # in columns behind those of the paper
                "twins_note": twin_notes.get((paper, name), ""),
                "closed": tall,
            }
        )
    return tables


def _differing(shown: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each row whose values of single queries were measured."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for entry in shown:
        if entry["measured"] and query_of(entry["dataset"]):
            rows.setdefault(entry["row"], []).append(entry)
    sentences = []
    for row, entries in rows.items():
        changed = [entry for entry in entries if entry["state"] == "changed"]
        changed.sort(key=lambda entry: -abs(float(entry["difference"].replace("−", "-") or 0)))
        named = ", ".join(f"{query_of(entry['dataset'])} ({entry['difference']})" for entry in changed)
        same = f"{row}: {len(entries) - len(changed)} of {len(entries)} queries give the printed value"
        sentences.append(f"{same}; {len(changed)} differ, measured minus published: {named}." if named else f"{same}.")
    return sentences


def _common(columns: list[tuple[str, str]]) -> str:
    """The heading over exchanged columns: the data set and measure that all have."""
    names = list(dict.fromkeys(f"{group_of(dataset)}, {measure}" for dataset, measure in columns))
    return names[0] if len(names) == 1 else "value"


def _line(dataset: str, measure: str, columns: list[tuple[str, str]]) -> str:
    query = query_of(dataset)
    return query if query and _common(columns) != "value" else f"{dataset}, {measure}"


def count_states(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many cells are in which state: those states that one of them is in, in the order of `STATES`."""
    counts = Counter(entry["state"] for entry in entries)
    return {state: counts[state] for state in STATES if counts[state]}
