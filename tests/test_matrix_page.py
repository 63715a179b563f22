"""The pages of the matrix: every cell once, values apart, every text once, nothing from outside, bad cells refused."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas

from rnnreranker.base.pages import write_page
from rnnreranker.regress.papers.paper import Paper
from rnnreranker.regress.papers.site import matrix_pages


def cell(**given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        **{"paper": "000", "table": "1", "caption": "Results", "row": "TAS-B", "dataset": "dev", "measure": "RR@10"},
        **{"protocol": "", "published": 0.344, "measured": None, "state": "planned", "note": "", "commands": []},
        **{"parameters": {}, "history": [], "tuned": False, "query": "", "decimals": 3},
    }
    return {"group": given.get("dataset", "dev")} | made | given


def pages_of(cells: list[dict[str, Any]], *args: Any, **given: Any) -> dict[str, str]:
    return matrix_pages(pandas.DataFrame(cells, dtype=object), *args, **given)


def page_of(cells: list[dict[str, Any]], **given: Any) -> str:
    """The page of paper 000."""
    return pages_of(cells, **given)["paper-000.html"]


class Rows(HTMLParser):
    """The texts of the cells of all tables, row by row, with the class of each."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, str]]] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append((dict(attrs).get("class") or "", ""))
            self._inside = True
        if tag == "button" and self._inside:
            self.handle_data(f"{dict(attrs)['title']}: ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            kind, text = self.rows[-1][-1]
            self.rows[-1][-1] = (kind, (text + data).strip())


def test_published_and_measured_values_have_columns_of_their_own() -> None:
    cells = [
        cell(state="reproduced", measured=0.34418),
        cell(measure="nDCG@10", published=0.4, decimals=1, state="changed", measured=0.41, tuned=True),
        cell(row="R. TAS-B", published=0.35),
        cell(row="R. TAS-B", measure="nDCG@10", published="50*", state="external"),
        cell(row="BM25", published=1.0, measured=1.0, state="reproduced"),
    ]
    rows = Rows(page_of(cells)).rows
    assert [text for _, text in rows[0]] == ["row", "dev"]
    assert [text for _, text in rows[1]] == ["RR@10", "nDCG@10"]
    assert [text for _, text in rows[2]] == ["published", "measured"] * 2
    assert rows[3:] == [
        [
            *(("", "TAS-B"), ("published", ".344"), ("measured", "reproduced (+.0002):✓ .3442")),
            *(("published", ".4†"), ("measured", "changed (+.010):≠ .410")),
        ],
        [
            *(("", "R. TAS-B"), ("published", ".350"), ("measured", "planned:○")),
            *(("published", "50*"), ("measured", "external:–")),
        ],
        [
            *(("", "BM25"), ("published", "1.000"), ("measured", "reproduced (.0000):✓ 1.0000")),
            *(("published empty", ""), ("measured empty", "")),
        ],
    ]


def known(page: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="cells">(.*?)</script>', page, re.DOTALL)
    assert match
    made: dict[str, Any] = json.loads(match[1])
    return made


def cells_of(page: str) -> list[dict[str, Any]]:
    """The cells that a page's script knows, their texts in the place of numbers."""
    made = known(page)
    keys = [*made["keys"], "about"]
    texts = [[*(made["texts"][number] for number in row[:-1]), row[-1]] for row in made["cells"]]
    return [dict(zip(keys, row, strict=True)) for row in texts]


def test_every_cell_once_with_its_address_and_details() -> None:
    shared = {"commands": ["one command"], "parameters": {"path": "x"}}
    cells = [
        cell(**shared, measured=0.3, state="changed"),
        cell(row="R. TAS-B", **shared, history=[{"date": "2026-11-21", "value": 0.1}]),
        cell(row="TAS B", **shared),
    ]
    page = page_of(cells)
    assert re.findall(r'data-cell="(\d+)"', page) == ["0", "1", "2"]
    shown, made = cells_of(page), known(page)
    assert [entry["id"] for entry in shown] == [
        *("000.1.tas-b.dev.rr-10", "000.1.r-tas-b.dev.rr-10", "000.1.tas-b.dev.rr-10-2")
    ]
    assert [entry["about"] for entry in shown] == [0, 1, 0]  # equal details stand there once
    texts = made["texts"]
    first, second = made["details"]
    assert [[texts[word] for word in texts[number]] for number in first["commands"]] == [["one", "command"]]
    assert [texts[number] for number in first["parameters"]] == ["path", "x"]
    assert (first["history"], second["commands"], texts.count("command")) == ([], first["commands"], 1)
    assert [[texts[number] for number in entry] for entry in second["history"]] == [
        ["date", "2026-11-21", "value", 0.1]
    ]
    assert shown[0]["difference"] == "−.04400"


def test_the_landing_page_counts_the_cells_of_every_table() -> None:
    cells = [
        cell(state="reproduced", measured=0.34418),
        cell(row="R. TAS-B", measure="nDCG@10", published="50*", state="external"),
        *(
            cell(paper="003", table="4", row=row, dataset=f"DL 2021 query {n}", query=str(n))
            for row in "ab"
            for n in range(40)
        ),
    ]
    pages = pages_of(cells)
    assert list(pages) == ["index.html", "paper-000.html", "paper-003.html"]
    landing = pages["index.html"]
    named = [[text for _, text in row if text] for row in Rows(landing).rows]
    assert [row[0].split("(")[0] for row in named[1:]] == [
        *("Paper 000", "Table 1Results", "Paper 003", "Table 4Results", "all papers")
    ]
    assert [row[-1] for row in named[1:]] == ["2", "2", "80", "80", "82"]
    for link in ("state=planned", "state=planned&amp;table=003-table-4"):
        assert f'href="paper-003.html#{link}">80<' in landing


def test_texts_are_escaped_and_nothing_comes_from_outside(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    cells = [cell(row=evil, note=evil, caption=evil, commands=[evil], parameters={evil: evil}, dataset=evil)]
    for name, text in pages_of(
        cells, [Paper.model_construct(name="paper-000", title=evil, citation=evil, tables=[])], evil
    ).items():
        path = tmp_path / "docs" / name
        write_page(path, text)
        page = path.read_text(encoding="utf-8")
        assert "<img" not in page
        outside = r'(?:src|href)="(?!(?:index|paper-000)\.html["#]|#|data:,|\.\./regressions/[\w-]+\.md")[^"]*"'
        assert re.findall(rf"{outside}|url\(|@import|https?:", page) == []
    assert cells_of(page)[0]["note"] == evil
