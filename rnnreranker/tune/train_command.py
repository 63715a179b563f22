"""`python -m rnnreranker.tune train`: parameters of labels and training together, and what they are worth."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker import command
from rnnreranker.errors import InputError
from rnnreranker.evaluate.measures import PROTOCOLS
from rnnreranker.labels import LabelParams
from rnnreranker.method import names
from rnnreranker.rnn import RnnParams
from rnnreranker.settings import sections_of
from rnnreranker.tables import print_table
from rnnreranker.train.params import TrainParams, training_settings
from rnnreranker.tune.joint_space import Joint, JointSpace

if TYPE_CHECKING:
    from rnnreranker.tune.heldout import HeldOut
    from rnnreranker.tune.trials import Study

FEW = 100  # validation queries below which the best of the trials is mostly luck
SWITCHES = ("in_batch_negatives", "learn_temperature", "freeze_embeddings")
OWN = ("seed", "validation_share", "validation_queries", "neutrality_weight", "neutrality_cutoff")
EPILOG = """Queries with positives are cut in three by a hash of their ids: training, validation (which trials are
judged by) and test (which take no part; or those of --test-topics). A parameter typed as a flag is held at that value.

examples:
  python -m rnnreranker.tune train --index my-index --topics train.tsv --qrels train.qrels --output my.yaml
  python -m rnnreranker.labels --preset my.yaml --run run.txt --index my-index --topics train.tsv \\
      --qrels train.qrels --output labels.parquet
  python -m rnnreranker.train --preset my.yaml --labels labels.parquet --index my-index --topics train.tsv \\
      --encoder minilm --output my-encoder
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    _check(args)
    from rnnreranker.tune.joint import joint_ablations, on_test_queries, tune_jointly
    from rnnreranker.tune.preset import write_preset
    from rnnreranker.tune.training_set import load_trainings

    trainings, test, base = load_trainings(args)
    start = _start(args)
    space = _space(start, args).within(args.hits)
    command.say(
        f"{command.counted(len(trainings.training), 'training query', 'training queries')}, "
        f"{len(trainings.validation)} for validation, {len(test.topics)} for the test"
    )
    if len(trainings.validation) < FEW:
        command.say(
            f"warning: {len(trainings.validation)} validation queries are few (fewer than {FEW}): differences between "
            "trials are mostly chance; trust the held-out interval, not the value of the best trial"
        )
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
                [
                    row["what"],
                    f"{row['value']:.4f}",
                    f"{row['difference']:+.4f} [{row['difference_low']:+.4f}, {row['difference_high']:+.4f}]",
                ]
                for row in rows
            ],
        )
    if args.plots:
        from rnnreranker.tune.plots import write_plots

        searched = f"{space.fixed.train.key_measure} of validation"
        for path in write_plots(args.plots, {"ablations": rows} if rows else {}, args.measure, study, searched):
            command.say(f"picture: {path}")
    if args.record:
        from rnnreranker.record import of_command, write_records

        found = {"measure": args.measure, "study": dataclasses.asdict(study), "held out": held_out.to_dict()}
        found |= {"ablations": rows} if rows else {}
        found |= {"seed": args.seed, "final seeds": args.final_seeds}
        made: dict[str, Any] = {"room": "tune", "argv": ["train", *argv], "begun": begun}
        without = ("--record", "--output", "--plots", "--storage")
        write_records(args.record, [of_command("tuning", "training", found, without=without, **made)])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("tune train", "Search the parameters of labels and training that suit a data set.", EPILOG)
    what = parser.add_argument_group("data")
    what.add_argument("--index", required=True, help="document vectors: folder, `pydoc`, prebuilt index")
    what.add_argument("--topics", required=True, help="queries: file (qid<TAB>text), ir_datasets id, `pydoc/train`")
    what.add_argument("--qrels", required=True, help="sparse judgements: file, ir_datasets id, `pydoc/train`")
    what.add_argument("--run", help="candidates of these queries (default: retrieved densely)")
    what.add_argument("--hits", type=command.positive, default=200, help="candidates per query (default: 200)")
    what.add_argument("--relevant", type=command.positive, default=1, help="grade from which on positive (default: 1)")
    what.add_argument("--encoder", help="that is trained (default: the one that made the index)")
    what.add_argument("--pooling", choices=("mean", "cls"), help="default: the model's own")
    what.add_argument(
        "--method", choices=names("labeler"), default="evidence", help="of the labels (default: evidence)"
    )
    held = parser.add_argument_group("held out")
    held.add_argument("--validation-share", type=float, default=0.25, help="of the queries (default: 0.25)")
    held.add_argument("--test-share", type=float, default=0.25, help="of the queries (default: 0.25)")
    held.add_argument("--test-topics", help="test on these queries in place of a share")
    held.add_argument("--test-qrels", help="their judgements")
    held.add_argument("--measure", default="nDCG@10", help="of the test: retrieval over the whole index")
    held.add_argument("--protocol", choices=PROTOCOLS, default="trec", help="which grades count: see evaluate --help")
    held.add_argument("--final-seeds", type=command.positive, default=3, help="trainings for the test (default: 3)")
    search = parser.add_argument_group("search")
    search.add_argument("--trials", type=command.positive, default=40, help="trainings (default: 40)")
    search.add_argument("--seed", type=int, default=0, help="of the sampler (default: 0)")
    search.add_argument("--storage", metavar="FILE", help="keep the trials here, and go on from them after a kill")
    search.add_argument("--preset", metavar="FILE.yaml", help="start from and compare with this (default: defaults)")
    for title, kind, skip in (
        ("similarity, held at a value (all others of these three are searched)", RnnParams, ()),
        ("labels, held at a value", LabelParams, ()),
        ("training, held at a value", TrainParams, (*SWITCHES, *OWN)),
    ):
        group = parser.add_argument_group(title)
        command.add_dataclass_flags(group, kind, skip=skip)
    command.add_method_flags(group, "loss")
    out = parser.add_argument_group("output")
    out.add_argument("--output", metavar="FILE.yaml", help="the parameters found, for `labels` and `train --preset`")
    out.add_argument("--record", metavar="FILE.json", help="write the record: study and held-out values")
    out.add_argument("--ablations", action="store_true", help="train without each part too, around what was found")
    out.add_argument("--plots", metavar="FOLDER", help="draw the course of the trials, and the ablations, there")
    out.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    return parser


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    problems = []
    if (args.test_topics is None) != (args.test_qrels is None):
        problems.append("--test-topics and --test-qrels go together")
    test = 0.0 if args.test_topics else args.test_share
    for name, value in (("--validation-share", args.validation_share), ("--test-share", args.test_share)):
        if not 0 < value < 1:
            problems.append(f"{name} {value}: expected above 0 and below 1")
    if args.validation_share + test >= 1:
        problems.append(f"--validation-share {args.validation_share} and --test-share {test} leave nothing to train on")
    if args.method == "hard" and command.given(args, RnnParams) | command.given(args, LabelParams):
        problems.append("--method hard has no parameters of similarity or labels")
    if args.method == "hard" and args.ablations:
        problems.append("--ablations leaves out parts of similarity and labels: not with --method hard")
    if problems:
        raise InputError("; ".join(problems))
    from rnnreranker.errors import require
    from rnnreranker.evaluate.measures import parse_measures
    from rnnreranker.files import check_writable

    if len(parse_measures(args.measure)) != 1:
        raise InputError(f"--measure {args.measure!r}: expected one measure")
    for path in (args.output, args.record):
        if path:
            check_writable(path)
    require("optuna", "tuning", "'rnnreranker[tune]'")
    require("accelerate", "training", "'rnnreranker[train]'")
    if args.plots:
        require("matplotlib", "--plots", "'rnnreranker[plots]'")


def _start(args: argparse.Namespace) -> Joint:
    """The parameters of --preset or the default ones."""
    if not args.preset:
        return Joint()
    if not sections_of(args.preset):
        return Joint(RnnParams.from_yaml(args.preset))
    train, loss = training_settings({}, args.preset)
    return Joint(RnnParams.from_yaml(args.preset), LabelParams.from_yaml(args.preset), train, loss.to_dict())


def _space(start: Joint, args: argparse.Namespace) -> JointSpace:
    from rnnreranker.tune.joint_space import LabelSpace, label_ranges, rnn_ranges, train_ranges
    from rnnreranker.tune.space import Space

    skip: dict[str, Any] = dict.fromkeys((*SWITCHES, *OWN))
    held = {name: value for name, value in command.given(args, TrainParams).items() if name not in skip}
    space = JointSpace(
        Space(rnn_ranges(), start.rnn).keeping(**command.given(args, RnnParams)),
        LabelSpace(label_ranges(), start.labels).keeping(**command.given(args, LabelParams)),
        Space(train_ranges(), start.train).keeping(**held),
        {**start.loss, **command.given_of(args, "loss")},
    )
    return (
        space
        if args.method != "hard"
        else dataclasses.replace(space, rnn=Space({}, start.rnn), labels=LabelSpace({}, start.labels))
    )


def _show(held_out: HeldOut, study: Study[Joint], default: Joint, args: argparse.Namespace) -> None:
    print_table(
        [f"{args.measure} held out", "mean"],
        [
            ["encoder as it is", f"{held_out.base:.4f}"],
            ["trained, default", f"{held_out.default:.4f}"],
            ["trained, tuned", f"{held_out.tuned:.4f}"],
            ["tuned - default", f"{held_out.gain:+.4f} [{held_out.low:+.4f}, {held_out.high:+.4f}]"],
            ["p (paired t-test)", f"{held_out.p:.3f}"],
        ],
    )
    first = study.history[0]
    command.say(
        f"validation {default.train.key_measure}: best trial {study.value:.4f}"
        + (f", default {first:.4f}" if first is not None else "")
    )
