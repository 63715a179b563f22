"""Published cells and what was measured for them, as the cells of the matrix page, with letters of significance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record
from rnnreranker.regress.papers.paper import Published

Key = tuple[str, str, str, str, str]  # paper, table, row, dataset, measure
LEVEL = 0.05  # of p after Holm's correction: below it rows differ significantly
JOINED = frozenset({"measured", "state", "note", "commands", "parameters", "history", "letter", "letters", "tuned"})


def key_of(cell: Published) -> Key:
    """What names a cell: paper, table, row, data set, measure as printed."""
    return cell.paper, cell.table, cell.row, cell.dataset, cell.measure


def page_cells(
    cells: Iterable[Published], joined: Mapping[Key, Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """One dictionary a cell, as `html.matrix_pages` takes them, in the order given.

    The state, where `joined` does not say it: `external` and `planned` as the paper's file says, and `external` for
    times of the authors' machine; `reproduced` where the measured value is within half a unit of the printed last
    digit, else `changed`; `runnable elsewhere` where nothing is measured.

    Args:
        cells: of `paper.published`.
        joined: cell → any of `measured` (in the unit of ir-measures: .735, also where the paper prints 73.5), `state`,
            `note`, `commands`, `parameters`, `history` (its `value`s in the same unit), `letter` (of its row),
            `letters` (of the rows it differs from), `tuned` (the paper chose parameters of this system on the set).

    Raises:
        InputError: a key that no cell has, or something else than the above for one.
    """
    cells = list(cells)
    joined = dict(joined or {})
    unknown = [key for key in joined if key not in {key_of(cell) for cell in cells}]
    wrong = sorted({name for values in joined.values() for name in values} - JOINED)
    if unknown or wrong:
        raise InputError(f"measured values: {f'no cell {unknown[0]}' if unknown else f'unknown {wrong[0]}'}")
    return [_page_cell(cell, joined.get(key_of(cell), {})) for cell in cells]


def _page_cell(cell: Published, given: Mapping[str, Any]) -> dict[str, Any]:
    measured = given.get("measured")
    if measured is not None:
        measured *= cell.factor
    time = "a time on the authors' machine: shown, never compared" if cell.columns.latency else ""
    remarks = (given.get("note", ""), time, cell.how.external, cell.how.planned, cell.how.note)
    return {
        **{key: getattr(cell, key) for key in ("paper", "table", "caption", "row", "dataset", "measure")},
        "protocol": cell.protocol,
        "published": cell.value,
        "measured": measured,
        "decimals": cell.columns.decimals,
        "state": given.get("state") or _state(cell, measured),
        "note": "; ".join(dict.fromkeys(filter(None, remarks))),
        "commands": given.get("commands", []),
        "parameters": given.get("parameters") or _where(cell),
        "history": [_in_printed_units(entry, cell) for entry in given.get("history", ())],
        "letter": given.get("letter", ""),
        "letters": given.get("letters", ""),
        "tuned": given.get("tuned", False),
    }


def _in_printed_units(entry: Mapping[str, Any], cell: Published) -> dict[str, Any]:
    """An entry of the history with its value as the table prints it, two digits longer."""
    value = entry.get("value")
    shown = {"value": round(value * cell.factor, cell.columns.decimals + 2)} if isinstance(value, float) else {}
    return {**entry, **shown}


def _state(cell: Published, measured: float | None) -> str:
    if measured is not None and isinstance(cell.value, int | float) and not cell.columns.latency:
        return "reproduced" if abs(measured - cell.value) <= cell.half_unit + 1e-9 else "changed"
    if cell.how.planned:
        return "planned"
    return "external" if cell.how.external or cell.columns.latency else "runnable elsewhere"


def _where(cell: Published) -> dict[str, str]:
    """Query set and condition that obtain the value."""
    pairs = {"query set": cell.columns.query_set, "condition": cell.how.condition}
    return {name: value for name, value in pairs.items() if value and cell.how.condition}


def letters(
    cells: Sequence[Published], newest: Mapping[tuple[str, str], Record]
) -> tuple[dict[Key, str], dict[Key, str]]:
    """For cells with runs at hand: the letter of their row, and the letters of the rows they differ from (p < .05).

    A table has letters where it measures two systems or more whose runs were compared topic by topic.
    """
    pairs = {system: record.outcome.get("pairs", []) for system, record in newest.items()}
    rows: dict[tuple[str, str], dict[str, set[tuple[str, str]]]] = {}
    for cell in cells:
        system = (cell.columns.query_set, cell.how.condition)
        if pairs.get(system):
            rows.setdefault((cell.paper, cell.table), {}).setdefault(cell.row, set()).add(system)
    of_row: dict[Key, str] = {}
    differs: dict[Key, str] = {}
    for cell in cells:
        table = rows.get((cell.paper, cell.table), {})
        system = (cell.columns.query_set, cell.how.condition)
        measured = {condition for systems in table.values() for _, condition in systems}
        if cell.row not in table or system not in newest or len(measured) < 2:
            continue
        names = dict(zip(table, ascii_lowercase, strict=False))
        of_row[key_of(cell)] = names.get(cell.row, "")
        others = {
            (system[0], str(pair["condition"]))
            for pair in pairs[system]
            if (pair["protocol"], pair["measure"]) == (cell.columns.protocol, cell.metric)
            and pair["p_holm"] < LEVEL
            and _is_newest(newest.get((system[0], str(pair["condition"]))), str(pair["sha256"]))
        }
        different = [names[row] for row, systems in table.items() if row in names and systems & others]
        differs[key_of(cell)] = "" if cell.query else "".join(different)
    return of_row, differs


def _is_newest(record: Record | None, sha256: str) -> bool:
    """Whether the other run of a comparison is still the one whose values are shown."""
    return record is not None and record.inputs.get("run") == sha256
