"""Cells of the matrix: what each must say, and the texts that its page shows of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rnnreranker.base.errors import InputError

STATES = {  # state: sign, what it says
    "reproduced": ("✓", "measured here; within half a unit of the printed last digit"),
    "changed": ("≠", "measured here; differs by more than that"),
    "rehearsed": (
        "▷",
        "all its steps ran to their end on miniatures of data and models, in their original formats; its value needs "
        "these themselves, a GPU or a network",
    ),
    "runnable elsewhere": (
        "▸",
        "every step is in the toolkit; needs data, a GPU or a network that the machine of these records lacked",
    ),
    "planned": ("○", "a step whose method is not in the toolkit yet"),
    "external": ("–", "quoted from others, or a time on the authors' machine; nothing to run"),
}
KEYS = (
    *("paper", "table", "caption", "row", "dataset", "measure", "protocol", "published", "measured"),
    *("state", "note", "commands", "parameters", "history", "tuned"),
)
_OF_QUERY = re.compile(r" query (\S+)$")  # a data set that is one query of another: one entry in the filter


def slug(text: str) -> str:
    """Small letters and digits of a text, in words joined by hyphens: part of an address.

    >>> slug("TAS-B [our evaluation]"), slug("nDCG@10 x100")
    ('tas-b-our-evaluation', 'ndcg-10-x100')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def headed(table: str) -> str:
    """What a table is called: numbers are of tables, other names are of what the text says.

    >>> headed("3"), headed("Section 3.1")
    ('Table 3', 'Section 3.1')
    """
    return f"Table {table}" if table.isdigit() else table


def query_of(dataset: str) -> str:
    """The query that a data set is, or an empty text.

    >>> query_of("TREC DL 2021 passage query 2082"), query_of("TREC DL 2021 passage")
    ('2082', '')
    """
    match = _OF_QUERY.search(dataset)
    return match.group(1) if match else ""


def group_of(dataset: str) -> str:
    """The data set without its query."""
    return _OF_QUERY.sub("", dataset)


def counted(states: Iterable[str]) -> str:
    """How many there are of each state, in words.

    >>> counted(["planned", "reproduced", "planned"])
    '1 reproduced, 2 planned'
    """
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


def check(cells: Sequence[Mapping[str, Any]]) -> None:
    """Nothing, when every cell has all keys of `KEYS`, a known state, and stands once.

    Raises:
        InputError: all faults at once.
    """
    faults = []
    seen: dict[tuple[str, ...], int] = {}
    for number, cell in enumerate(cells):
        lacking = [key for key in KEYS if key not in cell]
        if lacking:
            faults.append(f"cell {number}: no {', '.join(lacking)}")
            continue
        name = f"cell {number} ({cell['paper']} {headed(cell['table'])}, {cell['row']}, {cell['measure']})"
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


def _addresses(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """An address of every cell that stays when others are added: its names, numbered where two make the same."""
    used: dict[str, int] = {}
    ids = []
    for cell in cells:
        name = ".".join(slug(str(cell[part])) for part in ("paper", "table", "row", "dataset", "measure"))
        used[name] = used.get(name, 0) + 1
        ids.append(name if used[name] == 1 else f"{name}-{used[name]}")
    return ids


def entries(cells: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the page's script knows: one entry a cell, and the commands, parameters and history, equal ones once.

    Args:
        cells: as `check` accepts them.
    """
    details: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    shown = []
    decimals = _decimals(cells)
    for cell, identity in zip(cells, _addresses(cells), strict=True):
        about = {
            "commands": [cell["commands"]] if isinstance(cell["commands"], str) else list(cell["commands"] or ()),
            "parameters": [[str(key), _plain(value)] for key, value in (cell["parameters"] or {}).items()],
            "history": [
                [[str(key), _plain(value)] for key, value in entry.items() if value is not None]
                for entry in cell["history"] or ()
            ],
        }
        number = numbers.setdefault(repr(about), len(details))
        if number == len(details):
            details.append(about)
        digits = cell.get("decimals", decimals[cell["paper"], cell["table"], cell["measure"]])
        finer = digits + (2 if cell["state"] == "changed" else 1)  # so that no changed value looks reproduced
        shown.append(
            {
                "id": identity,
                **{key: str(cell[key]) for key in ("paper", "table", "row", "dataset", "measure", "state")},
                "where": headed(str(cell["table"])),
                "group": group_of(str(cell["dataset"])),
                "protocol": cell["protocol"] or "",
                "note": cell["note"] or "",
                "published": _number(cell["published"], digits),
                "measured": _number(cell["measured"], finer),
                "difference": _difference(cell, finer),
                "letter": cell.get("letter") or "",
                "letters": cell.get("letters") or "",
                "tuned": bool(cell["tuned"]),
                "about": number,
            }
        )
    return shown, details


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
    size = round(abs(measured - published), decimals)
    sign = "" if size == 0 else "+" if measured > published else "−"
    return sign + _number(size, decimals)


def _plain(value: Any) -> Any:
    """A value that JSON has, else its text."""
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
