"""`python -m rnnreranker.tune`: search settings for a query set and measure them on unseen queries."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import refuse, require
from rnnreranker.base.files import check_writable
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.base.tables import interval, print_table
from rnnreranker.data.names import QRELS, TOPICS
from rnnreranker.lab.tune.request import PRESET_HELP, RULES, LeaveOutRequest, TuneRequest, TuneTrainRequest, check
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags
from rnnreranker.search.defaults import INDEX

if TYPE_CHECKING:
    from rnnreranker.lab.tune.trials import Tuned

SWEEP_NAMES = ("context", "lambda", "grid", "ablations")
SINGLE = ("index", "topics", "encoded_queries", "qrels", "run", "output", "sweep", "test_topics", "test_run")
TEST = ("test_topics", "test_qrels", "measure", "protocol")
SEARCH = ("trials", "seed", "storage")
OUTPUTS = ("output", "record", "plots")
UNRECORDED = ("--record", "--output", "--plots", "--storage")  # they say where this machine keeps things
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
TRAIN_EPILOG = """Queries with positives are cut in three by a hash of their ids: training, validation (which trials
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


@dataclass(frozen=True)
class TuneFlags(Request):
    """Flags of the command alone, and fields that only some requests have."""

    index: str | None = setting(None, INDEX)
    topics: str | None = setting(None, TOPICS)
    qrels: str | None = setting(None, QRELS)
    collections: str | None = setting(
        None, "cells (name: {index: …, topics: …, qrels: …, run: …}), each left out in turn", metavar="FILE.yaml"
    )
    rule: str | None = setting(
        None, "of --collections (default: capped, losses weigh more)", one_of=lambda: [*RULES], metavar="NAME"
    )
    preset: str | None = setting(None, PRESET_HELP, metavar="NAME")
    output: str | None = setting(None, "the settings that were best, for `--preset FILE.yaml`", metavar="FILE.yaml")
    record: str | None = setting(None, "write the record of the tuning", metavar="FILE.json")
    plots: str | None = setting(None, "pictures of the course of the trials, and of sweeps or ablations", metavar="DIR")
    sweep: str | None = setting(None, f"around these settings: some of {','.join(SWEEP_NAMES)}", metavar="NAMES")
    ablations: bool = setting(False, "train without each part too, around what was best")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    begun = time.perf_counter()
    if command.first_word(argv, ["train"]):
        return tune_train(argv, begun)
    args = make_parser().parse_args(argv)
    flags_given = command.request(args, TuneFlags)
    _check(flags_given, args.trials, [name for name in SINGLE if getattr(args, name)])
    rerank = flags.with_rnn(args, args.rerank, "--rerank")
    if flags_given.collections:
        request = command.request(args, LeaveOutRequest, rerank=rerank, rule=args.rule or "capped")
        _leave_out(flags_given, request, argv, begun)
        return 0
    from rnnreranker.lab.tune.reranking import tune_reranker

    tuned = tune_reranker(command.request(args, TuneRequest, rerank=rerank))
    names = flags_given.sweep.split(",") if flags_given.sweep else []
    report = _report(flags_given, tuned, args.measure, ("as retrieved", "default", "tuned"), names)
    kind, name = ("tuning", "rnn") if args.trials else ("sweep", f"{args.sweep}.{args.measure}")
    _write_outcome(flags_given.record, argv, name, report, begun, kind=kind, inputs=tuned.inputs)
    return 0


def tune_train(argv: Sequence[str], begun: float) -> int:
    """Run `tune train` with the words after `tune`; return the exit code."""
    args = make_train_parser().parse_args(argv[1:])
    flags_given, request = command.request(args, TuneFlags), command.request(args, TuneTrainRequest)
    _check_outputs(flags_given)
    check(request, ablations=args.ablations)
    from rnnreranker.lab.tune.training import tune_training

    tuned, shown = tune_training(request), ("encoder as it is", "trained, default", "trained, tuned")
    report = _report(flags_given, tuned, args.measure, shown, ["ablations"] if args.ablations else [])
    report |= report.pop("sweeps", {})
    _write_outcome(flags_given.record, argv, "training", report, begun)
    return 0


def _check(given: TuneFlags, trials: int, single: Sequence[str]) -> None:
    """Refuse flags that exclude each other; single: the given flags that only fit one query set."""
    if given.collections:
        faults: list[tuple[object, str]] = [
            (True, f"{flag(name)} is for one query set: not with --collections") for name in single
        ]
    else:
        lacking = [name for name in ("index", "topics", "qrels") if not getattr(given, name)]
        faults = [(True, f"--{name} is missing") for name in lacking]
        faults.append((given.rule, "--rule chooses over --collections: not for one query set"))
    unknown = [name for name in (given.sweep or "").split(",") if given.sweep and name not in SWEEP_NAMES]
    refuse(
        *faults,
        (not trials and not given.sweep, "--trials 0 leaves nothing to do without --sweep"),
        (not trials and given.output, "--output is what trials choose: not with --trials 0"),
        (unknown, f"--sweep {', '.join(unknown)}: expected some of {','.join(SWEEP_NAMES)}"),
    )
    _check_outputs(given)


def _check_outputs(given: TuneFlags) -> None:
    check_writable(given.output, given.record)
    if given.plots:
        require("matplotlib", "--plots", "'rnnreranker[plots]'")


def _report(
    given: TuneFlags, tuned: Tuned, measure: str, shown: tuple[str, str, str], sweeps: Sequence[str]
) -> dict[str, Any]:
    """Write and print the result of a tuning and its sweeps; return the outcome of its record.

    shown: names of the means of base, default and tuned.
    """
    report, study, held_out = tuned.to_dict(), tuned.study, tuned.held_out
    if given.output:
        tuned.write(given.output)
    if study:
        print_table(
            [f"{measure} held out", "mean"],
            [
                *([name, f"{held_out[of]:.4f}"] for name, of in zip(shown, ("base", "default", "tuned"), strict=True)),
                ["tuned - default", interval(held_out["gain"], held_out["low"], held_out["high"])],
                ["p (paired t-test)", f"{held_out['p']:.3f}"],
            ],
        )
        first = study.history[0]
        default = "" if first is None else f", default {first:.4f}"
        command.say(f"held out by {held_out['how']}, {held_out['topics']} topics")
        command.say(f"{tuned.searched or 'all topics'}: best trial {study.value:.4f}{default}")
    if sweeps:
        report["sweeps"] = tuned.sweep(sweeps)
        for name, rows in report["sweeps"].items():
            command.say(f"sweep {name}")
            print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
    if given.plots:
        from rnnreranker.lab.tune.plots import write_plots

        for path in write_plots(given.plots, report.get("sweeps", {}), measure, study, tuned.searched):
            command.say(f"picture: {path}")
    return report


def _leave_out(given: TuneFlags, request: LeaveOutRequest, argv: Sequence[str], begun: float) -> None:
    from rnnreranker.lab.tune.collections import tune_collections

    outcome, inputs = tune_collections(request)
    print_table(
        [request.measure, "topics", "as retrieved", "default gains", "chosen elsewhere gains"],
        [
            [
                *(row["name"], row["topics"], f"{row['base']:.4f}"),
                *(interval(*(row[f"{what}{end}"] for end in ("", "_low", "_high"))) for what in ("default", "chosen")),
            ]
            for row in outcome["cells"]
        ],
    )
    rank, settings = outcome["place"], outcome["settings"]
    command.say(f"rule {request.rule}: over all cells the default has rank {rank} of {settings}")
    name = Path(str(request.space)).stem if request.space else "leave-one-out"
    report = {"measure": request.measure, "seed": request.seed} | outcome
    _write_outcome(given.record, argv, name, report, begun, inputs=inputs)


def _write_outcome(path: str | None, argv: Sequence[str], name: str, outcome: Any, begun: float, **more: Any) -> None:
    """Write the record of a tuning if a file is given; see `record.of_command`."""
    if path:
        from rnnreranker.base.record import of_command, write_records

        made: dict[str, Any] = {"module": "tune", "argv": argv, "begun": begun, "without": UNRECORDED}
        write_records(path, [of_command(name=name, outcome=outcome, **{"kind": "tuning", **made, **more})])


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = command.parser("tune", "Search the settings of rNN reranking that suit a query set.", EPILOG, USAGE)
    add = command.add_request_flags
    add(parser, TuneFlags, "index", "topics")
    add(parser, TuneRequest, "encoded_queries")
    add(parser, TuneFlags, "qrels")
    add(parser, TuneRequest, "run", "hits", "encoder")
    add(parser, TuneFlags, "collections", "rule")
    held = parser.add_argument_group("held out")
    add(held, TuneRequest, "folds", *TEST, "test_run")
    group = parser.add_argument_group("search (a setting that is given is held, all others are searched)")
    add(group, TuneRequest, "rerank")
    command.add_dataclass_flags(group, RnnParams, shown=())
    add(group, TuneRequest, "space", *SEARCH, "threads")
    add(group, TuneFlags, "preset")
    add(group, TuneRequest, "device", "compute_dtype")
    add(parser.add_argument_group("output"), TuneFlags, *OUTPUTS, "sweep")
    return parser


def make_train_parser() -> argparse.ArgumentParser:
    """The parser of `tune train`."""
    text = "Search the settings of labels and of a training that suit a data set."
    parser = command.parser("tune train", text, TRAIN_EPILOG, TRAIN_USAGE)
    add = command.add_request_flags
    add(parser, TuneTrainRequest, "index", "topics", "qrels", "run", "hits", "relevant")
    held = parser.add_argument_group("held out")
    add(held, TuneTrainRequest, "validation_share", "test_share", *TEST, "final_seeds")
    group = parser.add_argument_group("search (a setting that is given is held, the others are searched)")
    add(group, TuneTrainRequest, "method", "loss", "model", "encoder", "device", *SEARCH, "preset")
    add(parser.add_argument_group("output"), TuneFlags, *OUTPUTS, "ablations")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
