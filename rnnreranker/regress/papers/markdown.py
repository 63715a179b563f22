"""The Markdown page of a paper: its tables, every published cell beside what was measured for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rnnreranker.base.pages import render, row
from rnnreranker.regress.pages.page import Printed
from rnnreranker.regress.papers.cells import STATES, entries, group_of, headed
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.papers.paper import Paper, Published, Table, remark
from rnnreranker.regress.papers.twins import Twin, TwinSet, interval_text, twin_names


def paper_page(paper: Paper, matrix: Matrix) -> str:
    """The Markdown page of a paper.

    Args:
        paper: what the page is about.
        matrix: of all papers, with what is on record.
    """
    pairs = [pair for pair in zip(matrix.published, matrix.cells, strict=True) if pair[0].paper == paper.id]
    published, cells = [cell for cell, _ in pairs], [shown for _, shown in pairs]
    shown = entries(cells)[0]
    return render(
        "regress.papers",
        "paper.md.j2",
        paper=paper,
        sections=[
            _section(table, list(zip(published, shown, strict=True)), matrix.twins.get((paper.id, table.table), []))
            for table in paper.tables
        ],
        specs={name: spec.name for name, (spec, _) in matrix.sets.items()},
        counts=counted(cell["state"] for cell in cells),
        reproduced=reproduced(cells),
        states=STATES,
        row=row,
        tuned=sum(bool(cell["tuned"]) for cell in cells),
        lettered=any(entry["letters"] for entry in shown),
    )


def cells_of(matrix: Matrix, spec: str) -> list[Printed]:
    """The published cells that a spec obtains, as its page shows them."""
    pairs = list(matrix.of_spec(spec))
    return [
        Printed(
            query_set=cell.columns.query_set,
            condition=cell.how.condition,
            paper=cell.paper,
            where=f"{cell.paper} {headed(cell.table)}, {cell.row}" + (f", query {cell.query}" if cell.query else ""),
            protocol=cell.columns.protocol,
            published=published_text(text),
            tuned=text["tuned"],
            **{key: text[key] for key in ("measure", "measured", "difference", "state", "note")},
        )
        for (cell, _), text in zip(pairs, entries([shown for _, shown in pairs])[0], strict=True)
    ]


def counted(states: Iterable[str]) -> str:
    """How many there are of each state, in words.

    >>> counted(["planned", "reproduced", "planned"])
    '1 reproduced, 2 planned'
    """
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


def reproduced(cells: Sequence[Mapping[str, Any]]) -> str:
    """Which rows the reproduced cells are of, on which sets, and the run files they were measured on; "" without any.

    >>> reproduced([{"state": "reproduced", "row": "BM25", "dataset": "A query 7", "history": [{"run": "a.txt"}]}])
    '1 value of BM25 (A), measured on the run file a.txt'
    """
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["state"] == "reproduced":
            rows.setdefault(cell["row"], []).append(cell)
    texts = []
    for name, mine in rows.items():
        sets = ", ".join(dict.fromkeys(group_of(cell["dataset"]) for cell in mine))
        files = list(dict.fromkeys(entry["run"] for cell in mine for entry in cell["history"][-1:]))
        on = f"measured on the run file{'s' if len(files) > 1 else ''} {' and '.join(files)}"
        texts.append(f"{len(mine)} {'value' if len(mine) == 1 else 'values'} of {name} ({sets}), {on}")
    return "; ".join(texts)


def published_text(entry: Mapping[str, Any]) -> str:
    """The published value, with a dagger where the paper chose its parameters on the set that it reports."""
    return entry["published"] + ("†" if entry["tuned"] else "")


def _section(table: Table, pairs: Sequence[tuple[Published, dict[str, Any]]], twins: list[TwinSet]) -> dict[str, Any]:
    """A table of the paper as the template shows it."""
    mine = [(cell, entry) for cell, entry in pairs if cell.table == table.table]
    remarks = list(dict.fromkeys(entry["note"] for _, entry in mine if entry["note"]))
    head = ["row", "data set", "measure", "published", "measured", "difference", "state"]
    head += [f"twin: {one_set.id}" for one_set in twins]
    lines = []
    for cell, entry in mine:
        state = entry["state"] + (f" ({remarks.index(entry['note']) + 1})" if entry["note"] else "")
        measured = entry["measured"] + (f" {entry['letters']}" if entry["letters"] else "")
        name = entry["row"] + (f" [{entry['letter']}]" if entry["letter"] else "")
        texts = (name, entry["dataset"], entry["measure"], published_text(entry), measured)
        lines.append([*texts, entry["difference"], state, *(one_set.text(cell.row, cell.metric) for one_set in twins)])
    columns = ((1, "dataset"), (2, "measure")) if len(mine) > 1 else ()
    same = [column for column, key in columns if len({entry[key] for _, entry in mine}) == 1]
    caption = table.caption
    if same:
        common = ", ".join(lines[0][column] for column in same)
        caption = caption if common in caption else f"{caption} ({common})"
        head = [text for column, text in enumerate(head) if column not in same]
        lines = [[text for column, text in enumerate(line) if column not in same] for line in lines]
    measures = list(dict.fromkeys(name for one_set in twins for name in one_set.measures))
    measures = [
        name
        for name in measures
        if any(interval_text(one_set.agreements[name]) for one_set in twins if name in one_set.measures)
    ] or measures
    return {
        "name": headed(table.table),
        "caption": caption,
        "note": table.note,
        "head": head,
        "lines": lines,  # a text for each heading, one list a published cell
        "remarks": remarks,  # on cells, in the order of their numbers in the column `state`
        "query_sets": list(dict.fromkeys(columns.query_set for columns in table.columns if columns.query_set)),
        "counts": counted(entry["state"] for _, entry in mine),
        "by_query": _by_query(mine),
        "twins": twins,
        "twin_measures": measures,
        "agreements": [_agreements(one_set, measures) for one_set in twins],  # a line for each query set
        "rows": [[row, twin.name, f"`{twin.command}`"] for row, twin in _first(twins).items()],
        "twins_note": table.twins_note,
        "resampled": any(
            (one.among or one).low is not None for one_set in twins for one in one_set.agreements.values()
        ),
    }


def _first(twins: Sequence[TwinSet]) -> dict[str, Twin]:
    """Row → its twin on the first set that has one."""
    return {row: next(one_set.twins[row] for one_set in twins if row in one_set.twins) for row in twin_names(twins)}


def _agreements(twins: TwinSet, measures: Sequence[str]) -> list[str]:
    texts = [interval_text(twins.agreements[name]) if name in twins.agreements else "" for name in measures]
    return [f"[{twins.id}]({twins.spec}.md): {twins.model} on {twins.title}", *texts]


def _by_query(pairs: Sequence[tuple[Published, dict[str, Any]]]) -> dict[str, tuple[int, list[list[str]]]]:
    """Rows measured query by query: how many queries, and the lines of those that differ, the largest first."""
    by_row: dict[str, tuple[int, list[tuple[float, list[str]]]]] = {}
    for cell, entry in pairs:
        if cell.query and entry["measured"]:
            count, lines = by_row.get(cell.row, (0, []))
            if entry["state"] == "changed":
                line = [cell.query, entry["published"], entry["measured"], entry["difference"], remark(cell)]
                lines.append((abs(float(entry["measured"]) - float(entry["published"])), line))
            by_row[cell.row] = count + 1, lines
    return {
        row: (count, [line for _, line in sorted(lines, key=lambda pair: -pair[0])])
        for row, (count, lines) in by_row.items()
    }
