"""One command with one fault: forked, watched at every write, judged by what it said and left, and run again."""

from __future__ import annotations

import atexit
import errno
import json
import os
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from rnnreranker.base import command
from rnnreranker.base.process import interrupts
from tests.faults import calls
from tests.faults.commands import COMMANDS, Command, main_of

ERRORS = {"ENOSPC": errno.ENOSPC, "EDQUOT": errno.EDQUOT, "EIO": errno.EIO, "EROFS": errno.EROFS}
LASTING = {"ENOSPC", "EDQUOT"}  # from that write on, until the rerun; removing files goes on
SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}
FAULTS = (*ERRORS, *SIGNALS)
LIMIT = 10.0  # seconds that a command may take to end from a fault on
GIVEN_UP = 300.0
NOT_KEPT = "cannot be kept"  # said where a cache could not be written, and the command goes on without
DESCRIPTION = "rnnreranker.json"  # of an index: a part that joins it is there, whole, before it is named
HOME, TEMPORARY = "home", "tmp"  # in the folder of a case: the cache folder and that for temporary files


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, -9 where a kill ended it; the names and paths of its writes, in their order."""

    code: int
    error: str
    seconds: float
    calls: list[tuple[str, str]]
    struck: float | None = None  # seconds after which the fault struck, None where it did not


@dataclass
class Case:
    """A fault, and what is wrong with what came of it: nothing, if all is well."""

    command: str
    replacing: bool  # whether another result stood at the place of the output
    fault: str
    number: int  # of the write, from 0
    at: str = ""  # what was to be written where
    code: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.command}{', replacing' if self.replacing else ''}: {self.fault} at write {self.number} ({self.at})"
        )


class Bench:
    """A command with what an undisturbed run makes, from nothing and over another result.

    Args:
        name: of the command; inputs: their folder; place: an empty folder for this one.
    """

    def __init__(self, name: str, inputs: Path, place: Path) -> None:
        self.name, self._command, self._inputs, self._place = name, COMMANDS[name], inputs, place
        self._start, self._made, self.writes, self._said = {}, {}, {}, {}  # by `replacing`
        self._stages: list[dict[str, bytes | None]] = []
        place.mkdir()
        for number, more in enumerate(self._command.stages):
            (place / f"stage{number}").mkdir()
            self._well(self._run(place / f"stage{number}", more))
            self._stages.append(listed(place / f"stage{number}"))
        for replacing in (False, True)[: 1 + (self._command.before is not None)]:
            start, whole = place / f"start{replacing:d}", place / f"whole{replacing:d}"
            start.mkdir()
            if replacing:
                self._well(self._run(start, self._command.before or ""))
                for name in (HOME, TEMPORARY):
                    shutil.rmtree(start / name)
            shutil.copytree(start, whole)
            ended = self._well(self._run(whole))
            self._start[replacing], self._made[replacing] = listed(start), listed(whole)
            self.writes[replacing], self._said[replacing] = ended.calls, _lines(ended.error)

    def case(self, replacing: bool, fault: str, number: int, job: int = 0) -> Case | None:
        """The command with a fault, then without; None where the fault did not strike. Jobs have their own folders."""
        case = Case(self.name, replacing, fault, number)
        folder = self._place / f"case{job}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._place / f"start{replacing:d}", folder)
        ended = self._run(folder, fault=fault, number=number)
        if ended.struck is None:
            return None
        call, place = ended.calls[number]
        case.at, case.code, case.seconds = f"{call} {place}", ended.code, round(ended.seconds - ended.struck, 2)
        case.wrong += self._of_words(ended, fault, replacing)
        stuck = place if call in calls.REMOVES and fault in ERRORS else ""  # it could not be removed
        case.wrong += self._of_files(listed(folder), ended.code, replacing, stuck)
        again = self._run(folder)
        after, made = listed(folder), self._made[replacing]
        if again.code:
            case.wrong.append(f"the rerun ended {again.code}: {again.error[-2000:]}")
        if unlike := [name for name in self._command.outputs if _under(after, name) != _under(made, name)]:
            case.wrong.append(f"the rerun made another {', '.join(unlike)}")
        if left := sorted(_places(after) - _places(made)):
            case.wrong.append(f"left after the rerun: {', '.join(left)}")
        if case.seconds > LIMIT and ended.code:  # one that goes on, as without a cache, has all its work before it
            case.wrong.append(f"ended {case.seconds:.0f} s after the fault")
        return case

    def _of_words(self, ended: Ended, fault: str, replacing: bool) -> list[str]:
        new = [line for line in _lines(ended.error) if line not in self._said[replacing]]
        noted = [line for line in new if NOT_KEPT in line]
        new = [line for line in new if line not in noted]
        wanted = {"SIGTERM": [143], "SIGKILL": [-9]}.get(fault, [2, 0, *self._command.codes])
        wrong = [] if ended.code in wanted else [f"exit code {ended.code}: {ended.error[-2000:]}"]
        if fault == "SIGKILL":
            return wrong
        lines = {143: [interrupts.SAID], 0: []}.get(ended.code)
        good = new == lines if lines is not None else 0 < len(new) <= 1 + len(self._command.codes)
        good = good and all(line.startswith("error: ") or line == interrupts.SAID for line in new)
        return wrong + ([] if good and len(noted) == len(set(noted)) else [f"said {noted + new}"])

    def _of_files(self, after: dict[str, bytes | None], code: int, replacing: bool, stuck: str) -> list[str]:
        start, made = self._start[replacing], self._made[replacing]
        wrong = []
        for name in self._command.outputs:
            found = _under(after, name)
            final = _under(made, name)
            whole = [{}, *(_under(one, name) for one in (start, *self._stages))]
            whole += [final, *(final | {key: one[key] for key in one if key.endswith(DESCRIPTION)} for one in whole)]
            if found not in (whole if code else [final]):
                unlike = sorted(key for key in found.keys() | final.keys() if found.get(key) != final.get(key))
                wrong.append(f"{name} is neither whole nor absent: other {', '.join(unlike)}")
        if code != -9:
            known = (*self._command.outputs, *self._command.kept)
            left = {place for place in _places(after) - _places(start) if not place.startswith(known)}
            left |= {place for place in _places(after) if place.endswith((".tmp", ".old", ".probe"))}
            left = {place for place in left if not (stuck and (stuck.startswith(place) or place.startswith(stuck)))}
            if left:
                wrong.append(f"left after the fault: {', '.join(sorted(left))}")
        return wrong

    def _run(self, folder: Path, more: str = "", fault: str = "", number: int = -1) -> Ended:
        for name in (HOME, TEMPORARY):
            (folder / name).mkdir(exist_ok=True)
        return run(self._command, self._command.words(self._inputs, more), folder, fault, number)

    def _well(self, ended: Ended) -> Ended:
        assert ended.code == 0, f"{self.name}: {ended.error}"
        return ended


def run(of: Command, words: list[str], folder: Path, fault: str = "", number: int = -1) -> Ended:
    """Run a command in a forked process, whose n-th write within the folder meets the fault."""
    ours, theirs = socket.socketpair()
    said = folder.with_name(f"{folder.name}.err")
    begun = time.perf_counter()
    child = os.fork()
    if child == 0:
        _become(of, words, folder, said, theirs)
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    process = os.pidfd_open(child)
    poll = select.poll()
    for file in (listener, process):
        poll.register(file, select.POLLIN)
    seen: list[tuple[str, str]] = []
    struck: float | None = None
    while process not in (ready := dict(poll.poll(500))):
        if time.perf_counter() - begun > GIVEN_UP:
            os.killpg(child, signal.SIGKILL)
        call = calls.receive(listener) if ready else None
        if call is not None:
            failing = 0
            if call.path.startswith(f"{folder}/"):
                seen.append((call.name, call.path.removeprefix(f"{folder}/")))
                here = len(seen) - 1 == number
                if here:
                    struck = time.perf_counter() - begun
                if here and fault in SIGNALS:
                    (os.killpg if fault == "SIGKILL" else os.kill)(child, SIGNALS[fault])
                elif here or (struck is not None and fault in LASTING and call.name not in calls.REMOVES):
                    failing = ERRORS[fault]
            calls.answer(listener, call, failing)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in (listener, process):
        os.close(file)
    seconds = time.perf_counter() - begun
    return Ended(code, said.read_text(encoding="utf-8", errors="replace"), seconds, seen, struck)


def _become(of: Command, words: list[str], folder: Path, said: Path, to: socket.socket) -> NoReturn:
    """Be the command from here to its end, as a process that was started for it would."""
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        tempfile.tempdir = None  # of the process that was forked
        os.environ |= {"RNNRERANKER_HOME": str(folder / HOME), "TMPDIR": str(folder / TEMPORARY)}
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder.parent / "inductor")  # torch makes it where it exports
        for number, path, how in ((0, os.devnull, os.O_RDONLY), (1, os.devnull, os.O_WRONLY)):
            os.dup2(os.open(path, how), number)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
        sys.argv[:] = [f"rnnreranker.{of.room}", *words]
        listener = calls.install()
        socket.send_fds(to, [b"."], [listener])
        os.close(listener)
        to.close()
        interrupts._install()
        code = command.run(main_of(of.room))  # type: ignore[arg-type]
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        sys.stderr.flush()
        os._exit(code)


def listed(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder and below by name: the bytes of files, None of folders and of files whose bytes vary.

    Lucene writes the time and random numbers into its files, so that the checksums of them vary too.
    """
    paths = sorted(folder.rglob("*"))
    vary = {path for path in paths if "bm25" in path.parts or not path.is_file()}
    found = {str(path.relative_to(folder)): None if path in vary else path.read_bytes() for path in paths}
    return {
        name: _without_lucene(content) if content and name.endswith(DESCRIPTION) else content
        for name, content in found.items()
    }


def _without_lucene(content: bytes) -> bytes:
    described = json.loads(content)
    if isinstance(described.get("files"), dict):
        described["files"].pop("bm25", None)
    return json.dumps(described, indent=2).encode()


def _under(found: dict[str, bytes | None], name: str) -> dict[str, bytes | None]:
    return {path: content for path, content in found.items() if path == name or path.startswith(f"{name}/")}


def _places(found: dict[str, bytes | None]) -> set[str]:
    """What there is, except whole files and folders of the cache."""
    kept = (f"{HOME}/", HOME, TEMPORARY)
    return {
        path
        for path in found
        if (path not in kept and not path.startswith(kept[0])) or path.rpartition("/")[2].startswith(".")
    }


def _lines(said: str) -> list[str]:
    """Lines without what varies: numbers, and phases of a summary, which are left out where they take no time."""
    short = re.compile(r"(?<= on cpu: ).*|\d+")
    return [line if line.startswith("error: ") else short.sub("#", line) for line in said.splitlines()]
