"""The site of the pages: it builds without a warning, its links lead somewhere, everybody can read it."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from axe import violations
from browser import Browser
from filelock import FileLock
from places import DOCS
from site_links import Page, loaded_from_elsewhere, lost_links

from rnnreranker.__main__ import COMMANDS
from rnnreranker.base.private import flags_of_parser

EXAMPLES = [path for path in sorted(DOCS.rglob("*.md")) if ">>> " in path.read_text(encoding="utf-8")]
SHOWN = {  # one page of each sort
    "landing": "index.html",
    "how-to": "serve.html",
    "command": "reference/commands/search.html",
    "name": "reference/python/rnnreranker.RnnParams.html",
    "evidence": "first-stages.html",
    "matrix": "matrix/index.html",
    "paper": "matrix/paper-003.html",
}


def build(folder: Path) -> str:
    """What Sphinx says while it makes the site in a folder, without the network."""
    where = ["-d", str(folder / "doctrees"), str(DOCS), str(folder / "site")]
    offline = {**os.environ, **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")}
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", *where],
        capture_output=True,
        text=True,
        check=False,
        env=offline,
    )
    return f"{done.stdout}{done.stderr}".strip() + (f" (exit code {done.returncode})" if done.returncode else "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the site, and what was said; of several workers one builds."""
    pytest.importorskip("sphinx", reason="sphinx is not installed: pip install '.[docs]'")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built-site"
    with FileLock(f"{folder}.lock"):
        if not (folder / "said").is_file():
            said = build(folder)
            (folder / "said").write_text(said, encoding="utf-8")
    return folder, (folder / "said").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(built: tuple[Path, str]) -> Path:
    return built[0] / "site"


@pytest.mark.long
def test_it_builds_without_a_warning_and_without_a_pickle(built: tuple[Path, str]) -> None:
    folder, said = built
    assert said == ""
    assert (folder / "site" / ".nojekyll").is_file()
    assert [path for path in (folder / "site").rglob("*") if path.suffix in (".pickle", ".doctree", ".pkl")] == []


@pytest.mark.long
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert lost_links(site) == []
    assert loaded_from_elsewhere(site) == []


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_page_with_every_flag(site: Path, name: str) -> None:
    from site_pages.commands import BESIDE, parser_of

    page = Page((site / "reference" / "commands" / f"{name}.html").read_text(encoding="utf-8"))
    for words in (name, *(words for words in BESIDE if words.startswith(f"{name} "))):
        parser = parser_of(words)
        shown = re.findall(r"--[\w-]+", parser.format_help().removesuffix(parser.epilog or ""))
        flags = [flag for flag in flags_of_parser(parser) if flag in shown and flag != "--help"]
        anchors = [f"cmdoption-rnnreranker-{words.replace(' ', '-')}-{flag.removeprefix('--')}" for flag in flags]
        assert len(anchors) > 2
        assert [one for one in anchors if one not in page.ids] == []


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: str(page.relative_to(DOCS)))
def test_examples_of_a_page_give_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    text = "\n".join(block for block in blocks if ">>> " in block)
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert example.examples
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(example)
    assert capsys.readouterr().out == ""


@pytest.mark.long
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("page", SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_page_can_be_read_by_everybody(browser: Browser, site: Path, colours: str, page: str, width: int) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    assert violations(browser, (site / page).as_uri(), width) == []
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")  # what is wider scrolls in its own box
    assert browser.errors == []
