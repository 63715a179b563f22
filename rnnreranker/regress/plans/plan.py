"""The plan of a spec: every command from documents to measures; a large file is removed after its last reader."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rnnreranker.parts.base import parts
from rnnreranker.regress.plans.maker import Maker
from rnnreranker.regress.plans.step import PASTE_FOLDER, Step, index_name, run_files, work_file
from rnnreranker.regress.specs.entries import Condition, IndexEntry, QuerySet, Work
from rnnreranker.regress.specs.methods import needs_of, needs_text
from rnnreranker.regress.specs.spec import Spec, planned


@dataclass(frozen=True)
class Plan:
    """The steps of conditions on query sets, each once, in order."""

    spec: Spec
    folder: Path
    conditions: tuple[Condition, ...]
    query_sets: tuple[QuerySet, ...]
    works: tuple[Work, ...]
    steps: tuple[Step, ...]
    published: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    keep: bool = False

    def run_files(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition; none if it is not measured there."""
        if not condition.measured_on(query_set):
            return []
        given = self.published.get((query_set.id, condition.id))
        return [given] if given else run_files(self.spec, self.folder, condition, query_set)

    def given(self) -> dict[Path, tuple[Condition, QuerySet]]:
        """The files of published runs, which no step makes."""
        pairs = [(entry, one) for one in self.query_sets for entry in self.conditions if entry.published]
        return {path: (entry, one) for entry, one in pairs for path in self.run_files(entry, one)}

    def outputs(self) -> list[Path]:
        """All run files and records of works."""
        runs = [path for one in self.query_sets for entry in self.conditions for path in self.run_files(entry, one)]
        return [*runs, *(work_file(self.spec, self.folder, work) for work in self.works)]

    def indexes(self, steps: Sequence[Step] | None = None) -> list[tuple[IndexEntry, str]]:
        """The indexes that steps read (None = all), and their `--index`."""
        read = {step.value("index") for step in (self.steps if steps is None else steps)}
        named = ((index, index_name(index, self.folder)) for index in self.spec.indexes)
        return [(index, name) for index, name in named if name in read]

    def needed(self, outputs: Iterable[Path], wanted: Callable[[Step], bool] = bool) -> dict[Path, Step]:
        """The wanted steps that outputs need, by output, each after its inputs."""
        by_output = {step.output: step for step in self.steps}
        taken: dict[Path, Step] = {}

        def visit(path: Path) -> None:
            step = by_output.get(path)
            if step and path not in taken and wanted(step):
                for before in step.inputs:
                    visit(before)
                taken[path] = step

        for path in outputs:
            visit(path)
        return taken

    @cached_property
    def readers(self) -> dict[Path, list[Path]]:
        """Large outputs to remove → the outputs of their readers; not what measuring reads."""
        read = (entry for entry in self.spec.indexes if entry.count or entry.id == self.spec.redundancy)
        kept = {*self.outputs(), *(Path(index_name(entry, self.folder)) for entry in read)}
        reading = {
            one.output: [step.output for step in self.steps if step != one and step.reads(one)]
            for one in self.steps
            if one.large and one.output not in kept and not self.keep
        }
        return {output: by for output, by in reading.items() if by}

    def removed(self, step: Step) -> list[Path]:
        """The outputs that are removed after a step."""
        return [output for output, reading in self.readers.items() if reading[-1] == step.output]

    def evaluations(self) -> list[str]:
        """The lines that print the values of all runs."""
        made = {*(step.output for step in self.steps), *self.given()}
        lines = []
        for query_set in self.query_sets:
            paths = [path for condition in self.conditions for path in self.run_files(condition, query_set)]
            runs = [str(path) for path in paths if path in made]  # nothing makes the runs of what is planned
            measures = " ".join(self.spec.measures_of(query_set))
            for protocol in query_set.protocols if runs else ():
                judged = ["--qrels", query_set.qrels, "--protocol", protocol, "--measures", measures]
                lines.append(shlex.join(["python", "-m", "rnnreranker.evaluate", *runs, *judged]))
        return lines

    def lines(self) -> list[str]:
        """The plan in lines to paste into a shell."""
        sets = [entry.title for entry in self.query_sets if entry.title] if len(self.query_sets) == 1 else []
        lines = [f"# {(sets or [self.spec.title])[0]}", f"# needs in all: {needs_text(self.needs()) or 'nothing'}"]
        added = {one.folder or name for name, one in parts().items()}  # to an index, which has a folder already
        made = (step.output for step in self.steps if step.output.name not in added)
        for folder in dict.fromkeys(output.parent for output in made):
            lines.append(shlex.join(["mkdir", "-p", str(folder)]))
        lines += [f"# {path}: {entry.title}, {one.id}: not made here" for path, (entry, one) in self.given().items()]
        for number, step in enumerate(self.steps, 1):
            needs = f": {needs_text(step.needs)}" if step.needs else ""
            lines += [f"# {number} of {len(self.steps)}{needs}", step.command()]
            lines += [shlex.join(["rm", "-r", str(output)]) for output in self.removed(step)]
        lines += self.evaluations()
        lacking = {entry.id: planned(self.spec, entry) for entry in self.conditions}
        return [*lines, *(f"# {name}: planned: {text}" for name, text in lacking.items() if text)]

    def needs(self) -> dict[str, Any]:
        """The needs of the plan; of disk the most at a time."""
        total = needs_of([self.spec.needs, *(entry.needs for entry in self.query_sets)] + [s.needs for s in self.steps])
        if "disk_gb" in total:
            size, taken, most = {step.output: step.disk for step in self.steps}, 0.0, 0.0
            for step in self.steps:
                most = max(most, taken := taken + step.disk)
                taken -= sum(size[output] for output in self.removed(step))
            total["disk_gb"] += most - sum(size.values())
        return total


def make_plan(
    spec: Spec,
    folder: Path = PASTE_FOLDER,
    conditions: Sequence[Condition] | None = None,
    query_sets: Sequence[QuerySet] | None = None,
    works: Sequence[Work] = (),
    published: Mapping[tuple[str, str], Path] | None = None,
    keep: bool = False,
) -> Plan:
    """The plan of conditions (None = all) and those they need, with all files under `folder`.

    published: query set and condition → its run file; keep: do not remove large files.
    """
    query_sets = spec.query_sets if query_sets is None else query_sets
    conditions = spec.conditions if conditions is None else conditions
    maker = Maker(spec, folder, published or {})
    for query_set in query_sets:
        for condition in conditions:
            if condition.measured_on(query_set):
                maker.condition(condition, query_set)
    for work in works:
        maker.work(work)
    steps = by_large_files(list(maker.steps.values()))
    return Plan(spec, folder, tuple(conditions), tuple(query_sets), tuple(works), tuple(steps), published or {}, keep)


def by_large_files(steps: Sequence[Step]) -> list[Step]:
    """The steps in an order with the readers of a large file right behind it."""
    if not (large := {step.output for step in steps if step.large}):
        return list(steps)
    made, waiting, ordered = {step.output for step in steps}, list(steps), dict[Path, Step]()
    while waiting:
        ready = (step for step in waiting if ordered.keys() >= made.intersection(step.inputs))
        step = next((step for step in ready if large.intersection(step.inputs)), waiting[0])
        waiting.remove(step)
        ordered[step.output] = step
    return list(ordered.values())
