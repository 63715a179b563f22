"""The matrix page: every cell once, published and measured values apart, nothing from outside, bad cells refused."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.errors import InputError
from rnnreranker.regress.matrix_page import matrix, write_matrix


def cell(**given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        **{"paper": "000", "table": "1", "caption": "Results", "row": "TAS-B", "dataset": "dev", "measure": "RR@10"},
        **{"protocol": "", "published": 0.344, "measured": None, "state": "planned", "note": "", "commands": []},
        **{"parameters": {}, "history": [], "tuned_on_test": False},
    }
    return made | given


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

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            kind, text = self.rows[-1][-1]
            self.rows[-1][-1] = (kind, (text + data).strip())


def test_published_and_measured_values_have_columns_of_their_own() -> None:
    cells = [
        cell(state="reproduced", measured=0.34418, letters="b"),
        cell(measure="nDCG@10", published=0.4, state="changed", measured=0.41, tuned_on_test=True),
        cell(row="R. TAS-B", published=0.35),
        cell(row="R. TAS-B", measure="nDCG@10", published="50*", state="external"),
        cell(row="BM25", published=1.0, measured=1.0, state="reproduced"),
    ]
    rows = Rows(matrix(cells)).rows
    assert [text for _, text in rows[0]] == ["row", "dev"]
    assert [text for _, text in rows[1]] == ["RR@10", "nDCG@10"]
    assert [text for _, text in rows[2]] == ["published", "measured"] * 2
    assert rows[3:] == [
        [
            *(("", "TAS-B"), ("published", ".344"), ("measured", "✓ .3442b reproduced")),
            *(("published", ".4†"), ("measured", "≠ .410 changed")),
        ],
        [
            *(("", "R. TAS-B"), ("published", ".350"), ("measured", "○ planned")),
            *(("published", "50*"), ("measured", "– external")),
        ],
        [
            *(("", "BM25"), ("published", "1.000"), ("measured", "✓ 1.0000 reproduced")),
            *(("published empty", ""), ("measured empty", "")),
        ],
    ]


def known(page: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="cells">(.*?)</script>', page, re.DOTALL)
    assert match
    found: dict[str, Any] = json.loads(match[1])
    return found


def test_every_cell_once_with_its_address_and_details() -> None:
    shared = {"commands": "one command", "parameters": {"path": Path("x")}}
    cells = [
        cell(**shared, measured=0.3, state="changed"),
        cell(row="R. TAS-B", **shared, history=[{"date": "2026-11-21", "value": 0.1, "commit": None}]),
        cell(row="TAS B", **shared),
    ]
    page = matrix(cells)
    assert re.findall(r'data-cell="(\d+)"', page) == ["0", "1", "2"]
    found = known(page)
    assert [entry["id"] for entry in found["cells"]] == [
        *("000.1.tas-b.dev.rr-10", "000.1.r-tas-b.dev.rr-10", "000.1.tas-b.dev.rr-10-2")
    ]
    assert [entry["about"] for entry in found["cells"]] == [0, 1, 0]  # equal details stand there once
    assert found["details"][0] == {"commands": ["one command"], "parameters": [["path", "x"]], "history": []}
    assert found["details"][1]["history"] == [[["date", "2026-11-21"], ["value", 0.1]]]
    assert found["cells"][0]["difference"] == "−.04400"


def test_many_data_sets_become_rows() -> None:
    cells = [
        cell(row=row, dataset=f"DL 2021 query {n}", measure="nDCG@10 x100", published=50.5)
        for n in range(40)
        for row in ("V1", "Best")
    ]
    page = matrix(cells)
    rows = Rows(page).rows
    assert [text for _, text in rows[0]] == ["query", "DL 2021, nDCG@10 x100"]
    assert [text for _, text in rows[1]] == ["V1", "Best"]
    assert [row[0][1] for row in rows[3:]] == [str(n) for n in range(40)]
    assert page.count("<option>DL 2021</option>") == 1
    assert '<details class="table" id="000-table-1">' in page  # closed
    assert '<details class="table" id="000-table-1" open>' in matrix(cells[:10])


def test_texts_are_escaped_and_nothing_comes_from_outside(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    cells = [cell(row=evil, note=evil, caption=evil, commands=[evil], parameters={evil: evil}, dataset=evil)]
    path = tmp_path / "docs" / "index.html"
    write_matrix(path, cells, papers={"000": evil}, made=evil)
    page = path.read_text(encoding="utf-8")
    assert "<img" not in page
    assert known(page)["cells"][0]["note"] == evil
    assert re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"|url\(|@import|https?:', page) == []


def test_bad_cells_are_refused_all_at_once() -> None:
    incomplete = cell()
    del incomplete["note"], incomplete["history"]
    cells = [
        cell(),
        cell(measured=0.3),
        incomplete,
        cell(row="A", state="done"),
        cell(row="B", state="reproduced"),
    ]
    with pytest.raises(InputError) as caught:
        matrix(cells)
    message = str(caught.value)
    assert "cell 1 (000 table 1, TAS-B, RR@10): stands there a second time (first as cell 0)" in message
    assert "cell 2: no note, history" in message
    assert "cell 3 (000 table 1, A, RR@10): state 'done'; expected one of reproduced, changed" in message
    assert "cell 4 (000 table 1, B, RR@10): reproduced, but nothing is measured" in message


def test_an_unknown_value_is_no_number() -> None:
    rows = Rows(matrix([cell(published=None), cell(row="x", published=float("nan")), cell(row="y", published=12)])).rows
    assert [row[1][1] for row in rows[3:]] == ["", "nan", "12"]


def test_figures_of_sweeps(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from rnnreranker.regress.matrix_figures import figures

    rows = [{"context": n, "value": n / 100, "low": 0.1, "high": 0.7, "milliseconds": 0.1} for n in (10, 60)]
    for name in ("one", "two"):
        record = {"measure": "RR@10", "topics": 7, "sweeps": {"context": rows, "grid": []}}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    (tmp_path / "without.json").write_text('{"measure": "RR@10"}')
    found = figures(tmp_path)
    assert [caption.split(":")[0] for caption, _ in found] == ["one", "two"]
    assert "RR@10 and time a query" in found[0][0]
    page = matrix([cell()], figures=found)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= {*ids, "results"}
    assert "<svg" in found[0][1][:10]
    (tmp_path / "broken.json").write_text('{"measure": "RR@10", "topics": 1, "sweeps": {"context": [{}]}}')
    with pytest.raises(InputError, match=r"broken\.json: not a tuning record \(KeyError"):
        figures(tmp_path)
