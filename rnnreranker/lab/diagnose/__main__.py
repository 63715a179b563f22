"""`python -m rnnreranker.diagnose`: is reranking likely to help, from a run and its vectors alone?"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.files import check_writable
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.lab.diagnose.diagnosing import DiagnoseRequest, check, diagnosed
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

EPILOG = """examples:
  python -m rnnreranker.diagnose --run dense.txt --index my-index --topics queries.tsv
  python -m rnnreranker.diagnose --run bm25.txt --index my-index --topics queries.tsv --output bm25.html
  python -m rnnreranker.diagnose --run dense.txt --index my-index --encoded-queries queries.npy --preset tas-b
  python -m rnnreranker.diagnose ... --rerank rnn:k=20,weight=exp
"""
USAGE = "python -m rnnreranker.diagnose --run RUN --index INDEX (--topics TOPICS | --encoded-queries NPY) [flags]"
SUFFIXES = (".json", ".html")


@dataclass(frozen=True)
class DiagnoseFlags(Request):
    """Flags that `diagnose` does not take."""

    output: str | None = setting(None, "write its record (.json), or a page (.html), there too", metavar="FILE")
    preset: str | None = setting(None, "published parameters (tas-b, cocondenser, …) or a YAML file")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, DiagnoseRequest, rerank=flags.with_rnn(args, args.rerank, "--rerank"))
    output = None if args.output is None else Path(args.output).expanduser()
    said = f"--output {args.output}: expected a name that ends in .json or .html"
    check(request, (output is not None and output.suffix not in SUFFIXES, said))
    check_writable(output)
    begun = time.perf_counter()
    diagnosis, index = diagnosed(request)
    from rnnreranker.lab.diagnose.report import print_report

    print_report(diagnosis)
    if output is None:
        return 0
    if output.suffix == ".json":
        from rnnreranker.base.record import of_command, write_records

        about: dict[str, Any] = {"module": "diagnose", "argv": argv, "inputs": {"index": index.vectors.fingerprint}}
        write_records(output, [of_command("diagnosis", Path(args.run).stem, diagnosis, begun=begun, **about)])
    else:
        from rnnreranker.lab.diagnose.report import write_diagnosis

        write_diagnosis(output, diagnosis)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    text = "Say from a run and its vectors whether reranking is likely to help."
    parser = command.parser("diagnose", text, EPILOG, usage=USAGE)
    add = command.add_request_flags
    add(parser, DiagnoseRequest, "run", "index", "topics", "encoded_queries", "sample")
    add(parser, DiagnoseFlags, "output")
    add(parser, DiagnoseRequest, "encoder", "threads")
    rerank = parser.add_argument_group("reranking that is judged (any setting of rnn is a flag too)")
    add(rerank, DiagnoseRequest, "rerank")
    add(rerank, DiagnoseFlags, "preset")
    add(rerank, DiagnoseRequest, "missing")
    command.add_dataclass_flags(rerank, RnnParams, shown=flags.EVERYDAY)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
