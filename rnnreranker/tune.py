"""`python -m rnnreranker.tune`: search settings for a query set and measure them on unseen queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import check_writable
from rnnreranker.base.settings import Request, setting
from rnnreranker.lab.shared import print_report, recorded
from rnnreranker.lab.tune.request import TuneRequest, TuneTrainRequest
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

HELD = ("test_topics", "test_qrels", "protocol")
SEARCH = ("trials", "seed", "storage")
UNRECORDED = ("--record", "--output", "--storage")  # they say where this machine keeps things
RNN_SHOWN = ("as retrieved", "default", "tuned")  # names of the means of base, default and tuned
TRAINING_SHOWN = ("encoder as it is", "trained, default", "trained, tuned")
USAGE = "python -m rnnreranker.tune --index INDEX --topics TOPICS --qrels QRELS [flags]"
EPILOG = """The value printed is held out. Examples (`python -m rnnreranker methods rnn` lists the settings):
  python -m rnnreranker.tune --index my-index --topics train.tsv --qrels train.qrels --output my.yaml
  python -m rnnreranker.search --index my-index --topics test.tsv --preset my.yaml --output run.txt
  python -m rnnreranker.tune --index my-index --topics dl19.tsv --qrels dl19.qrels --run bm25.txt \\
      --test-topics dl20.tsv --test-qrels dl20.qrels --rerank rnn:context=100,tau=0.5 --storage trials
  python -m rnnreranker.tune --collections cells.yaml --space space.yaml --trials 300
  python -m rnnreranker.tune train --help      the settings of labels and of training, together
"""
TRAIN_USAGE = "python -m rnnreranker.tune train --index INDEX --topics TOPICS --qrels QRELS [flags]"
TRAIN_EPILOG = """Trials train on the first fold of a study, a quarter of its training queries judge them, and its test
queries give the printed values. `python -m rnnreranker methods NAME` lists settings. Examples:
  python -m rnnreranker.tune train --index my-index --topics train.tsv --qrels train.qrels \\
      --output my.yaml --storage trials
  python -m rnnreranker.tune train --index my-index --topics train.tsv --qrels train.qrels \\
      --arms 'mine:labels="joint:context=40,n_max=8"' --model query:epochs=3,batch_size=16 --loss margin
  python -m rnnreranker.labels --preset my.yaml --run run.txt --index my-index \\
      --topics train.tsv --qrels train.qrels --output labels.parquet
  python -m rnnreranker.train --preset my.yaml --labels labels.parquet --index my-index \\
      --topics train.tsv --encoder minilm --output my-encoder
"""


@dataclass(frozen=True)
class TuneFlags(Request):
    """Flags of the command alone."""

    preset: str | None = setting(
        None, "where to begin, and what to compare with: tas-b, vectors, … or a YAML file", metavar="NAME"
    )
    output: str | None = setting(None, "the settings that were best, for `--preset FILE.yaml`", metavar="FILE.yaml")
    record: str | None = setting(None, "write the record of the tuning", metavar="FILE.json")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    training = list(argv[:1]) == ["train"]
    args = (make_train_parser() if training else make_parser()).parse_args(argv[training:])
    given = command.request(args, TuneFlags)
    if training:
        request: Any = command.request(args, TuneTrainRequest)
    else:
        request = command.request(args, TuneRequest, rerank=flags.with_rnn(args, args.rerank, "--rerank"))
    cells = not training and request.collections
    if given.output and (cells or not request.trials):
        raise InputError("--output is what trials of one query set choose: not with --collections or --trials 0")
    check_writable(given.output)
    with recorded(given.record, "tune", "tuning", argv, without=UNRECORDED) as record:
        if cells:
            from rnnreranker.lab.tune.collections import leave_one_out

            record["name"] = Path(str(request.space)).stem if request.space else "leave-one-out"
            outcome, record["inputs"] = leave_one_out(request)
            record["outcome"] = {"measure": request.measure, "seed": request.seed, **outcome}
            print_report("collections", measure=request.measure, **outcome)
            return 0
        from rnnreranker.lab.tune.reranking import tune_reranker
        from rnnreranker.lab.tune.training import tune_training

        tuned = tune_training(request) if training else tune_reranker(request)
        record |= {"name": "training" if training else "rnn", "outcome": tuned.to_dict(), "inputs": tuned.inputs}
        if not request.trials:
            record |= {"kind": "sweep", "name": f"{args.sweep}.{args.measure}"}
    if given.output:
        tuned.write(given.output)
    print_report("tuning", shown=TRAINING_SHOWN if training else RNN_SHOWN, **vars(tuned))
    return 0


def make_parser() -> Any:
    """The parser of the command."""
    parser = command.parser("tune", "Search the settings of rNN reranking that suit a query set.", EPILOG, USAGE)
    add = command.add_flags
    own = ("index", "topics", "qrels", "run", "hits", "encoded_queries", "encoder", "collections")
    add(parser, TuneRequest, *own)
    held = ("folds", *HELD, "measure", "test_run")
    add(parser.add_argument_group("held out"), TuneRequest, *held)
    group = parser.add_argument_group("search (a setting that is given is held, all others are searched)")
    add(group, TuneRequest, "rerank")
    add(group, RnnParams, shown=())
    add(group, TuneRequest, "space", *SEARCH, "threads", "device", "compute_dtype", "sweep")
    add(group, TuneFlags, "preset")
    add(parser.add_argument_group("output"), TuneFlags, "output", "record")
    return parser


def make_train_parser() -> Any:
    """The parser of `tune train`."""
    text = "Search the settings of labels and of a training that suit a data set."
    parser = command.parser("tune train", text, TRAIN_EPILOG, TRAIN_USAGE)
    add = command.add_flags
    add(parser, TuneTrainRequest, "index", "topics", "qrels", "relevant", "all_positives", "labelled_queries")
    held = ("folds", "splits", *HELD, "measures", "seeds")
    add(parser.add_argument_group("held out"), TuneTrainRequest, *held)
    group = parser.add_argument_group("search (a setting that is given is held, the others are searched)")
    add(group, TuneTrainRequest, "arms", "context", "loss", "model", "encoder", "device", *SEARCH)
    add(parser.add_argument_group("output"), TuneFlags, "output", "record")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
