"""Pages of long tables: docs/source/tables/NAME.md.j2 filled in, as HTML that sorts and filters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.regress.pages.prose import fill, made_of

if TYPE_CHECKING:
    from markdown_it.token import Token


def write_tables(sources: Path, docs: Path, names: Mapping[str, Any]) -> list[Path]:
    """Write DOCS/tables/NAME.html of every SOURCES/tables/NAME.md.j2; none without markdown-it-py.

    Args:
        sources: the folder of sources.
        docs: the folder of pages.
        names: what a source can use.

    Raises:
        InputError: as `write_prose`.
    """
    if find_spec("markdown_it") is None:
        return []
    written = []
    for source in sorted((sources / "tables").glob("*.md.j2")):
        name = source.name.removesuffix(".md.j2")
        title, body = to_html(fill(sources, f"tables/{source.name}", names))
        values = {"title": title, "body": body, "of": name, "made": made_of(source)}
        written.append(docs / "tables" / f"{name}.html")
        write_page(written[-1], render(sources / "tables", "page.html.j2", **values))
    return written


def to_html(text: str) -> tuple[str, str]:
    """The title of a page in Markdown, and its HTML: text escaped, headings with the anchors that GitHub gives them.

    >>> to_html("# A & B\\n\\n## Of C\\n")
    ('A & B', '<h1>A &amp; B</h1>\\n<h2 id="of-c">Of C</h2>\\n')
    """
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("table_open", _table_open)
    reader.add_render_rule("table_close", _table_close)
    tokens = reader.parse(text)
    title = ""
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            if heading.tag == "h1":
                title = title or content.content
            else:
                heading.attrSet("id", re.sub(r"[^\w\- ]", "", content.content.lower()).replace(" ", "-"))
    html = str(reader.renderer.render(tokens, reader.options, {}))
    return title, html.replace(' style="text-align:right"', " class=r")


def _table_open(renderer: Any, tokens: list[Token], at: int, options: Any, environment: Any) -> str:
    return '<div class="scroll" role="region" tabindex="0" aria-label="Table"><table>\n'


def _table_close(renderer: Any, tokens: list[Token], at: int, options: Any, environment: Any) -> str:
    return "</table></div>\n"
