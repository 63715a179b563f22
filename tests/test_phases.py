"""What a command is at: on a pseudo-terminal from its first half second on, in a pipe a line now and then."""

from __future__ import annotations

import io
import itertools
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_negatives import small

from rnnreranker.base import command
from rnnreranker.base.arguments import of_command
from rnnreranker.base.process import phases

ROOT = Path(__file__).resolve().parent.parent
WORK = """
import sys, time
from rnnreranker.base import command
from rnnreranker.base.process import phases
def main(argv):
    time.sleep({first})
    with phases.phase("loading the model"):
        time.sleep(0.2)
        with phases.phase("importing torch"):
            time.sleep(0.4)
        phases.tell("step 2 of 9")
        time.sleep(1.2)
    for _ in command.progress(range(3), unit="pages", what="read"):
        time.sleep(0.3)
    command.put("a result")
    command.say("the end")
    return 0
sys.argv = ["x", "y"]
raise SystemExit(command.run(main))
"""


def on_terminal(argv: list[str], folder: Path) -> list[tuple[float, str]]:
    """What a process wrote on a terminal, each piece with the seconds since its start."""
    ours, its = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    begun = time.perf_counter()
    process = subprocess.Popen(argv, cwd=folder, env=environment, stdin=its, stdout=its, stderr=its)
    os.close(its)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append((time.perf_counter() - begun, piece.decode(errors="replace")))
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(ours)
    assert process.wait() == 0
    return pieces


@pytest.mark.long
def test_every_phase_is_said_when_it_begins(tmp_path: Path) -> None:
    pieces = on_terminal([sys.executable, "-c", WORK.format(first=1)], tmp_path)
    text = "".join(piece for _, piece in pieces)
    said = ["starting", "loading the model", "importing torch", "loading the model, step 2 of 9", "read:", "a result"]
    places = [text.index(one) for one in said]
    assert places == sorted(places)
    times = [at for at, _ in pieces]
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert max(waits) < 1.5 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert re.search("\r(\x1b\\[K)?a result\r\nthe end\r\n$", text)


@pytest.mark.long
def test_a_pipe_gets_nothing_of_it() -> None:
    argv = [sys.executable, "-c", WORK.format(first=0)]
    done = subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("a result\n", "the end\n")


def test_a_phase_says_how_many_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    said = []
    with of_command(), phases.phase("reading"):
        for _ in command.progress(range(1000, 1003), unit="pages", what="wide"):
            said.append(str(phases._stack[-1]))
        for _ in command.progress(iter("ab"), unit="pages"):
            said.append(str(phases._stack[-1]))
    counts = ["wide: 0 of 3", "wide: 1 of 3", "wide: 2 of 3", "0", "1"]
    assert said == [f"reading, {count} pages" for count in counts]


RERANK = "--run run.txt --index v.npy --encoded-queries q.npy"
JUDGED = "--qrels qrels.txt --topics topics.tsv"
AT = {  # a command on tiny inputs → what it says that it is at
    f"search {RERANK} --topics topics.tsv --output out.txt": ["reading topics", "opening the index", "reranking"],
    "evaluate run.txt --qrels qrels.txt": ["reading judgements", "reading runs", "evaluating"],
    f"labels {RERANK} {JUDGED} --output out.parquet": ["reading judgements", "reading runs", "making labels"],
}
AT_LENGTH = {
    f"negatives {RERANK} {JUDGED} --documents docs.tsv --output out.jsonl": ["reading runs", "choosing negatives"],
    f"diagnose {RERANK} --topics topics.tsv": ["reading runs", "opening the index", "diagnosing"],
    f"recover {RERANK} {JUDGED}": ["reading judgements", "ranking by the positives"],
    f"tune {RERANK} {JUDGED} --trials 2 --output out.yaml": ["opening the index", "reading what to tune on"],
    "fuse run.txt copy.txt --output out.txt": ["reading runs", "fusing"],
    "regress --list": ["starting"],
}


@pytest.mark.parametrize("line", [*AT, *(pytest.param(line, marks=pytest.mark.slow) for line in AT_LENGTH)])
def test_a_command_says_at_once_what_it_is_at(line: str, tmp_path: Path) -> None:
    """Of `index`, `train` and `study` the tests with models tell."""
    small(tmp_path)
    entries = (tmp_path / "run.txt").read_text()
    (tmp_path / "copy.txt").write_text(entries)
    if line.startswith("recover"):
        rows = [entry.split() for entry in entries.splitlines()]
        (tmp_path / "qrels.txt").write_text("".join(f"{row[0]} 0 {row[2]} {int(int(row[3]) < 4)}\n" for row in rows))
    pieces = on_terminal([sys.executable, "-m", *f"rnnreranker.{line}".split()], tmp_path)
    text = "".join(piece for _, piece in pieces)
    assert [one for one in ("starting", *(AT | AT_LENGTH)[line]) if one not in text] == [], text
    times = [at for at, _ in pieces]
    busy = max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))
    assert times[0] < 0.5 * busy
    assert max(after - before for before, after in itertools.pairwise(times)) < 1.5 * busy
    assert not re.search(r"\d s$", text.split("\r")[-1]), "the line is taken away at the end"


@pytest.mark.parametrize("limit", [100_000, 600_000, 2_000_000])  # below the first OpenBLAS ends the process by itself
def test_too_small_a_limit_of_memory_is_said_at_once(limit: int) -> None:
    argv = ["sh", "-c", f'ulimit -v {limit}; exec "$0" -m rnnreranker.search --index x --query x', sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: address space limited to {limit} KiB: the libraries need 2097152 KiB")
    assert done.stderr.count("\n") == 1
