"""Faults at the writes of commands: no traceback, nothing half-written, and the same bytes when it is run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults import calls  # noqa: E402

pytestmark = pytest.mark.skipif(not calls.available(), reason="this system does not hand calls to another process")


def faults(*words: str) -> dict[str, object]:
    """The outcome of `python -m tests.faults`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.faults", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.long
def test_a_few_faults() -> None:
    found = faults("--cases", "8", "--seed", "1", "--commands", "fuse")
    assert (found["cases"], found["wrong"]) == (8, 0)


@pytest.mark.slow
def test_more_faults_in_three_commands() -> None:
    found = faults("--cases", "12", "--seed", "1", "--commands", "search,,fuse,,labels")
    assert (found["cases"], found["wrong"]) == (12, 0)


@pytest.mark.slow
def test_faults_in_every_command() -> None:
    found = faults("--cases", "60", "--seed", "2")
    assert (found["cases"], found["wrong"]) == (60, 0)
