"""Rehearsals of the recipes of five papers: one chain of each paper, and, slow, every spec whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.specs.spec import specs_folder

CHAINS = {  # paper: query set and a condition of it, with all that they need
    "000": ("tripclick-head", "r-coder-repbert"),
    "001": ("dl19", "coder-tas-b-from-tas-b"),
    "002": ("dl19", "colbert-prf"),
    "003": ("dl21-document", "quick"),
    "004": ("reqa-cmrc-standard", "le-none"),
}
SPECS = [
    *("tripclick", "msmarco-passage", "msmarco-v2-passage", "dl21-document"),
    *("reqa-nq", "reqa-nq-cold", "reqa-squad", "reqa-squad-cold", "reqa-cmrc", "reqa-drcd"),
]


def rehearse(work: Path, *argv: str) -> str:
    """What a rehearsal says; it must go to its end."""
    command = [sys.executable, "-m", "rnnreranker.regress", *argv, "--rehearse", "--output", str(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work, env={**os.environ})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


@pytest.mark.jvm
@pytest.mark.parametrize("paper", CHAINS)
@pytest.mark.long
def test_a_chain_of_each_paper_runs_to_its_end(paper: str, tmp_path: Path) -> None:
    query_set, condition = CHAINS[paper]
    said = rehearse(tmp_path, query_set, "--only", condition, "--miniature", "documents=200,topics=10")
    assert "error" not in said
    assert "1 of 1 system rehearsed" in said or "2 of 2 systems rehearsed" in said


def test_every_paper_has_a_chain_that_obtains_cells_of_it() -> None:
    cells = Matrix(specs_folder(), commands=False).published
    for paper, (query_set, condition) in CHAINS.items():
        mine = {(cell.columns.query_set, cell.how.condition) for cell in cells if cell.paper == paper}
        assert (query_set, condition) in mine


def test_every_cell_that_is_not_measured_is_of_a_spec_that_is_rehearsed() -> None:
    matrix = Matrix(specs_folder(), commands=False)
    for cell, shown in zip(matrix.published, matrix.cells, strict=True):
        if shown["state"] in ("rehearsed", "runnable elsewhere") and cell.how.condition:
            assert matrix.sets[cell.columns.query_set][0].name in SPECS


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_runs_to_its_end(spec: str, tmp_path: Path) -> None:
    said = rehearse(tmp_path, spec)
    assert f"{spec}: " in said
    assert "error" not in said
