"""The links of the pages of a folder: those that lead nowhere, and what a page would load from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"), ("use", "href")}


class Page(HTMLParser):
    """A page's ids, its links, and what it loads; a `link` loads unless it only says what is where."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.links |= {given[name] for name in ("href", "src") if name in given}
        self.loads |= {given[name] for owner, name in LOADING if owner == tag and name in given}
        if tag == "link" and set(given.get("rel", "").split()) & {"stylesheet", "icon", "preload", "font"}:
            self.loads.add(given.get("href", ""))


def lost_links(folder: Path) -> list[str]:
    """Every link to a file or an anchor that is not there, as `page: link`."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    return [
        f"{path.relative_to(folder.resolve())}: {link}"
        for path, page in pages.items()
        for link in sorted(page.links)
        if not _leads(path, link, pages)
    ]


def _leads(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return False
    state = "=" in parts.fragment  # which the page itself reads: filters, the open cell
    return not parts.fragment or state or target not in pages or unquote(parts.fragment) in pages[target].ids


def loaded_from_elsewhere(folder: Path) -> list[str]:
    """Every script, style, font or picture that another machine would have to give."""
    elsewhere = re.compile(r"(?:https?:)?//")
    found = [
        f"{path.relative_to(folder)}: {address}"
        for path in sorted(folder.rglob("*.html"))
        for address in sorted(Page(path.read_text(encoding="utf-8")).loads)
        if elsewhere.match(address)
    ]
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        found += [
            f"{path.name}: {one}" for one in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", text)
        ]
    return found
