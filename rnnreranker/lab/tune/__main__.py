"""`python -m rnnreranker.tune`: the settings that suit a query set, and what they are worth on unseen queries."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.device import add_flags as add_device_flags
from rnnreranker.base.errors import refuse
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import whole
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.lab.tune.choice_rules import RULES, RULES_HELP
from rnnreranker.lab.tune.flags import (
    add_candidates,
    add_output_flags,
    add_search_flags,
    add_test_flags,
    check_outputs,
    print_held_out,
    write_outcome,
)
from rnnreranker.lab.tune.request import RERANKER, LeaveOutRequest, TuneRequest
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.lab.tune.reranking import TunedReranking

SWEEP_NAMES = ("context", "lambda", "grid", "ablations")
SINGLE = ("index", "topics", "encoded_queries", "qrels", "run", "output", "sweep", "test_topics", "test_run")
USAGE = "python -m rnnreranker.tune --index INDEX --topics TOPICS --qrels QRELS [flags]"
EPILOG = """The value printed is held out. Examples (`python -m rnnreranker methods rnn` lists the settings):
  python -m rnnreranker.tune --index my-index --topics train.tsv --qrels train.qrels --output my.yaml
  python -m rnnreranker.search --index my-index --topics test.tsv --preset my.yaml --output run.txt
  python -m rnnreranker.tune --index my-index --topics dl19.tsv --qrels dl19.qrels --run bm25.txt \\
      --test-topics dl20.tsv --test-qrels dl20.qrels --rerank rnn:context=100,tau=0.5 --storage trials
  python -m rnnreranker.tune --collections cells.yaml --space space.yaml --trials 300
  python -m rnnreranker.tune train --help      the settings of labels and of training, together
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    if command.first_word(argv, ["train"]):
        from rnnreranker.lab.tune.joint.__main__ import tune_train

        return tune_train(argv)
    args = make_parser().parse_args(argv)
    begun = time.perf_counter()
    _check(args)
    typed = command.given(args, RnnParams)
    with command.naming_flags(typed):
        RnnParams(**typed)  # each says by its flag what is wrong with it
    typed |= {PRESET: args.preset} if args.preset is not None else {}
    rerank = Written.read(args.rerank).beside(typed, "--rerank")
    if args.collections:
        _leave_out(args, argv, rerank, begun)
    else:
        _tune(args, argv, rerank, begun)
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
        (not args.trials and args.output, "--output is what trials find: not with --trials 0"),
        (args.plots and not args.sweep, "--plots draws sweeps: give --sweep"),
        (unknown, f"--sweep {', '.join(unknown)}: expected some of {','.join(SWEEP_NAMES)}"),
    )
    check_outputs(args.output, args.record, args.plots)


def _tune(args: argparse.Namespace, argv: Sequence[str], rerank: Written, begun: float) -> None:
    from rnnreranker.lab.tune.reranking import tune_reranker

    tuned = tune_reranker(command.request(args, TuneRequest, rerank=rerank))
    report = tuned.to_dict()
    if args.output:
        tuned.write(args.output)
    _show(tuned)
    if args.sweep:
        report["sweeps"] = tuned.sweep(args.sweep.split(","))
        for name, rows in report["sweeps"].items():
            command.say(f"sweep {name}")
            print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
        if args.plots:
            from rnnreranker.lab.tune.plots import write_plots

            for path in write_plots(args.plots, report["sweeps"], args.measure, tuned.study):
                command.say(f"picture: {path}")
    kind, name = ("tuning", "rnn") if args.trials else ("sweep", f"{args.sweep}.{args.measure}")
    inputs = {"index": tuned.objective.contexts.about["vectors"]}
    write_outcome(args.record, argv, name, report, begun, kind=kind, inputs=inputs)


def _show(tuned: TunedReranking) -> None:
    study, held_out = tuned.study, tuned.held_out
    if study is None or held_out is None:
        return
    print_held_out(held_out, tuned.request.measure, ("as retrieved", "default", "tuned"))
    command.say(f"held out by {held_out.how}, {held_out.topics} topics; best trial on all topics: {study.value:.4f}")
    command.say("parameters: " + ", ".join(f"{name}={value}" for name, value in tuned.params.to_dict().items()))


def _leave_out(args: argparse.Namespace, argv: Sequence[str], rerank: Written, begun: float) -> None:
    from rnnreranker.lab.tune.reranking import tune_collections

    tuned = tune_collections(command.request(args, LeaveOutRequest, rerank=rerank, rule=args.rule or "capped"))
    search = tuned.search
    print_table(
        [args.measure, "topics", "as retrieved", "default gains", "chosen elsewhere gains"],
        [
            [
                *(row.name, row.topics, f"{row.base:.4f}"),
                interval(row.default, row.default_low, row.default_high),
                interval(row.chosen, row.chosen_low, row.chosen_high),
            ]
            for row in search.cells
        ],
    )
    command.say(f"rule {search.rule}: over all cells the default has rank {search.rank} of {len(search.settings)}")
    name = Path(args.space).stem if args.space else "leave-one-out"
    write_outcome(args.record, argv, name, tuned.to_dict(), begun, inputs=tuned.runs)


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("tune", "Search the settings of rNN reranking that suit a query set.", EPILOG, USAGE)
    flags.add_index(parser, required=False)
    flags.add_topics(parser)
    parser.add_argument("--qrels", help=flags.QRELS)
    add_candidates(parser, 100)
    flags.add_encoder(parser)
    text = "cells (name: {index: …, topics: …, qrels: …, run: …}), each left out in turn"
    parser.add_argument("--collections", metavar="FILE.yaml", help=text)
    parser.add_argument("--rule", choices=tuple(RULES), metavar="NAME", help=RULES_HELP)

    held = parser.add_argument_group("held out")
    text = "of the cross-validation (default: 5)"
    held.add_argument("--folds", type=command.positive, default=5, metavar="N", help=text)
    add_test_flags(held, "cross-validation", "what is maximised")
    held.add_argument("--test-run", metavar="RUN", help="candidates of --test-topics (default: retrieved densely)")

    search = parser.add_argument_group("search (a setting that is given is held, all others are searched)")
    text = f"rnn:key=value,… with what is held (default: {RERANKER}; each setting is a flag too)"
    search.add_argument("--rerank", default=RERANKER, metavar="NAME", help=text)
    command.add_dataclass_flags(search, RnnParams, shown=())
    text = "ranges in place of the default ones"
    search.add_argument("--space", metavar="FILE.yaml", help=text)
    add_search_flags(search, 200, "of every study; 0 = sweeps alone", whole)
    text = "default: one per core; results do not depend on it"
    search.add_argument("--threads", type=command.positive, metavar="N", help=text)
    add_device_flags(search, "queries")

    out = parser.add_argument_group("output")
    add_output_flags(out, "`search --preset FILE.yaml`", "the sweeps and the course of the trials")
    out.add_argument("--sweep", metavar="NAMES", help=f"around these settings: some of {','.join(SWEEP_NAMES)}")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
