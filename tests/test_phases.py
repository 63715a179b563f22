"""The line on the work of a command: on a terminal at once, in a log file now and then, in a pipe never."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from rnnreranker.base import command
from rnnreranker.base.errors import of_command

WORK = """
import sys, time
from rnnreranker.base import command
from rnnreranker.base import command
def main(argv):
    with command.phase("loading the model"):
        with command.phase("importing torch"):
            pass
        command.tell(lambda: "step 2 of 9")
        time.sleep(0.3)
    for _ in command.progress(range(3), unit="pages", what="read"):
        pass
    command.put("a result")
    command.say("the end")
    return 0
sys.argv = ["x", "y"]
raise SystemExit(command.run(main))
"""


def on_terminal(argv: list[str], folder: Path) -> str:
    """What a process writes on a terminal."""
    ours, its = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(argv, cwd=folder, env=environment, stdin=its, stdout=its, stderr=its)
    os.close(its)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece.decode(errors="replace"))
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(ours)
    assert process.wait() == 0
    return "".join(pieces)


def test_every_phase_is_said_when_it_begins(tmp_path: Path) -> None:
    text = on_terminal([sys.executable, "-c", WORK], tmp_path)
    said = [
        "starting",
        "loading the model",
        "importing torch",
        "model, step 2 of 9",
        "read: 0 of 3",
        "a result",
    ]
    places = [text.index(one) for one in said]
    assert places == sorted(places)
    assert text.replace("\r\x1b[K", "").endswith("a result\r\nthe end\r\n")


def test_a_pipe_gets_nothing_of_it() -> None:
    argv = [sys.executable, "-c", WORK]
    done = subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("a result\n", "the end\n")


def test_a_log_file_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(command, "LOGGED", 0.0)
    monkeypatch.setattr(command, "LOGGED_AT_LEAST", 0.0)
    command.start_phases()
    with of_command(), command.phase("reading"):
        for _ in command.progress(range(1000, 1002), unit="pages", what="wide"):
            pass
        monkeypatch.setattr(command, "_next", 0.0)
        for _ in command.progress(iter("ab"), unit="pages"):
            monkeypatch.setattr(command, "_next", command._next + 60)
    lines = ["reading, wide: 0 of 2 pages", "reading, wide: 1 of 2 pages", "reading, 0 pages"]
    assert sys.stderr.getvalue() == "".join(f"{line}: 0 s\n" for line in lines)
