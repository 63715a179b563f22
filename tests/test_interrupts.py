"""SIGINT and SIGTERM at any moment of a command: its exit code, one line, within a second, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from interruptions import fresh, interrupted, python

from rnnreranker.base.process import interrupts

ROOT = Path(__file__).resolve().parent.parent
SAID = f"{interrupts.SAID}\n"


@pytest.fixture(autouse=True)
def sigint_is_not_ignored() -> Iterator[None]:
    """A shell makes what it starts in the background ignore SIGINT, and processes inherit that; commands keep it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# a command as the package's own: its name in `-m`, so that the handlers stand before its first line
COMMAND = """
import sys
sys.argv, sys.orig_argv = ["-m"], [sys.executable, "-m", "rnnreranker.search"]
import rnnreranker
from rnnreranker.base import command
from rnnreranker.base.files import folder_written_whole, write_atomically
from rnnreranker.base.process import interrupts
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
HOLDING = """
    from pathlib import Path
    from rnnreranker.base.locks import alone
    with alone(Path("out"), ""), interrupts.at_once():  # as while a library is imported
        print("ready", flush=True)
        time.sleep(60)
"""
FORKED = """
    import os, signal
    if not os.fork():
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        print("the forked process ignores it too:", ignored, flush=True)
        os._exit(0)
    time.sleep(60)
"""
BODIES = {
    "swallowed": SWALLOWED,
    "in a finaliser": IN_A_FINALIZER,
    "turned into an error": TURNED_INTO_AN_ERROR,
    "let go": LET_GO,
    "in a library": IN_A_LIBRARY,
    "writing": WRITING,
    "holding a lock": HOLDING,
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
    try:
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()  # one that goes on must not take a core from all that comes after
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


def test_a_command_in_the_background_goes_on_ignoring_sigint(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the shell does; the process inherits it
    process = started(tmp_path, FORKED)
    assert process.stdout is not None
    assert process.stdout.readline() == "the forked process ignores it too: True\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    assert ended(process, signal.SIGTERM)[:2] == (143, SAID)


def patience() -> float:
    """Seconds that a busy machine may take besides: .4 on one that is not."""
    return 0.4 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to see processes in")
@pytest.mark.parametrize(
    "moments", [(0.0, 0.3, 0.8, 2.0), pytest.param([i / 10 for i in range(60)], marks=pytest.mark.slow)], ids=len
)
def test_a_search_at_many_moments(moments: list[float], tmp_path: Path) -> None:
    """Imports, numba, torch, the model, the Java machine: all of a search, from the process's start on."""
    argv = python("search --index pydoc --query merge")
    signals = (signal.SIGINT, signal.SIGTERM)
    found = [interrupted(argv, tmp_path, moment, signals[number % 2], fresh()) for number, moment in enumerate(moments)]
    quiet = os.getloadavg()[0] <= (os.cpu_count() or 1)
    good = {"as promised", "before Python"} | (set() if quiet else {"late", "Python's traceback"})
    assert [one for one in found if one.kind not in good] == []


CHILDREN = """
    import subprocess, joblib
    from rnnreranker.base.process.interrupts import left_to_this_process
    with left_to_this_process():
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print("ready", flush=True)
        joblib.Parallel(n_jobs=2)(joblib.delayed(time.sleep)(60) for _ in range(2))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not tell whose a process is")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.long
def test_processes_that_it_started_end_with_it_and_say_nothing(number: signal.Signals, tmp_path: Path) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    (tmp_path / "work.py").write_text(COMMAND.format(body=f"import time\n{CHILDREN}", before=""))
    moment = 2 + 2.5 * patience()  # all have started
    end = interrupted([sys.executable, "work.py"], tmp_path, moment, number, fresh())
    assert (end.code, end.said) == (128 + number, SAID)
    assert end.last < interrupts.PATIENCE + 2 * patience()


def test_a_step_leaves_the_line_to_the_command_that_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interrupts.STEP, "1")
    process = started(tmp_path, LET_GO)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert ended(process, signal.SIGTERM)[:2] == (143, "")


POOL = """
    import joblib
    assert joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(abs)(-n) for n in range(3)) == [0, 1, 2]
"""


def test_a_command_does_not_wait_for_idle_processes_at_its_end(tmp_path: Path) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    process = started(tmp_path, POOL)
    _, error = process.communicate(timeout=120)  # idle ones end after 300 seconds
    assert (process.returncode, error) == (0, "")
