"""The server as a process: many clients at once get the command's answers, memory stays, and kill -9 loses nothing."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'rnnreranker[serve]'")

from rnnreranker import open_index
from rnnreranker.data.topics import load_topics

pytestmark = [pytest.mark.slow, pytest.mark.model]
SECONDS = {1: 10.0, 10: 10.0, 50: 60.0}  # clients at once → how long
FORMS = [None, "rnn", "rnn:k=5", "rnn:k=20,lam=0.4"]
RETRIEVE = "dense"


@contextmanager
def process(index: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command, and its port once it listens."""
    words = [sys.executable, "-m", "rnnreranker.serve", "--index", str(index), "--port", "0", "--topics", "pydoc"]
    with log.open("wb") as stream, subprocess.Popen(words, stderr=stream, stdout=stream) as server:
        try:
            deadline = time.monotonic() + 120
            while not (said := re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text())):
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield server, int(said[1])
        finally:
            server.kill()


def post(connection: http.client.HTTPConnection, body: dict[str, Any]) -> dict[str, Any]:
    connection.request("POST", "/search", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    read: dict[str, Any] = json.loads(content)
    return read


def memory(pid: int) -> float:
    """MiB that a process has in memory of its own."""
    said = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", said)[1]) / 1024  # type: ignore[index]


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def bodies() -> list[dict[str, Any]]:
    texts = list(load_topics("pydoc").values())
    return [{"query": text, "rerank": form, "retrieve": RETRIEVE} for text in texts for form in FORMS]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_many_clients_for_a_minute(built_in_index: Path, tmp_path: Path) -> None:
    asked, index = bodies(), open_index(built_in_index)
    expected = {
        json.dumps(body): index.search({"query": body["query"]}, retrieve=RETRIEVE, rerank=body["rerank"])["query"][:10]
        for body in asked
    }
    before = contents(built_in_index)
    with process(built_in_index, tmp_path / "log.txt") as (server, port):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for body in asked:  # everything has been asked once: what follows needs no memory
            post(connection, body)
        used = [memory(server.pid)]
        for clients, seconds in SECONDS.items():
            spent: list[float] = []
            wrong: list[Any] = []
            end = time.monotonic() + seconds

            def client(number: int) -> None:
                own = http.client.HTTPConnection("127.0.0.1", port)
                for turn in range(number, 10**9, 7):
                    if time.monotonic() > end or wrong:  # noqa: B023  of this round
                        return
                    body = asked[turn * 13 % len(asked)]
                    try:
                        begun = time.perf_counter()
                        after = post(own, body)["after"]
                        spent.append(time.perf_counter() - begun)  # noqa: B023
                        if [(one["docid"], one["score"]) for one in after] != expected[json.dumps(body)]:
                            wrong.append(body)  # noqa: B023
                    except Exception as error:
                        wrong.append(error)  # noqa: B023

            threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            used.append(memory(server.pid))
            cut = statistics.quantiles(spent, n=100)
            print(
                f"{clients} clients: {len(spent)} answers, {len(spent) / seconds:.0f} a second, median "
                f"{1000 * cut[49]:.1f} ms, 95 % {1000 * cut[94]:.1f} ms, 99 % {1000 * cut[98]:.1f} ms; "
                f"{used[-1]:.0f} MiB"
            )
            assert wrong == []
        assert used[-1] < used[0] * 1.25 + 32, used
        assert tmp_path.joinpath("log.txt").read_text().count("\n") == 1  # nothing but where it listens
    assert contents(built_in_index) == before
