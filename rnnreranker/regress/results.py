"""Results: measured values with what they were measured on, and their comparison with those on record."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError
from rnnreranker.files import read_text, write_json
from rnnreranker.regress.spec import Spec


@dataclass(frozen=True)
class Result:
    """What one run of a spec measured.

    Keys of the nested dictionaries: query set id, condition id, measure; `differences` hold the paired comparison of a
    reranked condition with its base.
    """

    fingerprint: str  # of collection, encoder, topics and qrels: values are comparable when it is equal
    documents: int
    commit: str
    date: str  # UTC, ISO 8601
    machine: str
    versions: dict[str, str]
    values: dict[str, dict[str, dict[str, float]]]
    differences: dict[str, dict[str, dict[str, dict[str, Any]]]]
    topics: dict[str, int]  # judged topics of each query set
    unjudgeable: dict[str, int]  # judged documents that the collection lacks, of each query set
    judged: dict[str, int]  # judged documents of each query set
    left_out: dict[str, str] = field(default_factory=dict)  # condition id: `skipped: reason` or `error: reason`
    seconds: float = 0.0


def results_file(folder: Path, spec: Spec) -> Path:
    """Where the results of a spec are on record."""
    return folder / "results" / f"{spec.name}.json"


def read_results(path: Path) -> list[Result]:
    """The results on record, oldest first; none where the file does not exist.

    Raises:
        InputError: a file that is not what `record` writes.
    """
    if not path.is_file():
        return []
    try:
        return [Result(**entry) for entry in json.loads(read_text(path))["results"]]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a results file ({error}); remove it and record again") from None


def record(path: Path, result: Result) -> None:
    """Put a result on record, in place of an earlier one with the same fingerprint."""
    kept = [entry for entry in read_results(path) if entry.fingerprint != result.fingerprint]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": 1, "results": [asdict(entry) for entry in (*kept, result)]})


def expected(results: list[Result], fingerprint: str) -> Result | None:
    """The result on record for a fingerprint, or None."""
    return next((entry for entry in reversed(results) if entry.fingerprint == fingerprint), None)


def states(spec: Spec, result: Result, on_record: Result | None) -> dict[str, dict[str, str]]:
    """For every query set and condition: `ok`, `new`, `changed: …`, `skipped: …` or `error: …`."""
    found: dict[str, dict[str, str]] = {}
    for query_set in spec.query_sets:
        row = found.setdefault(query_set.id, {})
        for condition in spec.conditions:
            measured = result.values.get(query_set.id, {}).get(condition.id)
            wanted = on_record.values.get(query_set.id, {}).get(condition.id) if on_record else None
            if measured is None:
                if condition.id in result.left_out:
                    row[condition.id] = result.left_out[condition.id]
            elif wanted is None:
                row[condition.id] = "new"
            else:
                row[condition.id] = _state(spec, measured, wanted)
    return found


def _state(spec: Spec, measured: dict[str, float], wanted: dict[str, float]) -> str:
    changes = [
        f"{measure} {wanted.get(measure, math.nan):.4f} → {value:.4f}"
        for measure, value in measured.items()
        if not abs(value - wanted.get(measure, math.nan)) <= spec.tolerance
    ]
    return "changed: " + ", ".join(changes) if changes else "ok"
