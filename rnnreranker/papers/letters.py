"""Letters behind measured values: which rows of a table differ significantly, where their runs are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from rnnreranker.papers.join import Key, key_of
from rnnreranker.papers.paper import Published
from rnnreranker.record import Record

LEVEL = 0.05  # of p after Holm's correction


def letters(
    cells: Sequence[Published], newest: Mapping[tuple[str, str], Record]
) -> tuple[dict[Key, str], dict[Key, str]]:
    """For cells with runs at hand: the letter of their row, and the letters of the rows they differ from (p < .05).

    A table has letters where it measures two systems or more whose runs were compared topic by topic.

    Args:
        cells: published ones.
        newest: (query set, condition) → what was measured last.
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
        found = [names[row] for row, systems in table.items() if row in names and systems & others]
        differs[key_of(cell)] = "" if cell.query else "".join(found)
    return of_row, differs


def _is_newest(record: Record | None, sha256: str) -> bool:
    """Whether the other run of a comparison is still the one whose values are shown."""
    return record is not None and record.inputs.get("run") == sha256
