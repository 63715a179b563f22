"""`python -m rnnreranker.bench`: the cost of a reranked query on this machine."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker import command
from rnnreranker.errors import InputError

SIZES = (60, 200, 1000)  # candidates


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    if args.docs:
        return _docs(Path(args.record), Path(args.page))
    from rnnreranker.files import check_writable, write_json

    if args.json:
        check_writable(args.json)
    measured = _measure(args)
    _print(measured)
    if args.json:
        write_json(args.json, measured)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("bench", "Measure the kernel beside its Gram product, and a run from file to file.")
    parser.add_argument("--pairs", type=command.positive, default=21, help="pairs of measurements (default: 21)")
    parser.add_argument("--quick", action="store_true", help="small sizes only: seconds in place of minutes")
    parser.add_argument("--json", metavar="FILE", help="write everything that was measured")
    parser.add_argument("--docs", action="store_true", help="measure nothing, write the page from the record")
    parser.add_argument("--record", default="docs/performance.json", help="default: docs/performance.json")
    parser.add_argument("--page", default="docs/performance.md", help="default: docs/performance.md")
    return parser


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    from rnnreranker.bench.file_to_file import file_to_file
    from rnnreranker.bench.kernel import kernel_time
    from rnnreranker.provenance import commit, machine, versions
    from rnnreranker.rnn import RnnParams

    sizes = SIZES[:1] if args.quick else SIZES
    settings = [(n, tau, scale) for n in sizes for tau in (0.0, 0.5) for scale in ("minmax", "none")]
    kernel = [
        kernel_time(n, 768, RnnParams(k=21, k_exp=3, tau=tau, scale=scale), args.pairs)  # type: ignore[arg-type]
        for n, tau, scale in command.progress(settings, unit="settings", what="kernel")
    ]
    queries = 200 if args.quick else 1000
    files = [file_to_file(queries, 100, 60, 384, threads) for threads in sorted({1, command.cores()})]
    return {
        "schema": 1,
        "machine": machine(),
        "commit": commit(),
        "versions": versions(),
        "kernel": [dataclasses.asdict(row) for row in kernel],
        "file_to_file": [dataclasses.asdict(row) for row in files],
    }


def _print(measured: dict[str, Any]) -> None:
    from rnnreranker.tables import print_table

    rows = []
    for row in measured["kernel"]:
        times = [f"{row[name]:.0f}" for name in ("gram", "kernel")]
        ratios = [f"{row[name]:.2f}" for name in ("ratio", "low", "high")]
        rows.append([row["candidates"], row["dimension"], row["tau"], row["scale"], *times, *ratios])
    print_table(["N", "d", "tau", "scale", "Gram us", "kernel us", "ratio", "low", "high"], rows)
    print_table(
        ["queries", "depth", "context", "d", "threads", "read s", "rerank s", "write s"],
        [
            [row[name] for name in ("queries", "depth", "context", "dimension", "threads")]
            + [f"{row[name]:.2f}" for name in ("read", "rerank", "write")]
            for row in measured["file_to_file"]
        ],
    )


def _docs(record: Path, page: Path) -> int:
    import json

    from rnnreranker.files import read_text
    from rnnreranker.pages import render, write_page

    try:
        measured = json.loads(read_text(record, "record"))
        write_page(page, render("bench", "performance.md.j2", **measured))
    except json.JSONDecodeError as error:
        raise InputError(f"{record}:{error.lineno}: not JSON ({error.msg}); measure again with --json") from None
    command.say(f"{page} from {record}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
