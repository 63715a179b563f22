"""`python -m rnnreranker.tune`: the parameters that suit a query set, and what they are worth on unseen queries."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import whole
from rnnreranker.lab.tune.choice_rules import RULES, RULES_HELP
from rnnreranker.lab.tune.flags import (
    add_output_flags,
    add_search_flags,
    add_test_flags,
    check_flags,
    print_held_out,
    say_if_few,
    write_outcome,
)
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.lab.tune.heldout import HeldOut
    from rnnreranker.lab.tune.objective import Objective
    from rnnreranker.lab.tune.space import Space
    from rnnreranker.lab.tune.trials import Study
    from rnnreranker.search.indexes import Index

FEW = 50  # topics below which the best of many trials is mostly luck
SWEEP_NAMES = ("context", "lambda", "grid", "ablations")
EPILOG = """The value printed is held out: by cross-validation within the query set, or on --test-topics. A parameter
typed as a flag is held at that value; all others are searched (paper 000's ranges, with scale and weight besides).

examples:
  python -m rnnreranker.tune --index my-index --topics train.tsv --qrels train.qrels --output my.yaml
  python -m rnnreranker.tune --index my-index --topics dl19.tsv --qrels dl19.qrels --test-topics dl20.tsv \\
      --test-qrels dl20.qrels --output my.yaml
  python -m rnnreranker.search --index my-index --topics test.tsv --preset my.yaml --output run.txt

`python -m rnnreranker.tune train --help`: the parameters of labels and of training, together.
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    if command.first_word(argv, ["train"]):
        from rnnreranker.lab.tune.joint.command import training_parser, tune_training

        return tune_training(training_parser().parse_args(argv[1:]), argv)
    args = make_parser().parse_args(argv)
    _check(args)
    return _leave_one_out(args, argv) if args.collections else _tune_reranking(args, argv)


def _tune_reranking(args: argparse.Namespace, argv: Sequence[str]) -> int:
    from rnnreranker.data.topics import check_held_out
    from rnnreranker.lab.tune.query_set import judged_topics, load_objective
    from rnnreranker.search.indexes import open_index

    if args.test_topics:
        check_held_out(judged_topics(args.topics, args.qrels), judged_topics(args.test_topics, args.test_qrels))
    begun = time.perf_counter()
    index = open_index(args.index)
    objective = load_objective(args, index, args.topics, args.qrels, args.run, args.encoded_queries)
    space = _space(args).within(objective.contexts.deepest)
    command.say(f"{command.counted(len(objective.topics), 'topic')} with judgements and candidates")
    if objective.lacking:
        command.say(f"{command.counted(objective.lacking, 'judged topic')} without candidates, left out")
    say_if_few(len(objective.topics), "topics", FEW)

    report: dict[str, Any] = {"measure": args.measure, "protocol": args.protocol, "topics": len(objective.topics)}
    study = None
    if args.trials:
        study, held_out = _tuned(args, space, objective, index)
        _show(held_out, study, args.measure)
        report |= {"study": dataclasses.asdict(study), "held out": dataclasses.asdict(held_out), "seed": args.seed}
    if args.sweep:
        from rnnreranker.lab.tune.sweeps import sweep

        found = sweep(args.sweep.split(","), objective, study.params if study else space.fixed)
        for name, rows in found.items():
            command.say(f"sweep {name}")
            print_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
        report["sweeps"] = found
        if args.plots:
            from rnnreranker.lab.tune.plots import write_plots

            for path in write_plots(args.plots, found, args.measure, study):
                command.say(f"picture: {path}")
    kind, name = ("tuning", "rnn") if args.trials else ("sweep", f"{args.sweep}.{args.measure}")
    write_outcome(args, argv, name, report, begun, kind=kind, inputs={"index": index.vectors.fingerprint})
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("tune", "Search the parameters of rNN reranking that suit a query set.", EPILOG)
    flags.add_index(parser, required=False)
    what = parser.add_argument_group("query set")
    flags.add_topics(what)
    what.add_argument("--qrels", help=flags.QRELS)
    what.add_argument("--run", help="candidates (default: retrieved densely)")
    what.add_argument("--hits", type=command.positive, default=100, help="candidates per query (default: 100)")
    what.add_argument("--max-context", type=command.positive, default=1000, help="largest context (default: 1000)")
    what.add_argument(
        "--collections",
        metavar="FILE.yaml",
        help="cells (name: {index: …, topics: …, qrels: …, run: …, collection: …}): choose on all collections but one, "
        "measure on the cells of that one",
    )
    what.add_argument("--rule", choices=tuple(RULES), help=f"with --collections: {RULES_HELP} (default: capped)")

    held = parser.add_argument_group("held out")
    held.add_argument("--folds", type=command.positive, default=5, help="of the cross-validation (default: 5)")
    add_test_flags(held, "cross-validation", "what is maximised")
    held.add_argument("--test-run", help="candidates of --test-topics (default: retrieved densely)")

    flags.add_encoder(parser)

    search = parser.add_argument_group("search")
    search.add_argument("--trials", type=whole, default=200, help="of every study; 0 = sweeps alone (default: 200)")
    search.add_argument("--space", metavar="FILE.yaml", help="ranges to search in place of the default ones")
    add_search_flags(search)
    held_still = parser.add_argument_group("parameters held at a value (all others are searched)")
    command.add_dataclass_flags(held_still, RnnParams)

    out = parser.add_argument_group("output")
    add_output_flags(out, "`search --preset FILE.yaml`", "the sweeps and the course of the trials")
    out.add_argument("--sweep", metavar="NAMES", help=f"any of {','.join(SWEEP_NAMES)}: around the parameters found")
    out.add_argument("--threads", type=command.positive, help="default: one per core; results do not depend on it")
    return parser


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    single = {"--index": args.index, "--topics": args.topics, "--qrels": args.qrels}
    if args.collections:
        more = single | {"--run": args.run, "--output": args.output, "--sweep": args.sweep}
        more |= {"--test-topics": args.test_topics}
        faults = [(value, f"{name} is for one query set: not with --collections") for name, value in more.items()]
    else:
        faults = [(not value, f"{name} is missing") for name, value in single.items()]
        faults.append((args.rule, "--rule chooses over --collections: not for one query set"))
    unknown = [name for name in (args.sweep or "").split(",") if args.sweep and name not in SWEEP_NAMES]
    check_flags(
        args,
        *faults,
        (args.trials < 0, f"--trials {args.trials}: expected 0 or more"),
        (not args.trials and not args.sweep, "--trials 0 leaves nothing to do without --sweep"),
        (not args.trials and args.output, "--output is what trials find: not with --trials 0"),
        (args.test_run and not args.test_topics, "--test-run needs --test-topics and --test-qrels"),
        (args.folds < 2, f"--folds {args.folds}: expected 2 or more"),
        (args.plots and not args.sweep, "--plots draws sweeps: give --sweep"),
        (unknown, f"--sweep {', '.join(unknown)}: expected some of {','.join(SWEEP_NAMES)}"),
    )


def _space(args: argparse.Namespace) -> Space:
    """The ranges of --space or the default ones, with the parameters that were typed held still."""
    from rnnreranker.lab.tune.space import Space

    fixed = RnnParams.named(args.preset) if args.preset else RnnParams()
    space = Space.from_yaml(args.space, fixed) if args.space else Space(fixed=fixed)
    return space.keeping(**command.given(args, RnnParams))


def _leave_one_out(args: argparse.Namespace, argv: Sequence[str]) -> int:
    begun = time.perf_counter()
    from rnnreranker.lab.tune.leave_out import leave_one_out, read_collections
    from rnnreranker.lab.tune.query_set import load_objective
    from rnnreranker.search.indexes import open_index

    cells = read_collections(args.collections)
    objectives: dict[str, Objective] = {}
    opened: dict[str, Index] = {}
    for name, entry in cells.items():
        own = argparse.Namespace(**vars(args))
        own.protocol, own.encoder = entry.get("protocol", args.protocol), entry.get("encoder", args.encoder)
        if entry["index"] not in opened:
            opened[entry["index"]] = open_index(entry["index"])
        index, run = opened[entry["index"]], entry.get("run")
        objectives[name] = load_objective(own, index, entry["topics"], entry["qrels"], run)
    found = leave_one_out(
        objectives,
        _space(args),
        args.trials,
        args.seed,
        collections={name: entry.get("collection", name) for name, entry in cells.items()},
        rule=args.rule or "capped",
        storage=args.storage,
    )
    print_table(
        [args.measure, "topics", "as retrieved", "default gains", "chosen elsewhere gains"],
        [
            [
                *(row.name, row.topics, f"{row.base:.4f}"),
                interval(row.default, row.default_low, row.default_high),
                interval(row.chosen, row.chosen_low, row.chosen_high),
            ]
            for row in found.cells
        ],
    )
    command.say(f"rule {found.rule}: over all cells the default has place {found.place} of {len(found.settings)}")
    report = {"measure": args.measure, "settings": len(found.settings), "seed": args.seed, **found.to_dict()}
    runs = {name: objective.contexts.about["run"] for name, objective in objectives.items()}
    name = Path(args.space).stem if args.space else "leave-one-out"
    write_outcome(args, argv, name, report, begun, inputs=runs)
    return 0


def _tuned(args: argparse.Namespace, space: Space, objective: Objective, index: Index) -> tuple[Study, HeldOut]:
    from rnnreranker.lab.tune.heldout import cross_validate, on_test_set, tune
    from rnnreranker.lab.tune.preset import write_preset
    from rnnreranker.lab.tune.query_set import load_objective

    started = time.perf_counter()
    study = tune(objective, space, args.trials, seed=args.seed, storage=args.storage)
    if args.test_topics:
        test = load_objective(args, index, args.test_topics, args.test_qrels, args.test_run)
        held_out = on_test_set(study, space, test, len(objective.topics))
    else:
        held_out = cross_validate(objective, space, args.trials, args.folds, seed=args.seed, storage=args.storage)
    command.say(f"{study.trials} trials a study, {time.perf_counter() - started:.1f} s")
    if args.output:
        about = {
            "index": args.index,
            "topics": f"{args.topics} ({len(objective.topics)} judged)",
            "candidates": args.run or f"dense, {args.hits} hits",
            "measure": f"{args.measure}, protocol {args.protocol}",
            "seed": args.seed,
        }
        write_preset(args.output, study, held_out, about)
    return study, held_out


def _show(held_out: HeldOut, study: Study, measure: str) -> None:
    print_held_out(held_out, measure, ("as retrieved", "default", "tuned"))
    command.say(f"held out by {held_out.how}, {held_out.topics} topics; best trial on all topics: {study.value:.4f}")
    command.say("parameters: " + ", ".join(f"{name}={value}" for name, value in study.params.to_dict().items()))


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
