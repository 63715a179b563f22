"""Published run files in place of retrieval: the file of each condition, and its scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import RnnrerankerError, nearest, refuse
from rnnreranker.base.files import file_digest
from rnnreranker.base.record import Record, made_here
from rnnreranker.regress.plans.measure import Measured
from rnnreranker.regress.specs.entries import QuerySet, Spec

if TYPE_CHECKING:
    import pandas

ENDINGS = (".txt", ".trec", ".run", ".tsv", ".gz")
Queries = Mapping[tuple[str, str], Mapping[str, Collection[str]]]  # (query set, condition) → protocol → measures


@dataclass(frozen=True)
class RunFile:
    """A published run of a condition on a query set."""

    spec: Spec
    query_set: QuerySet
    condition: str
    path: Path


def find_runs(folder: Path, asked: Sequence[tuple[Spec, QuerySet]]) -> list[RunFile]:
    """The run files under a folder of conditions, in any letter case.

    `runs` of the query set fits folder or file names, `runs` of the condition file names, earlier patterns first.

    Raises:
        InputError: no such folder, or one without run files.
    """
    refuse((not folder.is_dir(), f"{folder}: no such folder of runs; give the folder with the run files to measure"))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(ENDINGS))
    refuse((not files, f"{folder}: no run files in this folder; their names end in {', '.join(ENDINGS)}"))
    names = {path: path.relative_to(folder) for path in files}
    if not any(_fits(name, query_set.runs) for name in names.values() for _, query_set in asked):
        names = {path: Path(folder.resolve().name) / name for path, name in names.items()}  # a folder of one data set
    files_of_conditions = []
    for spec, query_set in asked:
        near = [path for path in files if _fits(names[path], query_set.runs)]
        for condition in spec.conditions_of(query_set):
            named = (path for pattern in condition.runs for path in near if _fits(Path(path.name), pattern))
            if path := next(named, None):
                files_of_conditions.append(RunFile(spec, query_set, condition.id, path))
    return files_of_conditions


def _fits(path: Path, pattern: str) -> bool:
    return fnmatch(path.as_posix().lower(), pattern.lower())


def measure_published(
    files: Sequence[RunFile], folder: Path, queries: Queries | None = None
) -> tuple[list[Record], list[str]]:
    """The records of published runs, and the errors of those that cannot be measured.

    Files are named relative to `folder`; queries: runs and measures whose values per query are kept.
    """
    records: list[Record] = []
    errors: list[str] = []
    for name, group in groupby(files, lambda one: one.query_set.id):
        first, *more = group
        paths = {entry.condition: entry.path for entry in (first, *more)}
        try:
            measured = Measured(first.spec, first.query_set, paths)
        except RnnrerankerError as error:  # of the topics or judgements
            errors.append(f"{first.spec.name} {name}: {error}")
            continue
        errors += dict.fromkeys(f"{first.spec.name} {run}: {error}" for run, error in measured.errors.items())
        for run in measured.runs:
            outcome = measured.outcome(run, (queries or {}).get((name, run)))
            outcome["file"] = paths[run].relative_to(folder).as_posix()
            inputs = {"run": file_digest(paths[run])}
            records.append(made_here("run", first.spec.name, run, outcome, inputs=inputs))
    return records, errors


def first_stages(folder: Path, asked: Sequence[tuple[Spec, Sequence[QuerySet]]]) -> dict[tuple[str, str], Path]:
    """Query set and condition → its run file, for conditions that are published runs; raises as `find_runs`."""
    there = find_runs(folder, [(spec, query_set) for spec, query_sets in asked for query_set in query_sets])
    given = [entry for entry in there if not entry.spec.conditions[entry.condition].ways]
    return {(entry.query_set.id, entry.condition): entry.path for entry in given}


def run_files(
    sets: Collection[tuple[Spec, QuerySet]],
    cells: pandas.DataFrame,
    names: Sequence[str],
    folder: Path,
    only: Sequence[str],
) -> tuple[list[Record], list[str]]:
    """As `measure_published` of the files in a folder, with values per query where a table prints them.

    Args:
        sets, cells: of `Matrix`.
        names: of specs, query sets and papers, none = all; only: ids of conditions, none = all.

    Raises:
        InputError: an unknown condition, no such folder.
    """
    wanted = {*names, *cells["query_set"][("paper-" + cells["paper"]).isin(names)]}
    sets = [(spec, one) for spec, one in sets if not names or {spec.name, one.id} & wanted]
    known = dict.fromkeys(name for spec, _ in sets for name in spec.conditions)
    said = f"no such condition in {', '.join(dict.fromkeys(spec.name for spec, _ in sets))}"
    refuse(*((name not in known, f"--only {name}: {said}; {nearest(name, known)}") for name in only))
    sets = [
        (spec, one) for spec, one in sets if all(entry.ways for entry in spec.conditions.values())
    ]  # others are reranked by their plan
    chosen = [entry for entry in find_runs(folder, sets) if not only or entry.condition in only]
    if not chosen:
        looked_for = ", ".join(one.runs for _, one in sets if one.runs)
        say(f"{folder}: no run file of these conditions; looked for {looked_for} with `runs` of the conditions")
    for entry in chosen:
        say(f"{entry.query_set.id} {entry.condition}: {entry.path}")
    by_query = cells[cells["query"] != ""].groupby(["query_set", "condition"])
    queries: Any = {name: of.groupby("protocol")["metric"].unique().to_dict() for name, of in by_query}
    records, errors = measure_published(chosen, folder, queries)
    for error in errors:
        say(f"error: {error}")
    return records, errors
