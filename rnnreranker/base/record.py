"""Records: the only form of a result on disk: what was run, on what, where, with which outcome."""

from __future__ import annotations

import contextlib
import json
import platform
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rnnreranker._version import __version__
from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.settings import Checked
from rnnreranker.base.strict import read_json

SCHEMA = 3
SHARED = ("machine", "versions")  # fields whose values stand once in a file; records have their numbers
DIGITS = 9  # significant ones of a float on disk
NEEDED = ("kind", "spec", "name", "outcome")  # keys of every record on disk
KINDS = ("run", "study", "tuning", "sweep", "recovery", "diagnosis", "benchmark", "rehearsal")
VERSIONS_OF = (
    "faiss-cpu",
    "ir-measures",
    "numba",
    "numpy",
    "pyserini",
    "sentence-transformers",
    "torch",
    "transformers",
)


@dataclass(frozen=True)
class Record(Checked):
    """One result; unknown fields are empty.

    Attributes:
        kind: one of `KINDS`, which determines the form of `outcome`.
        spec: the name of its spec; name: of a condition, a study, a benchmark.
        outcome: the numbers, plain values of JSON.
        inputs: name or role of an input → a fingerprint or sha256.
        commands: `{"command": line to paste, "seconds": number}` of every step; empty for a run, which has a plan.
        commit: of the code, with `+` for uncommitted changes; date: UTC, ISO 8601.
        machine: system, architecture, cores, Python; versions: package → version; seconds: of the whole.
    """

    kind: str = field(metadata={"one_of": lambda: [*KINDS]})
    spec: str
    name: str
    outcome: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    commands: list[dict[str, Any]] = field(default_factory=list)
    commit: str = ""
    date: str = ""
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def made_here(
    kind: str,
    spec: str,
    name: str,
    outcome: dict[str, Any],
    *,
    inputs: Mapping[str, str] | None = None,
    commands: Sequence[Mapping[str, Any]] = (),
    seconds: float = 0.0,
) -> Record:
    """A record of a result of this machine; arguments as in `Record`."""
    return Record(
        kind,
        spec,
        name,
        outcome,
        dict(inputs or {}),
        [dict(command) for command in commands],
        commit=commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        versions=versions(),
        seconds=round(seconds, 2),
    )


def typed(module: str, argv: Sequence[str], without: Sequence[str] = ("--output",)) -> str:
    """A command as typed, except the flags in `without` and their values.

    >>> typed("tune", ["--trials", "9", "--output", "/home/me/x.yaml"])
    'python -m rnnreranker.tune --trials 9'
    """
    kept = ["python", "-m", f"rnnreranker.{module}"]
    given = iter(argv)
    for word in given:
        if word in without:
            next(given, None)
        elif word.partition("=")[0] not in without:
            kept.append(word)
    return shlex.join(kept)


def of_command(
    kind: str,
    name: str,
    outcome: dict[str, Any],
    *,
    module: str,
    argv: Sequence[str],
    begun: float,
    inputs: Mapping[str, str] | None = None,
    without: Sequence[str] = ("--output",),
) -> Record:
    """The record of a command's measurement, without a spec.

    kind, name, outcome, inputs: see `Record`; module, argv: of the command; begun: `time.perf_counter()` at its start.
    """
    seconds = round(time.perf_counter() - begun, 2)
    made = [{"command": typed(module, argv, without), "seconds": seconds}]
    return made_here(kind, "", name, outcome, inputs=inputs, commands=made, seconds=seconds)


def read_records(path: str | Path) -> list[Record]:
    """The records of a file, in their order, empty without a file; InputError: not a file of `write_records`."""
    path = Path(path)
    if not path.is_file():
        return []
    content = read_json(path, repair="record it again")
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("records"), list):
        raise InputError(f"{path}: expected records of schema {SCHEMA}; record it again")
    records = []
    for number, entry in enumerate(content["records"], 1):
        try:
            shared = {name: content[name][entry[name]] for name in SHARED if name in entry}
            records.append(Record(**{**entry, **shared}))
        except (InputError, KeyError, IndexError, TypeError) as error:
            raise InputError(f"{path}: record {number} is not one ({error}); record it again") from None
    return records


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write records atomically as JSON, one a line; InputError: the file cannot be written.

    Leaves out empty fields; floats keep `DIGITS` significant digits; each value of the fields in `SHARED` occurs once.
    """
    lines: list[str] = []
    shared: dict[str, list[Any]] = {name: [] for name in SHARED}
    for record in records:
        kept = {key: rounded(value) for key, value in asdict(record).items() if value or key in NEEDED}
        for name in [name for name in SHARED if name in kept]:
            shared[name] += [kept[name]] if kept[name] not in shared[name] else []
            kept[name] = shared[name].index(kept[name])
        lines.append(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
    head = json.dumps({"schema": SCHEMA, **shared}, ensure_ascii=False, separators=(",", ":")).removesuffix("}")
    text = ",\n".join(lines)
    with write_atomically(path) as stream:
        stream.write(f'{head},"records":[\n{text}\n]}}\n'.encode())


def rounded(value: Any) -> Any:
    """A value of JSON, its floats with `DIGITS` significant digits.

    >>> rounded({"nDCG@10": [0.733812345678912, 12]})
    {'nDCG@10': [0.733812346, 12]}
    """
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return [rounded(entry) for entry in value] if isinstance(value, list | tuple) else value


def add_records(path: str | Path, new: Sequence[Record]) -> None:
    """Add records to a file; each replaces one of the same kind, spec, name and inputs."""

    def key(record: Record) -> tuple[Any, ...]:
        return record.kind, record.spec, record.name, tuple(sorted(record.inputs.items()))

    replaced = {key(record) for record in new}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_records(path, [*(record for record in read_records(path) if key(record) not in replaced), *new])


def machine() -> str:
    """System, processor architecture, cores and Python of this machine, in one line."""
    return f"{platform.system()} {platform.machine()}, {cores()} cores, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    version_of = {"rnnreranker": __version__}
    for name in VERSIONS_OF:
        with contextlib.suppress(metadata.PackageNotFoundError):  # an extra that is not installed
            version_of[name] = metadata.version(name)
    return version_of


def commit() -> str:
    """The commit of the package's checkout, with `+` for uncommitted changes; "" outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        head = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "rnnreranker")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()
