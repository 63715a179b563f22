"""A step of a plan: one command, with what it makes and reads; the names of its files; what became of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.errors import MissingDependencyError, RnnrerankerError, UnavailableError
from rnnreranker.data.names import BUILT_IN
from rnnreranker.index.request import choose_part
from rnnreranker.parts.base import part
from rnnreranker.regress.specs.entries import Condition, IndexEntry, QuerySet, Work
from rnnreranker.regress.specs.methods import spec_part
from rnnreranker.regress.specs.spec import Spec

PASTE_FOLDER = Path("runs")  # where printed commands put their files

ON_GPU = ["--device", "auto"]  # of a step that a GPU is for


@dataclass(frozen=True)
class Step:
    """One command: `python -m rnnreranker.<module> <argv>`; what it makes, from which files of other steps."""

    module: str
    argv: tuple[str, ...]
    output: Path
    inputs: tuple[Path, ...] = ()
    needs: dict[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """The line to paste into a shell."""
        return shlex.join(["python", "-m", f"rnnreranker.{self.module}", *self.argv])

    def value(self, flag: str) -> str:
        """What follows a flag, or an empty text."""
        return self.argv[self.argv.index(flag) + 1] if flag in self.argv else ""


def run_files(spec: Spec, folder: Path, condition: Condition, query_set: QuerySet) -> list[Path]:
    """Where the runs of a condition on a query set are written."""
    return [folder / spec.name / f"{name}.{query_set.id}.txt" for name in condition.run_names]


def work_file(spec: Spec, folder: Path, work: Work) -> Path:
    """Where the records of a study, a tuning, … are written."""
    return folder / spec.name / f"{work.id}.json"


def built_in(index: IndexEntry) -> bool:
    """Whether an index is the one that searches make of a built-in collection; of other settings of parts: a folder."""
    if index.documents not in BUILT_IN:
        return False
    return all(choose_part(spec_part(name, its)).params == part(name).Params() for name, its in index.parts.items())


def index_name(index: IndexEntry, folder: Path) -> str:
    """What `--index` is given: a prebuilt or built-in name, or the folder of the index step."""
    if index.prebuilt or built_in(index):
        return index.prebuilt or index.documents
    return str(folder / "indexes" / f"{word_of(index.documents)}.{index.id}")


def word_of(name: str) -> str:
    """The name of a data set or file as part of a file name."""
    return name.replace("/", "-").replace(":", "-").strip("-.")


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
