"""Pages of long tables: Markdown as HTML that stands alone, escaped, with links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_data.table_pages import to_html, write_tables

from rnnreranker.base.errors import InputError
from rnnreranker.regress.pages.prose import claim

ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "docs" / "source" / "tables"
PAGES = sorted((ROOT / "docs" / "tables").glob("*.html"))
SOURCE = """\
# Values & more

## By method

| method | nDCG@10 |
|---|--:|
| <b>rNN</b> | {{ value }} |
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "docs" / "source" / "tables"
    folder.mkdir(parents=True)
    for name in ("page.html.j2", "page.css", "page.js"):
        (folder / name).write_text((TABLES / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "values.md.j2").write_text(SOURCE, encoding="utf-8")
    return folder.parent


def test_a_source_becomes_a_page_with_its_text_escaped(sources: Path) -> None:
    (page,) = write_tables(sources, sources.parent, {"value": 0.5})
    assert page == sources.parent / "tables" / "values.html"
    text = page.read_text(encoding="utf-8")
    assert "<title>Values &amp; more · rnnreranker</title>" in text
    assert '<h2 id="by-method">By method</h2>' in text
    assert "<td>&lt;b&gt;rNN&lt;/b&gt;</td>" in text
    assert '<td style="text-align:right">0.5</td>' in text
    assert "from docs/source/tables/values.md.j2" in text


def test_a_source_that_the_records_contradict_is_refused(sources: Path) -> None:
    (sources / "tables" / "values.md.j2").write_text('{{ claim(1 > 2, "one is more") }}', encoding="utf-8")
    with pytest.raises(InputError, match=r"values\.md\.j2: the records contradict 'one is more'"):
        write_tables(sources, sources.parent, {"claim": claim})


def test_markup_in_a_source_is_text() -> None:
    assert to_html("# A\n\n<script>alert(1)</script>\n")[1].count("<script>") == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_load_nothing_from_elsewhere_and_their_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"<script src|<link rel=\"stylesheet|@import|src=\"https?:", text) == []
    body = text.split("<main>")[1].split("</main>")[0]
    assert "|---" not in body  # a table that Markdown did not read as one
    for link in re.findall(r'(?:href|src)="([^"]+)"', body):
        if not re.match(r"[a-z]+:", link):
            assert (page.parent / link.split("#")[0]).exists() if link[0] != "#" else f'id="{link[1:]}"' in body, link


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_links_to_sections_that_a_page_of_tables_has(page: Path) -> None:
    for name, anchor in re.findall(r"\(tables/([\w-]+\.html)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        text = (ROOT / "docs" / "tables" / name).read_text(encoding="utf-8")
        assert anchor.startswith("words=") or f'id="{anchor}"' in text


def test_every_page_of_tables_has_its_source_and_a_page_that_links_to_it() -> None:
    linked = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert {page.stem for page in PAGES} == {path.name.removesuffix(".md.j2") for path in TABLES.glob("*.md.j2")}
    assert [page.name for page in PAGES if f"](tables/{page.name}" not in linked] == []
