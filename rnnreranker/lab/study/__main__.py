"""`python -m rnnreranker.study`: every way of training, with seeds, tested on queries that training did not see."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.arguments import argument, flag
from rnnreranker.base.device import add_flags as add_device_flags
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import names
from rnnreranker.base.settings import hints_of
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import READERS, number
from rnnreranker.base.written_form import Written
from rnnreranker.data.splits import SETTINGS
from rnnreranker.evaluate.protocols import PROTOCOL_HELP, PROTOCOLS
from rnnreranker.lab.study.arm import ArmParams
from rnnreranker.lab.study.request import EVERYDAY, KIND, WORKERS, StudyRequest
from rnnreranker.lab.study.studying import study
from rnnreranker.train.query.params import TrainParams

USAGE = "python -m rnnreranker.study --index INDEX --topics TOPICS --qrels QRELS --output FILE [flags]"
EPILOG = """examples (settings stand behind a colon; `python -m rnnreranker methods` lists them):
  python -m rnnreranker.study --index mine --topics cranfield --qrels cranfield --output a.json \\
      --protocol binary --learning-rates 1e-4 3e-4 --seeds 5 --against hard \\
      --arms hard soft:labels=evidence,rates=hard joint:labels=joint:mass=share
  python -m rnnreranker.study --index pydoc --topics pydoc/train --qrels pydoc/train --epochs 2 \\
      --test-topics pydoc --test-qrels pydoc --model query:candidates=50,warmup=9 --output b.json
  python -m rnnreranker.study ... --arms kl margin:loss=margin:margin=2 --learning-rate 1e-4
  python -m rnnreranker.study ... --model cross --encoder minilm --first-stages bm25 impact \\
      --arms impact bm25:negatives=bm25 far:filter=rnn --jobs 2
  python -m rnnreranker.study ... --model late --arms first next:start=first,negatives=first
  python -m rnnreranker.study ... --model dual --splits cold --arms hard:loss=distance:alpha=0 \\
      taught:labels=arm:name=hard,label_scale=cosine
"""
ELSEWHERE = ("--output", "--work", "--jobs", "--backend", "--address")  # what results do not depend on
HIDDEN = ("max_steps", "labelled_queries", "relevant", "context", "title", "compares")  # of the help


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    from rnnreranker.base.record import of_command, write_records

    check_writable(args.output)
    begun = time.perf_counter()
    typed = {name: value for name in EVERYDAY if (value := getattr(args, name)) is not None}
    with command.naming_flags(typed):
        model = Written.read(args.model).beside(typed, argument("model"))
        request = command.request(args, StudyRequest, model=model, work=args.work or f"{args.output}.trials")
        studied = study(request)
    about: dict[str, Any] = {"room": "study", "argv": argv, "without": ELSEWHERE}
    about |= {"begun": begun, "inputs": studied.inputs}
    write_records(args.output, [of_command("study", studied.outcome["arms"], studied.outcome, **about)])
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
    group = parser.add_argument_group("training")
    _add(group, "encoder", "NAME", "to begin with (of queries, default: the one that made the index)")
    kinds = ", ".join(names(KIND))
    _add(group, "model", "FORM", f"of all arms, with its settings: {kinds} (default: query)")
    _add(group, "loss", "FORM", "what it lowers, where an arm does not say: distance:alpha=0.7")
    hints = hints_of(TrainParams)
    for name, text in EVERYDAY.items():
        _add(group, name, "N", text, type=READERS[hints[name]])
    _add(group, "learning_rates", "R", "choose one a fold, on validation queries", type=number, nargs="+")
    _add(group, "seeds", "N", f"trainings of every arm (default: {usual['seeds']})", type=command.positive)

    group = parser.add_argument_group("arms (NAME:KEY=VALUE: what an arm has otherwise than the model)")
    several: dict[str, Any] = {"nargs": "+"}
    text = f"settings: {', '.join(hints_of(ArmParams))}, and those of the training (default: trained)"
    _add(group, "arms", "ARM", text, **several)
    _add(group, "against", "ARM", "that the others are compared with, beside the model as it was")
    _add(group, "context", "N", "of query encoders: candidates of labels (default: 60)", type=command.positive)
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
    _add(group, "protocol", "NAME", PROTOCOL_HELP, choices=PROTOCOLS)
    _add(group, "measures", "NAMES", f"default: {usual['measures']}")

    group = parser.add_argument_group("work")
    _add(group, "compares", "TEXT", "what the arms differ in, for the page (default: the model)")
    _add(group, "title", "TEXT", "of the page's section (default: --topics)")
    _add(group, "work", "DIR", "records of trials, for going on (default: OUTPUT.trials)")
    _add(group, "jobs", "N", "trainings at a time (default: 1)", type=command.positive)
    _add(group, "backend", "NAME", f"who trains: {', '.join(WORKERS)} (default: {usual['backend']})", choices=WORKERS)
    _add(group, "address", "ADDRESS", "of dask or ray (default: start one here)")
    add_device_flags(group, "models")
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
