"""Links of the pages as GitHub's readers need them, turned into those of the site.

A page of docs/ is linked by its Markdown file, which MyST understands. Pages of tables and the matrix are HTML of their
own, files outside docs/ are pages of the site (`PROJECT`) or stand beside it, and Sphinx is told so here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

PROJECT = {  # files at the top of the repository that are pages of the site
    "README.md": "reference/readme",
    "CHANGELOG.md": "reference/changelog",
    "CONTRIBUTING.md": "reference/contributing",
}
SITE = "site:"  # scheme of a link that is as it should be, relative to the page


def project_pages(docs: Path) -> dict[str, str]:
    """The files of `PROJECT` as pages, by their names in the folder `reference`."""
    there = {name: target for name, target in PROJECT.items() if (docs.parent / name).is_file()}
    return {
        target.removeprefix("reference/"): _moved(docs.parent / name, docs, target) for name, target in there.items()
    }


def _moved(path: Path, docs: Path, target: str) -> str:
    here = docs / f"{target}.myst"
    return rewritten(path.read_text(encoding="utf-8"), lambda link: linked(link, path, here, docs))


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the links of a page before it is parsed; the list of regressions is the home of its pages."""
    docs = Path(app.srcdir)
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        source[0] = rewritten(source[0], lambda link: linked(link, path, path, docs))
    if docname == "regressions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def rewritten(text: str, change: Callable[[str], str]) -> str:
    """The text with its links changed, but for what stands in blocks of code.

    >>> rewritten("[a](b)\\n```\\n[a](b)\\n```\\n[c](b)\\n", str.upper)
    '[a](B)\\n```\\n[a](b)\\n```\\n[c](B)\\n'
    """
    parts = re.split(r"^(```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith("```") else re.sub(r"(?<=\]\()[^()\s]+(?=\))", lambda found: change(found[0]), part)
        for part in parts
    )


def linked(link: str, path: Path, here: Path, docs: Path) -> str:
    """The link of a file, written for the page `here`."""
    name, _, anchor = link.partition("#")
    if not name or re.match(r"[a-z]+:", name):
        return link
    target = (path.parent / name).resolve()
    if target.is_relative_to(docs):
        scheme = SITE if target.suffix == ".html" else ""
    else:
        page = PROJECT.get(str(target.relative_to(docs.parent)))
        target, scheme = (docs / f"{page}.myst", "") if page else (target, "")
    return f"{scheme}{os.path.relpath(target, here.parent)}{'#' if anchor else ''}{anchor}"


def use_site_links(app: Sphinx, tree: nodes.document) -> None:
    """Take the scheme from links that are as they should be."""
    for one in tree.findall(nodes.reference):
        address: Any = one.get("refuri", "")
        one["refuri"] = address.removeprefix(SITE)
        if not one["refuri"]:
            del one["refuri"]
