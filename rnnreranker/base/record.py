"""Records: the only form of a result on disk: what was run, on what, where, with which outcome."""

from __future__ import annotations

import contextlib
import functools
import json
import platform
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rnnreranker._version import __version__
from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_json, write_atomically
from rnnreranker.base.settings import Checked

SCHEMA = 3
SHARED = ("machine", "versions")  # fields whose values stand once in a file; records have their numbers
DIGITS = 9  # significant ones of a float on disk
NEEDED = ("kind", "spec", "name", "outcome")  # keys of every record on disk
KINDS = ("run", "study", "tuning", "sweep", "recovery", "diagnosis", "benchmark")
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


def made_here(kind: str, spec: str, name: str, outcome: dict[str, Any], seconds: float = 0.0, **others: Any) -> Record:
    """A record of a result of this machine; arguments as in `Record`."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    here: dict[str, Any] = {"commit": commit(), "date": date, "machine": machine(), "versions": versions()}
    return Record(kind, spec, name, outcome, seconds=round(seconds, 2), **here, **others)


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
    kind: str, name: str, outcome: dict[str, Any], *, begun: float, inputs: dict[str, str], **command: Any
) -> Record:
    """The record of a command's measurement, without a spec.

    kind, name, outcome, inputs: see `Record`; begun: `time.perf_counter()` at its start; command: arguments of `typed`.
    """
    seconds = round(time.perf_counter() - begun, 2)
    made = [{"command": typed(**command), "seconds": seconds}]
    return made_here(kind, "", name, outcome, seconds, inputs=inputs, commands=made)


def read_records(path: str | Path) -> list[Record]:
    """The records of a file, in their order, empty without a file; InputError: not a file of `write_records`."""
    if not Path(path).is_file():
        return []
    content = read_json(path, repair="record it again")
    try:
        if content["schema"] != SCHEMA:
            raise InputError(f"schema {content['schema']!r}")
        return [
            Record(**entry | {name: content[name][entry[name]] for name in SHARED if name in entry})
            for entry in content["records"]
        ]
    except (InputError, LookupError, TypeError) as error:
        raise InputError(f"{path}: expected records of schema {SCHEMA}, got {error}; record it again") from None


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write records atomically as JSON, one a line; InputError: the file cannot be written.

    Leaves out empty fields; floats keep `DIGITS` significant digits; each value of the fields in `SHARED` occurs once.
    """
    compact = functools.partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    lines: list[str] = []
    shared: dict[str, list[Any]] = {name: [] for name in SHARED}
    for record in records:
        kept = {key: value for key, value in rounded(asdict(record)).items() if value or key in NEEDED}
        for name, known in shared.items():
            if name in kept:
                known += [kept[name]] if kept[name] not in known else []
                kept[name] = known.index(kept[name])
        lines.append(compact(kept))
    head, text = compact({"schema": SCHEMA, **shared}).removesuffix("}"), ",\n".join(lines)
    with write_atomically(path) as stream:
        stream.write(f'{head},"records":[\n{text}\n]}}\n'.encode())


def rounded(value: Any) -> Any:
    """A value of JSON, its floats with `DIGITS` significant digits.

    >>> rounded({"nDCG@10": [0.733812345678912, 12]})
    {'nDCG@10': [0.733812346, 12]}
    """
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.{DIGITS}g}"))


def add_records(path: str | Path, new: Sequence[Record]) -> None:
    """Add records to a file; each replaces one of the same kind, spec, name and inputs."""

    def key(record: Record) -> list[Any]:
        return [record.kind, record.spec, record.name, record.inputs]

    replaced = [key(record) for record in new]
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

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, encoding="utf-8").stdout.strip()

    if not (root / ".git").exists() or not shutil.which("git"):
        return ""
    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--", "rnnreranker"))
