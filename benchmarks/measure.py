"""What the benchmarks share: two works measured in turn in one process, and the table and record of what they took."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

SHORTEST = 0.02  # seconds that a measurement lasts at least: the work is repeated until it does


def options(text: str | None) -> argparse.ArgumentParser:
    """The flags of a benchmark; text: its docstring."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", metavar="FILE.json", help="add the rows to this file of records")
    return parser


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Processor seconds of a work, all threads counted."""
    started = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - started) / repeats


def compared(ours: Callable[[], object], theirs: Callable[[], object], pairs: int = 5) -> dict[str, float]:
    """Median seconds of both, and the median, lowest and highest ratio; each runs once before."""
    seconds(ours)
    once = seconds(theirs)
    repeats, pairs = 1 + int(SHORTEST / max(once, 1e-9)), pairs if once < 1 else min(pairs, 3)
    measured = [(seconds(ours, repeats), seconds(theirs, repeats)) for _ in range(pairs)]
    ratios = [own / other for own, other in measured]
    own, other = (statistics.median(column) for column in zip(*measured, strict=True))
    spread = {"ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
    return {"ours_s": own, "theirs_s": other, **spread}


def report(name: str, rows: Iterable[dict[str, Any]], record: str | None, begun: float, **about: Any) -> None:
    """Print rows as a Markdown table, and put them on record.

    Args:
        name: of the record; record: its file, None = none.
        begun: `time.perf_counter()` at the start; about: other values of the outcome.
    """
    listed: Sequence[dict[str, Any]] = list(rows)
    columns = [name for name, value in listed[0].items() if not isinstance(value, dict)]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in listed:
        cells = (f"{row[name]:.3g}" if isinstance(row[name], float) else str(row[name]) for name in columns)
        print("| " + " | ".join(cells) + " |")
    if record:
        from rnnreranker.base.record import add_records, made_here

        spent, words = round(time.perf_counter() - begun, 2), sys.argv[1:]
        kept = [word for at, word in enumerate(words) if "--record" not in words[max(at - 1, 0) : at + 1]]
        kept = [Path(word).name if Path(word).exists() else word for word in kept]
        line = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *kept])
        command = {"command": line, "seconds": spent}
        outcome = {"rows": listed, **about}
        add_records(record, [made_here("benchmark", "", name, outcome, commands=[command], seconds=spent)])
