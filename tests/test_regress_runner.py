"""Specs are run: each step once, stale ones alone again, what is missing told as skipped, results recorded whole."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_module import module_of
from query_sets import write_judged, write_lines
from refusals import refusal
from tiny_encoder import WORDS, make_encoder

from rnnreranker.base import command
from rnnreranker.base.command import STEP
from rnnreranker.base.method import PACKAGE
from rnnreranker.base.record import read_records
from rnnreranker.index.__main__ import main as index
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.plans import runner
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.plans.plan import Plan, Step
from rnnreranker.regress.plans.runner import run
from rnnreranker.regress.specs.entries import Spec
from rnnreranker.regress.specs.spec import read_spec
from rnnreranker.runs import Run

SMALL = """\
schema: 3
name: small
title: A small spec
about: Nothing much.
query_sets:
  some: {topics: topics.tsv, qrels: qrels.txt, protocols: [trec, binary]}
measures: [RR@10, nDCG@10]
hits: 20
indexes:
  tiny: {documents: corpus.jsonl, parts: {dense: {encoder: ENCODER, pooling: mean}}}
models:
  hard:
    index: tiny
    labels: {hard: {}}
    train: {query: {batch_size: 8, epochs: 1}}
    topics: topics.tsv
    qrels: qrels.txt
  soft:
    index: tiny
    labels: {evidence: {k: 5}}
    train: {query: {batch_size: 8, epochs: 2}}
    topics: topics.tsv
    qrels: qrels.txt
conditions:
  dense: {title: dense, retrieve: {dense: {}}}
  dense-rnn: {title: dense + rNN, rerank: {rnn: {k: 5, context: 15}}, of: dense}
  hard: {title: trained on hard labels, retrieve: {dense: {}}, model: hard}
  soft: {title: trained on soft labels, retrieve: {dense: {}}, model: soft}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files that specs name, in which the test runs."""
    write_lines(tmp_path / "corpus.jsonl", (f'{{"id": "d{n}", "text": "w{n}"}}' for n in range(4)))
    (tmp_path / "topics.tsv").write_text("q1\tw1 w2\nq2\tw3 w4\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(place: Path, text: str = SMALL) -> Spec:
    (place / "small.yaml").write_text(text, encoding="utf-8")
    return read_spec(place / "small.yaml")


def plan_of(spec: Spec, place: Path, only: str | None = None) -> Plan:
    conditions = None if only is None else (spec.condition(only),)
    return make_plan(spec, place / "work", conditions)


def run_plan(plan: Plan) -> dict[str, str]:
    """Condition → why its run is not there, or `done`."""
    lost = runner.run_plan(plan)
    found = {}
    for condition in plan.conditions:
        (path,) = plan.run_files(condition, plan.query_sets[0])
        found[condition.id] = str(lost.get(path, "done"))
    return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Steps as they are taken: commands in place of the real ones, whose runs rank d0, d1, d2 for both queries."""
    names: list[str] = []

    def process(step: Step, together: bool) -> tuple[int, str]:
        names.append(step.output.name)
        assert all(path.exists() for path in step.inputs)
        if step.module == "search":
            Run.from_dict({qid: {"d0": 3.0, "d1": 2.0, "d2": 1.0} for qid in ("q1", "q2")}).write(step.output)
        else:
            step.output.mkdir(exist_ok=True)
        return 0, ""

    monkeypatch.setattr(runner, "_process", process)
    return names


ALL = [
    *("corpus.jsonl.tiny", "dense.some.txt", "dense-rnn.some.txt", "topics.tsv.corpus.jsonl.tiny.dense.txt"),
    *("hard.parquet", "hard", "hard.some.txt", "soft.parquet", "soft", "soft.some.txt"),
]


class TestWhatIsStale:
    def test_every_step_is_taken_once_and_then_none(self, place: Path, taken: list[str]) -> None:
        plan = plan_of(small(place), place)
        assert run_plan(plan) == dict.fromkeys(CONDITIONS, "done")
        assert taken == ALL
        plan.steps[0].output.rmdir()  # runs whose index is gone are still good
        run_plan(plan_of(small(place), place, "dense"))
        assert taken == ALL

    @pytest.mark.parametrize(
        ("before", "after", "stale"),
        [
            ("rnn: {k: 5, context: 15}", "rnn: {k: 6, context: 15}", ["dense-rnn.some.txt"]),
            ("evidence: {k: 5", "evidence: {k: 6", ["soft.parquet", "soft", "soft.some.txt"]),
            ("batch_size: 8, epochs: 1", "batch_size: 4, epochs: 1", ["hard", "hard.some.txt"]),
            ("measures: [RR@10", "measures: [RR@5", []),
            ("encoder: ENCODER", "encoder: OTHER", ALL),
        ],
    )
    def test_one_parameter_makes_the_steps_stale_that_depend_on_it(
        self, place: Path, taken: list[str], before: str, after: str, stale: list[str]
    ) -> None:
        run_plan(plan_of(small(place), place))
        taken.clear()
        assert SMALL.count(before) == 1
        run_plan(plan_of(small(place, SMALL.replace(before, after)), place))
        assert taken == stale

    @pytest.mark.parametrize("kind", ["file", "folder"])
    @pytest.mark.parametrize(
        ("flag", "read"),
        [
            *((flag, True) for flag in ("validation_run", "validation_topics", "neutrality", "index")),
            *((flag, True) for flag in ("documents", "topics", "qrels", "encoder", "preset")),
            ("tag", False),
            ("output", False),
        ],
    )
    def test_whatever_file_a_command_names_is_in_its_key(self, place: Path, flag: str, read: bool, kind: str) -> None:
        file = place / "extra" if kind == "file" else place / "extra" / "part"
        file.parent.mkdir(exist_ok=True)
        request = {"epochs": 1, "in_batch_negatives": True, flag: "extra", "label": "x" * 300}
        step = Step("train", request, place / "work" / "out")
        plan = Plan(small(place), place / "work", (), (), (), (step,))
        keys = []
        for content in ("old", "new one"):
            file.write_text(content)
            keys.append(runner.step_keys(plan)[step.output])
        assert (keys[0] != keys[1]) == read
        elsewhere = replace(step, request=request | {"device": "auto"})
        assert runner.step_keys(replace(plan, steps=(elsewhere,)))[step.output] == keys[1]

    @pytest.mark.parametrize(
        "name",
        [
            *("beir", "beir:dev", "collections/beir", "collections/beir:dev", "reqa:beir"),
            *("beir:dev:without:dl19", "dl19:without:dl20:without:collections/beir"),
        ],
    )
    def test_whatever_a_name_stands_for_is_in_the_key(
        self, place: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RNNRERANKER_COLLECTIONS", str(place))
        monkeypatch.chdir(place)
        (place / "beir" / "qrels").mkdir(parents=True)
        step = Step("search", {"topics": name}, place / "work" / "out")
        plan = Plan(small(place), place / "work", (), (), (), (step,))
        keys = []
        for judged in ("d1", "d22", "d22"):
            (place / "beir" / "qrels" / "dev.tsv").write_text(f"q\t{judged}\t1\n")
            keys.append(runner.step_keys(plan)[step.output])
        assert keys[0] != keys[1] == keys[2]

    def test_fresh_takes_current_steps_again(self, place: Path, taken: list[str]) -> None:
        run_plan(plan_of(small(place), place))
        first = taken.copy()
        taken.clear()
        run(plan_of(small(place), place), place, fresh=True)
        assert sorted(taken) == sorted(first)

    def test_an_output_of_other_inputs_is_removed_before_it_is_made_again(
        self, place: Path, taken: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_plan(plan_of(small(place), place, "hard"))
        (place / "work" / "models" / "topics.tsv" / "hard" / "left").touch()
        (place / "work" / "models" / "topics.tsv" / "hard.checkpoints").mkdir()
        run_plan(plan_of(small(place, SMALL.replace("batch_size: 8, epochs: 1", "batch_size: 4")), place, "hard"))
        assert not (place / "work" / "models" / "topics.tsv" / "hard" / "left").exists()
        assert not (place / "work" / "models" / "topics.tsv" / "hard.checkpoints").exists()


class TestSeveralAtATime:
    def test_steps_that_do_not_need_each_other_are_taken_together(
        self, place: Path, taken: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fine, both = runner._process, threading.Barrier(2, timeout=60)

        def process(step: Step, together: bool) -> tuple[int, str]:
            if step.output.suffix == ".parquet":
                both.wait()  # each needs the other
            return fine(step, together)

        monkeypatch.setattr(runner, "_process", process)
        assert runner.run_plan(plan_of(small(place), place), jobs=2) == {}
        assert sorted(taken) == sorted(ALL)  # that inputs are there is asserted as each is taken
        made = {path.name: path.read_bytes() for path in (place / "work").rglob("*.txt")}
        monkeypatch.setattr(runner, "_process", fine)
        runner.run_plan(make_plan(small(place), place / "again"))
        assert {path.name: path.read_bytes() for path in (place / "again").rglob("*.txt")} == made

    @pytest.mark.usefixtures("as_command")
    def test_each_prints_at_its_end(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.program(place, monkeypatch, "echo out; echo error >&2; exit 3")
        (lost,) = set(map(str, runner.run_plan(plan_of(small(place), place, "dense"), jobs=2).values()))
        assert lost == "error: exit code 3"
        command, *printed = capsys.readouterr().err.splitlines()
        assert command.startswith("python -m rnnreranker.index ")
        assert printed == ["out", "error"]

    def test_ctrl_c_ends_the_processes(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "PATIENCE", 0.1)
        self.program(place, monkeypatch, "echo $$ > pid; sleep 1; kill -INT $PPID; exec sleep 600")
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                runner.run_plan(plan_of(small(place), place, "dense"))
        finally:
            signal.signal(signal.SIGINT, before)
        with pytest.raises(ProcessLookupError):
            os.kill(int((place / "pid").read_text()), 0)

    def program(self, place: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        """Let a script be every step."""
        (place / "program").write_text(f"#!/bin/sh\n{script}\n")
        (place / "program").chmod(0o755)
        monkeypatch.setattr(runner.sys, "executable", str(place / "program"))


CONDITIONS = ["dense", "dense-rnn", "hard", "soft"]
GPU = "epochs: 1}}\n    needs: {gpu_hours: 24}"
ABSENT = ", and there is no such file here"
Usage = namedtuple("Usage", "total used free")


class TestWhatStandsInTheWay:
    @pytest.fixture(autouse=True)
    def machine(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """No GPU, nothing downloaded, 100 GB of disk."""
        monkeypatch.setattr(runner, "has_gpu", lambda: False)
        monkeypatch.delenv("TRIPCLICK_HOME", raising=False)
        monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
        monkeypatch.setattr(runner.shutil, "disk_usage", lambda _: Usage(int(2e11), int(1e11), int(1e11)))

    @pytest.mark.parametrize(
        ("before", "after", "lost", "why"),
        [
            ("epochs: 1}}", GPU, ["hard"], "train takes a GPU (24 hours), and there is none here"),
            ("tiny: {", 'tiny: {needs: {files: "there/x: weights"}, ', CONDITIONS, "needs there/x: weights"),
            ("epochs: 2}}\n    topics: topics", "epochs: 2}}\n    topics: train", ["soft"], f"needs train.tsv{ABSENT}"),
            ("documents: corpus.jsonl", "documents: gone.jsonl", CONDITIONS, f"needs gone.jsonl{ABSENT}"),
            ("documents: corpus.jsonl", "count: 4, documents: ./gone", CONDITIONS, f"needs ./gone{ABSENT}"),
            (
                "qrels: qrels.txt, p",
                "qrels: tripclick-head-test-dctr, p",
                CONDITIONS,
                "tripclick-head-test-dctr: the qrels",
            ),
            ("qrels: qrels.txt, p", "qrels: others.txt, p", CONDITIONS, f"needs others.txt{ABSENT}"),
            ("tiny: {", "tiny: {needs: {disk_gb: 101}, ", CONDITIONS, "needs 101 GB of disk in "),
            (
                "tiny: {",
                "tiny: {count: [5, 9], ",
                CONDITIONS,
                "corpus.jsonl has 4 documents here, the spec is for 5 to 9",
            ),
        ],
    )
    def test_what_needs_something_that_is_not_here_is_skipped(
        self, place: Path, taken: list[str], before: str, after: str, lost: list[str], why: str
    ) -> None:
        assert before in SMALL
        states = run_plan(plan_of(small(place, SMALL.replace(before, after)), place))
        assert [name for name, state in states.items() if state.startswith(f"skipped: {why}")] == lost
        assert [name for name, state in states.items() if state == "done"] == [
            one for one in CONDITIONS if one not in lost
        ]

    def test_a_training_runs_where_there_is_a_gpu(
        self, place: Path, taken: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "has_gpu", lambda: True)
        assert run_plan(plan_of(small(place, SMALL.replace("epochs: 1}}", GPU)), place)) == dict.fromkeys(
            CONDITIONS, "done"
        )

    @pytest.mark.usefixtures("as_command")
    def test_sizes_are_said_before_the_first_step(
        self, place: Path, taken: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        large = "needs: {download_gb: 2.5, disk_gb: 60, ram_gb: 32}"
        text = SMALL.replace("documents: corpus.jsonl", f"prebuilt: msmarco-v1-passage, {large}")
        run_plan(plan_of(small(place, text), place))
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == "9 steps: 2.5 GB to download, 60 GB of disk, 32 GB of memory"


class TestTheCommand:
    def argv(self, place: Path, *more: str) -> list[str]:
        return [*f"small --specs {place} --output {place}/work".split(), *more]

    def test_what_runs_is_measured_recorded_and_compared(
        self, place: Path, taken: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        small(place)
        assert main(self.argv(place)) == 0
        assert "some\tdense\ttrec\t0.4167\t0.5655\tnew\n" in capsys.readouterr().out
        assert not (place / "results").exists()
        assert main(self.argv(place, "--record")) == 0
        capsys.readouterr()
        assert main(self.argv(place)) == 0
        assert capsys.readouterr().out.count("\tok\n") == 8
        path = place / "results" / "small.json"
        path.write_text(path.read_text().replace("0.416666667", "0.5"))
        assert main(self.argv(place, "--only", "dense")) == 1
        assert "\tchanged: trec RR@10 0.5000 → 0.4167, binary RR@10 0.5000 → 0.4167\n" in capsys.readouterr().out

    def test_a_run_is_compared_with_the_one_that_it_names(self, place: Path, taken: list[str]) -> None:
        small(place, SMALL.replace("labels, retrieve: {dense: {}}", "labels, against: dense, retrieve: {dense: {}}"))
        assert main(self.argv(place, "--only", "hard", "--only", "dense-rnn", "--record")) == 0
        records = {record.name: record.outcome for record in read_records(place / "results" / "small.json")}
        assert sorted(records) == ["dense", "dense-rnn", "hard"]  # the other comes with it, soft does not
        assert {found["baseline"] for found in records["hard"]["differences"].values()} == {"dense"}
        with refusal(r"small\.yaml:28: against densse: not in conditions; did you mean dense"):
            small(place, SMALL.replace("model: soft}", "model: soft, against: densse}"))

    def test_a_published_run_is_reranked_where_it_is_at_hand(
        self, place: Path, taken: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = SMALL.split("conditions:")[0].replace("binary]", 'binary], runs: "*some*"')
        text += "conditions:\n  theirs: {title: a run of theirs, runs: ['*theirs*']}\n"
        small(place, text + "  theirs-rnn: {title: theirs + rNN, rerank: {rnn: {k: 5}}, of: theirs}\n")
        assert main([*self.argv(place), "--dry-run"]) == 0
        plan = capsys.readouterr().out
        assert "# runs/small/theirs.some.txt: a run of theirs, some: not made here" in plan
        assert "--run runs/small/theirs.some.txt --rerank rnn" in plan
        assert main(self.argv(place)) == 2
        assert "needs a run of theirs for some; give the folder that holds it by --runs" in capsys.readouterr().err
        folder = place / "theirs-to-keep" / "some"
        folder.mkdir(parents=True)
        (folder / "theirs.txt").write_text("q1 Q0 d2 1 9 x\nq1 Q0 d1 2 8 x\nq2 Q0 d2 1 9 x\n")
        assert main(self.argv(place, "--runs", str(folder.parent), "--record")) == 0
        assert taken == ["corpus.jsonl.tiny", "theirs-rnn.some.txt"]
        records = {record.name: record for record in read_records(place / "results" / "small.json")}
        assert records["theirs"].outcome["file"] == "theirs.txt"
        assert records["theirs"].outcome["values"]["trec"]["RR@10"] == 0.75
        assert records["theirs-rnn"].outcome["differences"]["RR@10"]["baseline"] == "theirs"
        (folder / "theirs.txt").write_text("q1 Q0 d1 1 9 x\nq2 Q0 d2 1 9 x\n")
        assert main(self.argv(place, "--runs", str(folder.parent))) == 0
        assert taken[2:] == ["theirs-rnn.some.txt"]  # another file is another first stage

    def test_a_record_says_what_was_measured_how_where_and_on_what(self, place: Path, taken: list[str]) -> None:
        small(place, SMALL + "compare: [RR@10]\n")
        main(self.argv(place, "--record"))
        records = {record.name: record for record in read_records(place / "results" / "small.json")}
        record = records["dense-rnn"]
        run = place / "work" / "small" / "dense-rnn.some.txt"
        assert (record.kind, record.spec, record.outcome["query_set"]) == ("run", "small", "some")
        assert record.outcome["sha256"] == hashlib.sha256(run.read_bytes()).hexdigest()
        assert record.outcome["values"]["trec"]["RR@10"] == pytest.approx((1 / 2 + 1 / 3) / 2)
        assert record.outcome["queries"]["trec"] == {"RR@10": {"q1": 0.5, "q2": 0.333333}}  # as is compared
        assert (record.outcome["topics"], record.outcome["depth"], record.outcome["judged"]) == (2, 3, 2)
        difference = record.outcome["differences"]["RR@10"]
        assert (difference["baseline"], difference["difference"], difference["tie"]) == ("dense", 0.0, 2)
        assert set(record.inputs) == {"index tiny", "topics", "judgements"}
        assert {"rnnreranker", "numpy"} <= record.versions.keys()
        assert record.machine.endswith(f"Python {platform.python_version()}")
        assert record.date.endswith("+00:00")
        assert record.commands == []  # the plan has them

    def test_skipped_is_exit_0_while_something_ran_and_2_when_nothing_did(
        self, place: Path, taken: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "has_gpu", lambda: False)
        gpu = SMALL.replace("epochs: 1}}", "epochs: 1}}\n    needs: {gpu_hours: 2}")
        small(place, gpu)
        assert main(self.argv(place)) == 0
        assert "skipped: train takes a GPU (2 hours), and there is none here (hard)\n" in capsys.readouterr().err
        assert main(self.argv(place, "--only", "hard")) == 2
        small(place, gpu.replace("tiny: {", "tiny: {needs: {gpu_hours: 1}, ").replace("ENCODER", "E"))
        assert main([*self.argv(place)[:3], "--output", str(place / "other")]) == 2
        reason = "skipped: index takes a GPU (1 hours), and there is none here"
        nothing = "small: nothing can be run here; --dry-run prints the commands for elsewhere"
        assert [line.partition(" (dense")[0] for line in capsys.readouterr().err.splitlines()[-2:]] == [reason, nothing]

    def test_a_step_that_fails_is_an_error_of_those_that_need_it(
        self, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, taken: list[str]
    ) -> None:
        fine = runner._process

        def process(step: Step, together: bool) -> tuple[int, str]:
            if step.output.name == "hard.parquet":
                return 2, "no such method"
            if step.output.name == "soft.parquet":
                return command.UNAVAILABLE, "the topics are not here"
            return fine(step, together)

        monkeypatch.setattr(runner, "_process", process)
        small(place)
        assert main(self.argv(place)) == 1
        shown = capsys.readouterr()
        assert "error: no such method (hard)\n" in shown.err
        assert "skipped: the topics are not here (soft)\n" in shown.err
        assert shown.out.count("\tnew\n") == 4  # dense and dense-rnn, in both protocols
        assert main(self.argv(place, "--only", "soft")) == 2

    def test_the_list_has_the_query_sets_that_can_be_named(
        self, place: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        small(place)
        assert main(["--list", "--specs", str(place)]) == 0
        head, row, empty, *sets = capsys.readouterr().out.splitlines()
        assert head == "spec\tquery sets\tconditions\tstate\ttitle"
        assert row == "small\tsome\t4\t4 not measured\tA small spec"
        assert (empty, sets[0]) == ("", "query set\ttopics\ttables of papers\ttitle")
        assert [one.split("\t")[0] for one in sets[1:]] == ["some"]


def in_process(step: Step) -> int:
    """The exit code of a step's command, called here."""
    code: int = module_of(step.module).main(step.words())
    return code


def test_a_step_tells_what_is_unavailable_from_what_is_wrong(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TRIPCLICK_HOME", raising=False)
    monkeypatch.setenv("IR_DATASETS_HOME", str(place / "irds"))
    monkeypatch.setattr(sys, "argv", f"index --documents tripclick --parts bm25 --output {place}/x".split())
    assert command.run(index) == command.BAD_INPUT
    monkeypatch.setenv(STEP, str(place / "said"))
    assert command.run(index) == command.UNAVAILABLE
    assert (place / "said").read_text().startswith("tripclick: the documents are not here")
    assert capsys.readouterr().err.count("error: tripclick: the documents are not here") == 2
    monkeypatch.setattr(sys, "argv", f"index --documents nowhere.jsonl --output {place}/x".split())
    assert command.run(index) == command.BAD_INPUT


@pytest.fixture
def tiny(place: Path) -> Path:
    """A made-up collection in 40 words, with a BERT of two layers for it; the folder of everything."""
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(WORDS, size=int(rng.integers(4, 9)))) for _ in range(48)]
    write_lines(
        place / "corpus.jsonl", (json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(texts))
    )
    topics = {f"q{number}": " ".join(texts[number].split()[:3]) for number in range(24)}
    write_judged(place, topics, ((f"q{number}", f"d{number}", 1) for number in range(24)))
    make_encoder(place / "encoder")
    return place


@pytest.mark.long
def test_from_documents_to_measures_with_real_commands_killed_on_the_way(
    tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tiny, SMALL.replace("ENCODER", str(tiny / "encoder")))
    argv = f"small --specs {tiny} --output {tiny}/work".split()
    # a plan in a process of its own, killed with all its children as soon as the first run is written
    with subprocess.Popen(
        [sys.executable, "-m", "rnnreranker.regress", *argv, "--jobs", "2"],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    ) as process:
        first = tiny / "work" / "small" / "dense.some.txt"
        while not first.exists() and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
    made = (tiny / "work" / "indexes" / "corpus.jsonl.tiny" / "rnnreranker.json").stat().st_mtime_ns

    # the same commands go on in this process, which has loaded PyTorch already
    monkeypatch.setattr(runner, "_process", lambda step, _: (in_process(step), ""))
    assert main([*argv, "--record"]) == 0
    assert (tiny / "work" / "indexes" / "corpus.jsonl.tiny" / "rnnreranker.json").stat().st_mtime_ns == made
    shown = capsys.readouterr()
    assert len([line for line in shown.out.splitlines() if line.endswith("\tnew")]) == 8
    records = {record.name: record for record in read_records(tiny / "results" / "small.json")}
    assert set(records) == {"dense", "dense-rnn", "hard", "soft"}
    assert all(0 < record.outcome["values"]["trec"]["nDCG@10"] <= 1 for record in records.values())
    assert len({record.outcome["sha256"] for record in records.values()}) == 4
    assert all(record.seconds > 0 for record in records.values())
    assert main(argv) == 0  # nothing is left to do
    shown = capsys.readouterr()
    assert len([line for line in shown.out.splitlines() if line.endswith("\tok")]) == 8
    assert "python -m" not in shown.err
