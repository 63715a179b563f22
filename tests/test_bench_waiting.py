"""What one waits for in everyday commands: what is counted, and what every command is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.errors import UnavailableError
from rnnreranker.lab.bench import waiting
from rnnreranker.lab.bench.fresh_process import in_fresh_process
from rnnreranker.lab.bench.waiting import Clock


def test_of_functions_inside_one_another_the_outer_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now = Clock(), iter(range(100))
    monkeypatch.setattr(waiting.time, "perf_counter", lambda: float(next(now)))
    inner = clock.timed(lambda name: name)
    outer = clock.timed(lambda name: inner(inner(name)), "ours")
    assert outer("theirs") == "theirs"
    assert clock.seconds == 3  # four moments: the outer's and those of the two inside
    assert outer("ours.module") == "ours.module"  # whose inside counts alone
    assert clock.seconds == 5


def test_a_command_is_run_and_its_seconds_are_told(tmp_path: Path) -> None:
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    run.write_text("q Q0 d1 1 2.5 t\nq Q0 d2 2 1.5 t\n")
    qrels.write_text("q 0 d2 1\n")
    flags = [str(run), "--qrels", str(qrels)]
    found = in_fresh_process(waiting.__name__, "done", command="evaluate", flags=flags)
    assert found["imports"] > 0 == found["passes"]
    assert "imports" not in found["spent"]
    assert found["spent"]["evaluating"] > 0
    with pytest.raises(UnavailableError, match="no such"):
        in_fresh_process(waiting.__name__, "done", command="evaluate", flags=["none.txt", "--qrels", str(qrels)])


@pytest.mark.slow
def test_every_command_is_measured() -> None:
    rows = waiting.waiting(12, 1)
    assert [row["command"] for row in rows] == ["index", "index", "search", "search", "labels", "train", "evaluate"]
    for row in rows:
        assert row["total_s"] > row["needed_s"] > row["python_s"] > 0
        assert (row["passes_s"] > 0) == (row["command"] in waiting.ENGINES)
    assert [row["bound"] for row in rows] == [None, *[waiting.BOUND] * 6]
