"""`python -m rnnreranker.fuse`: several runs of the same queries to one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rnnreranker import command
from rnnreranker.errors import InputError
from rnnreranker.files import check_writable
from rnnreranker.runs import FORMATS, Run
from rnnreranker.runs.fuse import METHODS, METHODS_HELP, FuseParams, fuse
from rnnreranker.search.flags import fuse_params

EPILOG = """examples:
  python -m rnnreranker.fuse bm25.txt dense.txt --output hybrid.txt
  python -m rnnreranker.fuse bm25.txt dense.txt --method minmax --weights 0.3,0.7 --output hybrid.txt.gz

Queries stand in the order of the first run, equal scores by ascending docid.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    if len(args.runs) < 2:
        raise InputError(f"{args.runs[0]}: one run alone; give two or more to fuse")
    if twice := [path for path in dict.fromkeys(args.runs) if args.runs.count(path) > 1]:
        raise InputError(f"{twice[0]}: stands there twice; give every run once, with --weights to count one more")
    if args.tag.split() != [args.tag]:
        raise InputError(f"--tag {args.tag!r}: expected a word without white space")
    params = fuse_params(args, len(args.runs))
    check_writable(args.output)
    runs = [Run.read(path) for path in args.runs]
    if not set.intersection(*(set(run.qids) for run in runs)):
        command.say(f"{', '.join(args.runs)}: no query is in all of them; are they runs of the same topics?")
    fused = fuse(runs, params.fuse, k=params.rrf_k, weights=params.weight_of_runs, hits=args.hits)
    fused.write(args.output, tag=args.tag, format=args.output_format)
    command.say(f"{args.output}: {command.counted(len(fused), 'query', 'queries')} of {len(runs)} runs")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("fuse", "Fuse runs of the same queries into one.", EPILOG)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="TREC or MS MARCO files, plain or .gz")
    parser.add_argument("--output", required=True, metavar="RUN", help="run file to write (.gz compresses)")
    parser.add_argument("--method", dest="fuse", choices=METHODS, help=f"{METHODS_HELP} (default: rrf)")
    command.add_dataclass_flags(parser, FuseParams, skip={"fuse"})
    parser.add_argument("--hits", type=command.positive, default=1000, help="candidates per query (default: 1000)")
    parser.add_argument("--output-format", choices=FORMATS, default="trec")
    parser.add_argument("--tag", default="fused", help="run tag (default: fused)")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
