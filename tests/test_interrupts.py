"""SIGINT and SIGTERM at any moment of a command: its exit code, one line, within a second, nothing half-written."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rnnreranker.process import interrupts

ROOT = Path(__file__).resolve().parent.parent
SAID = f"{interrupts.SAID}\n"

# a command as the package's own: its name in `-m`, so that the handlers stand before its first line
COMMAND = """
import sys
sys.argv, sys.orig_argv = ["-m"], [sys.executable, "-m", "rnnreranker.search"]
import rnnreranker
from rnnreranker import command
from rnnreranker.files import folder_written_whole, write_atomically
def main(argv):
    {body}
    return 0
{before}
raise SystemExit(command.run(main))
"""
SWALLOWED = """
    while True:
        try:
            print("ready", flush=True)
            time.sleep(60)
        except BaseException:
            pass
"""
IN_A_FINALIZER = """
    class Kept:
        def __del__(self):
            print("ready", flush=True)
            time.sleep(60)
    Kept()
    time.sleep(60)
"""
TURNED_INTO_AN_ERROR = """
    try:
        print("ready", flush=True)
        time.sleep(60)
    except BaseException as error:
        raise ImportError("libblas") from error
"""
LET_GO = """
    import contextlib
    with contextlib.suppress(BaseException):
        print("ready", flush=True)
        time.sleep(60)
"""
IN_A_LIBRARY = """
    import ctypes
    print("ready", flush=True)
    ctypes.CDLL(None).pause()
    while True:
        ctypes.CDLL(None).sleep(60)
"""
WRITING = """
    with write_atomically("file.txt") as stream, folder_written_whole("folder") as folder:
        stream.write(b"half")
        (folder / "part").write_text("half")
        while True:
            try:
                print("ready", flush=True)
                time.sleep(60)
            except BaseException:
                pass
"""
BODIES = {
    "swallowed": SWALLOWED,
    "in a finaliser": IN_A_FINALIZER,
    "turned into an error": TURNED_INTO_AN_ERROR,
    "let go": LET_GO,
    "in a library": IN_A_LIBRARY,
    "writing": WRITING,
}


def started(folder: Path, body: str, before: str = "") -> subprocess.Popen[str]:
    code = COMMAND.format(body=f"import time\n{body}", before=before)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, float]:
    """Exit code, standard error and seconds from a signal on."""
    begun = time.perf_counter()
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    return process.returncode, error, time.perf_counter() - begun


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", BODIES)
def test_whatever_the_work_makes_of_it(kind: str, number: signal.Signals, tmp_path: Path) -> None:
    process = started(tmp_path, BODIES[kind])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    code, error, seconds = ended(process, number)
    assert (code, error) == (128 + number, SAID)
    assert seconds < interrupts.PATIENCE + patience()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_the_work_and_after_it(number: signal.Signals, tmp_path: Path) -> None:
    wait = 'import time; print("ready", flush=True); time.sleep(60)'
    for process in (
        started(tmp_path, "    pass", before=wait),
        started(tmp_path, f"    import atexit; atexit.register(lambda: exec({wait!r}))"),
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert ended(process, number)[:2] == (128 + number, SAID)


def test_a_program_that_imports_the_package_keeps_its_handlers() -> None:
    code = "import signal, rnnreranker; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def patience() -> float:
    """Seconds that a busy machine may take besides: .4 on one that is not."""
    return 0.4 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _catches(process: subprocess.Popen[str]) -> bool:
    """Whether a process has its handler of SIGTERM, which the first lines of the package set."""
    with contextlib.suppress(FileNotFoundError):
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc to see handlers in")
@pytest.mark.parametrize(
    "moments", [(0.0, 0.05, 0.3, 1.2), pytest.param([i / 10 for i in range(60)], marks=pytest.mark.slow)], ids=len
)
def test_a_search_at_many_moments(moments: list[float], tmp_path: Path) -> None:
    """Imports, numba, torch, the model, the Java machine: all of a search, from the first line of the package on."""
    argv = [sys.executable, "-m", "rnnreranker.search", "--index", "pydoc", "--query", "merge sorted inputs"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    faults = []
    for number, moment in enumerate(moments):
        sent = (signal.SIGINT, signal.SIGTERM)[number % 2]
        process = subprocess.Popen(
            argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while not _catches(process):
            time.sleep(0.001)
        time.sleep(moment)
        code, error, seconds = ended(process, sent)
        if (code, error.splitlines()[-1:]) != (128 + sent, [interrupts.SAID]) or "Traceback" in error:
            faults.append((moment, code, error))
        elif seconds > interrupts.PATIENCE + 2 * patience():
            faults.append((moment, code, f"{seconds:.2f} s"))
    assert faults == []
