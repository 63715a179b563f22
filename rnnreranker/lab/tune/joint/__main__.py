"""`python -m rnnreranker.tune train`: settings of labels and training together, and what they are worth."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.device import AUTO
from rnnreranker.base.method import names
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import number
from rnnreranker.lab.tune.flags import (
    add_candidates,
    add_output_flags,
    add_search_flags,
    add_test_flags,
    check_outputs,
    print_held_out,
    write_outcome,
)
from rnnreranker.lab.tune.joint.request import MODEL, TuneTrainRequest, check

if TYPE_CHECKING:
    from rnnreranker.lab.tune.joint.training import TunedTraining

SHOWN = ("what", "value", "difference", "difference_low", "difference_high")  # of a row of ablations
USAGE = "python -m rnnreranker.tune train --index INDEX --topics TOPICS --qrels QRELS [flags]"
EPILOG = """Queries with positives are cut in three by a hash of their ids: training, validation (which trials
are judged by) and test. `python -m rnnreranker methods NAME` lists settings. Examples:
  python -m rnnreranker.tune train --index my-index --topics train.tsv --qrels train.qrels \\
      --output my.yaml --storage trials
  python -m rnnreranker.tune train --index my-index --topics train.tsv --qrels train.qrels \\
      --method joint:context=40,n_max=8 --model query:epochs=3,batch_size=16 --loss listnet
  python -m rnnreranker.labels --preset my.yaml --run run.txt --index my-index \\
      --topics train.tsv --qrels train.qrels --output labels.parquet
  python -m rnnreranker.train --preset my.yaml --labels labels.parquet --index my-index \\
      --topics train.tsv --encoder minilm --output my-encoder
"""


@command.main
def tune_train(argv: Sequence[str]) -> int:
    """Run `tune train` with the words behind `tune`; the exit code."""
    args = make_parser().parse_args(argv[1:])
    request = command.request(args, TuneTrainRequest)
    check_outputs(args.output, args.record, args.plots)
    check(request, ablations=args.ablations)
    from rnnreranker.lab.tune.joint.training import tune_training

    begun = time.perf_counter()
    tuned = tune_training(request)
    _show(tuned)
    report = tuned.to_dict()
    if args.output:
        tuned.write(args.output)
    if args.ablations:
        report["ablations"] = tuned.ablations()
        print_table(
            [f"{args.measure} held out", "mean", "difference"],
            [
                [name, f"{value:.4f}", interval(*difference)]
                for name, value, *difference in ([row[key] for key in SHOWN] for row in report["ablations"])
            ],
        )
    if args.plots:
        from rnnreranker.lab.tune.plots import write_plots

        rows = {"ablations": report["ablations"]} if args.ablations else {}
        for path in write_plots(args.plots, rows, args.measure, tuned.study, tuned.searched):
            command.say(f"picture: {path}")
    report |= {"seed": args.seed, "final seeds": args.final_seeds}
    write_outcome(args.record, argv, "training", report, begun)
    return 0


def _show(tuned: TunedTraining) -> None:
    print_held_out(tuned.held_out, tuned.request.measure, ("encoder as it is", "trained, default", "trained, tuned"))
    first = tuned.study.history[0]
    command.say(
        f"validation {tuned.params.train.key_measure}: best trial {tuned.study.value:.4f}"
        + (f", default {first:.4f}" if first is not None else "")
    )


def make_parser() -> argparse.ArgumentParser:
    """The flags of `tune train`."""
    text = "Search the settings of labels and of a training that suit a data set."
    parser = command.parser("tune train", text, EPILOG, USAGE)
    parser.add_argument("--index", required=True, help="document vectors: folder, `pydoc`, prebuilt index")
    parser.add_argument("--topics", required=True, help="file (qid<TAB>text), ir_datasets id, `pydoc/train`")
    parser.add_argument("--qrels", required=True, help="sparse judgements: file, ir_datasets id, `pydoc/train`")
    add_candidates(parser, 200)
    text = "grade from which on positive (default: 1)"
    parser.add_argument("--relevant", type=command.positive, default=1, metavar="N", help=text)

    held = parser.add_argument_group("held out")
    for name in ("validation", "test"):
        text = "of the queries (default: 0.25)"
        held.add_argument(f"--{name}-share", type=number, default=0.25, metavar="SHARE", help=text)
    add_test_flags(held, "a share", "of the test: retrieval over the whole index")
    text = "trainings for the test (default: 3)"
    held.add_argument("--final-seeds", type=command.positive, default=3, metavar="N", help=text)

    search = parser.add_argument_group("search (a setting that is given is held, the others are searched)")
    text = f"of the labels: {', '.join(names('labeler'))} (default: evidence)"
    search.add_argument("--method", default="evidence", metavar="NAME", help=text)
    text = f"the training, {MODEL}:epochs=3,batch_size=16 (default: {MODEL})"
    search.add_argument("--model", default=MODEL, metavar="NAME", help=text)
    search.add_argument("--loss", metavar="NAME", help=f"{', '.join(names('loss'))} (default: kl)")
    text = "that is trained: NAME|DIR|hub id[:pooling=cls] (default: the index's)"
    search.add_argument("--encoder", metavar="NAME", help=text)
    add_search_flags(search, 40, "trainings")
    search.add_argument("--device", default="cpu", metavar="NAME", help=f"cpu, cuda, {AUTO} (default: cpu)")

    out = parser.add_argument_group("output")
    add_output_flags(out, "`labels` and `train --preset`", "the course of the trials, and the ablations")
    out.add_argument("--ablations", action="store_true", help="train without each part too, around what was best")
    return parser
