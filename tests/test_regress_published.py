"""Published run files in place of retrieval: which file is whose, what it scores, and how that counts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base.errors import DataWarning
from rnnreranker.regress import __main__ as regress
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.pages.published import find_runs, measure_published
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.records import records_file
from rnnreranker.regress.specs.entries import QuerySet, Spec
from rnnreranker.regress.specs.spec import find_spec

SPEC = """\
schema: 3
name: small
title: A small spec
about: Nothing much.
query_sets:
  some: {topics: topics.tsv, qrels: QRELS, protocols: [dl, trec, strict], runs: "*small*"}
measures: [RR@2, nDCG@2, R@100]
indexes:
  words: {prebuilt: msmarco-v1-passage, parts: {bm25: {}}}
conditions:
  bm25: {title: BM25, retrieve: {bm25: {}}, runs: ["*bm25.run", "*bm25*"]}
  later: {title: later, retrieve: {bm25: {}}, runs: ["*later*"]}
  nowhere: {title: nowhere, retrieve: {bm25: {}}, runs: ["*nowhere*"]}
"""
PAPER = """\
schema: 3
name: paper-009
title: A paper
tables:
  - table: "1"
    caption: A table
    columns:
      - {dataset: Small, measures: [RR@2 x100], decimals: 1, query_set: some, protocol: dl}
      - {dataset: Small lenient, measures: [RR@2], decimals: 3, query_set: some, protocol: trec}
      - {dataset: Small, measures: [RR@2], decimals: 2, query_set: some, protocol: dl, queries: [q1, q2]}
      - {dataset: time, measures: [ms], decimals: 1, latency: true}
    rows:
      - row: BM25
        condition: bm25
        remarks: {q2: rounded twice}
        values: [[50.0], [0.75], [1.0, 0.01], ["3 + 4"]]
      - row: Later
        condition: later
        planned: a method that is not there
        values: [[50.1], null, null, null]
  - table: "2"
    caption: The same again
    columns:
      - {dataset: Small, measures: [RR@2], decimals: 1, query_set: some, protocol: dl}
    rows:
      - row: BM25
        condition: bm25
        values: [[0.5]]
"""
# q1: d1 has grade 2; q2: d2 has grade 1. The run finds d1 first for q1, d2 second for q2.
QRELS = "q1 0 d1 2\nq1 0 d9 2\nq2 0 d2 1\nq2 0 d3 2\n"
RUN = "q1 Q0 d1 1 9 x\nq1 Q0 d2 2 8 x\nq2 Q0 d1 1 9 x\nq2 Q0 d2 2 8 x\n"


Asked = list[tuple[Spec, QuerySet]]


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    (folder / "papers").mkdir(parents=True)
    (tmp_path / "qrels.txt").write_text(QRELS)
    (folder / "small.yaml").write_text(SPEC.replace("QRELS", str(tmp_path / "qrels.txt")))
    (folder / "papers" / "paper-009.yaml").write_text(PAPER)
    return folder


@pytest.fixture
def asked(specs: Path) -> Asked:
    spec, query_sets = find_spec("small", specs)
    return [(spec, query_set) for query_set in query_sets]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "Small-set").mkdir(parents=True)
    (folder / "Small-set" / "Theirs-BM25.txt").write_text(RUN)
    (folder / "Small-set" / "README.md").write_text("bm25")
    return folder


class TestWhichFile:
    def test_earlier_patterns_come_first(self, runs: Path, asked: Asked) -> None:
        (runs / "Small-set" / "zz-bm25.run").write_text(RUN)
        (runs / "other").mkdir()
        (runs / "other" / "bm25.run").write_text(RUN)
        (found,) = find_runs(runs, asked)
        assert found.path.name == "zz-bm25.run"

    def test_no_folder_and_no_runs_are_two_things(self, tmp_path: Path, asked: Asked) -> None:
        with refusal("nowhere: no such folder of runs"):
            find_runs(tmp_path / "nowhere", asked)
        (tmp_path / "empty").mkdir()
        with refusal(r"empty: no run files in this folder; their names end in \.txt"):
            find_runs(tmp_path / "empty", asked)


class TestWhatItScores:
    def test_under_every_protocol_and_beside_what_is_published(self, specs: Path, runs: Path, asked: Asked) -> None:
        (found,) = find_runs(runs, asked)
        (record,), errors = measure_published([found], runs, {("some", "bm25"): {"dl": ["RR@2"]}})
        assert errors == []
        outcome = record.outcome
        # dl: relevant from grade 2 on, so q2 finds nothing; trec: d2 counts, at rank 2
        assert {protocol: values["RR@2"] for protocol, values in outcome["values"].items()} == pytest.approx(
            {"dl": 0.5, "trec": 0.75, "strict": 0.5}
        )
        assert all("R@100" not in values for values in outcome["values"].values())  # the lists have two documents
        assert (outcome["depth"], outcome["topics"], outcome["file"]) == (2, 2, "Small-set/Theirs-BM25.txt")
        assert record.inputs == {"run": hashlib.sha256(RUN.encode()).hexdigest()}
        assert outcome["queries"] == {"dl": {"RR@2": {"q1": 1.0, "q2": 0.0}}}
        shown = [
            (cell["table"], cell["dataset"], cell["protocol"], cell["published"], cell["measured"], cell["state"])
            for cell in Matrix(specs, measured=[record]).cells.to_dict("records")
            if cell["measured"] is not None
        ]
        assert shown == [
            ("1", "Small", "dl", 50.0, 50.0, "reproduced"),
            ("1", "Small lenient", "trec", 0.75, 0.75, "reproduced"),
            ("1", "Small query q1", "dl", 1.0, 1.0, "reproduced"),
            ("1", "Small query q2", "dl", 0.01, 0.0, "changed"),
            ("2", "Small", "dl", 0.5, 0.5, "reproduced"),
        ]

    def test_a_run_of_another_collection_is_reported(self, specs: Path, runs: Path, asked: Asked) -> None:
        (runs / "Small-set" / "Theirs-BM25.txt").write_text(RUN.replace(" d", " x"))
        with pytest.warns(DataWarning, match=r"bm25: no judged docid is in the run, so every measure is 0"):
            (record,), _ = measure_published(find_runs(runs, asked), runs)
        assert record.outcome["values"]["trec"]["RR@2"] == 0


class TestTheCommand:
    def test_prints_counts_and_puts_nothing_on_record_unasked(
        self, specs: Path, runs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (runs / "Small-set" / "later.txt").write_text(RUN)
        argv = f"--specs {specs} --runs {runs}".split()
        assert main(["paper-009", *argv]) == 0
        shown = capsys.readouterr()
        assert "some\tbm25\ttrec\tRR@2\t0.7500\n" in shown.out
        # table 1 and 2 print one value of one run: four cells within half a unit, three distinct
        assert "reproduced\t4\t3\n" in shown.out
        assert "changed\t2\t2\n" in shown.out
        assert "external\t1\t1\n" in shown.out
        assert "Later" not in shown.out
        assert not records_file(specs, "small").exists()
        assert Matrix(specs).summary()[0] == ["reproduced", 0, 0]
        assert main([*argv, "--record"]) == 0
        matrix = Matrix(specs)
        assert matrix.summary()[0] == ["reproduced", 4, 3]
        assert [
            cell["note"].split(";")[0] for cell in matrix.cells.to_dict("records") if cell["state"] == "changed"
        ] == [
            "rounded twice",
            "measured on a published run, which cannot be made here: a method that is not there",
        ]
        assert main(["paper-009", "--table", "2", *argv]) == 0
        assert "009\t2\tBM25\tSmall\tRR@2\t0.5\t0.5000\t+0.0000\treproduced\n" in capsys.readouterr().out

    def test_a_file_that_cannot_be_measured_leaves_the_others(
        self, specs: Path, runs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (runs / "Small-set" / "later.txt").write_text("q1 Q0 d1\n")
        assert main(f"--specs {specs} --runs {runs}".split()) == 1
        shown = capsys.readouterr()
        assert "later.txt:1: " in shown.err
        assert "reproduced\t4\t3\n" in shown.out

    def test_what_does_not_fit_is_told(self, specs: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
        argv = f"--specs {specs} --runs {runs}".split()
        assert main([*argv, "--only", "nowhere"]) == 2
        assert "no run file of these conditions; looked for *small*" in capsys.readouterr().err
        for more, message in (
            (["smal"], r"smal: no such spec, query set or paper in .*; did you mean small\?"),
            (["--only", "bm52"], r"--only bm52: no such condition in small; did you mean bm25\?"),
            (["paper-009", "--table", "3"], r"table 3: no such table in paper-009; known: 1, 2"),
        ):
            with refusal(message):
                main([*argv, *more])

    def test_no_flag_is_passed_over(
        self, specs: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        of, given = ["--specs", str(specs)], ["--runs", str(runs)]
        for more, message in (
            (["small", *given, "--dry-run"], "--dry-run: run files of --runs .* are measured without commands"),
            (["paper-009", "--only", "bm25"], "--only bm25: is of a spec; name the one that has it"),
            (["--docs", "--dry-run"], "no spec named"),
        ):
            with refusal(message):
                main([*of, *more])
        written = list[Path]()
        monkeypatch.setattr(regress, "_docs", lambda folder, _: written.append(folder))
        for argv in (["small", *given], ["--matrix"], ["paper-009"]):
            assert main([*of, *argv, "--docs"]) == 0
        assert written == [specs] * 3

    def test_a_named_file_is_a_spec_of_its_own(
        self, specs: Path, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = (specs / "small.yaml").read_text().replace("name: small", "name: two").replace(" some:", " other:")
        (tmp_path / "two.yaml").write_text(text)
        assert main(f"{tmp_path}/two.yaml --specs {specs} --runs {runs}".split()) == 0
        assert "other\tbm25\ttrec\tRR@2\t0.7500\n" in capsys.readouterr().out
