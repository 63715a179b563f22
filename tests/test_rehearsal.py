"""Rehearsals: a plan's own commands on miniatures, which systems came through, and when these are stale."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rnnreranker.base.record import add_records, made_here
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.plans.plan import Plan, make_plan
from rnnreranker.regress.plans.step import Step
from rnnreranker.regress.records import records_file
from rnnreranker.regress.rehearsal import states
from rnnreranker.regress.rehearsal.shorten import Miniature, shortened
from rnnreranker.regress.rehearsal.steps import WarmSteps, clear
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import Spec, specs_folder
from rnnreranker.runs import Run

SMALL = """\
schema: 3
name: small
title: A small spec of MS MARCO
about: Nothing much.
query_sets:
  some: {topics: msmarco-passage/dev/small, qrels: msmarco-passage/dev/small}
measures: [RR@10, nDCG@10]
hits: 50
indexes:
  words: {documents: msmarco-passage, count: 8841823, parts: {bm25: {}}, needs: {gpu_hours: 4, disk_gb: 90000}}
conditions:
  bm25: {title: bm25, retrieve: {bm25: {}}}
  other: {title: bm25 with other settings, retrieve: {bm25: {k1: 0.82}}}
  both: {title: both, fuse: {rrf: {}}, of: [bm25, other]}
  none: {title: not there, planned: a method of its own}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of specs with one small spec."""
    made = tmp_path / "specs"
    made.mkdir()
    (made / "small.yaml").write_text(SMALL, encoding="utf-8")
    return made


def small(folder: Path) -> Spec:
    return read_spec(folder / "small.yaml")


def record(folder: Path, plan: Plan, done: list[tuple[str, str]]) -> None:
    """Put a rehearsal on record."""
    content = states.outcome(plan, done, None)
    add_records(records_file(folder, "", states.KIND), [made_here(states.KIND, "small", "small", content)])


class TestShortened:
    def test_commands_are_the_plans_own_but_for_trainings(self) -> None:
        plan = make_plan(read_spec(specs_folder() / "msmarco-passage.yaml"))
        short = shortened(plan, Miniature(steps=3))
        assert [step.output for step in short.steps] == [step.output for step in plan.steps]
        for before, after in zip(plan.steps, short.steps, strict=True):
            words = list(after.argv)
            if before.module == "train":
                assert "max_steps=3" in after.value("--model")
                words = [word for word in words if word not in ("--model", after.value("--model"))]
            own = [word for word in before.argv if word not in ("--model", before.value("--model"))]
            own = own if before.module == "train" else list(before.argv)
            assert words == own
            assert not after.needs

    def test_indexes_may_have_any_number_of_documents(self, folder: Path) -> None:
        (index,) = shortened(make_plan(small(folder)), Miniature()).spec.indexes
        assert index.count is None


class TestStates:
    def test_a_system_is_rehearsed_when_its_whole_chain_is_on_record(self, folder: Path) -> None:
        spec = small(folder)
        record(folder, make_plan(spec), [("some", "bm25"), ("some", "both")])
        known = states.rehearsed(folder, [spec])
        assert set(known) == {("some", "bm25"), ("some", "both")}

    def test_another_command_in_the_chain_is_another_chain(self, folder: Path) -> None:
        record(folder, make_plan(small(folder)), [("some", "bm25"), ("some", "both")])
        (folder / "small.yaml").write_text(SMALL.replace("0.82", "0.83"), encoding="utf-8")
        assert set(states.rehearsed(folder, [small(folder)])) == {("some", "bm25")}

    def test_a_part_is_added_to_what_is_on_record(self, folder: Path) -> None:
        spec = small(folder)
        first = made_here(states.KIND, "small", "small", states.outcome(make_plan(spec), [("some", "bm25")], None))
        part = make_plan(spec, conditions=[spec.condition("both")])
        both = states.outcome(part, [("some", "both")], first)
        assert set(both["systems"]["some"]) == {"bm25", "both"}

    def test_what_failed_this_time_is_taken_out(self, folder: Path) -> None:
        plan = make_plan(small(folder))
        first = made_here(states.KIND, "small", "small", states.outcome(plan, [("some", "bm25")], None))
        assert states.outcome(plan, [], first)["systems"] == {}

    def test_the_matrix_counts_cells_with_it(self, tmp_path: Path) -> None:
        spec = read_spec(specs_folder() / "reqa-nq-cold.yaml")
        every = [(one.id, entry.id) for one in spec.query_sets for entry in spec.conditions]
        copied = tmp_path / "specs"
        copied.mkdir()
        for path in [*specs_folder().glob("*.yaml"), *specs_folder().glob("p*/*.yaml")]:
            target = copied / path.relative_to(specs_folder())
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
        content = states.outcome(make_plan(spec), every, None)
        add_records(records_file(copied, "", states.KIND), [made_here(states.KIND, spec.name, spec.name, content)])
        matrix = Matrix(copied, ["paper-004"], commands=False)
        cells = [cell for cell in matrix.cells if cell["state"] == "rehearsed"]
        assert cells
        assert all("rehearsed on 2" in cell["note"] for cell in cells)
        assert {row[0]: row[1] for row in matrix.summary()}["rehearsed"] == len(cells)


class TestWarmSteps:
    def test_an_index_of_earlier_code_is_made_anew_but_not_for_a_part_that_is_added(self, tmp_path: Path) -> None:
        index = tmp_path / "index"
        (index / "bm25").mkdir(parents=True)
        argv = ("--documents", "pydoc", "--output", str(index))
        clear(Step("index", (*argv, "--parts", "bm25"), index / "bm25"))
        clear(Step("search", ("--index", str(index), "--output", str(index)), index))
        assert (index / "bm25").is_dir()
        clear(Step("index", argv, index))
        assert not index.exists()

    @pytest.mark.long
    def test_a_step_is_the_command_itself(self, tmp_path: Path) -> None:
        for name, score in (("a", 2.0), ("b", 1.0)):
            Run.from_dict({"q1": {"d1": score, "d2": score - 0.5}}).write(tmp_path / f"{name}.txt")
        take = WarmSteps(tmp_path / "logs", 2)
        output = tmp_path / "c.txt"
        runs = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
        step = Step("fuse", (*runs, "--method", "rrf", "--output", str(output)), output)
        assert take(step)[0] == 0
        assert Run.read(output).to_dict()["q1"].keys() == {"d1", "d2"}
        took = take.took(step)
        assert took is not None
        assert took.memory > 10_000_000
        wrong = Step("fuse", (*runs, "--method", "nothing", "--output", str(output)), output)
        code, last = take(wrong)
        assert code == 2
        assert "nothing" in last

    def test_several_threads_take_steps_and_each_gets_its_own_exit_code(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            Run.from_dict({"q1": {"d1": 2.0, "d2": 1.0}}).write(tmp_path / f"{name}.txt")
        take, steps = WarmSteps(tmp_path / "logs", 24), []
        for number in range(24):
            output, method = tmp_path / f"{number}.txt", ("rrf", "nothing")[number % 2]
            argv = (str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--method", method, "--output", str(output))
            steps.append(Step("fuse", argv, output))
        with ThreadPoolExecutor(4) as pool:
            codes = [code for code, _ in pool.map(take, steps)]
        assert codes == [0, 2] * 12


def command(folder: Path, work: Path, *more: str) -> list[str]:
    own = [sys.executable, "-m", "rnnreranker.regress", "small", "--specs", str(folder), "--output", str(work)]
    return [*own, "--rehearse", "--miniature", "documents=200,topics=10", *more]


@pytest.mark.jvm
@pytest.mark.long
def test_a_rehearsal_goes_to_its_end_and_on_after_a_kill(folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    with subprocess.Popen(command(folder, work), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "rnnreranker.search" in line:  # begins, so that the index is done
                break
        process.send_signal(signal.SIGKILL)
        process.stderr.read()
    time.sleep(0.5)
    there = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    done = subprocess.run(command(folder, work, "--record"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 systems rehearsed" in done.stderr
    index = [path for path in there if "indexes" in path.parts]
    assert index
    assert all(path.stat().st_mtime_ns == there[path] for path in index)  # not made again
    (made,) = json.loads((folder / "results" / "rehearsals.json").read_text())["records"]
    assert set(made["outcome"]["systems"]["some"]) == {"bm25", "other", "both"}
    assert made["outcome"]["steps"] == 4
    assert not (folder / "results" / "small.json").exists()  # figures of miniatures are on no record
    page = (work / "rehearsal" / "runs" / "small.md").read_text()
    assert "A rehearsal on miniatures (200 documents, 10 topics, 2 steps)" in page
    assert page.count("| nDCG@10 |") + page.count(" nDCG@10 |") > 0
    again = subprocess.run(command(folder, work), capture_output=True, text=True, check=False, env=dict(os.environ))
    assert again.returncode == 0
    assert " of 4: " not in again.stderr  # nothing is taken again


@pytest.mark.slow
@pytest.mark.jvm
def test_a_rehearsal_killed_at_ten_moments_makes_the_same_runs(folder: Path, tmp_path: Path) -> None:
    assert subprocess.run(command(folder, tmp_path / "whole"), capture_output=True, check=False).returncode == 0
    work = tmp_path / "killed"
    for moment in range(10):
        with subprocess.Popen(command(folder, work), stderr=subprocess.DEVNULL) as process:
            time.sleep(0.4 + moment)  # while miniatures are written, while steps are at work, between them
            process.send_signal(signal.SIGKILL)
    assert subprocess.run(command(folder, work), capture_output=True, check=False).returncode == 0

    def runs(made: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (made / "rehearsal" / "runs" / "small").glob("*.some.txt")}

    assert len(runs(work)) == 3
    assert runs(work) == runs(tmp_path / "whole")


def test_what_does_not_go_together_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rnnreranker.base.errors import InputError

    for argv, said in (
        (["small", "--rehearse", "--docs"], "without --runs, --dry-run and --docs"),
        (["small", "--miniature", "topics=10"], "give --rehearse beside it"),
        (["small", "--rehearse", "--miniature", "topic=10"], "did you mean topics"),
        (["small", "--rehearse", "--miniature", "documents=3"], "documents"),
    ):
        with pytest.raises(InputError, match=said):
            main([*argv, "--specs", str(folder)])
