"""A step of a plan: one command with its output, inputs and state."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.arguments import flag
from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import InputError, MissingDependencyError, RnnrerankerError, UnavailableError
from rnnreranker.base.settings import words
from rnnreranker.base.written_form import Written
from rnnreranker.data.names import BUILT_IN
from rnnreranker.parts.base import part
from rnnreranker.regress.specs.entries import Condition, IndexEntry, QuerySet, Work
from rnnreranker.regress.specs.methods import spec_part
from rnnreranker.regress.specs.spec import Spec

PASTE_FOLDER = Path("runs")  # where printed commands put their files
RUNS = "runs"  # the argument of `fuse` that has no flag
DEVICE = "device"  # where a step computes: its output does not depend on it but for the last bits
NOT_READ = ("output", "record", "tag", DEVICE)  # flags whose values are not read, even those that name a file
LARGE = 20.0  # GB from which on the output of a step is removed when nobody needs it any more
REMOVABLE = ("index", "search", "labels", "negatives")  # commands whose output can be; trained models stay


@dataclass(frozen=True)
class Step:
    """One command: `python -m rnnreranker.MODULE`.

    Attributes:
        request: flag (with _ for -) → value, in printing order; a list follows one flag, each word of a tuple its own.
        output: the file or folder that it makes; inputs: files of other steps.
        needs: those of a prebuilt index too that it is the first to read; downloads: these alone.
    """

    module: str
    request: Mapping[str, Any]
    output: Path
    inputs: tuple[Path, ...] = ()
    needs: dict[str, Any] = field(default_factory=dict)
    downloads: dict[str, Any] = field(default_factory=dict)

    @property
    def argv(self) -> tuple[str, ...]:
        """The request in words of the command line."""
        return tuple(word for name, value in self.request.items() for word in request_words(name, value))

    def command(self) -> str:
        """The line to paste into a shell."""
        return shlex.join(["python", "-m", f"rnnreranker.{self.module}", *self.argv])

    def value(self, name: str) -> str:
        """The value of a flag as a text, or ""."""
        value = self.request.get(name, "")
        return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)

    @property
    def disk(self) -> float:
        """GB of its output."""
        return float(self.needs.get("disk_gb", 0)) - float(self.downloads.get("disk_gb", 0))

    @property
    def large(self) -> bool:
        """Whether its output is removed after its last reader."""
        return self.module in REMOVABLE and self.disk >= LARGE

    def reads(self, other: Step) -> bool:
        """Whether it reads any part of the output of another step, or adds to it."""
        return any(path.is_relative_to(other.output) for path in (*self.inputs, self.output))


def request_words(name: str, value: Any) -> Iterator[str]:
    """A value of a request in words of the command line.

    >>> list(request_words("arms", ["query", {"joint": {"mass": "share"}}])), list(request_words("rerank", ("a", "b")))
    (['--arms', 'query', 'joint:mass=share'], ['--rerank', 'a', '--rerank', 'b'])
    """
    if isinstance(value, list | dict):
        several = value if isinstance(value, list) else [{key: its} for key, its in value.items()]
        shown = (str(Written.read(one)) if isinstance(one, dict) else str(one) for one in several)
        yield from shown if name == RUNS else (flag(name), *shown)
    else:
        for one in value if isinstance(value, tuple) else (value,):
            yield from words({name: one})


def named_in(request: Mapping[str, Any]) -> Iterator[str]:
    """The values of a request that may name an input."""
    for name, value in request.items():
        if name not in NOT_READ:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
        return
    yield (text := str(value))
    try:
        form = Written.read(text)
    except InputError:
        form = Written(text)
    if form.params or form.preset:
        yield from _texts([form.name, form.preset, *form.params.values()])
    elif "," in text:  # a list of names
        yield from text.split(",")


def run_files(spec: Spec, folder: Path, condition: Condition, query_set: QuerySet) -> list[Path]:
    """The run files of a condition on a query set."""
    return [folder / spec.name / f"{name}.{query_set.id}.txt" for name in condition.run_names]


def work_file(spec: Spec, folder: Path, work: Work) -> Path:
    """The file with the records of a work."""
    return folder / spec.name / f"{work.id}.json"


def built_in(index: IndexEntry) -> bool:
    """Whether an index is of a built-in collection with default settings."""
    if index.documents not in BUILT_IN:
        return False
    return all(
        choose("part", spec_part(name, its), "parts").params == part(name).Params() for name, its in index.parts.items()
    )


def index_name(index: IndexEntry, folder: Path) -> str:
    """The value of `--index`: a prebuilt or built-in name, or a folder."""
    if index.prebuilt or built_in(index):
        return index.prebuilt or index.documents
    return str(folder / "indexes" / f"{word_of(index.documents)}.{index.id}")


def word_of(name: str) -> str:
    """A name as part of a file name."""
    return name.replace("/", "-").replace(":", "-").strip("-.")


@dataclass(frozen=True)
class State:
    """`ok`: as expected; `new`: nothing is expected for these inputs yet; `changed`: beyond tolerance, better or worse;
    `skipped`: impossible here; `error`: failed.
    """

    kind: Literal["ok", "new", "changed", "skipped", "error"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def state_of(error: RnnrerankerError) -> State:
    """The state of a step or a run after an error."""
    lacking = isinstance(error, UnavailableError | MissingDependencyError)
    return State("skipped" if lacking else "error", str(error))
