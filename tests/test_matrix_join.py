"""Published cells joined with measured values: units, states, remarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.record import Record
from rnnreranker.regress.papers.matrix import Matrix

SPEC = """\
schema: 3
name: small
title: A small spec
about: Two systems.
query_sets:
  dl: {topics: topics.tsv, qrels: qrels.txt, protocols: [strict, trec]}
measures: [RR@10, nDCG@10]
conditions:
  tas-b: {title: TAS-B, runs: ["*"]}
  v1: {title: V1, runs: ["*"]}
"""
PAPER = """\
schema: 3
name: paper-009
title: A paper
tables:
  - table: "1"
    caption: A table
    columns:
      - {dataset: Set A, measures: [RR@10], decimals: 3, query_set: dl, protocol: strict, tuned: [training]}
      - {dataset: Set B, measures: [nDCG@10 x100], decimals: 1, query_set: dl}
      - {dataset: latency, measures: [ms per query], decimals: 0, latency: true}
    rows:
      - {row: TAS-B, condition: tas-b, values: [[0.5], [50.0], null]}
      - {row: V1, condition: v1, note: a remark, values: [[0.25], null, null]}
      - {row: Later, planned: no method yet, values: [null, [20.0], null]}
      - {row: Theirs, external: a system of others, values: [null, [10.0], [80]]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "papers").mkdir()
    (tmp_path / "small.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "papers" / "paper-009.yaml").write_text(PAPER, encoding="utf-8")
    return tmp_path


def measured(condition: str, rr: float, ndcg: float) -> Record:
    values = {"strict": {"RR@10": rr}, "trec": {"nDCG@10": ndcg}}
    return Record("run", "small", condition, {"query_set": "dl", "values": values}, date="2026-11-21")


def test_measured_values_are_reproduced_within_half_a_printed_unit(folder: Path) -> None:
    for ndcg, state in ((0.50051, "changed"), (0.50049, "reproduced")):  # 50.051, printed to .1: half a unit is .05
        cells = Matrix(folder, measured=[measured("tas-b", 0.50049, ndcg), measured("v1", 0.25, 0.1)]).cells.to_dict(
            "records"
        )
        assert [cell["state"] for cell in cells[:3]] == ["reproduced", state, "reproduced"]
        assert cells[1]["measured"] == pytest.approx(100 * ndcg)
        assert cells[1]["record"].date == "2026-11-21"
