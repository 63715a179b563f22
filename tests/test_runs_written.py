"""Written runs: evaluation tools that sort again see our order."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusal

from rnnreranker.runs import Run
from rnnreranker.runs.head import choose_head, joined_by, with_new_head
from rnnreranker.runs.writing import strictly_decreasing


def tied_run(magnitude: float, seed: int, step: float = 1e-3) -> Run:
    """200 queries of 20 entries with many ties; docids count upwards, so trec_eval's own tie-break turns each tie."""
    rng = np.random.default_rng(seed)
    qids = [f"q{i // 20}" for i in range(4000)]
    docids = [f"d{i % 20:02d}" for i in range(4000)]
    return Run.from_columns(qids, docids, magnitude * (1 + step * rng.integers(0, 4, 4000)))


@pytest.mark.parametrize("magnitude", [1.0, 100.0, 1e4, -1.0, -100.0, -1e4, 1e-30, 3e38, 0.0])
@pytest.mark.parametrize("step", [1e-3, 1e-9])
@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz"])
def test_measures_of_the_file_are_those_of_our_order(tmp_path: Path, magnitude: float, step: float, name: str) -> None:
    run = tied_run(magnitude, seed=3, step=step)
    rng = np.random.default_rng(4)
    grades = {qid: {f"d{d:02d}": int(rng.integers(0, 4)) for d in range(20)} for qid in run}
    run.write(tmp_path / name)

    again = Run.read(tmp_path / name)
    assert [[d for d, _ in again[q]] for q in again] == [[d for d, _ in run[q]] for q in run]
    single = again.scores.astype(np.float32)
    assert (single.astype(np.float64) == strictly_decreasing(run)).all()

    rows = [(qid, docid, grade) for qid, own in grades.items() for docid, grade in own.items()]
    qrels = pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
    columns = {"query_id": np.repeat(again.qids, 20), "doc_id": again.docids[again.rows]}
    measures = [ir_measures.RR(rel=2) @ 10, ir_measures.nDCG @ 10]
    values = []
    for scores in (again.scores, -again.ranks):
        found = ir_measures.iter_calc(measures, qrels, pandas.DataFrame(columns | {"score": scores}).sample(frac=1))
        values.append({(str(one.measure), one.query_id): one.value for one in found})
    assert values[0] == values[1]
    assert len(values[0]) == 400


def test_ties_of_a_file_keep_the_order_of_trec_eval(tmp_path: Path) -> None:
    """In what is written again, in a cut, and behind new scores."""
    lines = [f"q Q0 {docid} 1 {score} t" for docid, score in zip("fbadce", (3, 2, 2, 2, 1, 1), strict=True)]
    (tmp_path / "run.txt").write_text("\n".join(lines))
    run = Run.read(tmp_path / "run.txt")
    assert run.ranked("q") == list("fdbaec")
    assert choose_head(run, 2).tolist() == [True, True, False, False, False, False]
    changed = with_new_head(run, choose_head(run, 2), np.array([0.5, 0.5]))
    changed.write(tmp_path / "changed.txt")
    assert Run.read(tmp_path / "changed.txt").ranked("q") == list("dfbaec")


def test_ties_of_the_first_entries_stay_when_others_join() -> None:
    run = Run.from_dict({"q": {"c": 2.0, "b": 2.0, "a": 1.0}})
    joined = joined_by(run, 2, np.array([1]), np.array([2]), np.array([1.5]))
    assert joined["q"] == [("c", 2.0), ("b", 2.0), ("a", 1.5)]


@given(st.lists(st.lists(st.floats(-1e30, 1e30), max_size=8), max_size=5))
@settings(max_examples=200, deadline=None)
def test_written_scores_are_lowered_no_more_than_needed(queries: list[list[float]]) -> None:
    run = Run.from_dict({f"q{i}": {f"d{j}": s for j, s in enumerate(scores)} for i, scores in enumerate(queries)})
    written = strictly_decreasing(run)
    assert written.dtype == np.float32
    for first, last in zip(run.offsets[:-1], run.offsets[1:], strict=True):
        before = None
        for score, got in zip(run.scores[first:last].astype(np.float32), written[first:last], strict=True):
            expected = score if before is None else min(score, np.nextafter(before, np.float32(-np.inf)))
            assert got == expected
            before = got


def test_text_of_the_files(tmp_path: Path) -> None:
    run = Run.from_dict({"q1": {"b": 0.1, "a": 100.0}, "none": {}, "q0": {"c": -2.5}})
    run.write(tmp_path / "run.txt", tag="mine")
    assert (tmp_path / "run.txt").read_text() == "q1 Q0 a 1 100 mine\nq1 Q0 b 2 0.1 mine\nq0 Q0 c 1 -2.5 mine\n"
    run.write(tmp_path / "run.tsv", format="msmarco")
    assert (tmp_path / "run.tsv").read_text() == "q1\ta\t1\nq1\tb\t2\nq0\tc\t1\n"


def test_what_cannot_be_written(tmp_path: Path) -> None:
    run = Run.from_dict({"q": {"a": 1.0}})
    for tag in ("two words", "", "line\n"):
        with refusal(r"^run: tag .*; expected one that is not empty"):
            run.write(tmp_path / "run.txt", tag=tag)
    with refusal("run: docid 'a b'; expected one that is not empty and has no white space"):
        Run.from_dict({"q": {"a b": 1.0}}).write(tmp_path / "run.txt")
    with refusal("run: query id ''; expected"):
        Run.from_dict({"": {"a": 1.0}}).write(tmp_path / "run.txt")
    with refusal("format 'csv'; known: msmarco, trec"):
        run.write(tmp_path / "run.txt", format="csv")
    lowest = -float(np.finfo(np.float32).max)
    with refusal(r"query q, docid a: score -3.40282e\+38 at rank 2 cannot be written"):
        Run.from_dict({"q": {"a": lowest, "b": lowest}}).write(tmp_path / "run.txt")
    with refusal(r"score 1e\+39 at rank 1 cannot be written"):
        Run.from_dict({"q": {"a": 1e39}}).write(tmp_path / "run.txt")
    assert list(tmp_path.iterdir()) == []  # nothing half-written
