"""The pages of the matrix in headless Chromium at two widths: no errors, filters, clicks, keys and addresses work."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe import violations
from browser import Browser
from test_matrix_page import EVIL, write_matrix


@pytest.fixture(scope="module")
def pages(module_path: Path) -> Path:
    return write_matrix(module_path)


@pytest.fixture(scope="module")
def page(pages: Path) -> str:
    return (pages / "paper-000.html").as_uri()


VISIBLE = "[...document.querySelectorAll('td.measured button')].filter(one => one.checkVisibility()).length"
COUNT = "document.getElementById('count').value"
OPEN = "document.querySelector(':popover-open')?.id ?? ''"
BODY = "document.querySelector(':popover-open').innerText"
FOCUS = "document.activeElement.getAttribute('popovertarget')"
CHOOSE = (
    "(([name, value]) => { const one = document.querySelector(`[name=${name}]`); one.value = value;"
    "one.dispatchEvent(new Event('change', {bubbles: true})); })"
)
WIDTHS = pytest.mark.parametrize("width", [1400, 390])


@WIDTHS
def test_filters_by_click_and_by_choice(browser: Browser, page: str, width: int) -> None:
    browser.show(page, width)
    assert (browser.js(COUNT), browser.js(VISIBLE)) == ("46 cells", 6)  # the long table is closed at first
    browser.click(".key[data-key='external']")
    assert (browser.js(COUNT), browser.js(VISIBLE)) == ("2 of 46 cells", 4)
    assert browser.js("location.hash") == "#state=external"
    seen = "[...document.querySelectorAll('tbody:has(.measured) th')].filter(one => one.checkVisibility())"
    assert browser.js(f"{seen}.map(one => one.textContent)") == ["R. TAS-B", "Theirs (2020)"]
    browser.click(".key[data-key='external']")
    assert browser.js(COUNT) == "46 cells"
    browser.show(f"{page}#state=changed&table=000-table-1", width)
    assert browser.js(COUNT) == "1 of 46 cells"
    browser.click("button[type=reset]")
    browser.js(f"{CHOOSE}(['state', 'runnable elsewhere'])")
    assert browser.js("document.getElementById('000-table-4').open") is True  # a choice opens the tables that have it
    assert browser.js(COUNT) == "42 of 46 cells"
    browser.click("button[type=reset]")
    assert (browser.js(COUNT), browser.js("location.hash")) == ("46 cells", "")
    assert browser.errors == []


@WIDTHS
def test_a_click_opens_a_cell_and_escape_closes_it(browser: Browser, page: str, width: int) -> None:
    browser.show(page, width)
    browser.click("td button")
    assert browser.js(OPEN) == "few-tas-b"
    for expected in (
        *("TAS-B", "(strict)", "From the <published> run.", EVIL, "python -m rnnreranker.search"),
        *(".659", ".6591", "+.0001", "2026-11-20"),
    ):
        assert expected in browser.js(BODY)
    assert browser.js("location.hash") == "#open=few-tas-b"
    browser.key("Escape")
    assert (browser.js(OPEN), browser.js(FOCUS), browser.js("location.hash")) == ("", "few-tas-b", "")
    assert browser.errors == []


@WIDTHS
def test_our_columns_come_first(browser: Browser, page: str, width: int) -> None:
    """Of each table the first column of values in the window is ours, also of the twins."""
    browser.show(page, width)
    first = (
        "[...document.querySelectorAll('details[open] .scroll')].map(one => {"
        "const [name, ours] = [...one.querySelector('tbody tr').cells], box = ours.getBoundingClientRect();"
        "const inside = box.left >= name.getBoundingClientRect().right - 1 && box.right <= innerWidth;"
        "return [ours.className, inside] })"
    )
    assert browser.js(first) == [["measured", True], ["", True]]
    assert browser.js("document.documentElement.scrollWidth") <= width


def test_keys(browser: Browser, page: str) -> None:
    browser.show(page, 1400)
    browser.js("document.querySelector('summary').focus()")
    browser.key("Tab")
    assert browser.js(FOCUS) == "few-tas-b"
    for _ in range(5):
        browser.key("Tab")
    assert browser.js(FOCUS) == "000-1-theirs-2020"
    browser.key("Enter")
    assert "There is nothing to run." in browser.js(BODY)
    browser.key("Tab")
    assert browser.js("document.activeElement.className") == "close"
    browser.key("Escape")
    assert browser.js(FOCUS) == "000-1-theirs-2020"
    assert browser.errors == []


def test_addresses_hold_filters_and_the_open_cell(browser: Browser, page: str) -> None:
    browser.show(f"{page}#dataset=dev&state=reproduced&open=few-r-tas-b", 1400)
    assert (browser.js(COUNT), browser.js(OPEN)) == ("1 of 46 cells", "few-r-tas-b")
    browser.show(f"{page}#000-table-4", 1400)
    assert browser.js("document.getElementById('000-table-4').open") is True
    browser.show(f"{page}#state=nonsense&open=nothing", 1400)
    assert (browser.js(COUNT), browser.js(OPEN)) == ("46 cells", "")
    assert browser.errors == []


@WIDTHS
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_people_can_read_and_use_the_pages(browser: Browser, pages: Path, page: str, width: int, scheme: str) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    opened = [f"{page}#open=few-tas-b", f"{page}#open=000-1-theirs-2020", f"{page}#state=changed"]
    for address in ((pages / "index.html").as_uri(), page, *opened):
        assert violations(browser, address, width) == [], address
        assert browser.js("document.documentElement.scrollWidth") <= width
    assert browser.errors == []
