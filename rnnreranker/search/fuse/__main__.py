"""`python -m rnnreranker.fuse`: fuse runs of the same queries; passages to documents."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, dataclass

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import check_writable
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.runs.fuse import METHODS_HELP
from rnnreranker.runs.passages import AGGREGATE_HELP
from rnnreranker.search.defaults import FORMATS
from rnnreranker.search.fuse import USUAL, fuse_runs

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
    output_format: str = setting("trec", "format of the run", one_of=lambda: [*FORMATS])
    tag: str = setting("fused", "run tag")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    asked = command.request(make_parser().parse_args(argv), FuseRequest)
    if asked.tag.split() != [asked.tag]:
        raise InputError(f"--tag {asked.tag!r}: expected a word without white space")
    check_writable(asked.output)
    fused = fuse_runs(asked.runs, asked.method, aggregate=asked.aggregate, hits=asked.hits)
    fused.write(asked.output, tag=asked.tag, format=asked.output_format)
    documents = f", {asked.aggregate.partition(':')[0]} documents" if asked.aggregate else ""
    queries = command.counted(len(fused), "query", "queries")
    command.say(f"{asked.output}: {queries} of {command.counted(len(asked.runs), 'run')}{documents}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("fuse", "Fuse runs of the same queries into one; make documents of passages.", EPILOG)
    command.add_words(parser, "runs", "RUN", "TREC or MS MARCO files, plain or .gz")
    flags = ("output", "method", "hits", "aggregate", "output_format", "tag")
    command.add_request_flags(parser, FuseRequest, *flags)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
