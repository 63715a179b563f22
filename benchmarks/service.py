"""Milliseconds of the service on docs/fastapi.md for 1, 10 and 50 clients; 60 candidates a request."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from measure import options, report

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fastapi.md"


def made(folder: Path, documents: int, dimension: int) -> list[bytes]:
    """The service with its vectors in a folder; bodies of requests."""
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((documents, dimension), dtype=np.float32)
    np.save(folder / "vectors.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    (folder / "vectors.ids").write_text("".join(f"d{row}\n" for row in range(documents)))
    code = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert code is not None
    (folder / "service.py").write_text(code[1])
    bodies = []
    for _ in range(50):
        rows = draw.integers(0, documents, 60)
        scores = np.sort(draw.random(60))[::-1].tolist()
        query = draw.standard_normal(dimension).tolist()
        bodies.append(json.dumps({"query": query, "docids": [f"d{row}" for row in rows], "scores": scores}).encode())
    return bodies


def milliseconds(address: str, body: bytes) -> float:
    """How long an answer takes."""
    asked = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    begun = time.perf_counter()
    with urllib.request.urlopen(asked, timeout=60) as answer:
        answer.read()
    return 1000 * (time.perf_counter() - begun)


def main() -> None:
    """Start the service, ask it, and print a table."""
    parser = options(__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--port", type=int, default=8765)
    args, begun = parser.parse_args(), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        bodies = made(Path(name), args.documents, args.dimension)
        words = ["-m", "uvicorn", "service:app", "--port", str(args.port), "--log-level", "error"]
        server = subprocess.Popen([sys.executable, *words], cwd=name, env={**os.environ, "RNNRERANKER_HOME": name})
        address, rows = f"http://127.0.0.1:{args.port}/rerank", []
        try:
            for attempt in range(120):
                try:
                    milliseconds(address, bodies[0])
                    break
                except OSError:
                    if attempt == 119:
                        raise
                    time.sleep(0.5)
            for clients in (1, 10, 50):
                with ThreadPoolExecutor(clients) as pool:
                    times = list(pool.map(lambda one: milliseconds(address, bodies[one % 50]), range(args.requests)))
                cuts = statistics.quantiles(times, n=20)
                rows.append({"clients": clients, "median_ms": statistics.median(times), "p95_ms": cuts[-1]})
        finally:
            server.terminate()
            server.wait()
    report("service", rows, args.record, begun)


if __name__ == "__main__":
    main()
