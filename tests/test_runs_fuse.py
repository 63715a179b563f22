"""Fusions of runs, compared with numbers of ranx; and the command that makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusals import refusal, refusal_with

from rnnreranker.fuse import fuse_runs, main
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import METHODS, FuseParams, fuse

A = {"q1": {"d1": 9.5, "d2": 7.25, "d3": 7.0, "d4": 1.5}, "q2": {"d5": 3.0, "d1": 2.0, "d7": 0.5}}
B = {"q1": {"d3": 0.9, "d5": 0.8, "d1": 0.35}, "q2": {"d7": 0.7, "d2": 0.6, "d5": 0.55, "d9": 0.1}}
C = {"q1": {"d2": -1.0, "d6": -2.5, "d1": -7.0}, "q2": {"d9": -0.5, "d7": -4.0}}
WEIGHTS = "2,0.5,1"

# Computed with ranx 0.3.21: rrf (k=60), anz, sum (over 3 runs: the mean), and after the norms min-max and zmuv sum and
# wsum; the scores of the documents of q1 and q2 in the order of their ids.
RANX = {
    ("rrf", None): [
        [0.048139, 0.032522, 0.032266, 0.015625, 0.016129, 0.016129],
        [0.016129, 0.016129, 0.032266, 0.048395, 0.032018],
    ],
    ("mean", None): [[0.95, 3.125, 3.95, 1.5, 0.8, -2.5], [2.0, 0.6, 1.775, -0.933333, -0.2]],
    ("mean-zero", None): [
        [2.85 / 3, 6.25 / 3, 7.9 / 3, 0.5, 0.8 / 3, -2.5 / 3],
        [2 / 3, 0.2, 3.55 / 3, -2.8 / 3, -0.4 / 3],
    ],
    ("minmax", None): [[1.0, 1.71875, 1.6875, 0.0, 0.818182, 0.75], [0.6, 0.833333, 1.75, 1.0, 1.0]],
    ("zscore", None): [
        [-1.68362, 1.29901, 1.139268, -1.634602, 0.487713, 0.392232],
        [0.162221, 0.488813, 1.407113, -1.374458, -0.683689],
    ],
    ("minmax", WEIGHTS): [[2.0, 2.4375, 1.875, 0.0, 0.409091, 0.75], [1.2, 0.416667, 2.375, 0.5, 1.0]],
    ("zscore", WEIGHTS): [
        [0.095771, 1.617439, 0.919906, -3.269204, 0.243857, 0.392232],
        [0.324443, 0.244406, 2.406881, -3.133886, 0.158156],
    ],
}


def runs(*some: dict[str, dict[str, float]]) -> list[Run]:
    return [Run.from_dict(entries) for entries in some]


@pytest.mark.parametrize(("method", "weights"), RANX)
def test_scores_are_those_of_ranx(method: Any, weights: str | None) -> None:
    fused = fuse(runs(A, B, C), FuseParams(fuse=method, weights=weights))
    for qid, expected in zip(("q1", "q2"), RANX[method, weights], strict=True):
        found = dict(fused[qid])
        assert [found[docid] for docid in sorted(found)] == pytest.approx(expected, abs=2e-6)
        assert [score for _, score in fused[qid]] == sorted(found.values(), reverse=True)


def test_queries_and_documents_that_a_run_lacks() -> None:
    """A run with nothing for a query takes no part in it."""
    dense = Run.from_dict({"both": {"a": 2.0, "b": 1.0}, "dense": {"b": 5.0, "a": 4.0, "c": 3.0}, "none": {}})
    sparse = Run.from_dict({"both": {"b": 9.0}, "dense": {}, "sparse": {"a": 1.0}})
    fused = fuse([dense, sparse], hits=2)
    assert fused.qids == ("both", "dense", "none", "sparse")
    assert fused["both"] == [("b", pytest.approx(1 / 62 + 1 / 61)), ("a", pytest.approx(1 / 61))]
    assert fused["dense"] == [("b", pytest.approx(1 / 61)), ("a", pytest.approx(1 / 62))]
    assert fused["none"] == []
    assert fused["sparse"] == [("a", pytest.approx(1 / 61))]
    for method in METHODS:
        assert fuse(runs({"q": {}}, {"q": {}}), FuseParams(fuse=method))["q"] == []  # type: ignore[arg-type]


def test_a_document_of_runs_of_weight_0_alone_has_no_mean() -> None:
    one, other = runs({"q": {"a": -1.0, "b": -2.0}}, {"q": {"a": -9.0, "c": -9.0}, "lone": {"c": 1.0}})
    fused = fuse([one, other], FuseParams(fuse="mean", weights="1,0"))
    assert fused.to_dict() == {"q": {"a": -1.0, "b": -2.0}, "lone": {}}


def test_equal_scores_stand_by_docid_and_stay_so_when_written(tmp_path: Path) -> None:
    """Scores that float32, in which trec_eval compares them, cannot tell apart are equal."""
    entries = {"q": dict.fromkeys(("a", "c", "b", "é", "Z"), 1.0)}
    assert fuse(runs(entries, entries), FuseParams(fuse="mean")).ranked("q") == ["Z", "a", "b", "c", "é"]
    near = {"q": {"b": 1.0 + 1e-9, "a": 1.0, "c": 1.0 - 1e-3}}
    assert fuse(runs(near), FuseParams(fuse="mean")).ranked("q") == ["a", "b", "c"]
    crossed = runs({"q": {"x": 2.0, "y": 1.0}}, {"q": {"y": 2.0, "x": 1.0}})
    fused = fuse(crossed)
    assert fused.ranked("q") == ["x", "y"]
    fused.write(tmp_path / "fused.txt")
    assert Run.read(tmp_path / "fused.txt").ranked("q") == ["x", "y"]


@pytest.mark.parametrize("method", ["minmax", "zscore"])
@pytest.mark.parametrize("scores", [{"x": 4.0}, {"x": 0.1, "y": 0.1, "z": 0.1}, {"x": -2.0, "y": -2.0}])
@pytest.mark.parametrize("written", [False, True])
def test_a_list_of_equal_scores_stands_above_what_it_lacks(
    method: Any, scores: dict[str, float], written: bool, tmp_path: Path
) -> None:
    """Each counts 1, as Pyserini's min-max has it: a lone hit is the best of its list, and more than no hit.

    A file has equal scores in steps of float32, so that trec_eval keeps their order; that changes nothing.
    """
    first, second = runs({"q": {"a": 3.0, "b": 1.0}}, {"q": scores})
    if written:
        second.write(tmp_path / "run.txt")
        second = Run.read(tmp_path / "run.txt")
    fused = dict(fuse([first, second], FuseParams(fuse=method))["q"])
    assert {docid: fused[docid] for docid in scores} == dict.fromkeys(scores, 1.0)
    assert (fused["a"], fused["b"]) == ((1.0, 0.0) if method == "minmax" else (1.0, -1.0))


def test_python_fuses_files_and_runs_as_the_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Run.from_dict(A).write("a.txt")
    Run.from_dict(B).write("b.txt")
    assert main(["a.txt", "b.txt", "--method", "rrf:k=5", "--hits", "2", "--output", "out.txt"]) == 0
    fused = fuse_runs(["a.txt", Run.read("b.txt")], "rrf:k=5", hits=2)
    fused.write("same.txt", tag="fused")
    assert Path("same.txt").read_bytes() == Path("out.txt").read_bytes()
    with refusal(r"^run 1: one run alone; give two or more to fuse, or aggregate"):
        fuse_runs([fused])
    for name, said in {"a.txt": "a.txt", "./a.txt": "a.txt, ./a.txt"}.items():
        with refusal(rf"^{said}: given twice.*; hits=0: expected an integer >= 1$"):
            fuse_runs(["a.txt", name], hits=0)


@pytest.mark.parametrize(
    ("other", "method", "said"),
    [
        (B, "rrf", []),
        ({"q1": B["q1"]}, "rrf", ["of 2 queries run 2 lacks 1; a query that a run lacks is fused of the others alone"]),
        (
            {"q3": B["q1"]},
            "rrf",
            ["of 3 queries run 1 lacks 1, run 2 lacks 2; a query that a run lacks is fused of th"],
        ),
        (
            {qid: {f"doc-{docid}": score for docid, score in of.items()} for qid, of in B.items()},
            "mean",
            [
                "run 1: none of its 6 docids is in another run (it has d1, the other doc-d3); give runs of one colle",
                "run 2: none of its 6 docids is in another run (it has doc-d3, the other d1); give runs of one colle",
            ],
        ),
        (C, "mean-zero", ["run 2: 5 of 5 scores are below 0, the score that mean-zero gives to a document that a run"]),
        (C, "mean", []),
    ],
)
def test_runs_that_do_not_go_together_are_reported(
    other: dict[str, dict[str, float]], method: Any, said: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    fused = fuse_runs(runs(A, other), method)
    assert [str(one.message)[: len(text)] for one, text in zip(recwarn, said, strict=True)] == said
    assert fused.to_dict() == fuse(runs(A, other), FuseParams(fuse=method)).to_dict()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.txt", "c.txt", "--method", "rrf:weights=1"], "1 weights for 2 runs; expected one for each"),
        (["a.txt", "c.txt", "--method", 'rrf:weights="1,x"'], "expected numbers >= 0, not all 0, joined by commas"),
        (["a.txt", "c.txt", "--method", "rrf:ks=5"], "--method rrf:ks=5: no setting ks, did you mean k"),
        (["a.txt", "c.txt", "--method", "mean:k=5"], "--method mean:k=5: k is of rrf, not of mean"),
        (["a.txt", "b.txt"], "b.txt: no such run file"),
        (["a.txt", "c.txt", "--tag", "two words"], "--tag 'two words': expected a word without white space"),
    ],
)
def test_what_the_command_refuses(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Run.from_dict(A).write("a.txt")
    Run.from_dict(A).write("c.txt")
    with refusal_with(said):
        main([*words, "--output", "out.txt"])
    assert not Path("out.txt").exists()
