"""The matrix of published cells as HTML pages that need nothing else: every cell at a glance, and a page a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base.pages import render
from rnnreranker.regress.papers.cells import STATES, check
from rnnreranker.regress.papers.cells import entries as texts
from rnnreranker.regress.papers.figures import Drawn
from rnnreranker.regress.papers.numbered import numbered
from rnnreranker.regress.papers.tables import Twins, count_states, tables_of
from rnnreranker.regress.papers.twins import interval_text, listed, twin_names

LANDING = "index.html"


def matrix_pages(
    cells: Sequence[Mapping[str, Any]],
    *,
    papers: Mapping[str, str] | None = None,
    citations: Mapping[str, str] | None = None,
    abouts: Mapping[str, str] | None = None,
    made: str = "",
    figures: Sequence[Drawn] = (),
    twins: Twins | None = None,
    notes: Mapping[tuple[str, str], str] | None = None,
    twin_notes: Mapping[tuple[str, str], str] | None = None,
) -> dict[str, str]:
    """File name → HTML: `index.html` with a mark for every cell, and `paper-ID.html` with the tables of each paper.

    Every cell stands once on the page of its paper, in the order given. Filters and the open cell are in the address of
    that page: `paper-000.html#state=changed&open=ID`; the mark of a cell links to it. Links to pages beside the folder
    are written `../regressions/NAME.md`.

    Args:
        cells: with the keys of `cells.KEYS`, and perhaps `decimals` (printed digits; else seen from the table)
            `letter` (of the row) and `letters` (of the rows that this one differs from significantly; only where runs
            per query are at hand);
            `join.page_cells` makes them. `published` and `measured` are numbers, texts, or
            None; `commands` a list of texts; `parameters` a mapping; `history` a list of mappings (date, commit,
            value, …), oldest first.
        papers: paper → its title; citations: → its authors, title, venue and year; abouts: → a remark on it.
        made: one line on what the pages were made from (date, commit).
        figures: as `figures.figures` makes them.
        twins: paper and table → what runs here in the place of its rows, a query set each.
        notes: paper and table → a remark on the table; twin_notes: → one on its twins.

    Raises:
        InputError: a missing key, an unknown state, a cell twice, one that is reproduced or changed without a measured
            value; all of them at once.
    """
    check(cells)
    entries, details = texts(cells)
    captions = {(str(cell["paper"]), str(cell["table"])): str(cell["caption"] or "") for cell in cells}
    all_papers = []
    for identity in dict.fromkeys(entry["paper"] for entry in entries):
        mine = [entry for entry in entries if entry["paper"] == identity]
        all_papers.append(
            {
                "id": identity,
                "page": f"paper-{identity}.html",
                "title": (papers or {}).get(identity, ""),
                "citation": (citations or {}).get(identity, ""),
                "about": (abouts or {}).get(identity, ""),
                "entries": mine,
                "counts": count_states(mine),
                "tables": tables_of(mine, captions, notes or {}, twins or {}, twin_notes or {}),
            }
        )
    common = {"papers": all_papers, "landing": LANDING, "made": made, "states": STATES}
    landing = render(
        "regress.papers", "landing.html.j2", **common, counts=count_states(entries), total=len(cells), figures=figures
    )
    return {LANDING: landing} | {one["page"]: _paper_page(one, details, common) for one in all_papers}


def _paper_page(paper: Mapping[str, Any], details: Sequence[Mapping[str, Any]], common: Mapping[str, Any]) -> str:
    entries = paper["entries"]
    sets = [one for table in paper["tables"] for one in table["twins"]]
    parameters = [dict(details[entry["about"]]["parameters"]) for entry in entries]
    return render(
        "regress.papers",
        "paper.html.j2",
        **common,
        paper=paper,
        known=numbered(entries, details),
        datasets=list(dict.fromkeys(entry["group"] for entry in entries)),
        specs=list(dict.fromkeys(one["spec"] for one in parameters if "spec" in one)),
        tuned=sum(entry["tuned"] for entry in entries),
        lettered=any(entry["letters"] for entry in entries),
        models=listed(list(dict.fromkeys(name for one in sets for name in one.models))),
        interval_text=interval_text,
        twin_names=twin_names,
    )
