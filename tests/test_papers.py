"""The published cells: all of them once, as the reference lists them, and strict about how a table is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base.errors import InputError
from rnnreranker.regress.papers.paper import cells_of, paper_names, read_paper
from rnnreranker.regress.specs.spec import specs_folder

PAPER = """\
schema: 3
name: paper-009
title: A paper
tables:
  - table: "1"
    caption: A table
    columns:
      - {dataset: Set A, measures: [RR@10, nDCG@10], decimals: 3, query_set: dl19, protocol: strict}
      - {dataset: Set B, measures: [nDCG@10 x100], decimals: 1, queries: [7, 8]}
    rows:
      - row: TAS-B
        condition: tas-b
        values: [[0.5, null], [50.0, 25.5]]
      - row: Theirs
        external: a system of others
        values: [null, [1, 2]]
"""


def write(folder: Path, text: str) -> Path:
    (folder / "papers").mkdir()
    (folder / "papers" / "paper-009.yaml").write_text(text, encoding="utf-8")
    return folder


def test_every_published_cell_stands_once(shared: Path) -> None:
    reference = json.loads((shared / "reference" / "published.json").read_text(encoding="utf-8"))
    keys = ("paper", "table", "row", "dataset", "measure")
    wanted = {tuple(cell[key] for key in keys): cell["value"] for cell in reference}
    folder = specs_folder()
    cells = [cell for name in paper_names(folder) for cell in cells_of(read_paper(name, folder))]
    tables = {tuple(cell[key] for key in keys): cell["published"] for cell in cells if cell["table"].isdigit()}
    assert tables == wanted
    assert len(reference) == len(wanted) == len([cell for cell in cells if cell["table"].isdigit()]) == 1245


def test_cells_of_a_table(tmp_path: Path) -> None:
    cells = cells_of(read_paper("paper-009", write(tmp_path, PAPER)))
    assert [tuple(cell[key] for key in ("row", "dataset", "metric", "published")) for cell in cells] == [
        ("TAS-B", "Set A", "RR@10", 0.5),
        ("TAS-B", "Set B query 7", "nDCG@10", 50.0),
        ("TAS-B", "Set B query 8", "nDCG@10", 25.5),
        ("Theirs", "Set B query 7", "nDCG@10", 1),
        ("Theirs", "Set B query 8", "nDCG@10", 2),
    ]
    assert [cell["factor"] for cell in cells] == [1, 100, 100, 100, 100]


def test_all_faults_of_a_paper_at_once(tmp_path: Path) -> None:
    text = PAPER.replace("RR@10,", "RRR@10,").replace("strict", "strikt").replace("[1, 2]", "[1, 2, 3]")
    text = text.replace("external: a system of others", "externl: x")
    with pytest.raises(InputError) as error:
        read_paper("paper-009", write(tmp_path, text))
    message = str(error.value)
    for part in (
        ":8: protocol strikt",
        "measures: RRR@10: no such measure",
        "unknown key externl; did you mean external?",
    ):
        assert part in message


def test_a_row_says_how_it_is_obtained_and_has_a_value_for_each_column(tmp_path: Path) -> None:
    text = PAPER.replace("        external: a system of others\n", "").replace("[[0.5, null], [50.0", "[[0.5], [50.0")
    with refusal(r":5: row TAS-B, Set A: expected 2 numbers; row Theirs: give one of"):
        read_paper("paper-009", write(tmp_path, text))
