"""The table of methods over first stages: its cells from records, one family of tests, its pages and pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_data.first_stages import LAYOUTS, Collection, stage_table
from refusals import refusal

from rnnreranker.base.record import Record
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.regress.records import Figures

DOCS = Path(__file__).resolve().parent.parent / "docs"
CRANFIELD, SCIFACT = LAYOUTS["first stages"].collections[:2]


def run(where: Collection, name: str, ndcg: float, recall: float, against: str = "", p: float = 1.0) -> Record:
    """A record of a run that lies .25 above what it is compared with, .01 to both sides."""
    outcome: dict[str, Any] = {"query_set": where.query_set, "values": {"trec": {"nDCG@10": ndcg, "R@100": recall}}}
    if against:
        above = {"baseline": against, "difference": ndcg - 0.5, "low": ndcg - 0.51, "high": ndcg - 0.49, "p": p}
        of_recall = {"difference": recall - 0.5, "low": recall - 0.51, "high": recall - 0.49}
        outcome["differences"] = {"nDCG@10": above, "R@100": above | of_recall}
    return Record("run", where.spec, name, outcome, date="2026-01-01")


RECORDS = [
    *(run(where, "dense", 0.5, 0.5) for where in (CRANFIELD, SCIFACT)),
    run(CRANFIELD, "dense-rnn", 0.6, 0.5, "dense", 0.01),
    run(CRANFIELD, "dense-rnn-2-probes", 0.4, 0.5, "dense", 0.04),
    run(CRANFIELD, "dense-prf", 0.7, 0.75, "dense", 0.03),
    run(SCIFACT, "dense-rnn", 0.495, 0.5, "dense", 0.9),
    run(SCIFACT, "dense-rnn-2-probes", 0.5, 0.5, "dense", 1.0),
]


def test_the_cells_are_one_family_of_tests() -> None:
    table = stage_table(Figures(RECORDS), "first stages")
    found = {(cell.collection, cell.method): cell for cell in table.cells}
    assert len(found) == 5
    assert [found["Cranfield", name].p_holm for name in ("rnn", "prf", "rnn-2-probes")] == pytest.approx(
        [0.05, 0.12, 0.12]  # Holm: .01 x 5, .03 x 4, .04 x 3
    )
    assert found["Cranfield", "prf"].rows["R@100"]["difference"] == 0.25
    assert table.methods("dense") == ["rnn", "rnn-2-probes", "prf"]
    assert [stage.id for stage in table.with_methods(["rnn", "rnn-2-probes"])] == ["dense"]
    assert table.over("rnn", "dense").of("R@100").gain == 0
    assert table.over("rnn", "dense").of("AP").cells == ()


def test_cells_are_taken_together() -> None:
    table = stage_table(Figures(RECORDS), "first stages")
    new, before = table.over("rnn", "dense"), table.over("rnn-2-probes", "dense")
    assert (new.base, new.gain, before.gain) == pytest.approx((0.5, 0.0475, -0.05))
    assert (new.worst.collection, before.worst.collection) == ("SciFact", "Cranfield")
    assert [len(cells) for cells in (new.below, new.surely_below, new.surely_above)] == [1, 0, 1]
    assert (new.lost, before.lost) == ([], [])  # p .04 becomes .12
    assert [len(cells) for cells in (before.below, before.surely_below, before.surely_above)] == [1, 1, 0]
    with refusal("no record of expand-rnn over dense; measure it with --record"):
        table.over("expand-rnn", "dense")
    assert table.find("rnn", "dense", "SciFact").value == 0.495
    with refusal("no record of prf over dense on SciFact; measure it with --record"):
        table.find("prf", "dense", "SciFact")
    assert not table.complete
    with refusal("no record of rnn over any first stage"):
        table.over("rnn", without=["dense"])


def test_a_run_that_was_compared_with_something_else_is_no_cell() -> None:
    other = run(CRANFIELD, "dense-jaccard-plain", 0.6, 0.5, "bm25")
    alone = run(CRANFIELD, "dense-rnn-tas-b", 0.6, 0.5)
    assert stage_table(Figures([RECORDS[0], other, alone]), "first stages").cells == ()


def test_the_lines_that_make_xquad_of_its_file(tmp_path: Path) -> None:
    blocks = (DOCS / "data-sets.md").read_text().split("```python\n")[1:]
    (code,) = [block.split("```")[0] for block in blocks if "xquad" in block]
    asked = {"id": "q", "question": "Who?", "answers": [{"text": "A", "answer_start": 0}]}
    article = {"title": "T", "paragraphs": [{"context": "A did.", "qas": [asked]}, {"context": "B did.", "qas": []}]}
    (tmp_path / "xquad.en.json").write_text(json.dumps({"data": [article]}))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert [(document.docid, document.text) for document in load_documents(tmp_path)] == [
        *(("p0", "T\nA did."), ("p1", "T\nB did."))
    ]
    assert load_topics(tmp_path) == {"q": "Who?"}
    assert load_qrels(tmp_path).values.tolist() == [["q", "p0", 1]]
