"""Records of specs: their files, comparison, and figures for pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record, add_records, read_records
from rnnreranker.regress.plans.plan import State
from rnnreranker.regress.specs.entries import Spec

Row = Mapping[str, Any]  # of a record's outcome
TOLERANCE = 0.0005  # absolute, on every measure


def records_file(folder: Path, spec: str, kind: str = "run") -> Path:
    """The file with the recorded runs of a spec, or with all studies, tunings, …"""
    several = {"study": "studies", "tuning": "tunings", "recovery": "recoveries", "diagnosis": "diagnoses"}
    return folder / "results" / f"{several.get(kind, spec)}.json"


def recorded(folder: Path, specs: Iterable[str]) -> list[Record]:
    """All records of specs, oldest first within a spec.

    Raises:
        InputError: a file without records.
    """
    return [record for spec in specs for record in read_records(records_file(folder, spec))]


def put_on_record(folder: Path, records: Sequence[Record]) -> None:
    """Add records to those of their specs.

    Studies leave out values of single queries and most comparisons in other measures than the first.
    """
    files: dict[Path, list[Record]] = {}
    for record in records:
        if record.kind == "study":
            outcome = {name: value for name, value in record.outcome.items() if name != "queries"}
            first = outcome["rows"][0]["measure"]
            if outcome["arms"] != "candidates":
                others = (row if row["measure"] == first else row | {"against": {}} for row in outcome["rows"])
                outcome["rows"] = list(others)
            record = replace(record, outcome=outcome)
        files.setdefault(records_file(folder, record.spec, record.kind), []).append(record)
    for path, mine in files.items():
        add_records(path, mine)
        say(f"on record: {path}")


def is_run(record: Record, query_set: str, name: str = "") -> bool:
    """Whether a record is of a run on a query set, of this name if given."""
    return record.kind == "run" and record.outcome["query_set"] == query_set and name in ("", record.name)


def compare(spec: Spec, record: Record, before: Sequence[Record]) -> State:
    """The state of a run: against what the spec expects, else against the last record of the same inputs."""
    query_set, values, read = record.outcome["query_set"], record.outcome["values"], set(record.inputs.values())
    expected: dict[str, Any] = spec.expected.get(query_set, {}).get(record.name, {})
    others = [old for old in before if is_run(old, query_set, record.name)]
    same = [old for old in others if set(old.inputs.values()) == read]
    wanted, changes, state = expected or (same[-1].outcome["values"] if same else {}), [], State("new")
    if others and not wanted:
        differing = sorted({name for name, _ in record.inputs.items() ^ others[-1].inputs.items()})
        return State("new", f"the record is of another {', '.join(differing)}")
    for protocol, scores in wanted.items():
        for name, was in scores.items():
            now, of = values.get(protocol, {}).get(name), f"{protocol} {name}" if len(values) > 1 else name
            if was is not None and now is None and expected:
                changes.append(f"{of} expected and not measured")
            elif None not in (was, now):
                state = State("ok")
                changes += [] if abs(now - was) <= TOLERANCE else [f"{of} {was:.4f} → {now:.4f}"]
    return State("changed", ", ".join(changes)) if changes else state


class Figures:
    """Measured figures for sources: the last record of each kind, spec, name and query set."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._found: dict[tuple[str, str, str, str], Record] = {}
        for one in sorted(records, key=lambda record: record.date):
            query_set = one.outcome["query_set"] if one.kind == "run" else ""
            self._found[one.kind, one.spec, one.name, query_set] = one

    def records(self, kind: str, spec: str | None = None) -> list[Record]:
        """All records of a kind, perhaps of one spec, by spec and name."""
        chosen = [one for one in self._found.values() if one.kind == kind and spec in (None, one.spec)]
        return sorted(chosen, key=lambda one: (one.spec, one.name))

    def record(self, kind: str, spec: str, name: str, query_set: str | None = None) -> Record:
        """One record.

        Raises:
            InputError: no such record, or those of several query sets.
        """
        matching = [
            one
            for one in self.records(kind, spec)
            if one.name == name and query_set in (None, one.outcome.get("query_set"))
        ]
        if len(matching) != 1:
            where = f" of query set {query_set}" if query_set else ""
            raise InputError(f"{len(matching)} records of a {kind} {name!r} of spec {spec!r}{where}; expected one")
        return matching[0]

    def value(self, spec: str, name: str, measure: str, query_set: str | None = None) -> float:
        """The mean of a measure of a run under its first protocol."""
        return float(next(iter(self.record("run", spec, name, query_set).outcome["values"].values()))[measure])

    def gain(self, spec: str, name: str, measure: str = "nDCG@10", query_set: str | None = None) -> Row | None:
        """The difference of a run to its base, or None."""
        try:
            difference: Row = self.record("run", spec, name, query_set).outcome["differences"][measure]
        except (InputError, KeyError):
            return None
        return difference
