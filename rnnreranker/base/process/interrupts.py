"""Ctrl-C and SIGTERM end a command within a second, by one line and exit code 130 or 143, wherever it stands.

While a command works, a signal raises KeyboardInterrupt, so that what is half-written is removed on the way out. What
libraries make of that does not matter: a thread that the signal wakes, whatever the main one does, ends the process
when it has not ended by itself. Before and after the work the process ends at once.
"""

from __future__ import annotations

import _signal  # `signal` makes enumerations first, and until the handlers stand every millisecond counts
import _thread
import contextlib
import os
import sys
import time

TYPE_CHECKING = False  # as type checkers understand it, without the import of `typing`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
PATIENCE = 0.4  # seconds that the main thread has for its own way out
SAID = "interrupted: nothing half-written; run the same command again to go on"
STEP = "RNNRERANKER_STEP"  # set in the environment: the command is a step of another one, which says that line itself

received = 0  # the number of the signal
unfinished: set[Path] = set()  # temporary files and folders that whoever ends the process removes
_installed = _working = _waiting = False
_main = 0  # the thread that takes the signals
_ending = _thread.allocate_lock()
_stderr = 2  # a file descriptor of this module's own, where the other one may be turned elsewhere for a while


def install_for(package: str) -> None:
    """Take the signals where Python is at `python -m PACKAGE…`, which has said so in these words alone till now."""
    words = (word.removeprefix("-m").split(".")[0] for word in sys.orig_argv[1:3])
    if sys.argv[:1] == ["-m"] and package in words and os.name == "posix":
        _install()


def _install() -> None:
    global _installed, _main, _stderr
    for number in SIGNALS:
        if _signal.getsignal(number) is not _signal.SIG_IGN:  # as nohup asks
            _signal.signal(number, _handle)
    _installed, _main = True, _thread.get_ident()
    import shutil  # noqa: F401  while there is time: `_finish` has none
    import threading

    read, write = os.pipe()
    os.set_blocking(write, False)
    _signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        _stderr = os.dup(2)
    except OSError:  # closed by whoever started the command
        _stderr = write
    threading.Thread(target=_watch, args=(read,), daemon=True, name="interrupts").start()
    os.register_at_fork(after_in_child=_leave)


def _leave() -> None:
    """A forked process is not the command: it takes Python's own handlers and does not wake the parent's thread."""
    global _installed
    _installed = False
    _signal.set_wakeup_fd(-1)
    for number, usual in ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _signal.SIG_DFL)):
        if _signal.getsignal(number) is _handle:
            _signal.signal(number, usual)


def begin() -> None:
    """From now on a signal raises KeyboardInterrupt in the main thread."""
    global _working
    _working = True


def end() -> None:
    """From now on a signal ends the process at once: its work is done or given up."""
    global _working
    _working = False


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """In the block, of the main thread, a signal ends the process at once: what is unfinished is removed, no more.

    For the import of libraries: native code that calls Python back while it is loaded aborts at an exception.
    """
    global _working
    before, _working = _working, False
    try:
        yield
    finally:
        _working = before


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """A signal in the block raises KeyboardInterrupt at its end: for what must not be told apart, and is done at once.

    A name that a result takes, and the note that it has taken it. PATIENCE is not put off.
    """
    global _waiting
    before, waited = received, _waiting
    _waiting = _installed and (waited or _thread.get_ident() == _main)
    try:
        yield
    finally:
        _waiting = waited
    if received and not before and not waited:
        raise KeyboardInterrupt


def finish() -> int:
    """The exit code of an interrupted command, of which its line has been said; of a process of its own, no return."""
    number = received or _signal.SIGINT
    if _installed:
        _finish(number)
    print(SAID, file=sys.stderr)
    return 128 + number


def leave(code: int) -> int:
    """The exit code; where the process is the command, no return: it ends here.

    Threads come first, as in Python's own end: pools of processes (loky) are told there that no more work comes, or the
    rest would wait minutes for idle ones. What Python would still do, after what is registered for
    its end, is to take large libraries to pieces: a second on a machine that is not busy.
    """
    if not _installed:
        return code
    from rnnreranker.base.private.python import end_quickly

    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    end_quickly()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def _handle(number: int, frame: FrameType | None) -> None:
    global received
    if received or not _working:
        _finish(number)
    received = number
    sys.unraisablehook = lambda _: None  # where it is raised in a finaliser, Python would show it
    import threading

    threading.excepthook = lambda _: None
    if not _waiting:
        raise KeyboardInterrupt


def _watch(pipe: int) -> None:
    """Wait for one of the signals, then for the main thread, then no longer."""
    while (number := os.read(pipe, 1)[0]) not in SIGNALS:
        pass
    _end_children()
    time.sleep(PATIENCE)
    _finish(number)


def _end_children() -> None:
    """Pass the signal on to the processes that this one has started, where the system tells which they are (Linux)."""
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as stream:
                children = [int(child) for child in stream.read().split()]
            for child in children:
                with contextlib.suppress(OSError):  # ended meanwhile
                    os.kill(child, _signal.SIGTERM)


@contextlib.contextmanager
def left_to_this_process() -> Iterator[None]:
    """Processes of libraries that are started in the block are not woken by Ctrl-C: this one ends them, in silence."""
    if os.name != "posix":
        yield
        return
    warnings = os.environ.get("PYTHONWARNINGS")
    ignored = "ignore:resource_tracker"  # that of joblib says what it clears away where a signal has left it
    os.environ["PYTHONWARNINGS"] = f"{warnings},{ignored}" if warnings else ignored
    with contextlib.suppress(ImportError):
        from joblib.externals.loky.backend import resource_tracker

        resource_tracker.ensure_running()  # now: where it starts it takes the mask away
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])  # other threads still take the signal
    try:
        yield
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        if warnings is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = warnings


def _finish(number: int) -> None:
    if not _ending.acquire(blocking=False):  # another thread, or the same one before a second signal, is at it
        return
    _end_children()
    if unfinished:
        import shutil

        for path in list(unfinished):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    clear = "\r\x1b[K" if os.isatty(_stderr) else ""
    try:
        if STEP not in os.environ:
            os.write(_stderr, f"{clear}{SAID}\n".encode())
    finally:
        os._exit(128 + number)
