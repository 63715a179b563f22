"""The file that a search keeps its trials in: one process at a time writes it, and what a kill cut is taken away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, no_space
from rnnreranker.base.files import read_lines
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.base.locks import alone

BEGINNING = b'{"op_code"'  # of every journal
BLOCK = 65536  # bytes read at a time
GRACE = 3  # seconds that the lock of a writer that was killed is waited for


@contextmanager
def journal(storage: str | Path | None) -> Iterator[Any]:
    """The storage of optuna over a file; None = memory. Another process that wants the file waits.

    Raises:
        InputError: a file that is no journal, or cannot be written.
    """
    if storage is None:
        yield None
        return
    path = Path(storage)
    with alone(path, f"{path}: another process is searching with this storage; waiting for it"):
        yield _opened(path)


def _opened(path: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    try:
        if path.exists():
            _cut(path)
            _check_lines(path)
        kept = JournalStorage(JournalFileBackend(str(path), JournalFileOpenLock(str(path), GRACE)))
        kept.get_all_studies()
        return kept
    except InputError:
        raise
    except OSError as error:
        remedy = "make room, then run the command again" if no_space(error) else f"give another {argument('storage')}"
        raise InputError(f"{path}: cannot be used ({error.strerror or error}); {remedy}") from None
    except Exception as error:  # optuna replays the lines as they come, and lets through what that raises
        said = " ".join(str(error).split())[:80]
        raise InputError(f"{path}: not a journal of trials ({said}); give another {argument('storage')}") from None


def _check_lines(path: Path) -> None:
    """Look at what optuna takes as it stands: every line an object with a number, values that are finite.

    Raises:
        InputError: with the line.
    """
    for number, line in read_lines(path, "journal of trials"):
        try:
            entry = parse_record(line, f"line {number}")
        except InputError as error:
            raise InputError(f"{path}: not a journal of trials ({error}); give another {argument('storage')}") from None
        values = entry.get("values")
        if type(entry.get("op_code")) is not int or not (values is None or _finite(values)):
            raise InputError(
                f"{path}: not a journal of trials (line {number}: no entry of it); give another {argument('storage')}"
            )


def _finite(values: Any) -> bool:
    return isinstance(values, list) and all(type(one) in (int, float) and abs(one) < float("inf") for one in values)


def _cut(path: Path) -> None:
    """Take a last line of a journal away that has no end: its writer was killed, or the disk was full."""
    with open(path, "rb+") as stream:
        if not BEGINNING.startswith(stream.read(len(BEGINNING))):
            return
        at = end = stream.seek(0, os.SEEK_END)
        whole = -1
        while at and whole < 0:
            first = max(0, at - BLOCK)
            stream.seek(first)
            whole = stream.read(at - first).rfind(b"\n")
            at = first
        if at + whole + 1 < end:
            stream.truncate(at + whole + 1)
