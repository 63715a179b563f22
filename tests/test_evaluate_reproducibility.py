"""Grades of a reproduction, worked out by hand, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.__main__ import main
from rnnreranker.evaluate.reproducibility import compare_orders, compare_scores, rank_biased_overlap, tau_of_union
from rnnreranker.runs import Run

QRELS = pandas.DataFrame([("q1", "a", 1), ("q2", "a", 1)], columns=["query_id", "doc_id", "relevance"])


def run(*ranked: str) -> Run:
    """Queries q1, q2, ... with the documents of a word, best first."""
    return Run.from_dict(
        {f"q{q}": {d: -float(place) for place, d in enumerate(word)} for q, word in enumerate(ranked, 1)}
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "tau"),
    [
        ("abc", "abc", 1.0),
        ("abc", "cba", -1.0),
        ("abc", "acb", 1 / 3),  # one pair of three is turned
        ("abc", "abd", 4 / 6),  # of six pairs of a, b, c, d only c and d are turned
        ("ab", "cd", -4 / 5),  # four turned, two pairs tied on one side each: -4 / sqrt(5 * 5)
        ("abcd", "badc", 1 / 3),
        ("bdac", "dbca", 1 / 3),  # the same with other names
        ("", "ab", 0.0),
        ("", "", 1.0),
    ],
)
def test_tau_of_the_union(ours: str, theirs: str, tau: float) -> None:
    assert tau_of_union(ours, theirs) == pytest.approx(tau)
    assert tau_of_union(theirs, ours) == pytest.approx(tau)


@pytest.mark.parametrize(
    ("ours", "theirs", "overlap"),
    [
        ("abc", "abc", 1.0),
        ("abc", "acb", (1 + 0.5 * 0.5 + 0.25) / 1.75),  # 1 of 1, 1 of 2, 3 of 3, with weights 1, .5, .25
        ("ab", "ba", (0 + 0.5 * 1) / 1.5),
        ("abc", "a", (1 + 0.5 / 2 + 0.25 / 3) / 1.75),
        ("ab", "cd", 0.0),
        ("", "", 1.0),
    ],
)
def test_rank_biased_overlap(ours: str, theirs: str, overlap: float) -> None:
    assert rank_biased_overlap(ours, theirs, p=0.5) == pytest.approx(overlap)
    assert rank_biased_overlap(theirs, ours, p=0.5) == pytest.approx(overlap)


def test_orders_are_averaged_over_topics_and_cut() -> None:
    tau, overlap = compare_orders(run("abc", "abc"), run("abc", "acb"), ["q1", "q2"])
    assert (tau.figure, tau.value, tau.perfect) == ("Kendall's tau", pytest.approx((1 + 1 / 3) / 2), 1.0)
    weights = [1, 0.95, 0.95**2]
    expected = (weights[0] + weights[1] / 2 + weights[2]) / sum(weights)
    assert overlap.value == pytest.approx((1 + expected) / 2)
    assert [one.value for one in compare_orders(run("abc"), run("acb"), ["q1"], depth=1)] == [1.0, 1.0]
    assert [one.value for one in compare_orders(run("abc"), run("acb"), ["q2"])] == [1.0, 1.0]  # neither has it


def test_scores_and_effects_by_hand() -> None:
    """RR of a: ours .5 and 1 over .5 and .25, theirs 1 and 1 over .5 and .5."""
    runs = [run("bac", "abc"), run("abc", "abc"), run("ba", "bcda"), run("ba", "ba")]
    graded = compare_scores(evaluate(runs, QRELS, "RR"), with_baselines=True)
    assert [one.figure for one in graded] == ["RMSE", "effect ratio", "delta RI"]
    error, ratio, relative = graded
    assert (error.ours, error.theirs, error.value) == pytest.approx((0.75, 1.0, (0.25 / 2) ** 0.5))
    assert (ratio.ours, ratio.theirs, ratio.value) == pytest.approx((0.375, 0.5, 0.75))
    assert (relative.ours, relative.theirs, relative.value) == pytest.approx((1.0, 1.0, 0.0))
    same = compare_scores(evaluate([runs[0], runs[1], runs[0], runs[1]], QRELS, "RR"), with_baselines=True)
    assert [one.value for one in same[1:]] == [None, 0.0]  # no effect of theirs to compare with
    assert len(compare_scores(evaluate(runs[:2], QRELS, "RR nDCG@10"), with_baselines=False)) == 2


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("ours", "theirs", "our-base", "their-base")
    for name, made in zip(
        names, (run("bac", "abc"), run("abc", "abc"), run("ba", "bcda"), run("ba", "ba")), strict=True
    ):
        made.write(tmp_path / f"{name}.txt")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 a 1\n")
    ours, theirs, base, their_base = (str(tmp_path / f"{name}.txt") for name in names)
    common = [ours, "--qrels", str(tmp_path / "qrels.txt"), "--measures", "RR"]
    bases = ["--baseline", base, "--against-baseline", their_base, "--json", str(tmp_path / "found.json")]
    assert main([*common, "--against", theirs, *bases]) == 0
    printed = capsys.readouterr()
    assert printed.err == "ours against theirs; 2 topics, protocol trec\n"
    lines = printed.out.splitlines()
    assert lines[0].split("\t") == ["figure", "measure", "ours", "theirs", "value", "perfect"]
    assert lines[1].startswith("Kendall's tau\torder\t-\t-\t0.6667")
    assert lines[3] == "RMSE\tRR\t0.7500\t1.0000\t0.3536\t0.0"
    assert lines[4] == "effect ratio\tRR\t0.3750\t0.5000\t0.7500\t1.0"
    found = json.loads((tmp_path / "found.json").read_text())
    assert [one["figure"] for one in found["reproduction"]][2:] == ["RMSE", "effect ratio", "delta RI"]
    assert [entry["name"] for entry in found["runs"]] == list(names)
    for flags, message in (
        (["--against", theirs, "--baseline", base], "--baseline and --against-baseline go together"),
        ([theirs, "--against", base], "--against takes one run of ours; 2 were given"),
        (["--against", theirs, "--compare"], "without --compare"),
        (["--against", ours], "ours.txt: given more than once"),
    ):
        with pytest.raises(InputError, match=message):
            main([*common[:1], *flags, *common[1:]] if flags[0] == theirs else [*common, *flags])


def test_a_published_run_reproduces_itself_whatever_its_docids_are_called(shared: Path) -> None:
    from rnnreranker.data.qrels import load_qrels

    folder = shared / "data/runs/dl19"
    tasb, bm25 = (Run.read(folder / f"rankllm.{name}.trec.gz") for name in ("D_BERT_KD_TASB", "BM25"))
    qrels = load_qrels(shared / "data/ir_datasets/msmarco-passage/trec-dl-2019/qrels")
    scores = evaluate([tasb, tasb, bm25, bm25], qrels, "nDCG@10")
    graded = [*compare_orders(tasb, tasb, scores.topics), *compare_scores(scores, with_baselines=True)]
    assert [one.value for one in graded] == [one.perfect for one in graded]
    apart = compare_orders(tasb, bm25, scores.topics)
    assert -1 < apart[0].value < 0 < apart[1].value < 0.5  # type: ignore[operator]
