"""Letters behind measured values: which rows of a table differ significantly, where their runs are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase

from rnnreranker.papers.join import Key, key_of
from rnnreranker.papers.paper import Published
from rnnreranker.regress.published_runs import Measured

LEVEL = 0.05  # of p after Holm's correction


def letters(
    cells: Sequence[Published], newest: Mapping[tuple[str, str], Measured]
) -> tuple[dict[Key, str], dict[Key, str]]:
    """For cells with runs at hand: the letter of their row, and the letters of the rows they differ from (p < .05).

    A table has letters where it measures two systems or more whose runs were compared topic by topic.

    Args:
        cells: published ones.
        newest: (spec, condition) → what was measured last.
    """
    rows: dict[tuple[str, str], dict[str, set[tuple[str, str]]]] = {}
    for cell in cells:
        system = (cell.columns.spec, cell.how.condition)
        if system in newest and newest[system].pairs:
            rows.setdefault((cell.paper, cell.table), {}).setdefault(cell.row, set()).add(system)
    of_row: dict[Key, str] = {}
    differs: dict[Key, str] = {}
    for cell in cells:
        table = rows.get((cell.paper, cell.table), {})
        system = (cell.columns.spec, cell.how.condition)
        if (
            cell.row not in table
            or system not in newest
            or len({c for systems in table.values() for _, c in systems}) < 2
        ):
            continue
        names = dict(zip(table, ascii_lowercase, strict=False))
        of_row[key_of(cell)] = names.get(cell.row, "")
        others = {
            str(pair["condition"])
            for pair in newest[system].pairs
            if (pair["protocol"], pair["measure"]) == (cell.columns.protocol, cell.metric)
            and pair["p_holm"] < LEVEL
            and _is_newest(newest.get((system[0], str(pair["condition"]))), str(pair["sha256"]))
        }
        found = [names[row] for row, systems in table.items() if row in names and _among(systems, system[0], others)]
        differs[key_of(cell)] = "" if cell.query else "".join(found)
    return of_row, differs


def _is_newest(entry: Measured | None, sha256: str) -> bool:
    """Whether the other run of a comparison is still the one whose values are shown."""
    return entry is not None and entry.sha256 == sha256


def _among(systems: set[tuple[str, str]], spec: str, conditions: set[str]) -> bool:
    return any((spec, condition) in systems for condition in conditions)
