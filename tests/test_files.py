"""Files written whole: links, pipes, what is left when writing fails."""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base import files
from rnnreranker.base.files import check_writable, file_digest, first_line, folder_written_whole, write_atomically


@pytest.mark.parametrize(
    ("content", "line"), [(b"", ""), (b" \n\n", ""), (b"\xef\xbb\xbf\r\n a b \r\nc\n", "a b"), (b"\xff\n", "\ufffd")]
)
def test_the_first_line_that_is_not_blank(tmp_path: Path, content: bytes, line: str) -> None:
    for name in ("x.txt", "x.txt.gz"):
        with write_atomically(tmp_path / name) as stream:
            stream.write(content)
        assert first_line(tmp_path / name) == line
    (tmp_path / "y.gz").write_bytes(b"no gzip")
    with refusal(r"y\.gz: not a whole gzip file"):
        first_line(tmp_path / "y.gz")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    with write_atomically(tmp_path / "link") as stream:
        stream.write(b"content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"content"
    assert os.listdir(tmp_path / "there") == ["file"]
    (tmp_path / "folder").symlink_to(tmp_path / "there")
    write_folder(tmp_path / "folder", "new")
    assert (tmp_path / "folder").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with write_atomically(pipe) as stream:
        stream.write(b"content")
    reader.join(timeout=10)
    assert received == [b"content"]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
    for read in (first_line, file_digest):
        with refusal("pipe: is a pipe or a device, which cannot be read twice; write its content"):
            read(pipe)


class Killed(BaseException):
    """In place of a signal that ends the process."""


def write_folder(path: Path, content: str) -> None:
    with folder_written_whole(path) as folder:
        (folder / "file").write_text(content)


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    write_folder(tmp_path / "made" / "out", "first")
    write_folder(tmp_path / "made" / "out", "second")
    assert (tmp_path / "made" / "out" / "file").read_text() == "second"
    assert os.listdir(tmp_path / "made") == ["out"]
    (tmp_path / "text").touch()
    with refusal("text: is a file, expected the name of a folder"):
        write_folder(tmp_path / "text", "third")


@pytest.mark.parametrize("at", ["rmtree", "replace"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_no_moment_of_a_kill_loses_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, nth: int
) -> None:
    """The process ends at the nth removal, with half removed, or at the nth rename, which does not take place."""
    out = tmp_path / "out"
    write_folder(out, "old")
    calls = 0

    def kill(path: Path, *more: object, **options: object) -> None:
        nonlocal calls
        calls += 1
        if calls < nth:
            plain(path, *more, **options)
        elif calls == nth:
            if at == "rmtree" and path.is_dir():
                (path / "file").unlink(missing_ok=True)
            raise Killed

    where = files.shutil if at == "rmtree" else files.os
    plain = getattr(where, at)
    monkeypatch.setattr(where, at, kill)
    with contextlib.suppress(Killed):
        write_folder(out, "new")
    monkeypatch.undo()
    kept = [path.read_text() for folder in (out, tmp_path / ".out.old") for path in folder.glob("file")]
    assert kept
    assert kept[0] in ("old", "new")

    def fail() -> None:
        with folder_written_whole(out):
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert (out / "file").read_text() == kept[0]  # moved back
    write_folder(out, "newest")
    assert (out / "file").read_text() == "newest"
    assert not (tmp_path / ".out.old").exists()


def test_what_killed_processes_left_goes_with_the_next_write(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def left_by(process: int, name: str) -> Path:
        return tmp_path / f".{name}.{platform.node()}.{process}.7.tmp"

    left, others = left_by(ended.pid, "out.txt"), [left_by(ended.pid, "out.txt.gz"), left_by(os.getpid(), "out.txt")]
    for write in (write_atomically, check_writable):
        for path in (left, *others):
            path.write_text("half")
        with contextlib.ExitStack() as stack:
            if write is write_atomically:
                stack.enter_context(write(tmp_path / "out.txt"))
            else:
                write(tmp_path / "out.txt")
            assert not left.exists()
        assert all(path.exists() for path in others)  # of another file, of a process that runs
    left_by(ended.pid, "out").mkdir()
    (left_by(ended.pid, "out") / "file").write_text("half")
    write_folder(tmp_path / "out", "whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*(path.name for path in others), "out", "out.txt"])


def test_whoever_waits_for_a_lock_gets_it_when_the_holder_is_done(tmp_path: Path) -> None:
    """Several at once, each of which removes the file that it held: none is ever in the block with another."""
    code = (
        "import os, sys, time; from pathlib import Path; from rnnreranker.base.jobs import alone\n"
        "for _ in range(20):\n"
        "    with alone(Path('out'), 'waiting'):\n"
        "        os.mkdir('inside'); time.sleep(0.001); os.rmdir('inside')"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
