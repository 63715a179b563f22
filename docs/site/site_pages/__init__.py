"""The Sphinx extension of the site: pages of commands and of Python names, links that lead somewhere.

What it writes before a build stands in docs/reference, which git ignores; only what differs is written again.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from site_pages import commands, copies, docstrings, links, markup, names

FOLDER = "reference"


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect what the site adds to Sphinx."""
    app.connect("builder-inited", _write_reference)
    app.connect("source-read", links.read_source)
    app.connect("autodoc-process-docstring", docstrings.process, priority=400)  # before napoleon
    app.connect("doctree-read", links.use_site_links)
    app.connect("html-page-context", markup.complete, priority=900)  # after the theme
    app.connect("build-finished", copies.copy_pages)
    mine = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": zlib.crc32(mine)}  # all pages again


def _write_reference(app: Sphinx) -> None:
    folder = Path(app.srcdir) / FOLDER
    pages = {**commands.pages(), **names.pages(), **links.project_pages(Path(app.srcdir))}
    for path in folder.rglob("*.myst"):
        if str(path.relative_to(folder).with_suffix("")) not in pages:
            path.unlink()
    for name, text in pages.items():
        copies.write(folder / f"{name}.myst", text.encode())
