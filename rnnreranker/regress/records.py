"""Records of a spec: where they are, which is the last of a run, and how a new one compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.record import Record, read_records
from rnnreranker.regress.spec import WORKS, Spec
from rnnreranker.regress.state import State


def records_file(folder: Path, spec: str, kind: str = "run") -> Path:
    """Where the runs of a spec are on record, or all studies, tunings, …, in the folder of specs."""
    several = {of: key for key, of in WORKS.items()} | {"sweep": "sweeps"}
    return folder / "results" / f"{several.get(kind, spec)}.json"


def recorded(folder: Path, specs: Iterable[str]) -> list[Record]:
    """All records of specs, oldest first within a spec.

    Raises:
        InputError: a file that does not hold records.
    """
    return [record for spec in specs for record in read_records(records_file(folder, spec))]


def is_run(record: Record, query_set: str, name: str = "") -> bool:
    """Whether a record is of a run on a query set, of this name where one is given."""
    return record.kind == "run" and record.outcome["query_set"] == query_set and name in ("", record.name)


def last_run(records: Sequence[Record], query_set: str, name: str) -> Record | None:
    """The newest record of a run, or None."""
    return next((record for record in reversed(records) if is_run(record, query_set, name)), None)


def compare(spec: Spec, record: Record, before: Sequence[Record]) -> State:
    """The state of a run: against what the spec expects, else against what is on record of the same inputs."""
    query_set, values = record.outcome["query_set"], record.outcome["values"]
    wanted: dict[str, Any] = (spec.expected.get(query_set) or {}).get(record.name) or {}
    if not wanted:
        same = [old for old in before if is_run(old, query_set, record.name) and old.inputs == record.inputs]
        wanted = same[-1].outcome["values"] if same else {}
    changes = [
        f"{protocol} {name} {was:.4f} → {now:.4f}" if len(values) > 1 else f"{name} {was:.4f} → {now:.4f}"
        for protocol, scores in values.items()
        for name, now in scores.items()
        if (was := (wanted.get(protocol) or {}).get(name)) is not None and not abs(now - was) <= spec.tolerance
    ]
    if changes:
        return State("changed", ", ".join(changes))
    known = any(value is not None for scores in wanted.values() for value in (scores or {}).values())
    return State("ok" if known else "new")
