"""`python -m rnnreranker.bench`: the cost of a reranked query on this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.lab.bench.benchmark import BenchRequest, check, measured
from rnnreranker.lab.bench.parts import ASKED, PARTS
from rnnreranker.lab.bench.sizes import QUICK_SECONDS
from rnnreranker.lab.bench.summaries import cell, missed

if TYPE_CHECKING:
    from rnnreranker.base.record import Record


EPILOG = """examples:
  python -m rnnreranker.bench --quick
  python -m rnnreranker.bench --only kernel --only corpus --output bench.json --check

The whole table takes half an hour or more and 2 GB of temporary files.
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, BenchRequest, only=args.only or (), documents=args.documents or ())
    check(request)
    from rnnreranker.base.files import check_writable
    from rnnreranker.base.record import of_command, write_records

    check_writable(args.output)
    begun = time.perf_counter()
    outcome = measured(request)
    record = of_command("benchmark", request.name, outcome, room="bench", argv=argv, begun=begun)
    _print(record)
    if args.output:
        write_records(args.output, [record])
    over = missed(outcome["parts"])
    for line in over:
        command.say(f"over its bound: {line}")
    return 1 if args.check and over else 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser(
        "bench",
        "Measure the kernel beside its Gram product, runs from file to file, and what the cost depends on.",
        EPILOG,
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
    parser.add_argument(
        "--device", help="where --only gpu (default: cuda) and --only device-encoding (default: cpu) compute"
    )
    parser.add_argument("--output", metavar="FILE", help="put the record of what was measured there")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a bound is missed")
    return parser


def _print(record: Record) -> None:
    from rnnreranker.base.tables import print_table

    outcome = record.outcome
    print(f"# {record.machine}, {outcome['processor'] or 'processor unknown'}, load {cell(outcome['load'])}")
    for name, part in outcome["parts"].items():
        print(f"\n# {name}: {part['note']}")
        for table in (part, *part.get("derived", [])):
            if table is not part:
                print(f"\n# {table['title']}: {table['note']}")
            if table["rows"]:
                print_table(list(table["rows"][0]), [[cell(value) for value in row.values()] for row in table["rows"]])
            else:
                print("not measured: it is not installed here")


if __name__ == "__main__":
    raise SystemExit(command.run(main))
