"""The pages of the matrix: every cell once, values apart, every text once, nothing from outside, bad cells refused."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.base.pages import write_page
from rnnreranker.base.record import Record
from rnnreranker.lab.tune.__main__ import make_parser
from rnnreranker.regress.papers.agreement import OrderAgreement
from rnnreranker.regress.papers.chart import TOP, Line, Panel, chart
from rnnreranker.regress.papers.figures import figures
from rnnreranker.regress.papers.html import matrix_pages
from rnnreranker.regress.papers.twins import Twin, TwinSet
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import QuerySet, Spec, specs_folder


def cell(**given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        **{"paper": "000", "table": "1", "caption": "Results", "row": "TAS-B", "dataset": "dev", "measure": "RR@10"},
        **{"protocol": "", "published": 0.344, "measured": None, "state": "planned", "note": "", "commands": []},
        **{"parameters": {}, "history": [], "tuned": False},
    }
    return made | given


def page_of(cells: list[dict[str, Any]], **given: Any) -> str:
    """The page of paper 000."""
    return matrix_pages(cells, **given)["paper-000.html"]


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
        cell(measure="nDCG@10", published=0.4, state="changed", measured=0.41, tuned=True),
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


def test_twins_have_columns_of_their_own_behind_those_of_the_paper() -> None:
    """Values of another model on another collection: never in a column of the paper, and under each its agreement."""
    twins = {
        "TAS-B": Twin("dense", {"RR@10": 0.5, "nDCG@10": 0.4}, {}, "", "", ""),
        "R. TAS-B": Twin("dense-rnn", {"RR@10": 0.75}, {}, "", "", ""),
    }
    found = TwinSet(
        "small", "own", "A small one", ["MiniLM", "a small SPLADE"], ["RR@10"], twins, {"RR@10": OrderAgreement(1, 0)}
    )
    page = page_of(
        [cell(), cell(row="R. TAS-B", published=0.35), cell(row="BM25", published=0.2)],
        twins={("000", "1"): [found]},
        twin_notes={("000", "1"): "What is to be known."},
    )
    rows = Rows(page).rows
    assert [text for _, text in rows[0]] == ["row", "dev", "≈ twinsmall"]
    assert rows[1] == [("measure", "RR@10"), ("measure twin", "RR@10")]
    assert rows[2] == [("published", "published"), ("measured", "measured"), ("twin kind", "MiniLM and a small SPLADE")]
    assert [row[0][1] for row in rows[3:]] == ["TAS-B", "R. TAS-B", "BM25", rows[6][0][1]]
    assert [row[-1] for row in rows[3:]] == [("twin", ".5000"), ("twin", ".7500"), ("twin", ""), rows[6][-1]]
    assert rows[6][-1] == ("twin", "1 of 1 pairτ 1.00")
    assert "What is to be known." in page
    assert "<i>dense-rnn</i>" in page
    assert "The models are MiniLM and a small SPLADE; each column names its own." in page
    assert 'twin-mark">' not in page_of([cell()])


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
    shared = {"commands": "one command", "parameters": {"path": Path("x")}}
    cells = [
        cell(**shared, measured=0.3, state="changed"),
        cell(row="R. TAS-B", **shared, history=[{"date": "2026-11-21", "value": 0.1, "commit": None}]),
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
    assert [texts[number] for number in first["commands"]] == ["one command"]
    assert [texts[number] for number in first["parameters"]] == ["path", "x"]
    assert (first["history"], second["commands"], page.count("one command")) == ([], first["commands"], 1)
    assert [[texts[number] for number in entry] for entry in second["history"]] == [
        ["date", "2026-11-21", "value", 0.1]
    ]
    assert shown[0]["difference"] == "−.04400"


def test_a_mark_for_every_cell_in_the_rows_of_its_table() -> None:
    cells = [
        cell(state="reproduced", measured=0.34418),
        cell(row="R. TAS-B", measure="nDCG@10", published="50*", state="external"),
        *(cell(paper="003", table="4", row=row, dataset=f"DL 2021 query {n}") for row in "ab" for n in range(40)),
    ]
    pages = matrix_pages(cells)
    assert list(pages) == ["index.html", "paper-000.html", "paper-003.html"]
    landing = pages["index.html"]
    rows = re.findall(r'<div class="row">(.*?)</div>', landing)
    assert [len(re.findall("<a |<i>", row)) for row in rows] == [2, 2, 40, 40]  # also where the page exchanges them
    assert re.findall(r'<a href="([^"]*)" class="([^"]*)" tabindex="-1" aria-label="([^"]*)"', rows[0] + rows[1]) == [
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


def test_many_data_sets_become_rows() -> None:
    cells = [
        cell(row=row, dataset=f"DL 2021 query {n}", measure="nDCG@10 x100", published=50.5)
        for n in range(40)
        for row in ("V1", "Best")
    ]
    page = page_of(cells)
    rows = Rows(page).rows
    assert [text for _, text in rows[0]] == ["query", "DL 2021, nDCG@10 x100"]
    assert [text for _, text in rows[1]] == ["V1", "Best"]
    assert [row[0][1] for row in rows[3:]] == [str(n) for n in range(40)]
    assert page.count("<option>DL 2021</option>") == 1
    assert '<details class="table" id="000-table-1">' in page  # closed
    assert '<details class="table" id="000-table-1" open>' in page_of(cells[:10])


def test_queries_that_differ_are_named_with_their_differences() -> None:
    values = [(50.04, "reproduced"), (49.0, "changed"), (55.0, "changed")]
    cells = [
        cell(
            row="V1", dataset=f"DL 2021 query {n}", measure="nDCG@10 x100", published=50.0, measured=value, state=state
        )
        for n, (value, state) in enumerate(values)
    ]
    cells = [entry | {"decimals": 1} for entry in cells]
    page = page_of([*cells, cell(row="Best", dataset="DL 2021 query 0", measure="nDCG@10 x100", published=90.0)])
    assert re.findall(r'differing">([^<]+)<', page) == [
        "V1: 1 of 3 queries give the printed value; 2 differ, measured minus published: 2 (+5.000), 1 (−1.000)."
    ]
    assert re.findall(r'differing">([^<]+)<', page_of(cells[:1])) == ["V1: 1 of 1 queries give the printed value."]


def test_texts_are_escaped_and_nothing_comes_from_outside(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    cells = [cell(row=evil, note=evil, caption=evil, commands=[evil], parameters={evil: evil}, dataset=evil)]
    for name, text in matrix_pages(cells, papers={"000": evil}, citations={"000": evil}, made=evil).items():
        path = tmp_path / "docs" / name
        write_page(path, text)
        page = path.read_text(encoding="utf-8")
        assert "<img" not in page
        outside = r'(?:src|href)="(?!(?:index|paper-000)\.html["#]|#|data:,|\.\./regressions/[\w-]+\.md")[^"]*"'
        assert re.findall(rf"{outside}|url\(|@import|https?:", page) == []
    assert cells_of(page)[0]["note"] == evil


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
        matrix_pages(cells)
    message = str(caught.value)
    assert "cell 1 (000 Table 1, TAS-B, RR@10): stands there a second time (first as cell 0)" in message
    assert "cell 2: no note, history" in message
    assert "cell 3 (000 Table 1, A, RR@10): state 'done'; expected one of reproduced, changed" in message
    assert "cell 4 (000 Table 1, B, RR@10): reproduced, but nothing is measured" in message


def test_an_unknown_value_is_no_number() -> None:
    rows = Rows(
        page_of([cell(published=None), cell(row="x", published=float("nan")), cell(row="y", published=12)])
    ).rows
    assert [row[1][1] for row in rows[3:]] == ["", "nan", "12"]


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
    dense = Record(
        "run",
        "dl19-dl20-sample",
        "dense",
        {"query_set": "dl19-sample", "values": {"dl": {"nDCG@10": 0.6, "RR@10": 0.7}}},
    )
    sweeps = [sweep("dl19-sample", "RR@10"), sweep("dl19-sample", "nDCG@10"), sweep("cranfield", "RR@10", "cranfield")]
    dl19, cranfield = figures(sweeps, sets, [dense])
    assert cranfield.title == sets["cranfield"][0].title
    assert "TREC DL 2019 and 2020 on a sample" in dl19.title
    assert dl19.caption.startswith("nDCG@10 and RR@10 over 7 topics")  # as the spec orders its measures
    assert dl19.svg.count("<circle") == 9  # three points of two measures and of the time
    assert dl19.svg.count('class="level') == 2  # what is on record of the run before reranking
    assert cranfield.svg.count('class="level') == 0
    assert [command.split("--record ")[1] for command in dl19.commands] == [
        "runs/context.dl19-sample.nDCG@10.json",
        "runs/context.dl19-sample.RR@10.json",
    ]
    assert "--run runs/dl19-dl20-sample/dense.dl19-sample.txt" in dl19.commands[0]
    for command in dl19.commands:
        assert make_parser().parse_args(shlex.split(command)[3:]).sweep == "context"
    page = matrix_pages([cell()], figures=[cranfield, dl19])["index.html"]
    assert page.count("<svg") == 2
    assert "runs/context.cranfield.RR@10.json" in page
    assert figures([], sets, []) == []


def test_bad_records_of_sweeps_are_refused(sets: dict[str, tuple[Spec, QuerySet]]) -> None:
    with pytest.raises(InputError, match="context sweep of cranfeld: no such query set; did you mean cranfield"):
        figures([sweep("cranfeld", "RR@10")], sets, [])
    with pytest.raises(
        InputError, match=r"of dl19-dl20-sample: not a context sweep \(ValueError its query set is one of c"
    ):
        figures([sweep("cranfield", "RR@10")], sets, [])
    wrong = sweep("cranfield", "RR@10", "cranfield")
    wrong.outcome["sweeps"] = {"context": [{}]}
    with pytest.raises(InputError, match=r"of cranfield: not a context sweep \(KeyError 'context'\); tune --sweep"):
        figures([wrong], sets, [])


def test_a_chart_puts_values_where_they_belong() -> None:
    line = Line("a & b", [10, 100, 1000], [0.0, 0.5, 1.0], level=0.25)
    drawn = chart([Panel("y", [line], 100)], "x", "<title>")
    points = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    assert [y for _, y in points] == [TOP + 100, TOP + 50, TOP]
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0])  # logarithmic
    assert re.findall(r'class="level c0" d="M\d+ ([\d.]+)', drawn) == [f"{TOP + 75:.1f}"]
    assert 'aria-label="&lt;title&gt;"' in drawn
    assert ">a &amp; b</text>" in drawn
    ticks = re.findall(r'text-anchor="end">([^<]+)<', drawn)
    assert ticks == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    flat = chart([Panel("y", [Line("one", [5], [0.0])], 100)], "x", "one point, no spread")
    assert flat.count("<circle") == 1
