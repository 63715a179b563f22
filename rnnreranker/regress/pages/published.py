"""Published run files in place of retrieval: the file of each condition, and its scores."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import file_digest
from rnnreranker.regress.plans.measure import Measured
from rnnreranker.regress.specs.entries import QuerySet
from rnnreranker.regress.specs.spec import Spec

if TYPE_CHECKING:
    from rnnreranker.base.record import Record

ENDINGS = (".txt", ".trec", ".run", ".tsv", ".txt.gz", ".trec.gz", ".run.gz", ".tsv.gz", ".gz")
Queries = Mapping[tuple[str, str], Collection[tuple[str, str]]]  # (query set, condition) → (protocol, measure)


@dataclass(frozen=True)
class RunFile:
    """A published run of a condition on a query set."""

    spec: Spec
    query_set: QuerySet
    condition: str
    path: Path
    others: tuple[str, ...]  # names of further files that would fit


def find_runs(folder: Path, asked: Sequence[tuple[Spec, QuerySet]]) -> list[RunFile]:
    """The run files under a folder that belong to a condition, without regard to letter case.

    `runs` of the query set fits folder or file names, `runs` of the condition file names, earlier patterns first.

    Raises:
        InputError: no such folder, or one without run files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of runs; give the folder that holds the run files to measure")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(ENDINGS))
    if not files:
        raise InputError(f"{folder}: no run files in this folder; their names end in {', '.join(ENDINGS)}")
    names = {path: path.relative_to(folder) for path in files}
    if not any(_fits(name, query_set.runs) for name in names.values() for _, query_set in asked):
        names = {path: Path(folder.resolve().name) / name for path, name in names.items()}  # a folder of one data set
    run_files_of = []
    for spec, query_set in asked:
        near = [path for path in files if _fits(names[path], query_set.runs)]
        for condition in spec.conditions_of(query_set):
            patterns = [pattern.lower() for pattern in condition.runs]
            named = (path for pattern in patterns for path in near if fnmatch(path.name.lower(), pattern))
            if matching := list(dict.fromkeys(named)):
                others = tuple(path.name for path in matching[1:])
                run_files_of.append(RunFile(spec, query_set, condition.id, matching[0], others))
    return run_files_of


def _fits(path: Path, pattern: str) -> bool:
    return pattern != "" and fnmatch(path.as_posix().lower(), pattern.lower())


def measure_published(
    files: Sequence[RunFile], folder: Path, queries: Queries | None = None
) -> tuple[list[Record], list[str]]:
    """The records of published runs, with tests against each other, and the errors of the others.

    Args:
        files: of `find_runs`.
        folder: the files are named relative to it.
        queries: runs and measures whose values per query are kept.
    """
    from rnnreranker.base.record import made_here

    records: list[Record] = []
    errors: list[str] = []
    for name, (spec, query_set) in {entry.query_set.id: (entry.spec, entry.query_set) for entry in files}.items():
        started = time.perf_counter()
        paths = {entry.condition: entry.path for entry in files if entry.query_set.id == name}
        measured = Measured(spec, query_set, paths)
        errors += dict.fromkeys(f"{spec.name} {run}: {error}" for run, error in measured.errors.items())
        digests = {run: file_digest(path) for run, path in paths.items() if run in measured.runs}
        pairs = measured.pairs(list(digests))
        made = []
        for run, digest in digests.items():
            outcome = measured.outcome(run, (queries or {}).get((name, run), ()))
            against = [{**pair, "sha256": digests[pair["condition"]]} for pair in pairs[run]]
            outcome |= {"file": paths[run].relative_to(folder).as_posix(), "pairs": against}
            made.append(made_here("run", spec.name, run, outcome, inputs={"run": digest}))
        seconds = round((time.perf_counter() - started) / max(1, len(made)), 2)
        records += [replace(record, seconds=seconds) for record in made]
    return records, errors


def first_stages(folder: Path, asked: Sequence[tuple[Spec, Sequence[QuerySet]]]) -> dict[tuple[str, str], Path]:
    """Query set and condition → its published run, for the conditions that are published runs.

    Raises:
        InputError: as `find_runs`.
    """
    there = find_runs(folder, [(spec, query_set) for spec, query_sets in asked for query_set in query_sets])
    given = [entry for entry in there if entry.spec.condition(entry.condition).published]
    return {(entry.query_set.id, entry.condition): entry.path for entry in given}


def run_files(
    asked: Sequence[tuple[Spec, QuerySet]], folder: Path, only: Sequence[str], queries: Queries
) -> tuple[list[Record], list[str]]:
    """The records of published run files, and the errors of those that cannot be measured.

    only: ids of conditions; none = all. queries: see `measure_published`.

    Raises:
        InputError: an unknown condition, no such folder.
    """
    known = [condition.id for spec, _ in asked for condition in spec.conditions]
    for name in only:
        if name not in known:
            names = ", ".join(dict.fromkeys(spec.name for spec, _ in asked))
            raise InputError(f"--only {name}: no such condition in {names}; {nearest(name, dict.fromkeys(known))}")
    chosen = [entry for entry in find_runs(folder, asked) if not only or entry.condition in only]
    chosen = [entry for entry in chosen if not entry.spec.published]  # these are reranked, by their own plan
    if not chosen:
        looked_for = ", ".join(query_set.runs for _, query_set in asked if query_set.runs)
        say(f"{folder}: no run file of these conditions; looked for {looked_for} with `runs` of the conditions")
    for entry in chosen:
        others = f" (not used: {', '.join(entry.others)})" if entry.others else ""
        say(f"{entry.query_set.id} {entry.condition}: {entry.path}{others}")
    records, errors = measure_published(chosen, folder, queries)
    for error in errors:
        say(f"error: {error}")
    return records, errors
