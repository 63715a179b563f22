"""Damaged files of every format are read as an independent reader does, or refused in one line.

The short form: a few cases of each format, in this process. The long form is `python -m tests.mutations`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from mutations.format import forget, run_case
from mutations.formats import FORMATS
from mutations.long_form import main
from mutations.worker import Worker


@pytest.fixture(scope="module", autouse=True)
def _valid_files() -> Iterator[None]:
    yield
    forget()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.long
def test_damaged_files_are_read_right_or_refused(name: str) -> None:
    if reason := FORMATS[name].needs():
        pytest.skip(reason)
    for number in range(FORMATS[name].quick + 1):  # 0: as they are
        outcome = run_case(FORMATS[name], 1, number)
        assert outcome.state != "failed", f"--only {name!r} --case {number}: {outcome.said}"


def test_a_process_that_ends_or_hangs_is_a_failure_and_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(1)
    try:
        assert worker.run("ids", 1)["state"] in ("accepted", "refused")
        assert worker._process is not None
        os.kill(worker._process.pid, 11)
        assert worker.run("ids", 2)["said"].startswith("crash")
        monkeypatch.setattr("mutations.worker.LIMIT", 0.0)
        assert worker.run("ids", 3)["said"].startswith("hangs")
    finally:
        worker.close()


@pytest.mark.slow
def test_the_long_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", os.environ.get("RNNRERANKER_MUTATIONS", "5000"), "--seed", "2"]) == 0, capsys.readouterr()
