"""The matrix of published cells as one HTML page that needs nothing else: tables, filters, what is behind each cell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError
from rnnreranker.pages import render, write_page

STATES = {  # state: sign, what it says
    "reproduced": ("✓", "measured here; within half a unit of the printed last digit"),
    "changed": ("≠", "measured here; differs by more than that"),
    "runnable elsewhere": ("▸", "every step is in the toolkit; needs data, a GPU or a network that this machine lacks"),
    "planned": ("○", "a step whose method is not in the toolkit yet"),
    "external": ("–", "reported by the paper from other work; nothing to run"),
}
KEYS = (
    *("paper", "table", "caption", "row", "dataset", "measure", "protocol", "published", "measured"),
    *("state", "note", "commands", "parameters", "history", "tuned_on_test"),
)
TALL = 30  # columns: a table with more is shown with rows and columns exchanged, and closed
_OF_QUERY = re.compile(r" query \S+$")  # a data set that is one query of another: one entry in the filter


@dataclass(frozen=True)
class Shown:
    """A cell as its table shows it; numbers are texts already, empty where there is none."""

    number: int  # place in the list of cells, which the page's script looks it up by
    id: str
    published: str
    measured: str
    letters: str
    state: str
    sign: str
    tuned: bool


@dataclass(frozen=True)
class Group:
    """Columns under a common heading: the heading and the heading of each column."""

    name: str
    columns: list[str]


@dataclass(frozen=True)
class Table:
    """A table of a paper: headings, rows of cells (None = the paper has no value there), counts by state."""

    paper: str
    name: str
    caption: str
    corner: str  # what the rows are
    groups: list[Group]
    rows: list[tuple[str, list[Shown | None]]]
    counts: dict[str, int]
    closed: bool

    @property
    def anchor(self) -> str:
        return f"{self.paper}-table-{slug(self.name)}"


def write_matrix(
    path: Path,
    cells: Sequence[Mapping[str, Any]],
    *,
    papers: Mapping[str, str] | None = None,
    made: str = "",
    figures: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the page of `matrix`, with the same arguments; atomically, making its folder."""
    write_page(path, matrix(cells, papers=papers, made=made, figures=figures))


def matrix(
    cells: Sequence[Mapping[str, Any]],
    *,
    papers: Mapping[str, str] | None = None,
    made: str = "",
    figures: Sequence[tuple[str, str]] = (),
) -> str:
    """The HTML of the page: every cell once, in the order given, by paper and table.

    Filters and the open cell are in the address: `index.html#paper=000&state=changed&open=ID`.

    Args:
        cells: with the keys of `KEYS`, and perhaps `letters` (runs that this one differs from significantly; only where
            runs per query are at hand). `published` and `measured` are numbers, texts, or None; `commands` a list of
            texts; `parameters` a mapping; `history` a list of mappings (date, commit, value, …), oldest first.
        papers: paper → its title.
        made: one line on what the page was made from (date, commit).
        figures: (caption, SVG) pairs made by `matrix_figures`.

    Raises:
        InputError: a missing key, an unknown state, a cell twice, one that is reproduced or changed without a measured
            value; all of them at once.
    """
    _check(cells)
    ids = _ids(cells)
    entries, details = _entries(cells, ids)
    tables = _tables(cells, ids, entries)
    counts = {state: sum(cell["state"] == state for cell in cells) for state in STATES}
    return render(
        "regress",
        "matrix.html.j2",
        cells=entries,
        details=details,
        tables=tables,
        papers=_papers(tables, papers or {}),
        states=STATES,
        counts=counts,
        datasets=list(dict.fromkeys(entry["group"] for entry in entries)),
        total=len(cells),
        tuned=sum(bool(cell["tuned_on_test"]) for cell in cells),
        lettered=any(cell.get("letters") for cell in cells),
        made=made,
        figures=figures,
    )


def slug(text: str) -> str:
    """Small letters and digits of a text, in words joined by hyphens: part of an address.

    >>> slug("TAS-B [our evaluation]"), slug("nDCG@10 x100")
    ('tas-b-our-evaluation', 'ndcg-10-x100')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _check(cells: Sequence[Mapping[str, Any]]) -> None:
    faults = []
    seen: dict[tuple[str, ...], int] = {}
    for number, cell in enumerate(cells):
        lacking = [key for key in KEYS if key not in cell]
        if lacking:
            faults.append(f"cell {number}: no {', '.join(lacking)}")
            continue
        name = f"cell {number} ({cell['paper']} table {cell['table']}, {cell['row']}, {cell['measure']})"
        if cell["state"] not in STATES:
            faults.append(f"{name}: state {cell['state']!r}; expected one of {', '.join(STATES)}")
        if cell["state"] in ("reproduced", "changed") and cell["measured"] is None:
            faults.append(f"{name}: {cell['state']}, but nothing is measured")
        key = tuple(str(cell[part]) for part in ("paper", "table", "row", "dataset", "measure"))
        if key in seen:
            faults.append(f"{name}: stands there a second time (first as cell {seen[key]})")
        seen.setdefault(key, number)
    if faults:
        raise InputError(f"cells of the matrix: {'; '.join(faults[:20])}" + (" …" if len(faults) > 20 else ""))


def _ids(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """An address of every cell that stays when others are added: its names, numbered where two make the same."""
    used: dict[str, int] = {}
    ids = []
    for cell in cells:
        name = ".".join(slug(str(cell[part])) for part in ("paper", "table", "row", "dataset", "measure"))
        used[name] = used.get(name, 0) + 1
        ids.append(name if used[name] == 1 else f"{name}-{used[name]}")
    return ids


def _entries(cells: Sequence[Mapping[str, Any]], ids: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the page's script knows: one entry a cell, and the commands, parameters and history, equal ones once."""
    details: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    entries = []
    decimals = _decimals(cells)
    for cell, identity in zip(cells, ids, strict=True):
        about = {
            "commands": [cell["commands"]] if isinstance(cell["commands"], str) else list(cell["commands"] or ()),
            "parameters": {str(key): _plain(value) for key, value in (cell["parameters"] or {}).items()},
            "history": [
                {str(key): _plain(value) for key, value in entry.items() if value is not None}
                for entry in cell["history"] or ()
            ],
        }
        place = places.setdefault(repr(about), len(details))
        if place == len(details):
            details.append(about)
        digits = decimals[cell["paper"], cell["table"], cell["measure"]]
        entries.append(
            {
                "id": identity,
                **{key: str(cell[key]) for key in ("paper", "table", "row", "dataset", "measure", "state")},
                "group": _OF_QUERY.sub("", str(cell["dataset"])),
                "protocol": cell["protocol"] or "",
                "note": cell["note"] or "",
                "published": _number(cell["published"], digits),
                "measured": _number(cell["measured"], digits + 1),
                "difference": _difference(cell, digits + 1),
                "letters": cell.get("letters") or "",
                "tuned": bool(cell["tuned_on_test"]),
                "about": place,
            }
        )
    return entries, details


def _tables(cells: Sequence[Mapping[str, Any]], ids: list[str], entries: list[dict[str, Any]]) -> list[Table]:
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        numbers.setdefault((entry["paper"], entry["table"]), []).append(number)
    tables = []
    for (paper, name), members in numbers.items():
        columns = list(dict.fromkeys((entries[n]["dataset"], entries[n]["measure"]) for n in members))
        rows = list(dict.fromkeys(entries[n]["row"] for n in members))
        places = {
            (entries[n]["row"], entries[n]["dataset"], entries[n]["measure"]): _shown(n, entries[n]) for n in members
        }
        if len(columns) > TALL:
            groups = [Group(_common(columns), rows)]
            lines = [(_line(d, m, columns), [places.get((row, d, m)) for row in rows]) for d, m in columns]
        else:
            groups = []
            for dataset, measure in columns:
                if not groups or groups[-1].name != dataset:
                    groups.append(Group(dataset, []))
                groups[-1].columns.append(measure)
            lines = [(row, [places.get((row, d, m)) for d, m in columns]) for row in rows]
        tables.append(
            Table(
                paper=paper,
                name=name,
                caption=str(cells[members[0]]["caption"] or ""),
                corner="query" if len(columns) > TALL else "row",
                groups=groups,
                rows=lines,
                counts=_counted(entries[n]["state"] for n in members),
                closed=len(columns) > TALL,
            )
        )
    return tables


def _shown(number: int, entry: dict[str, Any]) -> Shown:
    return Shown(
        number=number,
        sign=STATES[entry["state"]][0],
        **{key: entry[key] for key in ("id", "published", "measured", "letters", "state", "tuned")},
    )


def _common(columns: list[tuple[str, str]]) -> str:
    """The heading over exchanged columns: the data set and measure that all have."""
    names = list(dict.fromkeys(f"{_OF_QUERY.sub('', dataset)}, {measure}" for dataset, measure in columns))
    return names[0] if len(names) == 1 else "value"


def _line(dataset: str, measure: str, columns: list[tuple[str, str]]) -> str:
    query = _OF_QUERY.search(dataset)
    if query and _common(columns) != "value":
        return query.group().removeprefix(" query ")
    return f"{dataset}, {measure}"


def _papers(tables: list[Table], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    found: dict[str, list[Table]] = {}
    for table in tables:
        found.setdefault(table.paper, []).append(table)
    return [{"id": paper, "title": titles.get(paper, ""), "tables": members} for paper, members in found.items()]


def _counted(states: Any) -> dict[str, int]:
    counts = dict.fromkeys(STATES, 0)
    for state in states:
        counts[state] += 1
    return counts


def _decimals(cells: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], int]:
    """Printed decimals of a table's measure: the most that one of its published numbers needs."""
    most: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        value = cell["published"]
        key = cell["paper"], cell["table"], cell["measure"]
        digits = len(repr(value).partition(".")[2]) if isinstance(value, float) and not value.is_integer() else 0
        most[key] = max(most.get(key, 0), digits)
    return most


def _number(value: Any, decimals: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    text = f"{value:.{decimals}f}"
    return text[1:] if text.startswith("0.") else text  # .388, as the papers print it


def _difference(cell: Mapping[str, Any], decimals: int) -> str:
    published, measured = cell["published"], cell["measured"]
    if not isinstance(published, int | float) or not isinstance(measured, int | float):
        return ""
    return f"{measured - published:+.{decimals}f}".replace("-", "−")


def _plain(value: Any) -> Any:
    """A value that JSON has, else its text."""
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
