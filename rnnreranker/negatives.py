"""`python -m rnnreranker.negatives`: hard negatives of a run, without likely positives, as training triplets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.labels.negatives import NegativeParams, NegativesRequest, check, mined_negatives
from rnnreranker.labels.request import add_similarity_flags, with_flags

SHOWN = ("k", "lam", "context")  # settings of rNN that help shows
EPILOG = """examples (settings of a filter, joint:positive_weight=0.3, of mining and of rNN stand behind a colon):
  python -m rnnreranker.negatives --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --filter rnn:k=21 --rate 0.1 --output triplets.parquet
  python -m rnnreranker.negatives ... --filter margin --threshold -0.05 --output triplets.parquet"""
USAGE = "python -m rnnreranker.negatives --run RUN --qrels QRELS --output FILE [--index INDEX] [flags]"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, NegativesRequest, filter=with_flags("filter", args, NegativeParams))
    check(request, (not args.output, "give --output FILE (what to write)"))
    mined = mined_negatives(request)
    used = request.chosen.mining.filter
    command.say(
        f"{args.output}: {command.counted(mined.rows, 'row')}, "
        f"{command.counted(mined.pairs['query'].nunique(), 'query', 'queries')}; "
        f"filter {used}, {'no threshold' if used == 'none' else f'discarded above {mined.threshold:.6g}'}"
    )
    return 0


def make_parser() -> Any:
    """The flags of the command."""
    text = "Mine hard negatives without likely positives."
    parser = command.parser("negatives", text, EPILOG, usage=USAGE)
    names = ["run", "qrels", "index", "topics", "encoded_queries", "encoder", "documents", "fields", "relevant"]
    names += ["threads", "device", "compute_dtype", "output"]
    command.add_flags(parser, NegativesRequest, *names)
    mining = parser.add_argument_group("mining")
    command.add_flags(mining, NegativesRequest, "filter")
    command.add_flags(mining, NegativeParams, skip={"filter"})
    similarity = parser.add_argument_group(
        "similarity, of the filters rnn and joint (any setting of rnn is a flag too)"
    )
    add_similarity_flags(similarity, SHOWN)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
