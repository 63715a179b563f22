"""`python -m rnnreranker.bench`: the cost of a reranked query on this machine."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker import command
from rnnreranker.bench.parts import FULL, PARTS, QUICK, cell, measure, missed
from rnnreranker.errors import InputError

SCHEMA = 2  # of the record


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    if args.docs:
        return _docs(Path(args.record), Path(args.page))
    from rnnreranker.files import check_writable, write_json

    if args.output:
        check_writable(args.output)
    measured = _measure(args)
    _print(measured)
    if args.output:
        write_json(args.output, measured)
    over = missed(measured["parts"])
    for line in over:
        command.say(f"over its bound: {line}")
    return 1 if args.check and over else 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser(
        "bench",
        "Measure the kernel beside its Gram product, runs from file to file, and what the cost depends on.",
        "The whole table takes about a quarter of an hour and 2 GB of temporary files.",
    )
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), metavar="PART", help=f"may be repeated: {', '.join(PARTS)}"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only: a minute")
    parser.add_argument("--pairs", type=command.positive, help="pairs of measurements (default: 21, with --quick 5)")
    parser.add_argument("--output", metavar="FILE", help="write everything that was measured, as JSON")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a bound is missed")
    parser.add_argument("--docs", action="store_true", help="measure nothing, write the page from the record")
    parser.add_argument("--record", default="docs/performance.json", help="default: docs/performance.json")
    parser.add_argument("--page", default="docs/performance.md", help="default: docs/performance.md")
    return parser


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    from rnnreranker.record import commit, machine, versions

    sizes = QUICK if args.quick else FULL
    if args.pairs:
        sizes = dataclasses.replace(sizes, pairs=args.pairs)
    about = {
        "schema": SCHEMA,
        "machine": machine(),
        "processor": _processor(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,  # before our own work
        "commit": commit(),
        "versions": versions(),
        "quick": args.quick,
        "sizes": dataclasses.asdict(sizes),
    }
    return about | {"parts": measure(args.only or list(PARTS), sizes)}


def _processor() -> str:
    """The model of the processor, as Linux tells it; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _print(measured: dict[str, Any]) -> None:
    from rnnreranker.tables import print_table

    print(f"# {measured['machine']}, {measured['processor'] or 'processor unknown'}, load {cell(measured['load'])}")
    for name, part in measured["parts"].items():
        print(f"\n# {name}: {part['note']}")
        if part["rows"]:
            print_table(list(part["rows"][0]), [[cell(value) for value in row.values()] for row in part["rows"]])
        else:
            print("not measured: it is not installed here")


def _docs(record: Path, page: Path) -> int:
    import json

    from rnnreranker.files import read_text
    from rnnreranker.pages import render, write_page

    try:
        measured = json.loads(read_text(record, "record"))
    except json.JSONDecodeError as error:
        raise InputError(f"{record}:{error.lineno}: not JSON ({error.msg}); measure again with --output") from None
    if not isinstance(measured, dict) or measured.get("schema") != SCHEMA:
        raise InputError(f"{record}: not a record of schema {SCHEMA}; measure again with --output")
    titled = {part["title"]: part for part in measured["parts"].values()}
    write_page(page, render("bench", "performance.md.j2", cell=cell, missed=missed(titled), **measured))
    command.say(f"{page} from {record}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
