"""Pages of long tables: Markdown as HTML that stands alone, escaped, with links that lead somewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from browser import Browser
from page_data.table_pages import to_html, write_tables
from places import ROOT
from site_links import lost_links

TABLES = ROOT / "docs" / "source" / "tables"
PAGES = sorted((ROOT / "docs" / "tables").glob("*.html"))


def test_markup_in_a_source_is_text() -> None:
    assert to_html("# A\n\n<script>alert(1)</script>\n")[1].count("<script>") == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_load_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"<script src|<link rel=\"stylesheet|@import|src=\"https?:", text) == []
    assert "|---" not in text.split("<main>")[1].split("</main>")[0]  # a table that Markdown did not read as one


def test_links_of_pages_lead_somewhere() -> None:
    assert lost_links(ROOT / "docs" / "tables") == []


def test_every_page_of_tables_has_its_source_and_a_page_that_links_to_it() -> None:
    linked = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert {page.stem for page in PAGES} == {path.name.removesuffix(".md.j2") for path in TABLES.glob("*.md.j2")}
    assert [page.name for page in PAGES if f"](tables/{page.name}" not in linked] == []


EVIDENCE = [
    path
    for path in sorted((ROOT / "docs" / "source").glob("*.md.j2"))
    if '{% extends "evidence.j2" %}' in path.read_text()
]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_has_at_most_8_kb(page: Path) -> None:
    assert len(page.read_bytes()) <= 8192


@pytest.mark.parametrize("source", EVIDENCE, ids=lambda source: source.name)
def test_a_page_of_evidence_has_its_sections_and_one_table_of_at_most_twelve_rows(source: Path) -> None:
    page = (ROOT / "docs" / source.name.removesuffix(".j2")).read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Figures", "Commands", "Limits"]
    (table,) = re.findall(r"^\|.*?\n(?!\|)", page, re.MULTILINE | re.DOTALL)
    assert len(table.splitlines()) - 2 <= 12


ROWS = "| a | 0.5 |\n| b | -0.25 |\n| c | |\n| a b | <.001 |\n| d | 1,000 |\n"
COLUMN = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => row.cells[0].textContent)"


@pytest.mark.parametrize("width", [1200, 390])
def test_a_table_sorts_and_filters(browser: Browser, tmp_path: Path, width: int) -> None:
    folder = tmp_path / "source" / "tables"
    folder.mkdir(parents=True)
    for name in ("page.html.j2", "page.css", "page.js"):
        shutil.copy(TABLES / name, folder)
    text = f"# Values\n\n| name | value |\n|---|--:|\n{ROWS}"
    (folder / "values.md.j2").write_text(text, encoding="utf-8")
    (page,) = write_tables(folder.parent, tmp_path, {})
    browser.show(page.as_uri(), width)
    assert browser.js("document.querySelector('output').textContent") == "5 of 5 rows"
    browser.click("thead th:last-child button")
    assert browser.js(COLUMN) == ["b", "a b", "a", "d", "c"]
    browser.click("thead th:last-child button")
    assert browser.js(COLUMN) == ["d", "a", "a b", "b", "c"]  # what is empty stays below
    assert browser.js("document.querySelector('th:last-child').ariaSort") == "descending"
    browser.show(f"{page.as_uri()}#words=a+b", width)
    assert browser.js(COLUMN) == ["a b"]
    assert browser.js("document.querySelector('output').textContent") == "1 of 5 rows"
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")
    assert browser.errors == []
