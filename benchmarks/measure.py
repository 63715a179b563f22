"""Two works measured in turn in one process, and the table of their ratios."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

SHORTEST = 0.02  # seconds that a measurement lasts at least: the work is repeated until it does


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


def table(rows: Iterable[dict[str, Any]], output: str | None = None) -> None:
    """Print rows as a Markdown table; with `output`, write them to a JSON file too."""
    listed: Sequence[dict[str, Any]] = list(rows)
    print("| " + " | ".join(listed[0]) + " |\n|" + "---|" * len(listed[0]))
    for row in listed:
        cells = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values())
        print("| " + " | ".join(cells) + " |")
    if output:
        about = {"machine": platform.platform(), "python": platform.python_version(), "rows": listed}
        Path(output).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
