"""Flags that commands of the laboratory share, and the records that they write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting


@dataclass(frozen=True)
class LabFlags(Request):
    """Flags of commands that measure with settings of rNN; the Python functions have no such arguments."""

    output: str | None = setting(None, "write the record of everything measured", metavar="FILE.json")
    preset: str | None = setting(None, "published parameters (tas-b, cocondenser, …) or a YAML file")


def write_record(path: str | None, kind: str, name: str, outcome: dict[str, Any], **about: Any) -> None:
    """Write the record of a command, if a file is given.

    Args:
        path: a file that no other process writes; it is replaced as a whole.
        kind, name, outcome, about: as in `record.of_command`.

    Raises:
        InputError: the file cannot be written.
    """
    if path:
        from rnnreranker.base.record import of_command, write_records

        write_records(path, [of_command(kind, name, outcome, **about)])
