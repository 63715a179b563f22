"""The pages of the matrix in headless Chromium at two widths: no errors, filters, clicks, keys and addresses work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
from axe import violations
from browser import CHROMIUM, Browser

from rnnreranker.base.pages import write_page
from rnnreranker.regress.papers.matrix import STATES
from rnnreranker.regress.papers.paper import Paper
from rnnreranker.regress.papers.site import matrix_pages
from rnnreranker.regress.papers.twins import OrderAgreement, Twin, TwinSet

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: install it to test the page")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def cell(**given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        **{"paper": "000", "table": "1", "caption": "A <caption> & more", "row": "TAS-B", "dataset": "DL 2019"},
        **{"measure": "nDCG@10", "protocol": "strict", "published": 0.659, "measured": None, "state": "planned"},
        **{"note": "", "commands": [], "parameters": {}, "history": [], "tuned": False},
        **{"query": "", "group": given.get("dataset", "DL 2019"), "decimals": 3},
    }
    return made | given


CELLS = [
    cell(
        state="reproduced",
        measured=0.65912,
        note="From the <published> run.",
        commands=["python -m rnnreranker.evaluate run.txt --qrels dl19", "second & last"],
        parameters={"k": 21, "weight": "</script><b>x"},
        history=[{"date": "2026-11-20", "value": 0.659}, {"date": "2026-11-21", "value": 0.65912}],
    ),
    cell(measure="RR@10", published=0.875, state="changed", measured=0.88, tuned=True),
    cell(row="R. TAS-B", published=0.664, state="runnable elsewhere"),
    cell(row="R. TAS-B", measure="RR@10", published=0.886, state="runnable elsewhere"),
    cell(row="BM25", measure="RR@10", published=0.7, state="external"),
    *(
        cell(table="4", row="V1", dataset=f"DL 2021 query {n}", query=str(n), group="DL 2021", published=50 + n / 10)
        for n in range(40)
    ),
]
FIRST = "000.1.tas-b.dl-2019.ndcg-10"


def written(folder: Path, cells: list[dict[str, Any]], **given: Any) -> dict[str, str]:
    """The addresses of the pages of these cells, by file name."""
    pages = matrix_pages(
        pandas.DataFrame(cells, dtype=object),
        [Paper.model_construct(name="paper-000", title="First", tables=[])],
        **given,
    )
    for name, text in pages.items():
        write_page(folder / name, text)
    return {name: (folder / name).as_uri() for name in pages}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("matrix"), CELLS)["paper-000.html"]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page whose first table has more columns than fit, then those of two twins."""
    wide = [cell(dataset=f"Set {n}", row=row) for n in range(12) for row in ("TAS-B", "R. TAS-B")]
    found = {name: Twin(f"dense of {name}", {"nDCG@10": 0.25}, {}, "", "") for name in ("TAS-B", "R. TAS-B")}
    sets = [
        TwinSet(name, "own", name, ["MiniLM"], ["nDCG@10"], found, {"nDCG@10": OrderAgreement(12, 12)})
        for name in ("one", "two")
    ]
    return written(tmp_path_factory.mktemp("twins"), [*wide, *CELLS[5:]], twins={("000", "1"): sets})["paper-000.html"]


VISIBLE = "[...document.querySelectorAll('td.measured:not(.off) [data-cell]')].filter(b => b.checkVisibility()).length"
COUNT = "document.getElementById('count').value"
OPEN = "document.getElementById('details').open"
BODY = "document.getElementById('d-body').innerText"
FOCUS = "document.activeElement.dataset.cell"
WIDTHS = pytest.mark.parametrize("width", [1400, 390])


@WIDTHS
def test_filters_by_click_and_by_choice(browser: Browser, page: str, width: int) -> None:
    browser.show(page, width)
    assert browser.js(COUNT) == "45 cells"
    assert browser.js(VISIBLE) == 5  # the long table is closed at first
    browser.click(".key[data-state='runnable elsewhere']")
    assert browser.js(COUNT) == "2 of 45 cells"
    assert browser.js(VISIBLE) == 2
    assert browser.js("location.hash") == "#state=runnable+elsewhere"
    assert browser.js("[...document.querySelectorAll('tbody tr:not([hidden]) th')].map(t => t.textContent)") == [
        "R. TAS-B"
    ]
    browser.click(".key[data-state='runnable elsewhere']")
    assert browser.js(COUNT) == "45 cells"
    browser.show(f"{page}#state=changed&table=000-table-1", width)
    assert browser.js(VISIBLE) == 1
    browser.click("button[type=reset]")
    browser.js(
        "const s = document.querySelector('[name=dataset]'); s.value = 'DL 2021';"
        "s.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    assert browser.js(VISIBLE) == 40  # a choice opens the tables that have it
    browser.click("button[type=reset]")
    assert (browser.js(COUNT), browser.js(VISIBLE), browser.js("location.hash")) == ("45 cells", 5, "")
    assert browser.errors == []


@WIDTHS
def test_a_click_opens_a_cell_and_escape_closes_it(browser: Browser, page: str, width: int) -> None:
    browser.show(page, width)
    browser.click("[data-cell='0']")
    assert browser.js(OPEN) is True
    text = browser.js(BODY)
    for expected in (
        *("TAS-B", "protocol strict", "From the <published> run.", "second & last", "</script><b>x"),
        *(".659", ".6591", "+.0001", "2026-11-20"),
    ):
        assert expected in text
    assert browser.js("location.hash") == f"#open={FIRST}"
    browser.key("Escape")
    assert (browser.js(OPEN), browser.js(FOCUS), browser.js("location.hash")) == (False, "0", "")
    assert browser.errors == []


@WIDTHS
def test_twins_are_a_click_away_and_stay_when_columns_are_filtered(browser: Browser, twins: str, width: int) -> None:
    inside = (
        "(([a, b]) => a.left >= b.right - 1 && a.left < innerWidth)"
        "(['th.twin.group', 'th.head'].map(name => document.querySelector(name).getBoundingClientRect()))"
    )
    browser.show(twins, width)
    assert browser.js(inside) is False
    browser.click("a.to-twins")
    assert browser.js(inside) is True  # beside the sticky names of the rows, not under them
    assert browser.js("document.documentElement.scrollWidth") <= width
    browser.js(
        "const s = document.querySelector('[name=dataset]'); s.value = 'Set 3';"
        "s.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    assert browser.js(inside.replace("th.twin.group", ".measured:not(.off) [data-cell]")) is True  # it scrolls there
    browser.click("[data-cell='6']")
    assert "dense of TAS-B on one: nDCG@10 .2500" in browser.js(BODY)
    assert browser.errors == []


def test_keys(browser: Browser, page: str) -> None:
    browser.show(page, 1400)
    browser.js("document.querySelector('summary').focus()")
    browser.key("Tab")
    assert browser.js(FOCUS) == "0"
    for _ in range(4):
        browser.key("Tab")
    assert browser.js(FOCUS) == "4"
    browser.key("Enter")
    assert browser.js(OPEN) is True
    assert "BM25" in browser.js(BODY)
    assert "None: there is nothing to run." in browser.js(BODY)
    browser.key("Escape")
    assert browser.js(FOCUS) == "4"
    browser.key("Tab")
    assert browser.js("document.activeElement.tagName") == "SUMMARY"
    assert browser.errors == []


def test_addresses_hold_filters_and_the_open_cell(browser: Browser, page: str) -> None:
    browser.show(f"{page}#dataset=DL+2019&state=reproduced&open={FIRST}", 1400)
    assert browser.js(COUNT) == "1 of 45 cells"
    assert browser.js(OPEN) is True
    browser.show(f"{page}#open=000.4.v1.dl-2021-query-7.ndcg-10", 1400)
    assert "50.7" in browser.js(BODY)
    assert browser.js("document.getElementById('000-table-4').open") is True
    browser.show(f"{page}#000-table-4", 1400)
    assert browser.js("document.getElementById('000-table-4').open") is True
    browser.show(f"{page}#state=nonsense&open=nothing", 1400)
    assert (browser.js(COUNT), browser.js(OPEN)) == ("45 cells", False)
    assert browser.errors == []


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> str:
    more = [cell(paper="003", row=row, measure=name) for row in ("One", "Two") for name in ("P@5", "R@5")]
    return written(tmp_path_factory.mktemp("landing"), [*CELLS, *more])["index.html"]


@WIDTHS
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_people_can_read_and_use_the_pages(
    browser: Browser, landing: str, page: str, twins: str, width: int, scheme: str
) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    opened = [f"{page}#open={FIRST}", f"{page}#open=000.1.bm25.dl-2019.rr-10", f"{page}#state=changed"]
    for address in (landing, page, twins, *opened):
        assert violations(browser, address, width) == [], address
        assert browser.js("document.documentElement.scrollWidth") <= width
    assert browser.errors == []


DOCS = ROOT / "docs" / "matrix"


@WIDTHS
@pytest.mark.parametrize("name", ["paper-000.html", "paper-003.html"])
def test_the_pages_of_the_docs(browser: Browser, name: str, width: int, tmp_path: Path) -> None:
    browser.show((DOCS / name).as_uri(), width)
    total = browser.js("document.querySelectorAll('[data-cell]').length")
    assert browser.js(COUNT) == f"{total:,} cells"
    parts = 0
    for state in STATES:
        if browser.js(f"document.querySelector('.key[data-state=\"{state}\"]') !== null"):
            browser.click(f".key[data-state='{state}']")
            parts += int(browser.js(COUNT).split()[0].replace(",", ""))
    assert parts == total
    browser.click("button[type=reset]")
    browser.click("[data-cell]")
    assert browser.js(OPEN) is True
    browser.key("Escape")
    assert browser.js("document.documentElement.scrollWidth") <= width
    browser.picture(tmp_path / f"matrix-{width}.png")
    assert (tmp_path / f"matrix-{width}.png").stat().st_size > 10_000
    assert browser.errors == []


@WIDTHS
@pytest.mark.parametrize("name", ["index.html", "paper-003.html"])
@pytest.mark.long
def test_people_can_read_and_use_the_pages_of_the_docs(browser: Browser, name: str, width: int) -> None:
    assert violations(browser, (DOCS / name).as_uri(), width) == []
    assert browser.js("document.documentElement.scrollWidth") <= width
    assert browser.errors == []
