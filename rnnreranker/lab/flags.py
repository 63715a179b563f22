"""Flags that commands of the laboratory share, their printed reports, and the records that they write."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rnnreranker.base.command import print_table
from rnnreranker.base.files import check_writable
from rnnreranker.base.pages import render
from rnnreranker.base.settings import Request, setting


@dataclass(frozen=True)
class LabFlags(Request):
    """Flags of commands that measure with settings of rNN; the Python functions have no such arguments."""

    output: str | None = setting(None, "write the record of everything measured", metavar="FILE.json")
    preset: str | None = setting(None, "published parameters (tas-b, cocondenser, …) or a YAML file")


def tables_of(template: str, **values: Any) -> list[list[list[str]]]:
    """The tables of a report: rows of cells, the header first; blank lines of the template divide them, tabs cells."""
    text = render("lab", f"{template}.txt.j2", **values)
    return [[line.split("\t") for line in one.splitlines()] for one in text.strip().split("\n\n")]


def print_report(template: str, **values: Any) -> None:
    """Print the tables of a report."""
    for header, *rows in tables_of(template, **values):
        print_table(header, rows)


@contextmanager
def recorded(path: str | None, module: str, kind: str, argv: Sequence[str], **about: Any) -> Iterator[dict[str, Any]]:
    """A block that gives name, outcome and inputs of the record of a command, which is written if a file is given.

    Args:
        path: a file that no other process writes; it is replaced as a whole.
        module, kind, argv, about: as in `record.of_command`.

    Raises:
        InputError: the file cannot be written.
    """
    from rnnreranker.base.record import of_command, write_records

    check_writable(path)
    made: Any = {"module": module, "kind": kind, "argv": argv, "begun": time.perf_counter(), **about}
    yield made
    if path:
        write_records(path, [of_command(**made)])
