"""`python -m rnnreranker.diagnose`: is reranking likely to help, from a run and its vectors alone?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.lab.diagnose.diagnosis import DiagnoseRequest, diagnose
from rnnreranker.lab.shared import LabFlags, recorded
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

EPILOG = """examples:
  python -m rnnreranker.diagnose --run dense.txt --index my-index --topics queries.tsv
  python -m rnnreranker.diagnose --run bm25.txt --index my-index --topics queries.tsv --output bm25.json
  python -m rnnreranker.diagnose --run dense.txt --index my-index --encoded-queries queries.npy --preset tas-b
  python -m rnnreranker.diagnose ... --rerank rnn:k=20,weight=exp
"""
USAGE = "python -m rnnreranker.diagnose --run RUN --index INDEX (--topics TOPICS | --encoded-queries NPY) [flags]"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, DiagnoseRequest, rerank=flags.with_rnn(args, args.rerank, "--rerank"))
    with recorded(args.output, "diagnose", "diagnosis", argv) as record:
        diagnosis, inputs = diagnose(request)
        record |= {"name": Path(args.run).stem, "outcome": diagnosis, "inputs": inputs}
    from rnnreranker.lab.diagnose.verdict import print_diagnosis

    print_diagnosis(diagnosis)
    return 0


def make_parser() -> Any:
    """The parser of the command."""
    text = "Say from a run and its vectors whether reranking is likely to help."
    parser = command.parser("diagnose", text, EPILOG, usage=USAGE)
    add = command.add_flags
    add(parser, DiagnoseRequest, "run", "index", "topics", "encoded_queries", "sample")
    add(parser, LabFlags, "output")
    add(parser, DiagnoseRequest, "encoder", "threads")
    rerank = parser.add_argument_group("reranking that is judged (any setting of rnn is a flag too)")
    add(rerank, DiagnoseRequest, "rerank")
    add(rerank, LabFlags, "preset")
    add(rerank, DiagnoseRequest, "missing")
    add(rerank, RnnParams, shown=flags.EVERYDAY)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
