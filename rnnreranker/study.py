"""`python -m rnnreranker.study`: train a model in several ways with seeds, test on unseen queries, compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import argument
from rnnreranker.base.settings import Request, Written, setting
from rnnreranker.lab.shared import print_report, recorded
from rnnreranker.lab.study.request import EVERYDAY, USUAL, StudyRequest
from rnnreranker.lab.study.studying import conclusion, study
from rnnreranker.train.params import TrainParams

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
GROUPS = {  # title of a group of flags → fields
    "training": ("encoder", "model", "loss", "learning_rates", "seeds"),
    "arms (NAME:KEY=VALUE: what an arm has otherwise than the model)": ("arms", "against", "context", "first_stages"),
    "test (default: every query by an encoder that was trained on other folds)": (
        *(
            "test_topics",
            "test_qrels",
            "folds",
            "splits",
            "all_positives",
            "labelled_queries",
            "test_candidates",
            "relevant",
        ),
        *("protocol", "measures"),
    ),
    "work": ("compares", "title", "work", "jobs", "backend", "address", "device", "compute_dtype"),
}


@dataclass(frozen=True)
class StudyFlags(Request):
    """Flags that `study` does not take."""

    output: str = setting(MISSING, "the record of what was measured", metavar="FILE.json")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    typed = command.given(args, TrainParams)
    typed.pop("loss", None)  # the request has it
    with command.naming_flags(typed), recorded(args.output, "study", "study", argv, without=ELSEWHERE) as record:
        model = Written.read(args.model).beside(typed, argument("model"))
        request = command.request(args, StudyRequest, model=model, work=args.work or f"{args.output}.trials")
        outcome, inputs = study(request)
        record |= {"name": outcome["arms"], "outcome": outcome, "inputs": inputs}
    print_report("study", rows=outcome["rows"])
    print(f"\n{conclusion(outcome['rows'])}")
    return 0


def make_parser() -> Any:
    """The parser of the command."""
    parser = command.parser("study", "Train a model in every way, several times, and compare.", EPILOG, USAGE)
    command.add_flags(parser, StudyRequest, "index", "topics", "qrels")
    command.add_flags(parser, StudyFlags, "output")
    for title, names in GROUPS.items():
        group = parser.add_argument_group(title)
        command.add_flags(group, StudyRequest, *names)
        if title == "training":
            usual = TrainParams(**USUAL["query"])
            command.add_flags(group, TrainParams, *EVERYDAY, base=usual, shown={*EVERYDAY} - {"max_steps"})
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
