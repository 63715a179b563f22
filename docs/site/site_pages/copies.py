"""Pages that are HTML already (tables, the matrix) and what they show, copied with their links set right."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

from site_pages.links import PROJECT

FOLDERS = ("tables", "matrix")
BESIDE = "files"  # folder of the site for files of the repository that are outside docs/


def copy_pages(app: Sphinx, error: Exception | None) -> None:
    """Copy every page of `FOLDERS`, and the files that these link to."""
    if error is not None or app.builder.format != "html":
        return
    docs, site = Path(app.srcdir), Path(app.outdir)
    for path in sorted(page for folder in FOLDERS for page in (docs / folder).glob("*.html")):
        write(site / path.relative_to(docs), copied(path, docs, site).encode())


def copied(path: Path, docs: Path, site: Path) -> str:
    """The text of a page with links to pages of the site; other files that it links to are copied."""

    def changed(found: re.Match[str]) -> str:
        name, mark, anchor = found[2].partition("#")
        if not name or re.match(r"[a-z]+:", name):
            return found[0]
        target = (path.parent / name).resolve()
        there = address(target, docs)
        if target.is_file() and target.suffix not in (".md", ".html"):
            write(site / there, target.read_bytes())
        return f'{found[1]}="{os.path.relpath(there, path.relative_to(docs).parent)}{mark}{anchor}"'

    return re.sub(r'\b(href|src)="([^"]+)"', changed, path.read_text(encoding="utf-8"))


def address(target: Path, docs: Path) -> str:
    """Where a file of the repository stands in the site."""
    if target.is_relative_to(docs):
        name = target.relative_to(docs)
    else:
        outside = str(target.relative_to(docs.parent))
        name = Path(f"{PROJECT[outside]}.md" if outside in PROJECT else f"{BESIDE}/{outside}")
    return str(name.with_suffix(".html") if name.suffix == ".md" else name)


def write(path: Path, content: bytes) -> None:
    """Write a file where it differs, so that a build that finds nothing new does nothing."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
