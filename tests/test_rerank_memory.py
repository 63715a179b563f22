"""Memory of a rerank over a large memory-mapped matrix, run on demand only.

RNNRERANKER_SLOW=1 runs it: 1,000,000 x 768 float16 (1.5 GB in pytest's temporary folder), 1,000 queries x 1,000
candidates. `pytest -s` shows what was measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DOCUMENTS, DIMENSION, QUERIES, DEPTH = 1_000_000, 768, 1000, 1000
BOUND = 1.2e9  # bytes of memory that no file stands behind
MEASURED = """
import json, sys, threading, time
import numpy as np
from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, open_vectors

def anonymous():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon"))

path, queries, depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
peak, done = [anonymous()], threading.Event()

def watch():
    while not done.wait(0.02):
        peak[0] = max(peak[0], anonymous())

threading.Thread(target=watch, daemon=True).start()
source = open_vectors(path)
rng = np.random.default_rng(1)
rows = np.concatenate([rng.choice(len(source.docids), depth, replace=False) for _ in range(queries)])
distinct, codes = np.unique(rows, return_inverse=True)
docids = np.array([source.docids[row] for row in distinct], dtype=object)
qids = [f"q{number}" for number in range(queries)]
scores = np.tile(np.arange(depth, 0, -1.0), queries)
run = Run(tuple(qids), np.arange(queries + 1) * depth, docids, codes.astype(np.int32), scores)
vectors = QueryVectors(tuple(qids), rng.standard_normal((queries, source.dimension)).astype(np.float32))
before, started, used = anonymous(), time.perf_counter(), time.process_time()
RnnReranker(source, RnnParams(context=depth)).rerank(run, vectors)
spent = {"seconds": time.perf_counter() - started, "processor": time.process_time() - used}
done.set()
print(json.dumps({"before": before, "peak": max(peak[0], anonymous()), **spent}))
"""


@pytest.mark.skipif(not os.environ.get("RNNRERANKER_SLOW"), reason="set RNNRERANKER_SLOW=1 (1.5 GB of disk, a minute)")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc, as Linux has it")
def test_a_million_documents_are_reranked_in_little_memory(tmp_path: Path) -> None:
    block = np.random.default_rng(0).standard_normal((20_000, DIMENSION)).astype(np.float16)
    matrix = np.lib.format.open_memmap(tmp_path / "vectors.npy", "w+", np.float16, (DOCUMENTS, DIMENSION))
    for first in range(0, DOCUMENTS, len(block)):
        matrix[first : first + len(block)] = block
    del matrix
    (tmp_path / "docid").write_text("".join(f"d{row}\n" for row in range(DOCUMENTS)))
    measured = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), str(QUERIES), str(DEPTH)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(measured.stdout)
    print(found)
    assert found["before"] <= found["peak"] < BOUND
