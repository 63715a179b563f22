"""Twins: the same pipeline at a size that runs here, and how often it stands in the order that a paper prints."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas
import pytest
from refusals import refusal
from scipy.stats import kendalltau

from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record, write_records
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.papers.twins import TwinSet, agreement, twin_sets
from rnnreranker.regress.records import records_file


def cells(*columns: list[float | None]) -> pandas.DataFrame:
    """A cell for each row (r0, r1, …) of each column."""
    rows = [(f"r{row}", f"set {n}", value) for n, column in enumerate(columns) for row, value in enumerate(column)]
    made = pandas.DataFrame(rows, columns=["row", "dataset", "published"], dtype=object).assign(measure="RR@10")
    return made[made["published"].notna()]


def agreed(columns: list[list[float | None]], twins: list[float]) -> tuple[int, int, float]:
    return agreement(cells(*columns), {f"r{row}": value for row, value in enumerate(twins)})


class TestAgreement:
    @pytest.mark.parametrize("seed", range(5))
    def test_of_one_column_is_what_scipy_says(self, seed: int) -> None:
        printed, twins = np.random.default_rng(seed).integers(0, 5, (2, 9)) / 10
        assert agreed([list(printed)], list(twins))[2] == pytest.approx(kendalltau(printed, twins).statistic)

    def test_counts_only_rows_with_both_values_and_sums_columns(self) -> None:
        """Column 1: rows a, b, c; column 2: rows a, c only, in the opposite order."""
        found = agreed([[1, 2, 3], [5, None, 4]], [0.1, 0.2, 0.3])
        assert found == (3, 4, pytest.approx(2 / 4))  # ab, ac, bc of column 1; ac of column 2

    def test_that_orders_nothing_has_no_tau(self) -> None:
        for printed, twins in (([0.3, 0.3], [0.1, 0.2]), ([0.3, 0.4], [0.2, 0.1 + 0.1]), ([0.3, None], [0.1, 0.2])):
            assert math.isnan(agreed([printed], twins)[2])


SPEC = """\
schema: 3
name: small
title: "Small: ten documents"
about: One collection.
query_sets:
  here: {topics: topics.tsv, qrels: qrels.txt}
  there: {topics: topics.tsv, qrels: qrels.txt, title: "There: another"}
measures: [nDCG@10, RR@10, R@100]
indexes: {main: {documents: pydoc, parts: {dense: {encoder: minilm}, bm25: {}}}}
conditions:
  bm25: {title: BM25, retrieve: {bm25: {}}}
  dense: {title: dense, retrieve: {dense: {}}}
studies:
  labels: {index: main, query_set: here, epochs: 1, arms: {CODER: {}, soft: {labels: evidence}}}
"""
PAPER = """\
schema: 3
name: paper-009
title: A paper
tables:
  - table: "1"
    caption: A table
    columns:
      - {dataset: A, measures: [RR@10 x100, nDCG@10 x100], decimals: 1}
      - {dataset: B, measures: [RR@10, AP@10], decimals: 3}
    twins: [here, there]
    rows:
      - {row: BM25, external: theirs, values: [[20.0, 30.0], [0.2, 0.1]], twin: bm25}
      - {row: Dense, external: theirs, values: [[30.0, 40.0], [0.1, null]], twin: dense}
      - {row: Trained, external: theirs, values: [[40.0, 50.0], null], twin: {study: labels, arm: CODER}}
      - {row: None, external: theirs, values: [[50.0, null], null]}
"""


def run(name: str, rr: float, ndcg: float, query_set: str = "here", **about: str) -> Record:
    values = {"trec": {"RR@10": rr, "nDCG@10": ndcg, "R@100": 1.0}}
    queries = {"trec": {"RR@10": {"q1": rr - 0.1, "q2": rr + 0.1}}}
    return Record("run", "small", name, {"query_set": query_set, "values": values, "queries": queries}, **about)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "papers").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "small.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "papers" / "paper-009.yaml").write_text(PAPER, encoding="utf-8")
    old = run("bm25", 0.9, 0.9, date="2026-01-01T00:00:00+00:00")
    new = run("bm25", 0.2, 0.3, date="2026-02-02T00:00:00+00:00", commit="abc1234")
    write_records(records_file(tmp_path, "small"), [old, new, run("dense", 0.5, 0.4), run("dense", 0.6, 0.1, "there")])
    rows = [
        {"arm": arm, "measure": measure, "group": group, "value": value}
        for arm, measure, group, value in (
            *(("CODER", "RR@10", "all", 0.4), ("CODER", "nDCG@10", "all", 0.6)),
            *(("CODER", "RR@10", "seen", 0.9), ("base", "RR@10", "all", 0.1)),
        )
    ]
    write_records(records_file(tmp_path, "", "study"), [Record("study", "small", "labels", {"rows": rows})])
    return tmp_path


def twins(folder: Path) -> list[TwinSet]:
    matrix = Matrix(folder)
    return twin_sets(matrix, matrix.cells)


class TestTwins:
    def test_show_the_newest_value_of_each_row_in_the_measures_of_both(self, folder: Path) -> None:
        here, there = twins(folder)
        assert (here.id, here.spec, here.title, there.title) == ("here", "small", "Small", "There")
        assert here.values == {
            "RR@10": {"BM25": 0.2, "Dense": 0.5, "Trained": 0.4},
            "nDCG@10": {"BM25": 0.3, "Dense": 0.4, "Trained": 0.6},
        }
        assert here.names["BM25"] == "bm25 on here, 2026-02-02, commit abc1234"
        assert here.names["Trained"].startswith("CODER (study labels) on here")
        for kind in ("run", "study"):
            records_file(folder, "small", kind).unlink()
        assert twins(folder) == []

    def test_count_pairs_over_all_columns_of_a_measure(self, folder: Path) -> None:
        """RR@10 of A: BM25 < Dense < Trained, here BM25 .2 < Trained .4 < Dense .5: two of three pairs; of B: BM25 >
        Dense, here the opposite. nDCG@10 of A: .3 < .4 < .6 is the printed order."""
        here, there = twins(folder)
        assert here.agreements == {"RR@10": (2, 4, 0.0), "nDCG@10": (3, 3, 1.0)}
        assert there.agreements["RR@10"] == (0, 1, -1.0)  # Dense and Trained; no BM25 there

    def test_that_name_nothing_are_refused_with_their_lines(self, folder: Path) -> None:
        text = PAPER.replace("[here, there]", "[here, ther]").replace("twin: dense}", "twin: dens}")
        text = text.replace("study: labels, arm: CODER", "study: labels, arm: CODERR")
        (folder / "papers" / "paper-009.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            Matrix(folder)
        for part in (
            "paper-009.yaml:12: row BM25: no twins: query set ther; ",
            "paper-009.yaml:13: row Dense: no twin dens; did you mean dense?",
            "paper-009.yaml:14: row Trained: no twin: arm CODERR; did you mean CODER?",
        ):
            assert part in str(caught.value)

    def test_are_a_condition_or_an_arm_of_a_study(self, folder: Path) -> None:
        text = PAPER.replace("{study: labels, arm: CODER}", "{study: labels}")
        (folder / "papers" / "paper-009.yaml").write_text(text, encoding="utf-8")
        with refusal(r":14: key arm is missing"):
            Matrix(folder)
