"""Thousands of cases over all formats in watched processes, and their record."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import threading
import time
from collections.abc import Sequence
from importlib import metadata
from queue import Empty, Queue
from typing import Any

from mutations.formats import FORMATS
from mutations.worker import LIMIT, Worker
from rnnreranker.base.record import add_records, made_here

BATCH = 50  # cases that a process takes at a time
LIBRARIES = ("numpy", "pyarrow", "faiss-cpu", "torch", "transformers", "safetensors", "PyYAML", "optuna", "npids")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases; 0 where none failed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the damages (default: %(default)s)")
    parser.add_argument("--only", action="append", metavar="FORMAT", help="these formats alone")
    parser.add_argument("--record", metavar="FILE", help="where to put the record, as regressions/results/x.json")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    parser.add_argument("--case", type=int, metavar="N", help="run case N of the formats here, and show its error")
    args = parser.parse_args(argv)
    for name in args.only or ():
        if name not in FORMATS:
            parser.error(f"{name}: expected one of {', '.join(FORMATS)}")
    if args.case is not None:
        return _one(args.only or list(FORMATS), args.seed, args.case)
    begun = time.perf_counter()
    shares, skipped = _shares(args.only or list(FORMATS), args.cases)
    results = _run(shares, args.seed, args.workers)
    rows = [_row(name, results[name]) for name in shares]
    for row in rows:
        print(f"{row['format']:28} {row['cases']:6} {row['accepted']:6} {row['refused']:6} {row['slowest']:7.2f} s")
    for name, reason in skipped.items():
        print(f"{name}: not tried, {reason}")
    failed = [(name, number, one) for name in shares for number, one in results[name] if one["state"] == "failed"]
    for name, number, one in failed:
        print(f"FAILED {name} case {number}: {one['said']}")
    total = sum(row["cases"] for row in rows)
    print(f"{total} cases, {len(failed)} failed, {time.perf_counter() - begun:.0f} s")
    if args.record:
        versions = {name: metadata.version(name) for name in LIBRARIES} | {"Python": platform.python_version()}
        outcome = {
            "seed": args.seed, "cases": total, "limit": LIMIT, "rows": rows, "libraries": versions, "skipped": skipped,
            "failed": len(failed),
        }  # fmt: skip
        seconds = time.perf_counter() - begun
        command = f"python -m tests.mutations --cases {args.cases} --seed {args.seed}"
        made = [{"command": command, "seconds": round(seconds, 2)}]
        add_records(args.record, [made_here("reliability", "", "mutations", outcome, commands=made, seconds=seconds)])
    return 1 if failed else 0


def _one(names: Sequence[str], seed: int, number: int) -> int:
    from mutations.format import run_case

    for name in names:
        print(name, run_case(FORMATS[name], seed, number))
    return 0


def _shares(names: Sequence[str], cases: int) -> tuple[dict[str, int], dict[str, str]]:
    """How many cases each format gets, by its weight, and why some get none."""
    skipped = {name: reason for name in names if (reason := FORMATS[name].needs())}
    tried = [name for name in names if name not in skipped]
    whole = sum(FORMATS[name].weight for name in tried)
    shares = {name: max(1, int(cases * FORMATS[name].weight / whole)) for name in tried}
    shares[tried[0]] += max(0, cases - sum(shares.values()))
    return shares, skipped


def _run(shares: dict[str, int], seed: int, workers: int) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    batches: Queue[tuple[str, range]] = Queue()
    for name, cases in reversed(shares.items()):  # those that take long stand last
        size = max(BATCH, cases // 4)
        for first in range(1, cases + 1, size):
            batches.put((name, range(first, min(first + size, cases + 1))))
    results: dict[str, list[tuple[int, dict[str, Any]]]] = {name: [] for name in shares}

    def work() -> None:
        worker = Worker(seed)
        try:
            while True:
                name, numbers = batches.get_nowait()
                for number in numbers:
                    found = worker.run(name, number)
                    results[name].append((number, found))
                    if found["state"] == "failed":
                        print(f"FAILED {name} case {number}: {found['said']}", file=sys.stderr, flush=True)
                print(f"{name} {numbers.stop - 1}", file=sys.stderr, flush=True)
        except Empty:
            pass
        finally:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: sorted(found, key=lambda one: one[0]) for name, found in results.items()}


def _row(name: str, results: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    states = [one["state"] for _, one in results]
    counts = {state: states.count(state) for state in ("accepted", "refused", "failed")}
    return {"format": name, "cases": len(states), **counts, "slowest": max(one["seconds"] for _, one in results)}
