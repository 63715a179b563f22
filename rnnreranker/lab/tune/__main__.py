"""`python -m rnnreranker.tune`: the settings that suit a query set, and what they are worth on unseen queries."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import refuse, require
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import names
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.lab.tune.request import RERANKER, RULES, LeaveOutRequest, TuneRequest, TuneTrainRequest, check
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.lab.tune.objective import HeldOut

SWEEP_NAMES = ("context", "lambda", "grid", "ablations")
SINGLE = ("index", "topics", "encoded_queries", "qrels", "run", "output", "sweep", "test_topics", "test_run")
SHOWN = ("what", "value", "difference", "difference_low", "difference_high")  # of a row of ablations
TEST = {"test_topics": "TOPICS", "test_qrels": "QRELS", "measure": "NAME", "protocol": "NAME"}
SEARCH = ("trials", "seed", "storage")
PRESET_HELP = "where to begin, and what to compare with: tas-b, vectors, … or a YAML file"
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


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    if command.first_word(argv, ["train"]):
        return tune_train(argv)
    args = make_parser().parse_args(argv)
    begun = time.perf_counter()
    _check(args)
    typed = command.given(args, RnnParams)
    with command.naming_flags(typed):
        RnnParams(**typed)  # each says by its flag what is wrong with it
    typed |= {PRESET: args.preset} if args.preset is not None else {}
    rerank = Written.read(args.rerank).beside(typed, "--rerank")
    (_leave_out if args.collections else _tune)(args, argv, rerank, begun)
    return 0


def tune_train(argv: Sequence[str]) -> int:
    """Run `tune train` with the words behind `tune`; the exit code."""
    args = make_train_parser().parse_args(argv[1:])
    request = command.request(args, TuneTrainRequest)
    _check_outputs(args)
    check(request, ablations=args.ablations)
    from rnnreranker.lab.tune.training import tune_training

    begun = time.perf_counter()
    tuned = tune_training(request)
    _print_held_out(tuned.held_out, args.measure, ("encoder as it is", "trained, default", "trained, tuned"))
    first, best = tuned.study.history[0], f"best trial {tuned.study.value:.4f}"
    default = f", default {first:.4f}" if first is not None else ""
    command.say(f"validation {tuned.params.train.key_measure}: {best}{default}")
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
        rows = {"ablations": report["ablations"]} if args.ablations else {}
        _draw(args, rows, tuned.study, tuned.searched)
    report |= {"seed": args.seed, "final seeds": args.final_seeds}
    _write_outcome(args.record, argv, "training", report, begun)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse flags that do not go together, before any work."""
    if args.collections:
        given = [f"--{name.replace('_', '-')}" for name in SINGLE if getattr(args, name)]
        faults: list[tuple[object, str]] = [
            (True, f"{name} is for one query set: not with --collections") for name in given
        ]
    else:
        lacking = [name for name in ("index", "topics", "qrels") if not getattr(args, name)]
        faults = [(True, f"--{name} is missing") for name in lacking]
        faults.append((args.rule, "--rule chooses over --collections: not for one query set"))
    unknown = [name for name in (args.sweep or "").split(",") if args.sweep and name not in SWEEP_NAMES]
    refuse(
        *faults,
        (not args.trials and not args.sweep, "--trials 0 leaves nothing to do without --sweep"),
        (not args.trials and args.output, "--output is what trials choose: not with --trials 0"),
        (args.plots and not args.sweep, "--plots draws sweeps: give --sweep"),
        (unknown, f"--sweep {', '.join(unknown)}: expected some of {','.join(SWEEP_NAMES)}"),
    )
    _check_outputs(args)


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, before any work."""
    check_writable(args.output, args.record)
    if args.plots:
        require("matplotlib", "--plots", "'rnnreranker[plots]'")


def _tune(args: argparse.Namespace, argv: Sequence[str], rerank: Written, begun: float) -> None:
    from rnnreranker.lab.tune.reranking import tune_reranker

    tuned = tune_reranker(command.request(args, TuneRequest, rerank=rerank))
    report, study, held_out = tuned.to_dict(), tuned.study, tuned.held_out
    if args.output:
        tuned.write(args.output)
    if study is not None and held_out is not None:
        _print_held_out(held_out, args.measure, ("as retrieved", "default", "tuned"))
        how = f"held out by {held_out.how}, {held_out.topics} topics"
        command.say(f"{how}; best trial on all topics: {study.value:.4f}")
        command.say("parameters: " + ", ".join(f"{name}={value}" for name, value in tuned.params.to_dict().items()))
    if args.sweep:
        report["sweeps"] = tuned.sweep(args.sweep.split(","))
        for name, rows in report["sweeps"].items():
            command.say(f"sweep {name}")
            print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
        if args.plots:
            _draw(args, report["sweeps"], study)
    kind, name = ("tuning", "rnn") if args.trials else ("sweep", f"{args.sweep}.{args.measure}")
    inputs = {"index": tuned.objective.contexts.about["vectors"]}
    _write_outcome(args.record, argv, name, report, begun, kind=kind, inputs=inputs)


def _leave_out(args: argparse.Namespace, argv: Sequence[str], rerank: Written, begun: float) -> None:
    from rnnreranker.lab.tune.collections import tune_collections

    tuned = tune_collections(command.request(args, LeaveOutRequest, rerank=rerank, rule=args.rule or "capped"))
    print_table(
        [args.measure, "topics", "as retrieved", "default gains", "chosen elsewhere gains"],
        [
            [
                *(row.name, row.topics, f"{row.base:.4f}"),
                interval(row.default, row.default_low, row.default_high),
                interval(row.chosen, row.chosen_low, row.chosen_high),
            ]
            for row in tuned.cells
        ],
    )
    command.say(f"rule {tuned.rule}: over all cells the default has rank {tuned.rank} of {len(tuned.settings)}")
    name = Path(args.space).stem if args.space else "leave-one-out"
    report = {"measure": args.measure, "seed": args.seed} | tuned.to_dict()
    _write_outcome(args.record, argv, name, report, begun, inputs=tuned.runs)


def _draw(args: argparse.Namespace, rows: Mapping[str, Any], study: Any, searched: str | None = None) -> None:
    from rnnreranker.lab.tune.plots import write_plots

    for path in write_plots(args.plots, dict(rows), args.measure, study, searched):
        command.say(f"picture: {path}")


def _print_held_out(held_out: HeldOut, measure: str, shown: tuple[str, str, str]) -> None:
    """Print the means under the names of base, default and tuned, and the difference of the last two."""
    values = (held_out.base, held_out.default, held_out.tuned)
    print_table(
        [f"{measure} held out", "mean"],
        [
            *([name, f"{value:.4f}"] for name, value in zip(shown, values, strict=True)),
            ["tuned - default", interval(held_out.gain, held_out.low, held_out.high)],
            ["p (paired t-test)", f"{held_out.p:.3f}"],
        ],
    )


def _write_outcome(
    path: str | None,
    argv: Sequence[str],
    name: str,
    outcome: dict[str, Any],
    begun: float,
    *,
    kind: str = "tuning",
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Write the record of a tuning, if a file was given for it; see `record.of_command`."""
    if path:
        from rnnreranker.base.record import of_command, write_records

        made: dict[str, Any] = {"room": "tune", "argv": argv, "begun": begun, "without": UNRECORDED}
        write_records(path, [of_command(kind, name, outcome, inputs=inputs, **made)])


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("tune", "Search the settings of rNN reranking that suit a query set.", EPILOG, USAGE)
    flags.add_index(parser, required=False)
    flags.add_topics(parser)
    parser.add_argument("--qrels", help=flags.QRELS)
    command.add_request_flags(parser, TuneRequest, "run", "hits")
    flags.add_encoder(parser)
    text = "cells (name: {index: …, topics: …, qrels: …, run: …}), each left out in turn"
    parser.add_argument("--collections", metavar="FILE.yaml", help=text)
    text = "what chooses among settings: mean gain over cells, or capped: losses weigh more (default)"
    parser.add_argument("--rule", choices=RULES, metavar="NAME", help=text)

    held = parser.add_argument_group("held out")
    command.add_request_flags(held, TuneRequest, "folds", *TEST, "test_run", **TEST, test_run="RUN")
    search = parser.add_argument_group("search (a setting that is given is held, all others are searched)")
    text = f"rnn:key=value,… with what is held (default: {RERANKER}; each setting is a flag too)"
    search.add_argument("--rerank", default=RERANKER, metavar="NAME", help=text)
    command.add_dataclass_flags(search, RnnParams, shown=())
    command.add_request_flags(search, TuneRequest, "space", *SEARCH, "threads", space="FILE.yaml", storage="FILE")
    search.add_argument("--preset", metavar="NAME", help=PRESET_HELP)
    command.add_request_flags(search, TuneRequest, "device", "compute_dtype")

    out = parser.add_argument_group("output")
    _add_output_flags(out, "`search --preset FILE.yaml`", "the sweeps and the course of the trials")
    out.add_argument("--sweep", metavar="NAMES", help=f"around these settings: some of {','.join(SWEEP_NAMES)}")
    return parser


def make_train_parser() -> argparse.ArgumentParser:
    """The flags of `tune train`."""
    text = "Search the settings of labels and of a training that suit a data set."
    parser = command.parser("tune train", text, TRAIN_EPILOG, TRAIN_USAGE)
    parser.add_argument("--index", required=True, help="document vectors: folder, `pydoc`, prebuilt index")
    parser.add_argument("--topics", required=True, help="file (qid<TAB>text), ir_datasets id, `pydoc/train`")
    parser.add_argument("--qrels", required=True, help="sparse judgements: file, ir_datasets id, `pydoc/train`")
    command.add_request_flags(parser, TuneTrainRequest, "run", "hits", "relevant")

    held = parser.add_argument_group("held out")
    own = {"validation_share": "SHARE", "test_share": "SHARE", **TEST}
    command.add_request_flags(held, TuneTrainRequest, *own, "final_seeds", **own)
    search = parser.add_argument_group("search (a setting that is given is held, the others are searched)")
    text = f"of the labels: {', '.join(names('labeler'))} (default: evidence)"
    search.add_argument("--method", default="evidence", metavar="NAME", help=text)
    search.add_argument("--loss", metavar="NAME", help=f"{', '.join(names('loss'))} (default: kl)")
    own = dict.fromkeys(("model", "encoder", "device"), "NAME")
    command.add_request_flags(search, TuneTrainRequest, *own, *SEARCH, **own, storage="FILE")
    search.add_argument("--preset", metavar="NAME", help=PRESET_HELP)

    out = parser.add_argument_group("output")
    _add_output_flags(out, "`labels` and `train --preset`", "the course of the trials, and the ablations")
    out.add_argument("--ablations", action="store_true", help="train without each part too, around what was best")
    return parser


def _add_output_flags(group: Any, readers: str, drawn: str) -> None:
    """The flags of what is written: the settings for `readers`, the record, pictures of what is `drawn`."""
    group.add_argument("--output", metavar="FILE.yaml", help=f"the settings that were best, for {readers}")
    group.add_argument("--record", metavar="FILE.json", help="write the record of the tuning")
    group.add_argument("--plots", metavar="DIR", help=f"pictures of {drawn}")


if __name__ == "__main__":
    raise SystemExit(command.run(main))
