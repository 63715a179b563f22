"""A process that runs cases and says how they end, for another that watches it; and the other's side of it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LIMIT = 10.0  # seconds of a case
START = 300.0  # and of making valid files, which imports libraries
MEMORY = 24 << 30  # bytes of address space: torch and the JVM reserve much


class Worker:
    """The watching side: a process that is started again whenever it ends or takes too long."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: set[str] = set()

    def run(self, name: str, number: int) -> dict[str, Any]:
        """State, what was said, and seconds of a case."""
        if self._process is None:
            self._start()
        assert self._process is not None
        if name not in self._ready:  # the valid files first, which take the time of imports
            found = self._asked(name, 0, START)
            if found["state"] != "accepted":
                return found
            self._ready.add(name)
        return self._asked(name, number, LIMIT) if number else {"state": "accepted", "said": "", "seconds": 0.0}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            os.close(self._answers)
            self._process = None
            self._ready.clear()

    def _start(self) -> None:
        self._answers, theirs = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._seed), str(theirs)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[theirs],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        os.close(theirs)
        self._waiting = b""

    def _asked(self, name: str, number: int, limit: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        begun = time.perf_counter()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([name, number]).encode() + b"\n")
            self._process.stdin.flush()
        while b"\n" not in self._waiting:
            left = limit - (time.perf_counter() - begun)
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                self.close()
                return {"state": "failed", "said": f"hangs: no answer in {limit:g} s", "seconds": limit}
            if not (more := os.read(self._answers, 2**16)):
                code = self._process.wait()
                self.close()
                return {"state": "failed", "said": f"crash: the process ended with {code}", "seconds": 0.0}
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _serve(seed: int, answers: int) -> None:
    """Run the cases that come in, one a line; what libraries write to stdout or stderr fails a case."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    home = tempfile.TemporaryDirectory(prefix="mutations-home-")
    os.environ["RNNRERANKER_HOME"] = home.name
    said = os.open(Path(home.name) / "said", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    from mutations.format import forget, run_case
    from mutations.formats import FORMATS

    for line in sys.stdin.buffer:
        name, number = json.loads(line)
        os.ftruncate(said, 0)
        begun = time.perf_counter()
        outcome = run_case(FORMATS[name], seed, number)
        seconds = time.perf_counter() - begun
        sys.stdout.flush()
        sys.stderr.flush()
        state, reason = outcome.state, outcome.said
        if number and state != "failed" and os.fstat(said).st_size:
            state, reason = "failed", f"written to the terminal: {os.pread(said, 300, 0)!r}"
        answer = {"state": state, "said": reason[:1500], "seconds": round(seconds, 3)}
        os.write(answers, json.dumps(answer).encode() + b"\n")
    forget()
    home.cleanup()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    _serve(int(sys.argv[1]), int(sys.argv[2]))
