"""`python -m rnnreranker.labels`: a run and sparse judgements to soft labels and other forms of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.settings import ShareRequest
from rnnreranker.labels.make import write_labels
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import LabelsRequest, add_similarity_flags, check, with_flags

EVERYDAY = ("boost", "n_max", "normalization")  # settings of labels that are flags too
METHOD = "method (any setting of rnn is a flag too)"
WORK = "work (labels do not depend on it)"
FLAGS = {  # of a request, by their group in the help
    "": "run qrels output index topics encoded_queries encoder relevant depth pairs",
    METHOD: "method validation_qrels device compute_dtype",
    WORK: "backend address jobs shard_size",
    "other forms": "tsv listwise documents fields truth",
}
SHOWN = ("k", "lam")  # settings of rNN that help shows
EPILOG = """examples (settings of a method, and of labels, stand behind a colon; `rnnreranker methods` lists them):
  python -m rnnreranker.labels --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --method evidence:k=21,include_level=0.1 --n-max 8 --output labels.parquet
  python -m rnnreranker.labels ... --method teacher:teacher=cross-encoder,model=NAME,normalization=none,boost=1
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
    if share is None:
        without = command.counted(made["positives_without_vector"], "positive")
        said = f"{command.counted(made['queries'], 'query', 'queries')}; {without} without a vector left out"
    else:
        said = f"shard {share[0]} of {share[1]}: {command.counted(made['made'], 'shard file')} made, of {made['own']}"
    command.say(f"{args.output}: {said}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Make soft relevance labels for the candidates of a run."
    parser = command.parser("labels", text, EPILOG, usage=USAGE)
    groups = {title: parser.add_argument_group(title) if title else parser for title in FLAGS}
    for title, names in FLAGS.items():
        command.add_flags(groups[title], LabelsRequest, *names.split())
    add_similarity_flags(groups[METHOD], SHOWN)
    command.add_flags(groups[METHOD], LabelParams, *EVERYDAY)
    command.add_flags(groups[WORK], ShareRequest, "shard_id", "shard_num")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
