"""`python -m rnnreranker.pool`: runs to a sheet for judges, and the filled-in sheet to qrels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.typed_numbers import whole
from rnnreranker.data.fields import add_documents_flags, asked_fields

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
    _check(args)
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


def _check(args: argparse.Namespace) -> None:
    problems = []
    asked_fields(args.documents, args.fields)
    if args.read and (args.runs or args.topics or args.documents):
        problems.append("--read takes no runs, --topics or --documents")
    if not args.read:
        problems += [
            f"--{name} is needed to make a sheet" for name in ("topics", "documents") if not getattr(args, name)
        ]
        if not args.runs:
            problems.append("no runs: give at least one to pool, or --read SHEET")
        if args.second or args.allow_missing:
            problems.append("--second and --allow-missing go with --read")
    if args.depth < 1:
        problems.append(f"--depth {args.depth}: expected at least 1")
    if args.seed < 0:
        problems.append(f"--seed {args.seed}: expected 0 or more")
    if args.per_sheet is not None and args.per_sheet < 1:
        problems.append(f"--per-sheet {args.per_sheet}: expected at least 1")
    if problems:
        raise InputError("; ".join(problems))
    from rnnreranker.base.files import check_writable

    check_writable(args.output)


def _make(args: argparse.Namespace) -> int:
    from rnnreranker.data.documents import load_documents
    from rnnreranker.data.topics import load_narratives, load_topics
    from rnnreranker.evaluate.pooling import pool, write_sheet
    from rnnreranker.runs import Run

    topics = load_topics(args.topics)
    pooled = pool([Run.read(path) for path in args.runs], args.depth, topics, args.seed)
    wanted = {docid for docids in pooled.values() for docid in docids}
    texts: dict[str, str] = {}
    for document in command.progress(
        load_documents(args.documents, asked_fields(args.documents, args.fields)), unit="documents", what="read"
    ):
        if document.docid in wanted:
            texts[document.docid] = document.text
            if len(texts) == len(wanted):
                break
    narratives = load_narratives(args.topics)
    paths = _sheet_paths(Path(args.output), len(pooled), args.per_sheet)
    qids = list(pooled)
    size = args.per_sheet or max(1, len(qids))
    for number, path in enumerate(paths):
        part = qids[number * size : (number + 1) * size]
        write_sheet(path, {qid: pooled[qid] for qid in part}, topics, narratives, texts)
        command.put(path)
    documents = sum(map(len, pooled.values()))
    command.say(
        f"{command.counted(len(pooled), 'topic')}, {command.counted(documents, 'document')} to judge, "
        f"depth {args.depth} of {command.counted(len(args.runs), 'run')}"
    )
    return 0


def _sheet_paths(output: Path, topics: int, per_sheet: int | None) -> list[Path]:
    if per_sheet is None:
        return [output]
    count = max(1, -(-topics // per_sheet))
    return [output.with_name(f"{output.stem}-{number}{output.suffix}") for number in range(1, count + 1)]


def _read(args: argparse.Namespace) -> int:
    from rnnreranker.base.tables import print_table
    from rnnreranker.evaluate.pooling import agreement, read_sheets, write_qrels

    rows = read_sheets(args.read)
    lost = [row for row in rows if row.grade is None]
    if lost and not args.allow_missing:
        raise InputError(
            f"{len(lost)} of {len(rows)} rows have no grade (first: {lost[0].where}); "
            "judge them, or leave them out with --allow-missing"
        )
    if len(lost) == len(rows):
        raise InputError(f"{', '.join(args.read)}: no row has a grade; nothing to write")
    agreed = agreement(rows, read_sheets(args.second)) if args.second else None
    written = write_qrels(args.output, rows)
    command.say(
        f"{args.output}: {command.counted(written, 'judgement')}"
        + (f", {command.counted(len(lost), 'row')} without a grade" if lost else "")
    )
    if agreed is not None:
        shares = [f"{value:.4f}" for value in (agreed.equal, agreed.within_one, agreed.kappa)]
        print_table(["pairs", "equal", "within one", "kappa"], [[agreed.pairs, *shares]])
    return 0
