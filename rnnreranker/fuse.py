"""`python -m rnnreranker.fuse`: several runs of the same queries to one, passages to documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import check_writable
from rnnreranker.runs import FORMATS, Run
from rnnreranker.runs.fuse import METHODS_HELP, fuse, fusion
from rnnreranker.runs.passages import AGGREGATE_HELP
from rnnreranker.search.request import passages
from rnnreranker.search.to_documents import documents_of

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
    to = passages(args.aggregate) if args.aggregate else None
    if len(args.runs) < 2 and to is None:
        raise InputError(f"{args.runs[0]}: one run alone; give two or more to fuse, or --aggregate for its documents")
    if len(args.runs) < 2 and args.method is not None:
        raise InputError(f"--method {args.method}: joins several runs, not {args.runs[0]} alone")
    if twice := [path for path in dict.fromkeys(args.runs) if args.runs.count(path) > 1]:
        raise InputError(f"{twice[0]}: stands there twice; give every run once, with weights to count one more")
    if args.tag.split() != [args.tag]:
        raise InputError(f"--tag {args.tag!r}: expected a word without white space")
    params = fusion(args.method or "rrf", len(args.runs), "method")
    check_writable(args.output)
    runs = [Run.read(path) for path in args.runs]
    if len(runs) > 1 and not set.intersection(*(set(run.qids) for run in runs)):
        command.say(f"{', '.join(args.runs)}: no query is in all of them; are they runs of the same topics?")
    hits = args.hits if to is None else None
    weights = params.weight_of_runs
    fused = fuse(runs, params.fuse, k=params.rrf_k, weights=weights, hits=hits) if len(runs) > 1 else runs[0]
    if to is not None:
        fused = documents_of(fused, to, hits=args.hits)
    fused.write(args.output, tag=args.tag, format=args.output_format)
    made_from = command.counted(len(runs), "run") + (f", {to.aggregate} documents" if to is not None else "")
    command.say(f"{args.output}: {command.counted(len(fused), 'query', 'queries')} of {made_from}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("fuse", "Fuse runs of the same queries into one; make documents of passages.", EPILOG)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="TREC or MS MARCO files, plain or .gz")
    parser.add_argument("--output", required=True, metavar="RUN", help="run file to write (.gz compresses)")
    parser.add_argument("--method", metavar="NAME", help=f"{METHODS_HELP} (default: rrf)")
    parser.add_argument("--hits", type=command.positive, default=1000, help="candidates per query (default: 1000)")
    parser.add_argument("--aggregate", metavar="NAME", help=f"{AGGREGATE_HELP}: maxp, firstp, sump[:passages=#]")
    parser.add_argument("--output-format", choices=FORMATS, default="trec")
    parser.add_argument("--tag", default="fused", help="run tag (default: fused)")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
