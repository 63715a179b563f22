"""The pages of the matrix: every cell once, values apart, every text once, nothing from outside, bad cells refused."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas
import pytest

from rnnreranker.base.pages import write_page
from rnnreranker.base.record import Record
from rnnreranker.lab.tune.__main__ import make_parser
from rnnreranker.regress.papers.paper import Paper
from rnnreranker.regress.papers.site import figure, matrix_pages
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import QuerySet, Spec, specs_folder


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


def test_a_mark_for_every_cell_in_the_rows_of_its_table() -> None:
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
    rows = re.findall(r'<div class="row">(.*?)</div>', landing)
    assert [len(re.findall("<a |<i>", row)) for row in rows] == [2, 2, 40, 40]  # also where the page exchanges them
    assert re.findall(r'<a href="([^"]*)" class="([^"]*)" aria-label="([^"]*)"', rows[0] + rows[1]) == [
        (
            *("paper-000.html#open=000.1.tas-b.dev.rr-10", "s-reproduced"),
            "TAS-B, dev, RR@10: published .344, measured .3442, reproduced",
        ),
        (
            *("paper-000.html#open=000.1.r-tas-b.dev.ndcg-10", "s-external"),
            "R. TAS-B, dev, nDCG@10: published 50*, external",
        ),
    ]
    assert 'href="paper-003.html#state=planned">80<' in landing


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


def sweep(query_set: str, measure: str, spec: str = "dl19-dl20-sample") -> Record:
    rows = [
        {"context": n, "value": n / 1000, "low": n / 2000, "high": n / 500, "milliseconds": n / 100}
        for n in (10, 100, 1000)
    ]
    outcome = {"query_set": query_set, "measure": measure, "topics": 7, "sweeps": {"context": rows}}
    return Record("sweep", spec, f"context.{query_set}.{measure}", outcome)


@pytest.fixture(scope="module")
def sets() -> dict[str, tuple[Spec, QuerySet]]:
    specs = [read_spec(specs_folder() / f"{name}.yaml") for name in ("cranfield", "dl19-dl20-sample")]
    return {entry.id: (spec, entry) for spec in specs for entry in spec.query_sets}


def test_figures_of_sweeps(sets: dict[str, tuple[Spec, QuerySet]]) -> None:
    values = {"query_set": "dl19-sample", "values": {"dl": {"nDCG@10": 0.6, "RR@10": 0.7}}}
    dense = Record("run", "dl19-dl20-sample", "dense", values)
    dl19 = figure(sweep("dl19-sample", "nDCG@10"), *sets["dl19-sample"], [dense])
    cranfield = figure(sweep("cranfield", "RR@10", "cranfield"), *sets["cranfield"], [dense])
    assert cranfield["title"] == sets["cranfield"][0].title
    assert "TREC DL 2019 and 2020 on a sample" in dl19["title"]
    assert (dl19["before"], cranfield["before"]) == (0.6, None)  # what is on record of the run before reranking
    assert dl19["command"].endswith("--record runs/context.dl19-sample.nDCG@10.json")
    assert "--run runs/dl19-dl20-sample/dense.dl19-sample.txt" in dl19["command"]
    assert make_parser().parse_args(shlex.split(dl19["command"])[3:]).sweep == "context"
    page = pages_of([cell()], figures=[cranfield, dl19])["index.html"]
    assert page.count("<figure>") == 2
    assert page.count('<tr><th scope="row">none</th><td>0.6000</td><td></td></tr>') == 1
    assert '<tr><th scope="row">100</th><td>0.1000 [0.0500, 0.2000]</td><td>1.00</td></tr>' in page
