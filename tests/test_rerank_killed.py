"""A rerank that is killed in its middle: nothing of its output stands there, and the same command succeeds later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rnnreranker import Run

QUERIES, DOCUMENTS, DIMENSION = 80, 1000, 256  # more candidates than a reranker holds at a time
STALLED = """
import sys, time
from pathlib import Path
from rnnreranker.base import command
from rnnreranker.search.__main__ import main
from rnnreranker.parts.vectors.matrix_files import MatrixVectors

fetch, calls = MatrixVectors.fetch, []

def stall(self, *args, **kwargs):
    calls.append(1)
    if len(calls) == 2:  # the first vectors are fetched, the command is among its queries
        Path(sys.argv[-1]).touch()
        time.sleep(600)
    return fetch(self, *args, **kwargs)

MatrixVectors.fetch = stall
raise SystemExit(main(sys.argv[1:-1]))
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix with its docids, encoded queries, topics, and a run of all documents for every query."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(3)
    (folder / "index").mkdir()
    np.save(folder / "index" / "vectors.npy", rng.standard_normal((DOCUMENTS, DIMENSION)).astype(np.float32))
    docids = np.array([f"d{row}" for row in range(DOCUMENTS)], dtype=object)
    (folder / "index" / "docid").write_text("".join(f"{docid}\n" for docid in docids))
    np.save(folder / "queries.npy", rng.standard_normal((QUERIES, DIMENSION)).astype(np.float32))
    qids = [f"q{number}" for number in range(QUERIES)]
    (folder / "topics.tsv").write_text("".join(f"{qid}\ttext\n" for qid in qids))
    rows = np.concatenate([rng.permutation(DOCUMENTS) for _ in qids])
    scores = np.tile(np.arange(DOCUMENTS, 0, -1.0), QUERIES)
    Run.from_parts(qids, np.arange(QUERIES + 1) * DOCUMENTS, docids, rows, scores).write(folder / "run.txt")
    return folder


def flags(inputs: Path, output: Path) -> list[str]:
    given = {
        "--index": inputs / "index",
        "--topics": inputs / "topics.tsv",
        "--encoded-queries": inputs / "queries.npy",
        "--run": inputs / "run.txt",
        "--rerank": "rnn",
        "--context": DOCUMENTS,
        "--output": output,
    }
    return [str(word) for pair in given.items() for word in pair]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("before", [None, b"an older run\n"])
def test_a_killed_rerank_leaves_no_output_and_runs_again(inputs: Path, tmp_path: Path, before: bytes | None) -> None:
    output, marker = tmp_path / "out" / "reranked.txt", tmp_path / "begun"
    output.parent.mkdir()
    if before is not None:
        output.write_bytes(before)
    killed = subprocess.Popen([sys.executable, "-c", STALLED, *flags(inputs, output), str(marker)])
    deadline = time.monotonic() + 120
    while not marker.exists() and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marker.exists(), "the command did not come to its second block of vectors"
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL

    left = {path.name: path.read_bytes() for path in output.parent.iterdir()}
    assert left == ({} if before is None else {"reranked.txt": before})  # no half of a run, nothing temporary

    again, whole = flags(inputs, output), flags(inputs, tmp_path / "whole.txt")
    for command in (again, [*whole, "--threads", "1"]):
        subprocess.run([sys.executable, "-m", "rnnreranker.search", *command], check=True, capture_output=True)
    assert output.read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert len(Run.read(output).rows) == QUERIES * DOCUMENTS
    assert [path.name for path in output.parent.iterdir()] == ["reranked.txt"]
