"""The disk of plans: who reads something large follows it, and what no later step needs is removed."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from rnnreranker.regress.plans import runner
from rnnreranker.regress.plans.maker import by_large_files, make_plan
from rnnreranker.regress.plans.plan import LARGE, Plan, Step
from rnnreranker.regress.specs.spec import read_spec

BIG = LARGE + 30
Usage = namedtuple("Usage", "free")  # as of shutil.disk_usage
TWO = f"""\
schema: 3
name: two
title: Two large indexes
about: Nothing much.
query_sets:
  one: {{topics: topics.tsv, qrels: qrels.txt}}
  two: {{topics: topics.tsv, qrels: qrels.txt}}
measures: [RR@10]
indexes:
  first: {{documents: corpus.jsonl, parts: {{bm25: {{}}}}, needs: {{disk_gb: {BIG}}}}}
  second: {{documents: corpus.jsonl, parts: {{bm25: {{language: zh}}}}, needs: {{disk_gb: {BIG}}}}}
conditions:
  first: {{title: first, retrieve: {{bm25: {{}}}}, index: first}}
  second: {{title: second, retrieve: {{bm25: {{}}}}, index: second}}
"""


def step(name: str, *inputs: str, module: str = "search", disk: float = 0) -> Step:
    return Step(module, {"tag": name}, Path(name), tuple(map(Path, inputs)), {"disk_gb": disk} if disk else {}, disk)


STEPS = [
    step("x", module="index", disk=BIG),
    step("x/terms", "x", module="index"),
    step("a", "x"),
    step("y", module="index", disk=BIG),
    step("b", "y"),
    step("c", "x/terms", "b"),
    step("d", "x"),
]


def test_readers_of_something_large_come_first_and_behind_what_they_read() -> None:
    assert [one.output.name for one in by_large_files(STEPS)] == ["x", "terms", "a", "d", "y", "b", "c"]
    small = [replace(one, disk=0) for one in STEPS]
    assert by_large_files(small) == small


def test_what_is_large_is_needed_until_the_last_who_reads_any_part_of_it(taken: list[str], tmp_path: Path) -> None:
    plan = replace(two(tmp_path), conditions=(), steps=tuple(by_large_files(STEPS)))
    assert set(plan.readers) == {Path("x"), Path("y")}
    assert {str(one.output): plan.removed(one) for one in plan.steps if plan.removed(one)} == {
        "c": [Path("x")],
        "b": [Path("y")],
    }
    assert plan.needs() == {"disk_gb": 2 * BIG}
    assert replace(plan, keep=True).readers == {}


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Steps as they are taken: files and folders in place of real ones; `fail` among the names makes a step fail."""
    (tmp_path / "corpus.jsonl").write_text('{"id": "d1", "text": "w"}\n')
    (tmp_path / "topics.tsv").write_text("q1\tw\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    (tmp_path / "two.yaml").write_text(TWO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(int(BIG * 1.5e9)))  # too little for both together
    names: list[str] = []

    def process(one: Step, together: bool) -> tuple[int, str]:
        names.append(one.output.name)
        assert all((path / "data").exists() or path.is_file() for path in one.inputs)
        if one.module == "index":
            one.output.mkdir(exist_ok=True)
            (one.output / "rnnreranker.json").write_text("{}")
            (one.output / "data").write_text("many")
        else:
            one.output.write_text("q1 Q0 d1 1 1.0 x\n")
        return 0, ""

    monkeypatch.setattr(runner, "_process", process)
    return names


def two(tmp_path: Path, keep: bool = False) -> Plan:
    return make_plan(read_spec(tmp_path / "two.yaml"), tmp_path / "work", keep=keep)


class TestRunning:
    @pytest.mark.parametrize("jobs", [1, 3])
    def test_one_index_is_removed_before_the_other_is_made(self, taken: list[str], tmp_path: Path, jobs: int) -> None:
        assert runner.run_plan(two(tmp_path), jobs) == {}
        expected = ["corpus.jsonl.first", "first.one.txt", "first.two.txt"]
        expected += ["corpus.jsonl.second", "second.one.txt", "second.two.txt"]
        assert taken == expected if jobs == 1 else sorted(taken[:3]) == expected[:3]
        for name in ("first", "second"):
            index = tmp_path / "work" / "indexes" / f"corpus.jsonl.{name}"
            assert [path.name for path in index.iterdir()] == ["rnnreranker.json"]

    def test_it_is_made_again_for_who_needs_it(self, taken: list[str], tmp_path: Path) -> None:
        plan = two(tmp_path)
        runner.run_plan(plan)
        for gone in (["first.two.txt"], ["first.one.txt", "first.two.txt"]):
            for name in gone:
                (tmp_path / "work" / "two" / name).unlink()
            taken.clear()
            assert runner.run_plan(plan) == {}
            assert taken == ["corpus.jsonl.first", *gone]
        assert not (tmp_path / "work" / "indexes" / "corpus.jsonl.first" / "data").exists()

    def test_without_room_for_both_they_cannot_be_kept(self, taken: list[str], tmp_path: Path) -> None:
        lost = runner.run_plan(two(tmp_path, keep=True))
        assert {path.name for path in lost} == {"corpus.jsonl.second", "second.one.txt", "second.two.txt"}
        assert "GB of disk" in str(next(iter(lost.values())))
        assert (tmp_path / "work" / "indexes" / "corpus.jsonl.first" / "data").exists()
