"""`python -m rnnreranker.study`: every way of training, with seeds, tested on queries that training did not see."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import fields_of, find, names
from rnnreranker.base.method_flags import add_method_flags, given_of
from rnnreranker.base.settings import Params
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import number
from rnnreranker.data.splits import SETTINGS
from rnnreranker.evaluate.measures import PROTOCOLS
from rnnreranker.lab.study.query.arms import BASE, LEARNT, SMOOTHING
from rnnreranker.lab.study.text.arms import MODELS
from rnnreranker.train.params import TrainParams, settings_for

ARMS = {"labels": "query", "losses": "query", "candidates": "query", **MODELS}  # what is compared → the model trained
DEFAULTS: dict[str, Any] = {"epochs": 4.0, "candidates": 100, "batch_size": 16}  # of query encoders
LATE: dict[str, Any] = {"similarity": "l2"}  # of late-interaction encoders, as the program of paper 002
KIND = "trained-model"  # of method
EPILOG = """Without --test-topics, queries are cut into folds: every query is tested by an encoder trained on one random
positive of each query of the other folds. With them, training is on --topics and the test on --test-topics.
Arms of query encoders: labels, losses, candidates. Of cross-encoders, which rerank the last of --first-stages:
pair-losses, negatives. Of sparse encoders, which search the collection: regularisation. Of late-interaction encoders,
which search it, or rerank with --test-candidates: late. Of dual encoders, which search it: dual.

examples:
  python -m rnnreranker.study --index my-index --topics cranfield --qrels cranfield --protocol binary \\
      --output study.json
  python -m rnnreranker.study --index pydoc --topics pydoc/train --qrels pydoc/train --test-topics pydoc \\
      --test-qrels pydoc --output study.json
  python -m rnnreranker.study --index my-index --topics train.tsv --qrels train-qrels.txt --test-topics test.tsv \\
      --test-qrels qrels.txt --arms negatives --encoder minilm --output study.json
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    if bool(args.test_topics) != bool(args.test_qrels):
        raise InputError("--test-topics and --test-qrels go together; only one was given")
    from rnnreranker.base.files import check_writable
    from rnnreranker.base.record import of_command, write_records
    from rnnreranker.lab.study.conclusion import conclusion

    check_writable(args.output)
    begun = time.perf_counter()
    result, inputs = _of_queries(args) if ARMS[args.arms] == "query" else _of_texts(args)
    about: dict[str, Any] = {"room": "study", "argv": argv, "without": ("--output", "--work", "--jobs")}
    about |= {"begun": begun, "inputs": inputs}
    write_records(args.output, [of_command("study", args.arms, result, **about)])
    print_table(
        ["arm", "measure", "queries", "value", "minus", "difference", "p (Holm)"],
        [
            [row["arm"], row["measure"], row["group"], f"{row['value']:.4f}", other, *_cells(found)]
            for row in result["rows"]
            for other, found in (row["against"] or {"-": {}}).items()
        ],
    )
    print(f"\n{conclusion(result['rows'])}")
    return 0


def _of_queries(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """What a study of query encoders found, and what it read."""
    from rnnreranker.lab.study.comparisons import masses, positives
    from rnnreranker.lab.study.query.arms import Side, candidate_arms, label_arms, loss_arms
    from rnnreranker.lab.study.query.loaded import load_study
    from rnnreranker.lab.study.trainings import choose_rates, run_arms

    params, _ = _settings(args, TrainParams(**DEFAULTS))
    loaded = load_study(args, params)
    setting, tasks, work = loaded.setting, loaded.tasks, _work(args)
    rates: dict[str, Any] = {}
    sides = {"hard": Side(params), "evidence": Side(params)}
    if args.learning_rates:
        for method in sides if args.arms == "labels" else ("hard",):
            chosen = choose_rates(setting, tasks, method, params, args.learning_rates, work, args.jobs)
            sides[method], rates[method] = chosen
            taken = ", ".join(f"{found['rate']:g} ({name})" for name, found in rates[method].items())
            command.say(f"{method} labels: learning rate {taken}")
    if args.arms == "labels":
        teachers = setting.teachers(args.methods)
        arms = label_arms(sides["hard"], sides["evidence"], args.methods, args.other_side, teachers)
    elif args.arms == "losses":
        arms = loss_arms(sides["hard"])
    else:
        arms = candidate_arms(sides["hard"], args.counts)
    records = run_arms(setting, tasks, [None, *arms], work, args.jobs)
    about = {
        "params": {name: side.to_dict() for name, side in sides.items()},
        "rnn": setting.rnn.to_dict(),
        "labels": setting.labels.to_dict(),
        "rates": rates,
        "positives": positives(records),
    }
    about |= {"masses": learnt} if (learnt := masses(records)) else {}
    return _outcome(args, loaded, records, about), {"index": loaded.fingerprint}


def _of_texts(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """What a study of models that read texts found, and what it read."""
    from rnnreranker.evaluate.measures import name_of, parse_measures
    from rnnreranker.lab.study.chosen import by_degrees, with_chosen
    from rnnreranker.lab.study.comparisons import costs, words
    from rnnreranker.lab.study.dual.arms import DEFAULT, DualArm, dual_arms
    from rnnreranker.lab.study.dual.distances import mean_distances
    from rnnreranker.lab.study.late.arms import default_arms, late_arms
    from rnnreranker.lab.study.text.arms import text_arms
    from rnnreranker.lab.study.text.loaded import load_text_study
    from rnnreranker.lab.study.trainings import run_arms

    model = ARMS[args.arms]
    params, loss = _settings(args, find(KIND, model).Params(**(LATE if model == "late" else {})))
    arms: list[Any]
    if model == "late":
        chosen = args.late_arms or default_arms(args.cross_encoders)
        arms = late_arms(chosen, params, args.cross_encoders, args.teacher_temperature)
    elif model == "dual":
        values = {**loss.to_dict(), **given_of(args, "loss")}
        arms = dual_arms(args.dual_arms or DEFAULT, params, values.get("alpha", 0.5))
    else:
        arms = text_arms(args.arms, params, args.first_stages, args.factors, args.losses)
    loaded = load_text_study(args, params, arms)
    records: Any = run_arms(loaded.setting, loaded.tasks, [None, *arms], _work(args), args.jobs)
    others = {arm.name: arm.others for arm in arms}
    families = {arm.name: arm.family for arm in arms if isinstance(arm, DualArm) and arm.family}
    records, choices = with_chosen(records, families, name_of(parse_measures(args.measures)[0]))
    others |= {family: others[arm] for arm, family in families.items()}
    about = {
        "model": model,
        "encoder": args.encoder,
        "first_stages": list(args.first_stages),
        "test_candidates": args.test_candidates,
        "params": params.to_dict() | loss.to_dict(),
        "words": words(records),
    }
    if told := costs(records):
        about |= {"costs": told}
    if far := mean_distances(records, BASE):
        about |= {"distances": far}
    about |= {name: found for name, found in (("by_degrees", by_degrees(records)), ("choices", choices)) if found}
    if model == "late":
        about |= {"cross_encoders": args.cross_encoders}
        about |= {"teacher_temperature": args.teacher_temperature}
    return _outcome(args, loaded, records, about, others), loaded.fingerprints


def _outcome(
    args: argparse.Namespace, loaded: Any, records: Any, about: dict[str, Any], others: Any = None
) -> dict[str, Any]:
    from rnnreranker.lab.study.comparisons import by_query, chosen_steps, curves, study_rows

    tasks = loaded.tasks
    return {
        "arms": args.arms,
        "title": args.title or args.topics,
        "tasks": sorted({task.name for task in tasks}),
        "seeds": args.seeds,
        "training_queries": len(tasks[0].positives) - len(tasks[0].validation),
        "validation_queries": len(tasks[0].validation),
        **about,
        "rows": study_rows(records, loaded.groups, others),
        "queries": by_query(records),
        "curves": curves(records),
        "steps": chosen_steps(records),
    }


def _settings(args: argparse.Namespace, base: Any) -> tuple[Any, Params]:
    """The settings of the trainings, and of the loss that they name."""
    typed = given_of(args, KIND) | given_of(args, "loss")
    own = {field.name for field in fields_of(find(KIND, ARMS[args.arms]))}
    of_losses = set(given_of(args, "loss"))
    if foreign := [name for name in typed if name not in own | of_losses]:
        raise InputError(f"{flag(foreign[0])}: is not for --arms {args.arms}, which trains a model {ARMS[args.arms]}")
    if "seed" in typed:
        raise InputError("--seed: a study draws its own; give --seeds, how many trainings of every arm")
    if args.loss is None:  # an arm sets it, and takes of the others' parameters its own
        own |= {field.name for field in fields_of(find("loss", base.loss))}
        typed = {name: value for name, value in typed.items() if name in own}
    with command.naming_flags(typed):
        return settings_for(type(base), typed, base=base)


def _work(args: argparse.Namespace) -> Path:
    return Path(args.work or f"{args.output}.trials")


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("study", "Train a model in every way, several times, and compare.", EPILOG)
    parser.add_argument("--index", required=True, help="folder, or `pydoc`")
    parser.add_argument("--topics", required=True, help="of training (and test): file, ir_datasets id, `pydoc/train`")
    parser.add_argument("--qrels", required=True, help="judgements of --topics")
    parser.add_argument("--test-topics", help="test on these instead of folds")
    parser.add_argument("--test-qrels", help="judgements of --test-topics")
    parser.add_argument("--output", required=True, metavar="FILE.json", help="the record of what was found")
    parser.add_argument("--title", help="of the page's section (default: --topics)")
    parser.add_argument("--arms", choices=tuple(ARMS), default="labels", help="what is compared (default: labels)")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=[*names("labeler"), *(f"{name}:{mass}" for name in names("labeler") for mass in LEARNT)],
        default=SMOOTHING,
        metavar="METHOD",
        help="--arms labels: methods of smooth labels; with :share or :confident behind a name, how much probability "
        "leaves the positives is learnt, as labels --mass does; run: the encoder's run fused with those of "
        f"--first-stages teaches (default: {' '.join(SMOOTHING)})",
    )
    parser.add_argument("--folds", type=command.positive, help="default: 5; with --splits the first ones, 4")
    parser.add_argument(
        "--splits",
        choices=SETTINGS,
        help="in place of folds: paper 004's parts for training, validation, test, 60/20/20 or 20/20/60 (cold start)",
    )
    parser.add_argument("--seeds", type=command.positive, default=3, help="trainings of every arm (default: 3)")
    parser.add_argument(
        "--labelled-queries",
        type=command.positive,
        metavar="N",
        help="that a task trains on or holds out for validation, drawn by the seed (default: all)",
    )
    parser.add_argument(
        "--learning-rates", type=number, nargs="+", metavar="RATE", help="choose one a fold, on validation queries"
    )
    parser.add_argument(
        "--other-side",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="--arms labels: every arm with the rate chosen for the other kind of labels, too (default: yes)",
    )
    parser.add_argument(
        "--counts", type=command.positive, nargs="+", default=[10, 50, 200], metavar="N", help="--arms candidates"
    )
    parser.add_argument(
        "--first-stages",
        nargs="+",
        choices=names("retriever"),
        default=("bm25", "impact"),
        metavar="RETRIEVER",
        help="where negatives come from, or what a run that teaches is fused of; cross-encoders rerank the last in the "
        "test (default: bm25 impact)",
    )
    parser.add_argument(
        "--test-candidates",
        type=command.positive,
        metavar="N",
        help="reranked in the test (default: 100; --arms late: none, the collection is searched)",
    )
    parser.add_argument(
        "--losses", nargs="+", choices=names("loss"), metavar="LOSS", help="--arms pair-losses (default: all that fit)"
    )
    parser.add_argument(
        "--factors", type=number, nargs="+", default=[0.1, 1, 10], metavar="F", help="--arms regularisation: of lambda"
    )
    parser.add_argument(
        "--late-arms",
        nargs="+",
        metavar="ARM",
        help="--arms late: colbert, prf, random, hn, self, ce, ce-mean, ce-hn, or a method of labels; prf and methods "
        "with settings, NAME:KEY=VALUE,KEY=VALUE (default: colbert, hn, self, ce and ce-mean with --cross-encoders, "
        "and prf and collective as in paper 002)",
    )
    parser.add_argument(
        "--dual-arms",
        nargs="+",
        metavar="ARM",
        help="--arms dual: none, in-batch, distill, bs, ebr, or a method of labels, with its settings, alpha and "
        "degrees, NAME:KEY=VALUE,KEY=VALUE; alpha=0.5/1 are two arms, one of which validation queries choose "
        "(default: none in-batch distill term-weight bs evidence:degrees=maxmin)",
    )
    parser.add_argument(
        "--cross-encoders", nargs="+", default=[], metavar="MODEL", help="--arms late: teachers, ce the first of them"
    )
    parser.add_argument(
        "--teacher-temperature",
        type=number,
        default=0.25,
        metavar="T",
        help="--arms late: what a teacher's scores are divided by, of a student of --similarity l2, which is the "
        "default here; twice that of one of maxsim (default: 0.25)",
    )
    parser.add_argument("--relevant", type=command.positive, default=1, help="grades from here on are positive")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="trec", help="of the test (default: trec)")
    parser.add_argument("--measures", default="nDCG@10 RR@10 R@100", help="default: nDCG@10 RR@10 R@100")
    parser.add_argument("--context", type=command.positive, default=60, help="N of the labels (default: 60)")
    parser.add_argument("--encoder", help="to train (of queries, default: the one that made the index)")
    parser.add_argument("--work", metavar="DIR", help="records of trials, for going on (default: OUTPUT.trials)")
    parser.add_argument("--jobs", type=command.positive, default=1, help="trainings at a time (default: 1)")
    settings = parser.add_argument_group("training, where the study does not set it")
    add_method_flags(settings, KIND)
    add_method_flags(settings, "loss")
    return parser


def _cells(found: dict[str, Any]) -> list[str]:
    """The difference with its interval, and p; nothing of an arm that is compared with no other."""
    if not found:
        return ["-", "-"]
    return [interval(found["difference"], found["low"], found["high"]), f"{found['p_holm']:.3f}"]
