"""The Markdown page of a paper: its tables, every published cell beside what was measured for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.pages import render
from rnnreranker.regress.matrix_cells import STATES, addresses, entries, query_of
from rnnreranker.regress.papers import Paper

LINE = "| {} |"


@dataclass(frozen=True)
class Section:
    """A table of the paper as the page shows it.

    Attributes:
        head: headings of the columns.
        lines: a text for each heading, one list a published cell.
        remarks: what is said of cells, in the order of their numbers in the column `state`.
        specs: those that obtain the values.
        by_query: for a table of single queries: row → (number of measured ones, lines of those that differ).
    """

    name: str
    caption: str
    note: str
    head: list[str]
    lines: list[list[str]]
    remarks: list[str]
    specs: list[str]
    counts: str
    by_query: dict[str, tuple[int, list[list[str]]]]


def paper_page(paper: Paper, cells: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown page of a paper.

    Args:
        paper: whose cells these are.
        cells: all of this paper, in its order, as `matrix_page.matrix` takes them.
    """
    shown = entries(cells, addresses(cells))[0]
    return render(
        "regress",
        "paper.md.j2",
        paper=paper,
        sections=[_section(table.table, table.note, cells, shown, _specs(table)) for table in paper.tables],
        counts=counted(cells),
        states=STATES,
        row=row,
        tuned=sum(bool(cell["tuned_on_test"]) for cell in cells),
    )


def counted(cells: Sequence[Mapping[str, Any]]) -> str:
    """How many cells are in which state, in words.

    >>> counted([{"state": "planned"}, {"state": "reproduced"}, {"state": "planned"}])
    '1 reproduced, 2 planned'
    """
    found = Counter(cell["state"] for cell in cells)
    return ", ".join(f"{found[state]} {state}" for state in STATES if found[state])


def row(texts: Sequence[str]) -> str:
    """A line of a Markdown table.

    >>> row(["a|b", ""])
    '| a\\\\|b | – |'
    """
    return LINE.format(" | ".join((text or "–").replace("|", r"\|") for text in texts))


def published_text(entry: Mapping[str, Any]) -> str:
    """The published value, with a dagger where the paper chose its parameters on the set that it reports."""
    return entry["published"] + ("†" if entry["tuned"] else "")


def _specs(table: Any) -> list[str]:
    return list(dict.fromkeys(columns.spec for columns in table.columns if columns.spec))


def _section(
    name: str, note: str, cells: Sequence[Mapping[str, Any]], shown: Sequence[dict[str, Any]], specs: list[str]
) -> Section:
    mine = [(cell, entry) for cell, entry in zip(cells, shown, strict=True) if entry["table"] == name]
    remarks: list[str] = []
    constant = {key: len({entry[key] for _, entry in mine}) == 1 for key in ("dataset", "measure")}
    head = ["row", "data set", "measure", "published", "measured", "difference", "state"]
    lines = []
    for _, entry in mine:
        state = entry["state"]
        if entry["note"]:
            if entry["note"] not in remarks:
                remarks.append(entry["note"])
            state += f" ({remarks.index(entry['note']) + 1})"
        measured = entry["measured"] + (f" {entry['letters']}" if entry["letters"] else "")
        texts = (entry["row"], entry["dataset"], entry["measure"], published_text(entry), measured)
        lines.append([*texts, entry["difference"], state])
    same = [place for place, key in ((1, "dataset"), (2, "measure")) if constant[key] and len(mine) > 1]
    caption = str(mine[0][0]["caption"]) if mine else ""
    if same:
        common = ", ".join(lines[0][place] for place in same)
        caption = caption if common in caption else f"{caption} ({common})"
        head = [text for place, text in enumerate(head) if place not in same]
        lines = [[text for place, text in enumerate(line) if place not in same] for line in lines]
    return Section(
        name=name,
        caption=caption,
        note=note,
        head=head,
        lines=lines,
        remarks=remarks,
        specs=specs,
        counts=counted([cell for cell, _ in mine]),
        by_query=_by_query([entry for _, entry in mine]),
    )


def _by_query(shown: Sequence[dict[str, Any]]) -> dict[str, tuple[int, list[list[str]]]]:
    """Rows measured query by query: how many queries, and the lines of those that differ."""
    found: dict[str, tuple[int, list[list[str]]]] = {}
    for entry in shown:
        query = query_of(entry["dataset"])
        if query and entry["measured"]:
            count, lines = found.get(entry["row"], (0, []))
            if entry["state"] == "changed":
                line = [query, entry["published"], entry["measured"], entry["difference"], entry["note"]]
                lines = [*lines, line]
            found[entry["row"]] = count + 1, lines
    return found
