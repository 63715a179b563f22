"""`python -m rnnreranker.evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pandas
import pytest
from refusals import refusal

from rnnreranker import evaluate_run
from rnnreranker.base.errors import DataWarning, InputError
from rnnreranker.evaluate import evaluate_runs
from rnnreranker.evaluate.__main__ import main
from rnnreranker.runs import Run

BOTH = ["one.txt", "two.txt", "--qrels", "qrels.txt"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs and judgements in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 1\n")
    Path("one.txt").write_text("q1 Q0 b 1 2 t\nq1 Q0 a 2 1 t\nq2 Q0 c 1 1 t\n")
    Path("two.txt").write_text("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n")


def test_a_row_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BOTH, "--measures", "RR@10 P@1"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "run\tRR@10\tP@1\none\t0.7500\t0.5000\ntwo\t0.5000\t0.5000\n"
    assert shown.err == "warning: two: 1 of 2 judged topics are not in the run and score 0\n"


def test_a_table_names_another_protocol_than_that_of_trec(capsys: pytest.CaptureFixture[str]) -> None:
    Path("qrels.txt").write_text("q1 0 a 2\nq1 0 b 1\nq2 0 c 1\n")
    arguments = [*BOTH, "--measures", "RR@10", "--common-topics"]
    asked = {None: [], "dl": ["--protocol", "dl"], "dl compared": ["--protocol", "dl", "--compare"]}
    shown = {}
    for name, more in asked.items():
        assert main([*arguments, *more]) == 0
        shown[name] = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert shown[None] == [["run", "RR@10"], ["one", "1.0000"], ["two", "1.0000"]]
    assert shown["dl"] == [["run", "protocol", "RR@10"], ["one", "dl", "0.5000"], ["two", "dl", "1.0000"]]
    assert [row[:3] for row in shown["dl compared"]] == [["run", "protocol", "measure"], ["two", "dl", "RR@10"]]
    table = evaluate_run("one.txt", "qrels.txt", "RR@10", "dl", per_query=True)
    assert table.attrs["protocol"] == "dl"
    assert "protocol dl" in str(table)


def test_runs_of_every_kind() -> None:
    entries = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 1.0}}
    frame = pandas.DataFrame([(q, d, s) for q, of in entries.items() for d, s in of.items()])
    frame.columns = ["query_id", "doc_id", "score"]
    qrels = {"q1": ["a"], "q2": {"c"}}
    for name, one in {"one.txt": Path("one.txt"), "run": Run.from_dict(entries)}.items():
        assert evaluate_run(one, qrels, "RR@10").to_dict("index") == {name: {"RR@10": 0.75}}
    for one in (entries, frame):
        assert evaluate_run({"mine": one}, qrels, "RR@10").to_dict("index") == {"mine": {"RR@10": 0.75}}
    numbers = frame.replace({"query_id": {"q1": 1, "q2": 2}}).astype({"query_id": int})
    assert evaluate_run(numbers, {1: {"a": 1}, 2: {"c": 1}}, "RR@10").iloc[0, 0] == 0.75
    assert evaluate_run(frame.set_axis(["qid", "docno", "score"], axis=1), qrels, "RR@10").iloc[0, 0] == 0.75
    with pytest.warns(
        DataWarning, match=r"run: no judged docid is in the run, so every measure is 0 \(its first docid: "
    ):
        assert evaluate_run(frame, {"q1": {"x": 1}}, "RR@10").iloc[0, 0] == 0
    for wrong, said in (
        (frame.assign(doc_id=["b", None, "c"]), "run: doc_id has a float; expected text"),
        ({"q1": {}}, "none of its 1 queries has entries"),
        ([1], "run: list; expected a Run, a file"),
        (frame[["doc_id", "score"]], "run: DataFrame without query_id; expected a Run, a file"),
    ):
        with refusal(said):
            evaluate_run(wrong, qrels, "RR@10")  # type: ignore[arg-type]
    with refusal("measures: 5: int; expected a name or a measure"):
        evaluate_run(entries, qrels, [5])  # type: ignore[list-item]
    assert evaluate_run(entries, qrels, [ir_measures.P(rel=1) @ 1, "P@1"]).columns.tolist() == ["P(rel=1)@1", "P@1"]


def test_a_row_a_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["one.txt", "--qrels", "qrels.txt", "--measures", "RR@10", "--per-query"]) == 0
    assert capsys.readouterr().out == "run\ttopic\tRR@10\none\tq1\t0.5000\none\tq2\t1.0000\none\tall\t0.7500\n"


def test_comparison_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BOTH, "--measures", "RR@10 P@1", "--compare", "--resamples", "100", "--json", "out.json"]) == 0
    shown = capsys.readouterr()
    assert "baseline: one; 2 topics, protocol trec" in shown.err
    header, *rows = [line.split("\t") for line in shown.out.splitlines()]
    assert len(rows) == 2
    row = dict(zip(header, rows[0], strict=True))
    assert (row["run"], row["measure"]) == ("two", "RR@10")
    assert (row["baseline"], row["value"], row["difference"]) == ("0.7500", "0.5000", "-0.2500")
    assert (row["judged@10 baseline"], row["judged@10"]) == ("1.000", "0.500")
    assert row["win/tie/loss"] == "1/0/1"
    written = json.loads(Path("out.json").read_text())
    assert written["topics"] == ["q1", "q2"]
    assert written["runs"][0]["per_topic"] == {"RR@10": [0.5, 1.0], "P@1": [0.0, 1.0]}
    assert written["runs"][1]["mean"] == {"RR@10": 0.5, "P@1": 0.5}
    assert written["runs"][1]["missing_topics"] == 1
    assert written["comparisons"][0]["difference"] == -0.25
    assert written["bootstrap"] == {"resamples": 100, "seed": 0}
    given = {"qrels": "qrels.txt", "measures": "RR@10 P@1", "compare": True, "resamples": 100}
    assert evaluate_runs(BOTH[:2], **given).to_dict() == written
    named = evaluate_runs({"first": Run.read("one.txt"), "second": "two.txt"}, **given).to_dict()
    assert [run["name"] for run in named["runs"]] == ["first", "second"]
    assert [run["mean"] for run in named["runs"]] == [run["mean"] for run in written["runs"]]
    with refusal("seed=-1: expected an integer >= 0"):
        evaluate_runs(["one.txt"], **given, seed=-1)


def test_judgements_without_a_positive_grade_are_reported() -> None:
    with pytest.warns(DataWarning, match="none of 1 judgements has a grade of 1 or more"):
        evaluate_run({"q1": {"a": 1.0}}, {"q1": {"a": 0}})


def test_wrong_usage_is_refused_before_any_work() -> None:
    run = "one.txt"
    with pytest.raises(InputError) as caught:
        main([run, run, "--qrels", "none", "--compare", "--per-query"])
    for part in ("give either --compare or --per-query", "one.txt: given more than once"):
        assert part in str(caught.value)
    with refusal("--compare needs a baseline"):
        main([run, "--qrels", "none", "--compare"])
    with refusal("no such measure"):
        main([run, "--qrels", "none.txt", "--measures", "Foo@1"])
