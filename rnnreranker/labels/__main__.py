"""`python -m rnnreranker.labels`: a run and sparse judgements to soft labels, exports, an audit page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.request import ShareRequest
from rnnreranker.base.settings import hints_of
from rnnreranker.labels.make import write_labels
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import LabelsRequest, add_similarity_flags, check, with_flags

EVERYDAY = ("boost", "n_max", "normalization")  # settings of labels that are flags too
SHOWN = ("k", "lam")  # settings of rNN that help shows
EPILOG = """examples (settings of a method, and of labels, stand behind a colon; `rnnreranker methods` lists them):
  python -m rnnreranker.labels --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --method evidence:k=21,include_level=0.1 --n-max 8 --output labels.parquet --audit 50
  python -m rnnreranker.labels ... --method teacher:teacher=cross-encoder,normalization=none,boost=1,n_max=none
A job that was killed goes on where it stopped when the same command is given again."""
USAGE = "python -m rnnreranker.labels --run RUN --qrels QRELS --output FILE.parquet [--index INDEX] [flags]"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, LabelsRequest, method=with_flags("method", args, LabelParams))
    share = command.request(args, ShareRequest).share
    check(request, (not args.output, "give --output FILE.parquet (the labels to write)"))
    made = write_labels(request, Path(args.output), share)
    if share is not None:
        there = f"{command.counted(made['made'], 'shard file')} made, {made['own'] - made['made']} were there"
        command.say(f"{args.output}: shard {share[0]} of {share[1]}: {there}")
        return 0
    without = made["positives_without_vector"]
    command.say(
        f"{args.output}: {command.counted(made['queries'], 'query', 'queries')}"
        + (f"; {command.counted(without, 'positive')} without a vector left out" if without else "")
    )
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Make soft relevance labels for the candidates of a run."
    parser = command.parser("labels", text, EPILOG, usage=USAGE)
    method = parser.add_argument_group("method (any setting of rnn is a flag too)")
    speed = parser.add_argument_group("work (labels do not depend on it)")
    out = parser.add_argument_group("other forms")
    command.add_request_flags(parser, LabelsRequest, "run", "qrels", "output")
    of_queries = ("index", "topics", "encoded_queries", "encoder")
    command.add_request_flags(parser, LabelsRequest, *of_queries, "relevant", "depth", "pairs", encoded_queries="NPY")
    command.add_request_flags(method, LabelsRequest, "method")
    add_similarity_flags(method, SHOWN)
    command.add_dataclass_flags(method, LabelParams, set(hints_of(LabelParams)) - set(EVERYDAY))
    others = ("validation_qrels", "device", "compute_dtype")
    command.add_request_flags(method, LabelsRequest, *others, validation_qrels="QRELS")
    command.add_request_flags(speed, LabelsRequest, "backend", "address", "jobs", "shard_size", backend="NAME")
    command.add_request_flags(speed, ShareRequest, "shard_id", "shard_num")
    forms = ("tsv", "qrels_output", "highest", "listwise", "list_size", "documents", "fields")
    shown = {"qrels_output": "QRELS", "fields": "NAMES", "audit_output": "HTML"}
    command.add_request_flags(out, LabelsRequest, *forms, "audit", "audit_output", "truth", **shown)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
