"""`python -m rnnreranker.tune train`: parameters of labels and training together, and what they are worth."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.errors import require
from rnnreranker.base.method import names
from rnnreranker.base.method_flags import add_method_flags, given_of
from rnnreranker.base.preset_files import is_file_name, sections_of
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import number
from rnnreranker.encode.params import TRAINED_POOLINGS
from rnnreranker.lab.tune.flags import (
    add_output_flags,
    add_search_flags,
    add_test_flags,
    check_flags,
    print_held_out,
    say_if_few,
    write_outcome,
)
from rnnreranker.lab.tune.joint.space import Joint, JointSpace
from rnnreranker.labels import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE
from rnnreranker.train.params import TrainParams, training_settings

if TYPE_CHECKING:
    from rnnreranker.lab.tune.heldout import HeldOut
    from rnnreranker.lab.tune.trials import Study

SHOWN = ("what", "value", "difference", "difference_low", "difference_high")  # of a row of ablations
FEW = 100  # validation queries below which the best of the trials is mostly luck
KEPT = frozenset(one.name for one in dataclasses.fields(TrainParams) if not one.metadata["tunable"])  # no flags here
EPILOG = """Queries with positives are cut in three by a hash of their ids: training, validation (which trials are
judged by) and test (which take no part; or those of --test-topics). A parameter typed as a flag is held at that value.

examples:
  python -m rnnreranker.tune train --index my-index --topics train.tsv --qrels train.qrels --output my.yaml
  python -m rnnreranker.labels --preset my.yaml --run run.txt --index my-index --topics train.tsv \\
      --qrels train.qrels --output labels.parquet
  python -m rnnreranker.train --preset my.yaml --labels labels.parquet --index my-index --topics train.tsv \\
      --encoder minilm --output my-encoder
"""


def tune_training(args: argparse.Namespace, argv: Sequence[str]) -> int:
    """Search, test and write what was found; the exit code.

    Args:
        args: of `training_parser`.
        argv: words of the command behind `tune`, for the record.
    """
    _check(args)
    from rnnreranker.lab.tune.joint.queries import load_trainings
    from rnnreranker.lab.tune.joint.trial import joint_ablations, on_test_queries, tune_jointly
    from rnnreranker.lab.tune.preset import write_preset

    trainings, test, base = load_trainings(args)
    start = _start(args)
    space = _space(start, args).within(args.hits)
    command.say(
        f"{command.counted(len(trainings.training), 'training query', 'training queries')}, "
        f"{len(trainings.validation)} for validation, {len(test.topics)} for the test"
    )
    say_if_few(len(trainings.validation), "validation queries", FEW)
    begun = time.perf_counter()
    study = tune_jointly(trainings, space, args.trials, seed=args.seed, storage=args.storage)
    command.say(f"{study.trials} trials, {study.pruned} ended early, {time.perf_counter() - begun:.1f} s")
    seeds = tuple(range(args.final_seeds))
    held_out = on_test_queries(trainings, study, space.fixed, test, base, seeds)
    _show(held_out, study, space.fixed, args)
    if args.output:
        about = {
            "index": args.index,
            "topics": f"{args.topics} ({len(trainings.training)} to train on, {len(trainings.validation)} to validate)",
            "encoder": trainings.encoder,
            "method": args.method,
            "searched": f"{space.fixed.train.key_measure} of validation, over candidates",
            "held out measure": f"{args.measure}, protocol {args.protocol}, retrieval over the whole index",
            "seed": args.seed,
        }
        write_preset(args.output, study, held_out, about)
    rows = None
    if args.ablations:
        rows = joint_ablations(trainings, study.params, test, seeds)
        print_table(
            [f"{args.measure} held out", "mean", "difference"],
            [
                [name, f"{value:.4f}", interval(*found)]
                for name, value, *found in ([row[key] for key in SHOWN] for row in rows)
            ],
        )
    if args.plots:
        from rnnreranker.lab.tune.plots import write_plots

        searched = f"{space.fixed.train.key_measure} of validation"
        for path in write_plots(args.plots, {"ablations": rows} if rows else {}, args.measure, study, searched):
            command.say(f"picture: {path}")
    found = {"measure": args.measure, "study": dataclasses.asdict(study), "held out": dataclasses.asdict(held_out)}
    found |= {"ablations": rows} if rows else {}
    found |= {"seed": args.seed, "final seeds": args.final_seeds}
    write_outcome(args, argv, "training", found, begun)
    return 0


def training_parser() -> argparse.ArgumentParser:
    """The flags of `tune train`."""
    parser = command.parser("tune train", "Search the parameters of labels and training that suit a data set.", EPILOG)
    what = parser.add_argument_group("data")
    what.add_argument("--index", required=True, help="document vectors: folder, `pydoc`, prebuilt index")
    what.add_argument("--topics", required=True, help="queries: file (qid<TAB>text), ir_datasets id, `pydoc/train`")
    what.add_argument("--qrels", required=True, help="sparse judgements: file, ir_datasets id, `pydoc/train`")
    what.add_argument("--run", help="candidates of these queries (default: retrieved densely)")
    what.add_argument("--hits", type=command.positive, default=200, help="candidates per query (default: 200)")
    what.add_argument("--relevant", type=command.positive, default=1, help="grade from which on positive (default: 1)")
    what.add_argument("--encoder", help="that is trained (default: the one that made the index)")
    what.add_argument("--pooling", choices=TRAINED_POOLINGS, help="default: the model's own")
    what.add_argument(
        "--method", choices=names("labeler"), default="evidence", help="of the labels (default: evidence)"
    )
    held = parser.add_argument_group("held out")
    held.add_argument("--validation-share", type=number, default=0.25, help="of the queries (default: 0.25)")
    held.add_argument("--test-share", type=number, default=0.25, help="of the queries (default: 0.25)")
    add_test_flags(held, "a share", "of the test: retrieval over the whole index")
    held.add_argument("--final-seeds", type=command.positive, default=3, help="trainings for the test (default: 3)")
    search = parser.add_argument_group("search")
    search.add_argument("--trials", type=command.positive, default=40, help="trainings (default: 40)")
    add_search_flags(search)
    vectors = RnnParams.preset("vectors")
    for title, kind, skip in (
        ("similarity, held at a value (all others of these three are searched)", RnnParams, OF_THE_MIXTURE),
        ("labels, held at a value", LabelParams, frozenset()),
        ("training, held at a value", TrainParams, KEPT),
    ):
        group = parser.add_argument_group(title)
        command.add_dataclass_flags(group, kind, skip, vectors if kind is RnnParams else None)
    add_method_flags(group, "loss")
    out = parser.add_argument_group("output")
    add_output_flags(out, "`labels` and `train --preset`", "the course of the trials, and the ablations,")
    out.add_argument("--ablations", action="store_true", help="train without each part too, around what was found")
    out.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    return parser


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    share, test = args.validation_share, 0.0 if args.test_topics else args.test_share
    shares = {"--validation-share": share, "--test-share": args.test_share}
    hard, typed = args.method == "hard", command.given(args, RnnParams) | command.given(args, LabelParams)
    check_flags(
        args,
        *((not 0 < value < 1, f"{name} {value}: expected above 0 and below 1") for name, value in shares.items()),
        (share + test >= 1, f"--validation-share {share} and --test-share {test} leave nothing to train on"),
        (hard and typed, "--method hard has no parameters of similarity or labels"),
        (hard and args.ablations, "--ablations leaves out parts of similarity and labels: not with --method hard"),
    )
    require("optuna", "tuning", "'rnnreranker[tune]'")
    require("accelerate", "training", "'rnnreranker[train]'")


def _start(args: argparse.Namespace) -> Joint:
    """The parameters of --preset or the default ones."""
    if not args.preset:
        return Joint()
    if not is_file_name(args.preset) or not sections_of(args.preset):
        return Joint(RnnParams.named(args.preset, RnnParams.preset("vectors")))
    train, loss = training_settings({}, args.preset)
    rnn = RnnParams.from_yaml(args.preset, RnnParams.preset("vectors"))
    return Joint(rnn, LabelParams.from_yaml(args.preset), train, loss.to_dict())


def _space(start: Joint, args: argparse.Namespace) -> JointSpace:
    from rnnreranker.lab.tune.joint.space import LabelSpace, label_ranges, rnn_ranges, train_ranges
    from rnnreranker.lab.tune.space import Space

    held = {name: value for name, value in command.given(args, TrainParams).items() if name not in KEPT}
    space = JointSpace(
        Space(rnn_ranges(), start.rnn).keeping(**command.given(args, RnnParams)),
        LabelSpace(label_ranges(), start.labels).keeping(**command.given(args, LabelParams)),
        Space(train_ranges(), start.train).keeping(**held),
        {**start.loss, **given_of(args, "loss")},
    )
    if args.method == "hard":
        return dataclasses.replace(space, rnn=Space({}, start.rnn), labels=LabelSpace({}, start.labels))
    return space


def _show(held_out: HeldOut, study: Study[Joint], default: Joint, args: argparse.Namespace) -> None:
    print_held_out(held_out, args.measure, ("encoder as it is", "trained, default", "trained, tuned"))
    first = study.history[0]
    command.say(
        f"validation {default.train.key_measure}: best trial {study.value:.4f}"
        + (f", default {first:.4f}" if first is not None else "")
    )
