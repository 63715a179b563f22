"""`python -m rnnreranker.negatives`: hard negatives of a run, without what is likely relevant, as training triplets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, get_args

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.device import add_flags as add_device_flags
from rnnreranker.base.tables import print_table
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.labels.methods.base import Source
from rnnreranker.labels.negatives.filters import NegativeParams, Toll
from rnnreranker.labels.negatives.make import NegativesRequest, check, mined_negatives
from rnnreranker.labels.request import SOURCE
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE

SHOWN = ("k", "lam", "context")  # settings of rNN that help shows
EPILOG = """examples (settings of a filter, joint:positive_weight=0.3, of mining and of rNN stand behind a colon):
  python -m rnnreranker.negatives --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --filter rnn:k=21 --rate 0.1 --output triplets.parquet
  python -m rnnreranker.negatives ... --filter margin --threshold -0.05 --output triplets.parquet
  python -m rnnreranker.negatives ... --qrels one-positive.txt --truth all-judgements.txt --rate 0.1
With --truth every filter is compared at the same share of discarded pairs, on judged documents only."""
USAGE = (
    "python -m rnnreranker.negatives --run RUN --qrels QRELS (--output FILE | --truth QRELS) [--index INDEX] [flags]"
)


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, NegativesRequest, filter=_filter(args))
    nothing = not args.output and not args.truth
    said = "give --output FILE (what to write), --truth QRELS (what to compare with), or both"
    check(request, args.output, (nothing, said))
    mined = mined_negatives(request)
    if args.truth:
        _print(mined.tolls)
    if args.output:
        rows = mined.write(args.output)
        command.say(
            f"{args.output}: {command.counted(rows, 'row')}, {command.counted(len(mined.pools), 'query', 'queries')}; "
            f"filter {request.chosen.mining.filter}, discarded above {mined.threshold:.6g}"
        )
    return 0


def _filter(args: argparse.Namespace) -> Written:
    """The filter of --filter with what the other flags say of its settings."""
    typed: dict[str, Any] = command.given(args, RnnParams) | command.given(args, NegativeParams)
    typed.pop("filter")
    typed |= {name: value for name in (SOURCE, PRESET) if (value := getattr(args, name)) is not None}
    return Written.read(args.filter).beside(typed, "--filter")


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Mine hard negatives without likely positives."
    parser = command.parser("negatives", text, EPILOG, usage=USAGE)
    of_queries = ("index", "topics", "encoded_queries", "encoder", "documents", "fields", "relevant", "threads")
    command.add_request_flags(
        parser, NegativesRequest, "run", "qrels", *of_queries, encoded_queries="NPY", fields="NAMES"
    )
    add_device_flags(parser, "queries")
    parser.add_argument("--output", metavar="FILE", help=".parquet or .jsonl with texts, .tsv with ids")
    command.add_request_flags(parser, NegativesRequest, "truth", truth="QRELS")

    mining = parser.add_argument_group("mining")
    command.add_request_flags(mining, NegativesRequest, "filter", filter="NAME")
    command.add_dataclass_flags(mining, NegativeParams, {"filter"})

    similarity = parser.add_argument_group(
        "similarity, of the filters rnn and joint (any setting of rnn is a flag too)"
    )
    text = "where it comes from: vectors, or the part neighbours of the index (default: vectors)"
    similarity.add_argument(flag(SOURCE), dest=SOURCE, choices=get_args(Source), metavar="WHAT", help=text)
    similarity.add_argument("--preset", help="published parameters (tas-b, cocondenser, …) or a YAML file")
    command.add_dataclass_flags(similarity, RnnParams, OF_THE_MIXTURE, RnnParams.preset("vectors"), shown=SHOWN)
    return parser


def _print(tolls: list[Toll]) -> None:
    """A line a filter, all at the share of pairs that the chosen one discards."""
    header = ["filter", "threshold", "discarded", "hidden positives", "share", "true negatives", "share"]
    table = []
    for one in tolls:
        row = [one.filter, f"{one.threshold:.4f}", f"{one.discarded / one.pairs:.4f}"]
        for gone, number in ((one.hidden_discarded, one.hidden), (one.negative_discarded, one.negative)):
            row += [f"{gone}/{number}", f"{gone / max(number, 1):.4f}"]
        table.append(row)
    print_table(header, table)


if __name__ == "__main__":
    raise SystemExit(command.run(main))
