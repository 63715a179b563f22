"""Published cells joined with measured values: units, states, remarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.papers.html import matrix_pages
from rnnreranker.regress.papers.join import key_of, page_cells
from rnnreranker.regress.papers.paper import Published, published, read_paper

PAPER = """\
schema: 3
name: paper-009
title: A paper
tables:
  - table: "1"
    caption: A table
    columns:
      - {dataset: Set A, measures: [RR@10], decimals: 3, query_set: dl19, protocol: strict, tuned: [training]}
      - {dataset: Set B, measures: [nDCG@10 x100], decimals: 1, query_set: dl21}
      - {dataset: latency, measures: [ms per query], decimals: 0, latency: true}
    rows:
      - {row: TAS-B, condition: tas-b, values: [[0.5], [50.0], null]}
      - {row: V1, condition: v1, note: a remark, values: [[0.25], null, null]}
      - {row: Later, planned: no method yet, values: [null, [20.0], null]}
      - {row: Theirs, external: a system of others, values: [null, [10.0], [80]]}
"""


@pytest.fixture
def cells(tmp_path: Path) -> list[Published]:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "paper-009.yaml").write_text(PAPER, encoding="utf-8")
    return published(read_paper("paper-009", tmp_path))


def joined(cells: list[Published], found: dict[Any, Any]) -> list[tuple[str, str, Any]]:
    return [(cell["row"], cell["state"], cell["measured"]) for cell in page_cells(cells, found)]


def test_states_without_measured_values(cells: list[Published]) -> None:
    made = page_cells(cells)
    assert [(cell["row"], cell["state"], cell["note"]) for cell in made] == [
        ("TAS-B", "runnable elsewhere", ""),
        ("TAS-B", "runnable elsewhere", ""),
        ("V1", "runnable elsewhere", "a remark"),
        ("Later", "planned", "no method yet"),
        ("Theirs", "external", "a system of others"),
        ("Theirs", "external", "a time on the authors' machine: shown, never compared; a system of others"),
    ]
    assert [cell["parameters"] for cell in made[:2]] == [
        {"query set": "dl19", "condition": "tas-b"},
        {"query set": "dl21", "condition": "tas-b"},
    ]
    assert not any(cell["tuned"] for cell in made)
    assert made[3]["parameters"] == {}


def test_measured_values_are_reproduced_within_half_a_printed_unit(cells: list[Published]) -> None:
    keys = [key_of(cell) for cell in cells]
    found: dict[Any, Any] = {
        keys[0]: {"measured": 0.50049},
        keys[1]: {"measured": 0.50051},
        keys[2]: {"measured": 0.25},
    }
    states = [state for _, state, _ in joined(cells, found)]
    assert states[:3] == ["reproduced", "changed", "reproduced"]  # .50051 is 50.051, printed to .1: half a unit is .05
    found[keys[1]] = {"measured": 0.50049, "history": [{"date": "2026-11-21", "value": 0.50049}]}
    assert page_cells(cells, found)[1]["history"] == [{"date": "2026-11-21", "value": 50.049}]
    assert joined(cells, found)[1] == ("TAS-B", "reproduced", pytest.approx(50.049))
    found[keys[2]] = {"measured": 0.25, "state": "changed", "note": "another version"}
    assert joined(cells, found)[2][1] == "changed"
    page = matrix_pages(page_cells(cells, found))["paper-009.html"]
    assert "50.05" in page
    assert "another version; a remark" in page


def test_values_for_no_cell_are_refused(cells: list[Published]) -> None:
    with pytest.raises(InputError, match=r"no cell \('009', '1', 'X'"):
        page_cells(cells, {("009", "1", "X", "Set A", "RR@10"): {"measured": 0.1}})
    with pytest.raises(InputError, match="unknown value"):
        page_cells(cells, {key_of(cells[0]): {"value": 0.1}})
