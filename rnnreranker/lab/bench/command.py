"""`python -m rnnreranker.bench`: the cost of a reranked query on this machine."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, require
from rnnreranker.lab.bench.parts import ASKED, GPU, MADE, PARTS, measure
from rnnreranker.lab.bench.sizes import FULL, QUICK, QUICK_SECONDS
from rnnreranker.lab.bench.summaries import cell, missed

if TYPE_CHECKING:
    from rnnreranker.base.record import Record


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    _check(args)
    from rnnreranker.base.files import check_writable
    from rnnreranker.base.record import of_command, write_records

    check_writable(args.output)
    begun = time.perf_counter()
    measured = _measure(args)
    record = of_command("benchmark", _name(args), measured, room="bench", argv=argv, begun=begun)
    _print(record)
    if args.output:
        write_records(args.output, [record])
    over = missed(measured["parts"])
    for line in over:
        command.say(f"over its bound: {line}")
    return 1 if args.check and over else 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser(
        "bench",
        "Measure the kernel beside its Gram product, runs from file to file, and what the cost depends on.",
        "The whole table takes half an hour or more and 2 GB of temporary files.",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=list(PARTS),
        metavar="PART",
        help=f"may be repeated: {', '.join(PARTS)} (without it all but {', '.join(ASKED)})",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"small sizes only: at most three minutes; what would begin after {QUICK_SECONDS} s is left out and named",
    )
    parser.add_argument(
        "--documents",
        action="append",
        type=command.positive,
        metavar="N",
        help="size of a graph that graph-size makes; may be repeated (default: 10000 and 100000)",
    )
    parser.add_argument("--pairs", type=command.positive, help="pairs of measurements (default: 21, with --quick 5)")
    parser.add_argument("--device", help="where --only gpu computes (default: cuda)")
    parser.add_argument("--output", metavar="FILE", help="put the record of what was measured there")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a bound is missed")
    return parser


def _check(args: argparse.Namespace) -> None:
    """Refuse what no part that is measured would read."""
    parts = _parts(args)
    for name, of in (("device", GPU), ("documents", MADE)):
        if getattr(args, name) and of not in parts:
            raise InputError(f"--{name}: is for the part {of}, which is not measured; expected --only {of}")


def _parts(args: argparse.Namespace) -> list[str]:
    """The parts that are measured."""
    return args.only or [name for name in PARTS if name not in ASKED]


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    sizes = QUICK if args.quick else FULL
    if args.pairs:
        sizes = dataclasses.replace(sizes, pairs=args.pairs)
    if GPU in _parts(args):
        require("torch", "--only gpu", "torch")
        from rnnreranker.rnn.engines.torch import usable_device

        device = args.device or "cuda"
        usable_device(device)  # before anything is measured
        sizes = dataclasses.replace(sizes, device=device)
    if args.documents:
        sizes = dataclasses.replace(sizes, graphs=tuple(args.documents))
    about = {
        "processor": _processor(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,  # before our own work
        "quick": args.quick,
        "sizes": dataclasses.asdict(sizes),
    }
    return about | {"parts": measure(_parts(args), sizes, QUICK_SECONDS if args.quick and not args.only else None)}


def _name(args: argparse.Namespace) -> str:
    """Of the record: a part or a quick look does not take the place of the whole."""
    return "-".join(["performance", *(["quick"] if args.quick else []), *(args.only or [])])


def _processor() -> str:
    """The model of the processor, as Linux tells it; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _print(record: Record) -> None:
    from rnnreranker.base.tables import print_table

    measured = record.outcome
    print(f"# {record.machine}, {measured['processor'] or 'processor unknown'}, load {cell(measured['load'])}")
    for name, part in measured["parts"].items():
        print(f"\n# {name}: {part['note']}")
        for table in (part, *part.get("derived", [])):
            if table is not part:
                print(f"\n# {table['title']}: {table['note']}")
            if table["rows"]:
                print_table(list(table["rows"][0]), [[cell(value) for value in row.values()] for row in table["rows"]])
            else:
                print("not measured: it is not installed here")
