"""A long rerank killed in the middle: nothing half-written, and the same command succeeds afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
QUERIES, DOCUMENTS, DEPTH, DIMENSION = 1200, 2000, 200, 32


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill")
    rng = np.random.default_rng(5)
    (folder / "index").mkdir()
    np.save(folder / "index" / "vectors.npy", rng.standard_normal((DOCUMENTS, DIMENSION)).astype(np.float32))
    (folder / "index" / "docid").write_text("".join(f"d{row}\n" for row in range(DOCUMENTS)))
    np.save(folder / "queries.npy", rng.standard_normal((QUERIES, DIMENSION)).astype(np.float32))
    (folder / "topics.tsv").write_text("".join(f"q{row}\ttext\n" for row in range(QUERIES)))
    with open(folder / "run.txt", "w") as stream:
        for query in range(QUERIES):
            for rank, row in enumerate(rng.choice(DOCUMENTS, DEPTH, replace=False).tolist(), 1):
                stream.write(f"q{query} Q0 d{row} {rank} {DEPTH - rank} made\n")
    return folder


def command(made: Path, output: Path) -> tuple[list[str], dict[str, str]]:
    flags = ["--index", str(made / "index"), "--topics", str(made / "topics.tsv"), "--run", str(made / "run.txt")]
    flags += ["--encoded-queries", str(made / "queries.npy"), "--context", str(DEPTH), "--output", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return [sys.executable, "-m", "rnnreranker.search", *flags], environment


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_a_killed_rerank_leaves_nothing_and_can_be_run_again(made: Path, tmp_path: Path) -> None:
    argv, environment = command(made, tmp_path / "whole.txt")
    started = time.monotonic()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    lasts = time.monotonic() - started

    outputs = tmp_path / "killed"
    outputs.mkdir()
    argv, environment = command(made, outputs / "run.txt")
    for share in (0.4, 0.7, 0.85):
        process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(share * lasts)
        process.kill()
        process.communicate()
        if (outputs / "run.txt").exists():  # it was quicker this time: then the run is whole
            assert (outputs / "run.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
            (outputs / "run.txt").unlink()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    assert (outputs / "run.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert (outputs / "run.txt").read_text().count("\n") == QUERIES * DEPTH
