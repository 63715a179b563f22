"""`python -m rnnreranker.pool`: runs to a sheet for judges, and the filled-in sheet to qrels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rnnreranker.base import command
from rnnreranker.base.errors import refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.tables import print_table
from rnnreranker.base.typed_numbers import whole
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.evaluate.pool.sheets import PoolRequest, check, faults_of_numbers, read_judgements, sheets

EPILOG = """examples:
  python -m rnnreranker.pool bm25.txt dense.txt rnn.txt --topics queries.tsv --documents docs.jsonl --output sheet.tsv
  python -m rnnreranker.pool --read sheet.tsv --output qrels.txt
  python -m rnnreranker.pool --read sheet.tsv --second other-judge.tsv --output qrels.txt

The sheet hides runs and ranks: topics stand in their order, the documents of a topic are shuffled. A judge writes a
grade from 0 (not relevant) to 3 (perfect) into the last column.
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    return _read(args) if args.read else _make(args)


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("pool", "Pool the best documents of runs for judgement, and read the judgements.", EPILOG)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="TREC or MS MARCO files, plain or .gz")
    parser.add_argument("--output", required=True, metavar="FILE", help="sheet to write, or qrels with --read")
    make = parser.add_argument_group("making a sheet")
    make.add_argument("--topics", help="file (qid<TAB>text[<TAB>narrative]), ir_datasets id, or `pydoc`")
    add_documents_flags(make, ".jsonl or .tsv file, ir_datasets id, or `pydoc`")
    make.add_argument("--depth", type=whole, default=10, help="ranks taken of every run (default: 10)")
    make.add_argument("--seed", type=whole, default=0, help="of the shuffle (default: 0)")
    make.add_argument("--per-sheet", type=whole, metavar="N", help="N topics a sheet: FILE-1.tsv, FILE-2.tsv, ...")
    read = parser.add_argument_group("reading sheets")
    read.add_argument("--read", nargs="+", metavar="SHEET", help="filled-in sheets to turn into qrels")
    read.add_argument(
        "--second", nargs="+", metavar="SHEET", help="sheets of a second judge: prints how far both agree"
    )
    read.add_argument("--allow-missing", action="store_true", help="leave rows without a grade out of the qrels")
    return parser


def _make(args: argparse.Namespace) -> int:
    request = command.request(args, PoolRequest)
    check(request, args.output, (args.second or args.allow_missing, "--second and --allow-missing go with --read"))
    made = sheets(request, args.output)
    for path in made.paths:
        command.put(path)
    documents = sum(map(len, made.pooled.values()))
    command.say(
        f"{command.counted(len(made.pooled), 'topic')}, {command.counted(documents, 'document')} to judge, "
        f"depth {args.depth} of {command.counted(len(args.runs), 'run')}"
    )
    return 0


def _read(args: argparse.Namespace) -> int:
    asked_fields(args.documents, args.fields)
    refuse(
        (args.runs or args.topics or args.documents, "--read takes no runs, --topics or --documents"),
        *faults_of_numbers(args.depth, args.seed, args.per_sheet),
    )
    check_writable(args.output)
    judged = read_judgements(args.read, args.second or (), allow_missing=args.allow_missing)
    written = judged.write(args.output)
    command.say(
        f"{args.output}: {command.counted(written, 'judgement')}"
        + (f", {command.counted(judged.ungraded, 'row')} without a grade" if judged.ungraded else "")
    )
    if (agreed := judged.agreement) is not None:
        shares = [f"{value:.4f}" for value in (agreed.equal, agreed.within_one, agreed.kappa)]
        print_table(["pairs", "equal", "within one", "kappa"], [[agreed.pairs, *shares]])
    return 0


if __name__ == "__main__":
    raise SystemExit(command.run(main))
