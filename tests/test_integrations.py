"""The page of what to do with what one has: its names are there, its pages have them in what is run, its block runs."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_what_a_row_names_stands_on_its_page(row: list[str]) -> None:
    _, do, extra, where = row
    pages = [ROOT / "docs" / link for link in re.findall(r"\]\(([\w./-]+)\)", where)]
    text = "".join(page.read_text(encoding="utf-8") for page in pages) or PAGE.split("```python")[1]
    for name in re.findall(r"(\w+)\(", do):
        assert name in text
    for flag in re.findall(r"--[\w-]+", do):
        assert flag in text
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert {*re.findall(r"`(\w+)`", extra)} <= {*config["options.extras_require"]}


def test_the_block_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ast.parse(block)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, "docs/integrations.md", "exec"), {})
    assert len(said.getvalue().splitlines()) == 10
