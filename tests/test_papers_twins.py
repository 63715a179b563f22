"""Twins: the same pipeline at a size that runs here, and how often it stands in the order that a paper prints."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record, write_records
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.papers.twins import TwinSet, agreement
from rnnreranker.regress.records import records_file


class TestAgreement:
    @pytest.mark.parametrize("seed", range(5))
    def test_of_one_column_is_what_scipy_says(self, seed: int) -> None:
        import numpy as np
        from scipy.stats import kendalltau

        printed, twins = np.random.default_rng(seed).integers(0, 5, (2, 9)) / 10
        found = agreement([list(printed)], list(twins))
        assert found.tau == pytest.approx(kendalltau(printed, twins).statistic)

    def test_counts_only_rows_with_both_values_and_sums_columns(self) -> None:
        """Column 1: rows a, b, c; column 2: rows a, c only, in the opposite order."""
        found = agreement([[1, 2, 3], [5, None, 4]], [0.1, 0.2, 0.3])
        assert (found.same, found.pairs) == (3, 4)  # ab, ac, bc of column 1; ac of column 2
        assert found.tau == pytest.approx(2 / 4)

    def test_that_orders_nothing_has_no_tau(self) -> None:
        assert agreement([[0.3, 0.3]], [0.1, 0.2]).tau is None
        assert agreement([[0.3, 0.4]], [0.2, 0.2]).tau is None
        assert agreement([[0.3, None]], [0.1, 0.2]).pairs == 0

    def test_interval_follows_the_bootstrap_by_hand(self) -> None:
        """All 27 samples of three topics counted: the percentiles are those of the exact distribution."""
        import numpy as np

        by_topic = np.array([[0.9, 0.1, 0.2], [0.1, 0.5, 0.4], [0.3, 0.3, 0.7]])
        printed = [3, 2, 1]
        exact = []
        for sample in itertools.product(range(3), repeat=3):
            exact.append(agreement([printed], list(by_topic[:, sample].mean(axis=1))).tau)
        found = agreement([printed], list(by_topic.mean(axis=1)), by_topic.tolist())
        low, high = np.percentile([tau for tau in exact if tau is not None], [2.5, 97.5])
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)

    def test_no_interval_without_the_topics_of_every_row(self) -> None:
        found = agreement([[1, 2]], [0.1, 0.2], [[0.1, 0.1], [None, None]])
        assert (found.tau, found.low) == (1.0, None)


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
    return Matrix(folder).twins["009", "1"]


class TestTwins:
    def test_show_the_newest_value_of_each_row_in_the_measures_of_both(self, folder: Path) -> None:
        here, there = twins(folder)
        assert (here.measures, here.models, here.title, there.title) == (
            ["RR@10", "nDCG@10"],
            ["MiniLM"],
            "Small",
            "There",
        )
        assert {row: (twin.name, twin.values["RR@10"]) for row, twin in here.twins.items()} == {
            "BM25": ("bm25", 0.2),
            "Dense": ("dense", 0.5),
            "Trained": ("CODER (study labels)", 0.4),
        }
        assert (here.twins["BM25"].date, here.twins["BM25"].commit) == ("2026-02-02", "abc1234")
        assert here.text("Dense", "RR@10") == ".5000"
        assert here.text("None", "RR@10") == here.text("Trained", "AP@10") == ""

    def test_leave_out_a_measure_that_none_was_measured_by(self, folder: Path) -> None:
        path = folder / "small.yaml"
        path.write_text(SPEC.replace("RR@10, R@100]", "RR@10, AP@10, R@100]"), encoding="utf-8")
        assert twins(folder)[0].measures == ["RR@10", "nDCG@10"]
        for kind in ("run", "study"):
            records_file(folder, "small", kind).unlink()
        assert [found.measures for found in twins(folder)] == [["RR@10", "nDCG@10", "AP@10"]] * 2

    def test_count_pairs_over_all_columns_of_a_measure(self, folder: Path) -> None:
        """RR@10 of A: BM25 < Dense < Trained, here BM25 .2 < Trained .4 < Dense .5: two of three pairs; of B: BM25 >
        Dense, here the opposite. nDCG@10 of A: .3 < .4 < .6 is the printed order."""
        here, there = twins(folder)
        assert str(here.agreements["RR@10"]) == "2 of 4 pairs, τ .00"
        assert str(here.agreements["nDCG@10"]) == "3 of 3 pairs, τ 1.00"
        assert str(there.agreements["RR@10"]) == "0 of 1 pair, τ −1.00"  # Dense and Trained; no BM25 there

    def test_have_an_interval_where_every_row_is_known_topic_by_topic(self, folder: Path) -> None:
        assert twins(folder)[0].agreements["RR@10"].low is None  # nothing of the study by topic
        path = folder / "papers" / "paper-009.yaml"
        path.write_text(PAPER.replace(", twin: {study: labels, arm: CODER}", ""), encoding="utf-8")
        found = twins(folder)[0].agreements["RR@10"]
        assert (found.same, found.pairs, found.low, found.high) == (1, 2, 0.0, 0.0)

    def test_that_name_nothing_are_refused_with_their_lines(self, folder: Path) -> None:
        text = PAPER.replace("[here, there]", "[here, ther]").replace("twin: dense}", "twin: dens}")
        text = text.replace("study: labels, arm: CODER", "study: label, arm: CODERR")
        (folder / "papers" / "paper-009.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            Matrix(folder)
        for part in (
            "paper-009.yaml: table 1: twins: no query set ther; ",
            "paper-009.yaml:13: row Dense: twin: dens: in none of here, ther; did you mean dense?",
            "paper-009.yaml:14: row Trained: twin: label: in none of here, ther; did you mean labels?",
            "paper-009.yaml:14: row Trained: twin: arm CODERR: no study has it; did you mean CODER?",
        ):
            assert part in str(caught.value)

    def test_are_a_condition_or_an_arm_of_a_study(self, folder: Path) -> None:
        text = PAPER.replace("{study: labels, arm: CODER}", "{study: labels}")
        (folder / "papers" / "paper-009.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r":14: twin: .*expected a condition, or \{study: ID, arm: NAME\}"):
            Matrix(folder)
