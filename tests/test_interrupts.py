"""Ctrl-C ends a command by one line and exit code 130, and leaves nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rnnreranker.base.command import INTERRUPTED, STEP
from rnnreranker.base.jobs import do_parts

ROOT = Path(__file__).resolve().parent.parent
SAID = f"{INTERRUPTED}\n"


@pytest.fixture(autouse=True)
def sigint_is_not_ignored() -> Iterator[None]:
    """A shell makes what it starts in the background ignore SIGINT, and processes inherit that; commands keep it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


COMMAND = """
import os, signal, sys, time
from pathlib import Path
from rnnreranker.base import command
from rnnreranker.base.files import folder_written_whole, write_atomically
from rnnreranker.base.jobs import alone
def ready():
    print("ready", flush=True)
    time.sleep(60)
def begin(name):
    Path(name).touch()
    time.sleep(60)
def main(argv):
    {body}
    return 0
if __name__ == "__main__":
    raise SystemExit(command.run(main))
"""
BODIES = {
    "waiting": """
    ready()
""",
    "writing": """
    with write_atomically("file.txt") as stream, folder_written_whole("folder") as folder:
        stream.write(b"half")
        (folder / "part").write_text("half")
        ready()
""",
    "holding a lock": """
    with alone(Path("out"), ""):
        ready()
""",
}
WORKERS = """
    from rnnreranker.base.jobs import do_parts
    print("ready", flush=True)
    parts = ((f"{number}.begun",) for number in range(10))
    do_parts(begin, parts, workers=2, backend="loky", address=None, shown=iter)
"""


def started(folder: Path, body: str) -> subprocess.Popen[str]:
    (folder / "work.py").write_text(COMMAND.format(body=body))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "work.py"], cwd=folder, env=environment, text=True, start_new_session=True, **pipes
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error after Ctrl-C, which all processes get."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, error


def is_ready(process: subprocess.Popen[str], line: str = "ready\n") -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == line


@pytest.mark.parametrize(("kind", "step"), [*((kind, False) for kind in BODIES), ("waiting", True)])
def test_a_command_ends_with_one_line_and_leaves_nothing(
    kind: str, step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step leaves the line to the command that runs it."""
    if step:
        monkeypatch.setenv(STEP, "1")
    process = started(tmp_path, BODIES[kind])
    is_ready(process)
    assert ended(process) == (130, "" if step else SAID)
    assert os.listdir(tmp_path) == ["work.py"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to see processes in")
@pytest.mark.long
def test_processes_that_it_started_end_with_it_and_say_nothing(tmp_path: Path) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    process = started(tmp_path, WORKERS)
    is_ready(process)
    until = time.monotonic() + 120
    while len(list(tmp_path.glob("*.begun"))) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert ended(process) == (130, SAID)
    until = time.monotonic() + 30
    while workers_of(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert workers_of(process.pid) == []


def workers_of(leader: int) -> list[int]:
    """The processes of a session, without its first one, that have not ended."""
    others = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(session) == leader and state != "Z" and int(path.parent.name) != leader:
            others.append(int(path.parent.name))
    return others


def test_the_callers_own_process_keeps_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGINT)
    do_parts(len, [("part",)], workers=1, backend="loky", address=None, shown=iter)
    assert signal.getsignal(signal.SIGINT) is before
