"""What ends a command is one line and an exit code: full disks, too little memory, errors that nobody foresaw."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base import command
from rnnreranker.base.command import print_table
from rnnreranker.base.errors import InputError, shown
from rnnreranker.base.files import folder_written_whole, write_atomically


def wrapped() -> None:
    try:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise RuntimeError("the writer of a library failed") from error


def raiser(error: Exception) -> None:
    raise error


ENDS = {
    "full": (lambda: raiser(OSError(errno.ENOSPC, "No space left on device", "a.txt")), "a.txt: cannot be written (No"),
    "quota": (lambda: raiser(OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))), "cannot be written (Disk quota"),
    "damaged": (lambda: raiser(OSError(errno.EIO, os.strerror(errno.EIO), "b")), "b: cannot be written (Input/output"),
    "wrapped": (wrapped, "cannot be written (No space left on device)"),
    "by numpy": (lambda: raiser(OSError("4096 requested and 12 written")), "cannot be written (No space left"),
    "by torch": (lambda: raiser(RuntimeError("failed writing file data/0")), "cannot be written (No space left"),
    "denied": (lambda: raiser(PermissionError(errno.EACCES, "Permission denied", "c")), "c: Permission denied; check"),
    "memory": (lambda: raiser(MemoryError("Unable to allocate 3 TiB")), "not enough memory (Unable to allocate 3 TiB)"),
    "unforeseen": (lambda: raiser(KeyError("q1")), "nobody foresaw KeyError at test_command_errors.py:"),
}


@pytest.mark.parametrize("kind", ENDS)
def test_every_error_is_one_line(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, said = ENDS[kind]

    def main(argv: Sequence[str]) -> int:
        work()
        return 0

    monkeypatch.setattr(sys, "argv", ["command"])
    assert command.run(main) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {said}")
    assert error.count("\n") == 1


def test_an_unforeseen_error_shows_its_place_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(command.TRACEBACK, "1")
    with pytest.raises(KeyError):
        command.run(lambda _: {}["q1"])


class Full:
    """In place of a raw file: the disk is full after some bytes."""

    def __init__(self, path: Path, code: int) -> None:
        self._stream, self._code = path.open("wb"), code

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, content: bytes) -> int:
        self._stream.write(content[:3])
        self._stream.flush()
        raise OSError(self._code, os.strerror(self._code))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_nothing_half_written_stays(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.txt").write_text("before")
    monkeypatch.setattr("builtins.open", lambda path, *_, **__: Full(path, code))
    with (
        refusal(r"run\.txt: cannot be written .*; make room"),
        write_atomically(tmp_path / "run.txt") as stream,
    ):
        stream.write(b"more than three")
    with (
        refusal(r"folder: cannot be written .*; make room"),
        folder_written_whole(tmp_path / "folder") as folder,
    ):
        Full(folder / "x", code).write(b"more than three")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["run.txt"]
    assert (tmp_path / "run.txt").read_text() == "before"


HOSTILE = "\x1b[2J\x1b]0;title\x07a\x9b31mb\r\x00\u202ec"


@pytest.mark.usefixtures("as_command")
def test_control_characters_are_shown_not_sent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown("ein Satz, 中文, 👩‍🔬\tand\n") == "ein Satz, 中文, 👩‍🔬\tand\n"
    for on_terminal in (False, True):
        monkeypatch.setattr(sys.stdout, "isatty", lambda on=on_terminal: on, raising=False)
        print_table(["docid"], [[HOSTILE]])
        command.say(HOSTILE)
        monkeypatch.setattr(sys, "argv", ["command", HOSTILE])
        assert command.run(lambda argv: raiser(InputError(f"{argv[0]}: no such file")) or 0) == 2
        with pytest.raises(SystemExit):
            command.parser("search", "").parse_args([HOSTILE])
        seen = "".join(capsys.readouterr())
        assert not any(char in seen for char in "\x1b\x07\x9b\r\x00\u202e")
        assert seen.count("\\x1b]0;title\\x07") == 4


NOISE = """
import logging, warnings
from rnnreranker.base import command
from rnnreranker.base.errors import for_others
from rnnreranker.base.jobs import do_parts
def main(argv):
    warnings.warn("of a library")
    logging.getLogger("of.a.library").warning("of a library")
    logging.getLogger("rnnreranker.own").warning("logged")
    command.notice("a run of ranks")
    with for_others():  # as in the server
        command.notice("of a request")
    do_parts(lambda: command.notice("of a worker"), [()], workers=2, backend="loky", address=None, shown=iter)
    return 0
raise SystemExit(command.run(main))
"""


@pytest.mark.parametrize("filters", ["", "ignore"])
def test_a_log_file_gets_our_notices_and_no_warnings_of_libraries(filters: str) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    environment = {**os.environ, "PYTHONWARNINGS": filters}
    done = subprocess.run([sys.executable, "-c", NOISE], env=environment, capture_output=True, text=True, check=True)
    notices = [f"warning: {what}" for what in ("a run of ranks", "of a request", "of a worker")]
    assert done.stderr.splitlines() == ["WARNING rnnreranker.own: logged", *notices]


SHOW = """
from rnnreranker.base import command
from rnnreranker.base.errors import InputError
def main(argv):
    command.put("d1\\u00e9\\u4e2d\\t0.5")
    command.notice("\\u4e2d")
    raise InputError("no \\u4e2d")
raise SystemExit(command.run(main))
"""


@pytest.mark.parametrize(
    ("encoding", "result"), [("cp1252", "d1\xe9\\u4e2d"), ("ascii", "d1\\xe9\\u4e2d"), ("utf-8", "d1\xe9\u4e2d")]
)
def test_what_a_terminal_cannot_show_is_an_escape(encoding: str, result: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, check=False)
    sign = "\u4e2d" if encoding == "utf-8" else "\\u4e2d"
    assert done.returncode == 2
    assert done.stdout.decode(encoding) == f"{result}\t0.5\n"
    assert done.stderr.decode(encoding) == f"warning: {sign}\nerror: no {sign}\n"
