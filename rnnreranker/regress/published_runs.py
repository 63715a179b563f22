"""Published run files in place of retrieval: which file belongs to which condition, and what it scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError
from rnnreranker.regress.papers import Published
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
    """What a published run scores, by protocol and measure; per query where a table prints that."""

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


def find_runs(folder: Path, recipes: Sequence[Recipe]) -> list[RunFile]:
    """The run files under a folder that belong to a condition: by `runs` of the recipe (folder or file name, for the
    topics) and of the condition (file name, for the system; earlier patterns first), without regard to letter case.

    Raises:
        InputError: no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of runs")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(ENDINGS))
    found = []
    for recipe in recipes:
        near = [path for path in files if recipe.runs and _fits(path.relative_to(folder), recipe.runs)]
        for condition in recipe.conditions:
            matching = _matching(near, condition)
            if matching:
                others = tuple(path.name for path in matching[1:])
                found.append(RunFile(recipe.name, condition.id, matching[0], others))
    return found


def _fits(path: Path, pattern: str) -> bool:
    return fnmatch(path.as_posix().lower(), pattern.lower())


def _matching(files: list[Path], condition: Condition) -> list[Path]:
    found = [path for pattern in condition.runs for path in files if fnmatch(path.name.lower(), str(pattern).lower())]
    return list(dict.fromkeys(found))


def measure_run(run_file: RunFile, recipe: Recipe, cells: Sequence[Published], folder: Path) -> Measured:
    """The values of a run under every protocol of its recipe.

    Args:
        run_file: which run.
        recipe: with which judgements and measures.
        cells: published cells; those with a query of this recipe ask for values per query.
        folder: the file is named relative to it.
    """
    import time

    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.evaluate import evaluate
    from rnnreranker.provenance import commit, machine, versions
    from rnnreranker.runs import Run

    started = time.perf_counter()
    run = Run.read(run_file.path)
    qrels = load_qrels(recipe.qrels)
    depth = int((run.offsets[1:] - run.offsets[:-1]).max())
    measures = [name for name in recipe.measures if int(name.rpartition("@")[2] or 0) <= depth]
    values: dict[str, dict[str, float]] = {}
    queries: dict[str, dict[str, dict[str, float]]] = {}
    topics = 0
    for protocol in recipe.protocols:
        wanted = {cell.metric for cell in cells if _asks(cell, run_file, protocol)}
        scores = evaluate({run_file.condition: run}, qrels, measures, protocol, ties="trec_eval")
        topics = max(topics, len(scores.topics))
        values[protocol] = {name: float(scores.means[0, number]) for number, name in enumerate(measures)}
        for name in wanted & set(measures):
            column = scores.values[0, :, measures.index(name)]
            asked = dict(zip(scores.topics, map(float, column), strict=True))
            queries.setdefault(protocol, {})[name] = asked
    return Measured(
        spec=run_file.spec,
        condition=run_file.condition,
        file=run_file.path.relative_to(folder).as_posix(),
        sha256=hashlib.sha256(run_file.path.read_bytes()).hexdigest(),
        depth=depth,
        topics=topics,
        values=values,
        queries=queries,
        commit=commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        versions=versions(),
        seconds=round(time.perf_counter() - started, 2),
    )


def _asks(cell: Published, run_file: RunFile, protocol: str) -> bool:
    columns = cell.columns
    return bool(cell.query) and (columns.spec, columns.protocol, cell.how.condition) == (
        *(run_file.spec, protocol),
        run_file.condition,
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


def records_file(folder: Path) -> Path:
    """Where values of published runs are on record."""
    return folder / "results" / "published-runs.json"
