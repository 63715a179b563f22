"""Inputs that are cut, missing or of another model are told before the first step, in one line."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_encoder import WORDS, make_encoder

from rnnreranker.regress.plans import runner
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.plans.plan import Step
from rnnreranker.regress.specs.spec import read_spec

SMALL = """\
schema: 3
name: small
title: A small spec
about: Nothing much.
query_sets:
  some: {topics: topics.tsv, qrels: qrels.txt}
  other: {topics: topics.tsv, qrels: others.txt}
measures: [RR@10]
indexes:
  words: {documents: corpus.jsonl.gz, parts: {bm25: {}}}
  dense: {documents: corpus.jsonl.gz, parts: {dense: {encoder: ENCODER, pooling: mean}}}
conditions:
  bm25: {title: bm25, retrieve: {bm25: {}}, index: words}
  dense: {title: dense, retrieve: {dense: {}}, index: dense}
"""


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[dict[str, str], list[str]]]:
    """Gives what became of every run, and the steps that were taken."""
    (tmp_path / "topics.tsv").write_text("q1\tw1\n")
    for name in ("qrels.txt", "others.txt"):
        (tmp_path / name).write_text("q1 0 d1 1\n")
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps({"id": f"d{n}", "text": f"w{n * 7 % 60} w{n}"}) + "\n" for n in range(3000))
    make_encoder(tmp_path / "encoder", WORDS)
    (tmp_path / "small.yaml").write_text(SMALL.replace("ENCODER", str(tmp_path / "encoder")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    taken: list[str] = []

    def process(step: Step) -> tuple[int, str]:
        taken.append(step.output.name)
        if step.module == "index":
            step.output.mkdir(exist_ok=True)
        else:
            step.output.write_text("q1 Q0 d1 1 1.0 x\n")
        return 0, ""

    monkeypatch.setattr(runner, "_process", process)

    def become() -> tuple[dict[str, str], list[str]]:
        taken.clear()
        plan = make_plan(read_spec(tmp_path / "small.yaml"), tmp_path / "work")
        lost = runner.run_plan(plan)
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        return {path.stem: str(lost.get(path, "done")) for path in plan.outputs()}, taken

    return become


class TestBeforeTheFirstStep:
    def test_whole_inputs_are_no_obstacle(self, states: Callable[[], tuple[dict[str, str], list[str]]]) -> None:
        became, taken = states()
        assert set(became.values()) == {"done"}
        assert len(taken) == 6

    def test_missing_judgements(self, states: Callable[[], tuple[dict[str, str], list[str]]]) -> None:
        Path("others.txt").unlink()
        became, taken = states()
        assert {name for name, state in became.items() if state == "done"} == {"bm25.some", "dense.some"}
        assert "needs others.txt" in became["bm25.other"]
        assert not any("other" in name for name in taken)
