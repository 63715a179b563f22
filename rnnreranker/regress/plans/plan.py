"""The plan of a spec: every command from documents to measures; a large file is removed after its last reader."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, MissingDependencyError, RnnrerankerError, UnavailableError, flag
from rnnreranker.base.files import read_json
from rnnreranker.base.method import choose
from rnnreranker.base.settings import Written
from rnnreranker.data.names import BUILT_IN
from rnnreranker.parts.base import part
from rnnreranker.regress.specs.entries import (
    Condition,
    IndexEntry,
    QuerySet,
    Spec,
    Work,
    needs_of,
    needs_text,
    spec_part,
)

PASTE_FOLDER = Path("runs")  # where printed commands put their files
RUNS = "runs"  # the argument of `fuse` that has no flag
DEVICE = "device"  # where a step computes: its output does not depend on it but for the last bits
NOT_READ = ("output", "record", "tag", DEVICE)  # flags whose values are not read, even those that name a file
LARGE = 20.0  # GB from which on the output of a step is removed when nobody needs it any more
REMOVABLE = ("index", "search", "labels")  # commands whose output can be; trained models stay


@dataclass(frozen=True)
class State:
    """`ok`: as expected; `new`: nothing is expected for these inputs yet; `changed`: beyond tolerance, better or worse;
    `skipped`: impossible here; `error`: failed.
    """

    kind: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def state_of(error: RnnrerankerError) -> State:
    """The state of a step or a run after an error."""
    lacking = isinstance(error, UnavailableError | MissingDependencyError)
    return State("skipped" if lacking else "error", str(error))


@dataclass(frozen=True)
class Step:
    """One command: `python -m rnnreranker.MODULE`.

    Attributes:
        request: flag (with _ for -) → value, in printing order; a list follows one flag, each word of a tuple its own.
        output: the file or folder that it makes; inputs: files of other steps.
        needs: those of a prebuilt index too that it is the first to read; disk: GB of the output alone.
    """

    module: str
    request: Mapping[str, Any]
    output: Path
    inputs: tuple[Path, ...] = ()
    needs: dict[str, Any] = field(default_factory=dict)
    disk: float = 0.0

    def words(self, *without: str) -> list[str]:
        """The request in words of the command line, without some flags."""
        given = ((name, value) for name, value in self.request.items() if name not in without)
        return [word for name, value in given for word in request_words(name, value)]

    def command(self) -> str:
        """The line to paste into a shell."""
        return shlex.join(["python", "-m", f"rnnreranker.{self.module}", *self.words()])

    def value(self, name: str) -> str:
        """The value of a flag as a text, or ""."""
        return " ".join(request_words(name, self.request.get(name, ""))[1:])

    def names(self) -> list[str]:
        """What may name an input in the values of its flags."""
        return [name for word in self.words(*NOT_READ) for name in (word, *re.split('[:=,"]', word)) if name]

    @property
    def folder(self) -> Path:
        """The folder or file that it writes to: of a part of an index the index."""
        return Path(self.value("output") or self.output)

    def waits_for(self, earlier: Step) -> bool:
        """Whether it can be taken only after an earlier step of the plan: on disk, what that one leaves may be over."""
        return earlier.output in self.inputs or earlier.folder == self.folder or self.disk > 0

    @property
    def stamp_file(self) -> Path:
        """The file with the note on its begin (key) and end (seconds)."""
        return self.output.with_name(f".{self.output.name}.inputs")

    def stamp(self) -> dict[str, Any]:
        """The note, or {}."""
        with contextlib.suppress(InputError):  # absent or damaged
            return read_json(self.stamp_file)
        return {}

    @property
    def large(self) -> bool:
        """Whether its output is removed after its last reader."""
        return self.module in REMOVABLE and self.disk >= LARGE


def request_words(name: str, value: Any) -> list[str]:
    """A value of a request in words of the command line.

    >>> request_words("arms", ["query", {"joint": {"mass": "share"}}]), request_words("rerank", ("a", "b"))
    (['--arms', 'query', 'joint:mass=share'], ['--rerank', 'a', '--rerank', 'b'])
    >>> request_words("learn_temperature", False), request_words("normalize", None)
    (['--no-learn-temperature'], ['--normalize', 'none'])
    """
    if isinstance(value, dict):
        value = [{key: its} for key, its in value.items()]
    if isinstance(value, list):
        shown = [str(Written.read(one) if isinstance(one, dict) else one) for one in value]
        return shown if name == RUNS else [flag(name), *shown]
    if isinstance(value, tuple):
        return [word for one in value for word in request_words(name, one)]
    if isinstance(value, bool):
        return [flag(name if value else f"no_{name}")]
    return [flag(name), "none" if value is None else str(value)]


def index_name(index: IndexEntry, folder: Path) -> str:
    """The value of `--index`: a prebuilt or built-in name, or a folder."""
    if index.prebuilt or built_in(index):
        return index.prebuilt or index.documents
    return str(folder / "indexes" / f"{word_of(index.documents)}.{index.id}")


def built_in(index: IndexEntry) -> bool:
    """Whether an index is of a built-in collection with default settings."""
    usual = (choose("part", spec_part(name, its)).params == part(name).Params() for name, its in index.parts.items())
    return index.documents in BUILT_IN and all(usual)


def word_of(name: str) -> str:
    """A name as part of a file name."""
    return re.sub("[/:]", "-", name).strip("-.")


@dataclass(frozen=True)
class Plan:
    """The steps of conditions on query sets, each once, in order.

    published: query set and condition → its published run; keep: large files are not removed.
    """

    spec: Spec
    folder: Path
    conditions: tuple[Condition, ...]
    query_sets: tuple[QuerySet, ...]
    works: tuple[Work, ...]
    steps: tuple[Step, ...] = ()
    published: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    keep: bool = False

    def run_files(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The files of the runs of a condition."""
        if given := self.published.get((query_set.id, condition.id)):
            return [given]
        return [self.folder / self.spec.name / f"{name}.{query_set.id}.txt" for name in condition.run_names]

    def work_file(self, work: Work) -> Path:
        """The file with the records of a work."""
        return self.folder / self.spec.name / f"{work.id}.json"

    def runs(self) -> dict[Path, tuple[str, Condition, QuerySet]]:
        """The file of each run that is measured, with its name, by query set."""
        return {
            path: (name, entry, one)
            for one in self.query_sets
            for entry in self.conditions
            for path, name in zip(self.run_files(entry, one), entry.run_names, strict=True)
            if entry.measured_on(one)
        }

    def given(self) -> dict[Path, tuple[Condition, QuerySet]]:
        """The files of published runs, which no step makes."""
        return {path: (entry, one) for path, (_, entry, one) in self.runs().items() if not entry.ways}

    def outputs(self) -> list[Path]:
        """All run files and records of works."""
        return [*self.runs(), *map(self.work_file, self.works)]

    def indexes(self, steps: Iterable[Step]) -> list[tuple[IndexEntry, str]]:
        """The indexes that steps read, and their `--index`."""
        read = {step.value("index") for step in steps}
        named = ((index, index_name(index, self.folder)) for index in self.spec.indexes.values())
        return [(index, name) for index, name in named if name in read]

    def needed(self, outputs: Iterable[Path], wanted: Callable[[Step], bool] = bool) -> list[Step]:
        """The wanted steps that outputs need, in order."""
        needed, steps = {*outputs}, list[Step]()
        for step in reversed(self.steps):
            if step.output in needed and wanted(step):
                needed.update(step.inputs)
                steps.insert(0, step)
        return steps

    @cached_property
    def readers(self) -> dict[Path, list[Path]]:
        """Large outputs to remove → the outputs of their readers; not what measuring reads."""
        measured = (one for one in self.spec.indexes.values() if one.count or one.id == self.spec.redundancy)
        kept = {*self.outputs(), *(Path(index_name(one, self.folder)) for one in measured)}
        large = [one for one in self.steps if one.large and one.output not in kept and not self.keep]
        reading = {
            one.output: [
                step.output  # it reads the output, or adds to it
                for step in self.steps
                if step != one and any(path.is_relative_to(one.output) for path in (*step.inputs, step.output))
            ]
            for one in large
        }
        return {output: readers for output, readers in reading.items() if readers}

    def removed(self, step: Step) -> list[Path]:
        """The outputs that are removed after a step."""
        return [output for output, reading in self.readers.items() if reading[-1] == step.output]

    def evaluations(self) -> list[str]:
        """The lines that print the values of all runs."""
        lines = []
        for query_set in self.query_sets:
            runs = [str(path) for path, (_, _, one) in self.runs().items() if one == query_set]
            measures = " ".join(self.spec.measures_of(query_set))
            for protocol in query_set.protocols if runs else ():
                judged = ["--qrels", query_set.qrels, "--protocol", protocol, "--measures", measures]
                lines.append(shlex.join(["python", "-m", "rnnreranker.evaluate", *runs, *judged]))
        return lines

    def lines(self) -> list[str]:
        """The plan in lines to paste into a shell."""
        title = self.query_sets[0].title if len(self.query_sets) == 1 else ""
        lines = [f"# {title or self.spec.title}", f"# needs in all: {needs_text(self.needs()) or 'nothing'}"]
        folders = dict.fromkeys(step.folder.parent for step in self.steps)
        lines += [shlex.join(["mkdir", "-p", str(folder)]) for folder in folders]
        lines += [f"# {path}: {entry.title}, {one.id}: not made here" for path, (entry, one) in self.given().items()]
        for number, step in enumerate(self.steps, 1):
            needs = f": {needs_text(step.needs)}" if step.needs else ""
            lines += [f"# {number} of {len(self.steps)}{needs}", step.command()]
            lines += [shlex.join(["rm", "-r", str(output)]) for output in self.removed(step)]
        return lines + self.evaluations()

    def needs(self) -> dict[str, Any]:
        """The needs of the plan; of disk the most at a time."""
        total = needs_of([self.spec.needs, *(one.needs for one in self.query_sets), *(one.needs for one in self.steps)])
        if "disk_gb" in total:
            size, taken, most = {step.output: step.disk for step in self.steps}, 0.0, 0.0
            for step in self.steps:
                most = max(most, taken := taken + step.disk)
                taken -= sum(map(size.__getitem__, self.removed(step)))
            total["disk_gb"] += most - sum(size.values())
        return total
