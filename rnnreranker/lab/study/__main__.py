"""`python -m rnnreranker.study`: every way of training, with seeds, tested on queries that training did not see."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.files import check_writable
from rnnreranker.base.settings import hints_of
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import READERS, number
from rnnreranker.data.splits import SETTINGS
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.lab.study.request import ARMS, EVERYDAY, StudyRequest, model_form
from rnnreranker.lab.study.studying import study
from rnnreranker.train.query.params import TrainParams

USAGE = "python -m rnnreranker.study --index INDEX --topics TOPICS --qrels QRELS --output FILE [flags]"
EPILOG = """examples (settings stand behind a colon; `python -m rnnreranker methods` lists them):
  python -m rnnreranker.study --index mine --topics cranfield --qrels cranfield --output a.json \\
      --protocol binary --methods query joint:mass=share --learning-rates 1e-4 3e-4 --seeds 5
  python -m rnnreranker.study --index pydoc --topics pydoc/train --qrels pydoc/train --epochs 2 \\
      --test-topics pydoc --test-qrels pydoc --model query:candidates=50,warmup=9 --output b.json
  python -m rnnreranker.study ... --arms losses --losses kl margin:margin=2 --learning-rate 1e-4
  python -m rnnreranker.study ... --arms negatives --encoder minilm --first-stages impact --jobs 2
  python -m rnnreranker.study ... --arms late --late-arms colbert ce --cross-encoders my-reranker
  python -m rnnreranker.study ... --arms dual --splits cold --dual-arms none run:alpha=0.5/1
"""
HIDDEN = ("max_steps", "teacher_temperature", "labelled_queries", "relevant", "context", "title")  # of the help


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    from rnnreranker.base.record import of_command, write_records

    check_writable(args.output)
    begun = time.perf_counter()
    typed = {name: value for name in EVERYDAY if (value := getattr(args, name)) is not None}
    model = model_form(args.model, args.arms, typed)
    with command.naming_flags(typed):
        request = command.request(args, StudyRequest, model=model, work=args.work or f"{args.output}.trials")
        studied = study(request)
    about: dict[str, Any] = {"room": "study", "argv": argv, "without": ("--output", "--work", "--jobs")}
    about |= {"begun": begun, "inputs": studied.inputs}
    write_records(args.output, [of_command("study", args.arms, studied.outcome, **about)])
    print_table(
        ["arm", "measure", "queries", "value", "minus", "difference", "p (Holm)"],
        [
            [row["arm"], row["measure"], row["group"], f"{row['value']:.4f}", other, *_cells(difference)]
            for row in studied.rows
            for other, difference in (row["against"] or {"-": {}}).items()
        ],
    )
    print(f"\n{studied.conclusion}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    usual = {field.name: field.default for field in dataclasses.fields(StudyRequest)}
    parser = command.parser("study", "Train a model in every way, several times, and compare.", EPILOG, USAGE)
    parser.add_argument("--index", required=True, help="folder, `pydoc`, or prebuilt index")
    parser.add_argument("--topics", required=True, help="of training (and test): file, ir_datasets id, `pydoc/train`")
    parser.add_argument("--qrels", required=True, help="judgements of --topics")
    parser.add_argument("--output", required=True, metavar="FILE.json", help="the record of what was measured")
    text = "labels, losses, candidates (of query encoders); pair-losses, negatives (cross-encoders); "
    text += "regularisation (sparse); late; dual (default: labels)"
    parser.add_argument("--arms", choices=tuple(ARMS), default=usual["arms"], metavar="WHAT", help=text)

    group = parser.add_argument_group("training")
    _add(group, "encoder", "NAME", "to begin with (of queries, default: the one that made the index)")
    _add(group, "model", "FORM", "of the model of --arms, with its settings: query:candidates=50,…")
    _add(group, "loss", "FORM", "what it lowers, where an arm does not say: distance:alpha=0.7")
    hints = hints_of(TrainParams)
    for name, text in EVERYDAY.items():
        _add(group, name, "N", text, type=READERS[hints[name]])
    _add(group, "learning_rates", "R", "choose one a fold, on validation queries", type=number, nargs="+")
    _add(group, "seeds", "N", f"trainings of every arm (default: {usual['seeds']})", type=command.positive)

    group = parser.add_argument_group("arms")
    several: dict[str, Any] = {"nargs": "+"}
    _add(group, "methods", "M", "labels: methods; mass=share, mass=confident are learnt", **several)
    text = "labels: with the rate of the other kind of labels, too (default: yes)"
    _add(group, "other_side", None, text, action=argparse.BooleanOptionalAction)
    _add(group, "context", "N", "labels: candidates that take part (default: 60)", type=command.positive)
    _add(group, "losses", "M", "losses, pair-losses: which (default: all that fit)", **several)
    _add(group, "counts", "N", "candidates: of a query (default: 10 50 200)", type=command.positive, **several)
    _add(group, "factors", "F", "regularisation: of lambda (default: 0.1 1 10)", type=number, **several)
    _add(group, "late_arms", "M", "late: colbert prf random hn self ce ce-mean ce-hn, or labels", **several)
    _add(group, "cross_encoders", "M", "late: teachers, ce the first of them", **several)
    _add(group, "teacher_temperature", "T", "late: scores of a teacher are divided by it (default: 0.25)", type=number)
    _add(group, "dual_arms", "M", "dual: none in-batch distill bs ebr, or labels; alpha=0.5/1", **several)
    text = "of negatives, or of fused labels, by retriever (default: bm25 impact)"
    _add(group, "first_stages", "M", text, **several)

    group = parser.add_argument_group("test (default: every query by an encoder that was trained on other folds)")
    _add(group, "test_topics", "TOPICS", "test on these instead of folds")
    _add(group, "test_qrels", "QRELS", "judgements of --test-topics")
    _add(group, "folds", "N", "default: 5; with --splits the first ones, 4", type=command.positive)
    _add(group, "splits", None, "paper 004's parts: 60/20/20 or 20/20/60", choices=SETTINGS)
    _add(group, "labelled_queries", "N", "trained on or validated, by the seed (default: all)", type=command.positive)
    _add(group, "test_candidates", "N", "reranked (default: 100; late: none, all are searched)", type=command.positive)
    _add(group, "relevant", "N", "grade from which on positive (default: 1)", type=command.positive)
    _add(group, "protocol", "NAME", f"{', '.join(PROTOCOLS)} (default: trec)", choices=PROTOCOLS)
    _add(group, "measures", "NAMES", f"default: {usual['measures']}")

    group = parser.add_argument_group("work")
    _add(group, "title", "TEXT", "of the page's section (default: --topics)")
    _add(group, "work", "DIR", "records of trials, for going on (default: OUTPUT.trials)")
    _add(group, "jobs", "N", "trainings at a time (default: 1)", type=command.positive)
    parser.set_defaults(**{name: value for name, value in usual.items() if value is not dataclasses.MISSING})
    return parser


def _add(group: Any, name: str, metavar: str | None, text: str, **options: Any) -> None:
    """A flag of an argument of the request."""
    options |= {} if metavar is None else {"metavar": metavar}
    group.add_argument(flag(name), help=argparse.SUPPRESS if name in HIDDEN else text, **options)


def _cells(difference: Mapping[str, Any]) -> list[str]:
    """The difference with its interval, and p; nothing of an arm that is compared with no other."""
    if not difference:
        return ["-", "-"]
    return [interval(difference["difference"], difference["low"], difference["high"]), f"{difference['p_holm']:.3f}"]


if __name__ == "__main__":
    raise SystemExit(command.run(main))
