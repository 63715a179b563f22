"""Published run files in place of retrieval: which file belongs to which condition, and what it scores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError
from rnnreranker.regress.recipe import Condition, Recipe

ENDINGS = (".txt", ".trec", ".run", ".tsv", ".txt.gz", ".trec.gz", ".run.gz", ".tsv.gz", ".gz")


@dataclass(frozen=True)
class RunFile:
    """A published run of a condition."""

    spec: str
    condition: str
    path: Path
    others: tuple[str, ...]  # names of further files that would fit


@dataclass(frozen=True)
class Measured:
    """What a run scores, by protocol and measure; per query where a table prints that."""

    spec: str
    condition: str
    file: str
    sha256: str
    depth: int  # entries of the longest list
    topics: int
    values: dict[str, dict[str, float]]
    queries: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # protocol, measure, query
    commit: str = ""
    date: str = ""
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    steps: list[dict[str, Any]] = field(default_factory=list)  # that made it here: command, seconds
    pairs: list[dict[str, Any]] = field(default_factory=list)  # other runs of the recipe: see `paired.with_pairs`


def find_runs(folder: Path, recipes: Sequence[Recipe]) -> list[RunFile]:
    """The run files under a folder that belong to a condition: by `runs` of the recipe (folder or file name, for the
    topics) and of the condition (file name, for the system; earlier patterns first), without regard to letter case.

    Raises:
        InputError: no such folder, or one without run files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of runs; give the folder that holds the run files to measure")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(ENDINGS))
    if not files:
        raise InputError(f"{folder}: no run files in this folder; their names end in {', '.join(ENDINGS)}")
    names = {path: path.relative_to(folder) for path in files}
    if not any(_fits(name, recipe.runs) for name in names.values() for recipe in recipes):
        names = {path: Path(folder.resolve().name) / name for path, name in names.items()}  # a folder of one data set
    found = []
    for recipe in recipes:
        near = [path for path in files if _fits(names[path], recipe.runs)]
        for condition in recipe.conditions:
            matching = _matching(near, condition)
            if matching:
                others = tuple(path.name for path in matching[1:])
                found.append(RunFile(recipe.name, condition.id, matching[0], others))
    return found


def _fits(path: Path, pattern: str) -> bool:
    return pattern != "" and fnmatch(path.as_posix().lower(), pattern.lower())


def _matching(files: list[Path], condition: Condition) -> list[Path]:
    found = [path for pattern in condition.runs for path in files if fnmatch(path.name.lower(), str(pattern).lower())]
    return list(dict.fromkeys(found))


def measure_run(
    run_file: RunFile,
    recipe: Recipe,
    folder: Path,
    *,
    queries: Iterable[tuple[str, str]] = (),
    depth: int = 0,
    steps: Sequence[dict[str, Any]] = (),
) -> Measured:
    """The values of a run under every protocol of its recipe.

    Args:
        run_file: which run.
        recipe: with which judgements and measures.
        folder: the file is named relative to it.
        queries: protocols and measures that are asked for query by query too.
        depth: how many documents a query was asked for; 0 = as many as the longest list has. Measures that look deeper
            are left out.
        steps: command and seconds of what made the run.
    """
    import time

    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.evaluate import evaluate
    from rnnreranker.evaluate.measures import cutoff_of
    from rnnreranker.record import commit, machine, versions
    from rnnreranker.runs import Run

    started = time.perf_counter()
    run = Run.read(run_file.path)
    qrels = load_qrels(recipe.qrels)
    longest = int((run.offsets[1:] - run.offsets[:-1]).max(initial=0))
    measures = [name for name in recipe.measures if cutoff_of(name) <= (depth or longest)]
    values: dict[str, dict[str, float]] = {}
    by_query: dict[str, dict[str, dict[str, float]]] = {}
    topics = 0
    for protocol in recipe.protocols if measures else ():
        scores = evaluate({run_file.condition: run}, qrels, measures, protocol)
        topics = max(topics, len(scores.topics))
        values[protocol] = {name: float(scores.means[0, number]) for number, name in enumerate(measures)}
        for name in sorted({name for where, name in queries if where == protocol and name in measures}):
            column = scores.values[0, :, measures.index(name)]
            by_query.setdefault(protocol, {})[name] = dict(zip(scores.topics, map(float, column), strict=True))
    return Measured(
        spec=run_file.spec,
        condition=run_file.condition,
        file=run_file.path.relative_to(folder).as_posix(),
        sha256=hashlib.sha256(run_file.path.read_bytes()).hexdigest(),
        depth=longest,
        topics=topics,
        values=values,
        queries=by_query,
        commit=commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        versions=versions(),
        seconds=round(time.perf_counter() - started + sum(step["seconds"] for step in steps), 2),
        steps=list(steps),
    )


def record(path: Path, measured: Sequence[Measured]) -> None:
    """Put values on record, each in place of an earlier one of the same condition and file content."""
    from dataclasses import asdict

    from rnnreranker.files import write_json

    new = {(entry.spec, entry.condition, entry.sha256) for entry in measured}
    kept = [entry for entry in on_record(path) if (entry.spec, entry.condition, entry.sha256) not in new]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": 1, "runs": [asdict(entry) for entry in (*kept, *measured)]})


def on_record(path: Path) -> list[Measured]:
    """The values on record, oldest first.

    Raises:
        InputError: not a file that `record` writes.
    """
    import json

    from rnnreranker.files import read_text

    if not path.is_file():
        return []
    try:
        entries: list[Any] = json.loads(read_text(path))["runs"]
        return [Measured(**entry) for entry in entries]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a file of measured runs ({error}); remove it and record again") from None


def records_file(folder: Path, recipe: str = "published-runs") -> Path:
    """Where values of published runs are on record, or those of the runs that a recipe made."""
    return folder / "results" / f"{recipe}.json"
