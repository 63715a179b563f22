"""`python -m rnnreranker.fuse`: several runs of the same queries to one, passages to documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import check_writable
from rnnreranker.runs import FORMATS
from rnnreranker.runs.fuse import METHODS_HELP
from rnnreranker.runs.passages import AGGREGATE_HELP
from rnnreranker.search.fuse.fusing import USUAL, checked, fuse_runs

EPILOG = """examples:
  python -m rnnreranker.fuse bm25.txt dense.txt --output hybrid.txt
  python -m rnnreranker.fuse bm25.txt dense.txt --method 'minmax:weights="0.3,0.7"' --output hybrid.txt.gz
  python -m rnnreranker.fuse passages.txt --aggregate maxp:passages=mapping.tsv --output documents.txt

Queries stand in the order of the first run, equal scores by ascending docid.
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    _, to = checked(args.runs, args.method, args.aggregate, args.hits)
    if args.tag.split() != [args.tag]:
        raise InputError(f"--tag {args.tag!r}: expected a word without white space")
    check_writable(args.output)
    fused = fuse_runs(args.runs, args.method, aggregate=args.aggregate, hits=args.hits)
    fused.write(args.output, tag=args.tag, format=args.output_format)
    made_from = command.counted(len(args.runs), "run") + (f", {to.aggregate} documents" if to is not None else "")
    command.say(f"{args.output}: {command.counted(len(fused), 'query', 'queries')} of {made_from}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("fuse", "Fuse runs of the same queries into one; make documents of passages.", EPILOG)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="TREC or MS MARCO files, plain or .gz")
    parser.add_argument("--output", required=True, metavar="RUN", help="run file to write (.gz compresses)")
    parser.add_argument("--method", metavar="NAME", help=f"{METHODS_HELP} (default: {USUAL})")
    parser.add_argument("--hits", type=command.positive, default=1000, help="candidates per query (default: 1000)")
    parser.add_argument("--aggregate", metavar="NAME", help=f"{AGGREGATE_HELP}: maxp, firstp, sump[:passages=#]")
    parser.add_argument("--output-format", choices=FORMATS, default="trec")
    parser.add_argument("--tag", default="fused", help="run tag (default: fused)")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
