"""`python -m rnnreranker.fuse`: fuse runs of the same queries; passages to documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import argument, path_of, refuse
from rnnreranker.base.files import FORMATS, check_writable
from rnnreranker.base.method import Form
from rnnreranker.base.settings import Request, setting
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import METHODS_HELP, fuse, fusion
from rnnreranker.runs.passages import AGGREGATE_HELP
from rnnreranker.search.own_documents import documents_of
from rnnreranker.search.request import passages

USUAL = "rrf"
EPILOG = """examples:
  python -m rnnreranker.fuse bm25.txt dense.txt --output hybrid.txt
  python -m rnnreranker.fuse bm25.txt dense.txt --method 'minmax:weights="0.3,0.7"' --output hybrid.txt.gz
  python -m rnnreranker.fuse passages.txt --aggregate maxp:passages=mapping.tsv --output documents.txt

Queries stand in the order of the first run, equal scores by ascending docid.
"""


@dataclass(frozen=True)
class FuseRequest(Request):
    runs: Sequence[str]
    output: str = setting(MISSING, "run file to write (.gz compresses)", metavar="RUN")
    method: str | None = setting(None, f"{METHODS_HELP} (default: {USUAL})", metavar="NAME")
    hits: int = setting(1000, "candidates per query", at_least=1)
    aggregate: str | None = setting(None, f"{AGGREGATE_HELP}: maxp, firstp, sump[:passages=#]", metavar="NAME")
    output_format: str = setting("trec", "format of the run", one_of=lambda: FORMATS)
    tag: str = setting("fused", "run tag")


def fuse_runs(
    runs: Sequence[str | Path | Run], method: Form | None = None, *, aggregate: Form | None = None, hits: int = 1000
) -> Run:
    """Fuse runs, as `python -m rnnreranker.fuse`; queries in the order of the first run, equal scores by ascending
    docid.

    Args:
        runs: two or more files or runs; one if `aggregate` is given.
        method: `rrf:k=60` or `minmax:weights="0.3,0.7"`; None = rrf.
        aggregate: passages to documents, `maxp:passages=mapping.tsv`.
        hits: documents kept of every query.

    Raises:
        InputError: all visible faults at once, unreadable files, passages without a document.
    """
    to = None if aggregate is None else passages(aggregate)
    names = [f"run {number}" if isinstance(run, Run) else str(run) for number, run in enumerate(runs, 1)]
    alone, paths = len(names) == 1, [os.path.realpath(path_of(name, "a run file")) for name in names]
    twice = dict.fromkeys(name for name, path in zip(names, paths, strict=True) if paths.count(path) > 1)
    refuse(
        (not names, f"{argument('runs')}: none; give two or more to fuse"),
        (
            alone and to is None,
            f"{', '.join(names)}: one run alone; give two or more to fuse, or {argument('aggregate')} for documents",
        ),
        (alone and method is not None, f"{argument('method', method)}: joins several runs, not one alone"),
        (twice, f"{', '.join(twice)}: given twice; give every run once, with weights to count one more"),
        (to is not None and to.hits, f"{argument('aggregate', aggregate)}: hits is of search; give {argument('hits')}"),
        (hits < 1, f"{argument('hits', hits)}: expected an integer >= 1"),
    )
    how = fusion(method or USUAL, len(names), "method")
    fused, *others = [run if isinstance(run, Run) else Run.read(run) for run in runs]
    if others:
        kept = hits if to is None else None
        fused = fuse([fused, *others], how, hits=kept, names=names)
    return fused if to is None else documents_of(fused, to).head(hits)


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    asked = command.request(make_parser().parse_args(argv), FuseRequest)
    refuse((asked.tag.split() != [asked.tag], f"--tag {asked.tag!r}: expected a word without white space"))
    check_writable(asked.output)
    fused = fuse_runs(asked.runs, asked.method, aggregate=asked.aggregate, hits=asked.hits)
    fused.write(asked.output, tag=asked.tag, format=asked.output_format)
    queries, runs = command.counted(len(fused), "query", "queries"), command.counted(len(asked.runs), "run")
    command.say(f"{asked.output}: {queries} of {runs}{f', {asked.aggregate} documents' if asked.aggregate else ''}")
    return 0


def make_parser() -> Any:
    parser = command.parser("fuse", "Fuse runs of the same queries into one; make documents of passages.", EPILOG)
    command.add_words(parser, "runs", "RUN", "TREC or MS MARCO files, plain or .gz")
    flags = ("output", "method", "hits", "aggregate", "output_format", "tag")
    command.add_flags(parser, FuseRequest, *flags)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
