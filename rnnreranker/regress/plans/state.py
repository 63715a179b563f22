"""What became of a condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.errors import MissingDependencyError, RnnrerankerError, UnavailableError


@dataclass(frozen=True)
class State:
    """`ok`: as expected; `new`: nothing is expected of these inputs yet; `changed`: beyond tolerance, better or worse;
    `skipped`: cannot be done here; `error`: failed.
    """

    kind: Literal["ok", "new", "changed", "skipped", "error"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def skipped(reason: object) -> State:
    """What cannot be done here, and why."""
    return State("skipped", str(reason))


def failed(reason: object) -> State:
    """What went wrong."""
    return State("error", str(reason))


def state_of(error: RnnrerankerError) -> State:
    """What an error makes of a step or a run: skipped where something cannot be had here."""
    return skipped(error) if isinstance(error, UnavailableError | MissingDependencyError) else failed(error)
