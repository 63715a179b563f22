"""`python -m rnnreranker.train`: labels or negatives, texts and a model to a better model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.method import methods
from rnnreranker.base.settings import READERS, hints_of
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.request import KIND, TrainRequest
from rnnreranker.train.training import train

EVERYDAY = {  # settings of every model that are flags, too
    **{"learning_rate": "peak learning rate", "epochs": "passes over the training queries or texts"},
    **{"max_steps": "steps, in place of epochs", "batch_size": "queries or texts a step"},
    "seed": "seed of order, dropout, negatives, new layers and held-out queries",
}
USAGE = "python -m rnnreranker.train --labels FILE --index INDEX --topics TOPICS --output DIR [flags]"
EPILOG = """examples (a model takes its settings behind a colon; `python -m rnnreranker methods` lists them all):
  python -m rnnreranker.train --labels labels.parquet --index my-index --topics train.tsv --output my-model
  python -m rnnreranker.search --index my-index --topics test.tsv --encoder my-model
  python -m rnnreranker.train --model cross:group_size=4,max_length=128 --epochs 1 --output my-reranker \\
      --labels labels.parquet --index my-index --topics train.tsv --encoder minilm
  python -m rnnreranker.train --model dual --loss distance:alpha=0.2 --output my-dual \\
      --labels labels.parquet --index my-index --topics train.tsv --encoder minilm
  python -m rnnreranker.train --model late --negatives triplets.parquet --encoder minilm --output my-colbert

A training that was killed goes on where it stopped when the same command is given again.
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    typed = {name: value for name in (*EVERYDAY, PRESET) if (value := getattr(args, name)) is not None}
    with command.naming_flags(typed):
        request = command.request(args, TrainRequest, model=Written.read(args.model).beside(typed, "--model"))
        trained = train(request)
    params: Any = request.training.params
    before = trained.history[0]
    for name in [name for name in trained.measures if name in before]:
        command.put(f"{name}\tbefore {before[name]:.4f}\tbest {trained.measures[name]:.4f}")
    command.say(
        f"{args.output}: step {trained.best_step} of {trained.steps} is best on validation "
        f"{params.key_measure} ({_validated(trained.record)}); trained "
        f"{trained.queries_per_second:.0f} {trained.unit}/s"
    )
    return 0


def _validated(record: Mapping[str, Any]) -> str:
    """How many queries, or texts, a training was validated with."""
    if "validation_texts" in record:
        return command.counted(record["validation_texts"], "text")
    return f"{record['validation_queries']} queries"


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Train an encoder (query, dual, sparse, late), a cross-encoder, a scorer of words or a language model."
    parser = command.parser("train", text, EPILOG, USAGE)
    command.add_request_flags(parser, TrainRequest, "model", "labels", "negatives", "index", "topics", "encoder")
    command.add_request_flags(parser, TrainRequest, "output", output="DIR")

    settings = parser.add_argument_group("training (all other settings: --model NAME:key=value)")
    for name, text in EVERYDAY.items():
        kind = hints_of(TrainParams)[name]
        settings.add_argument(flag(name), type=READERS[kind], metavar="NUMBER", help=text)
    text = f"published values ({_presets(ours=False)}), ours ({_presets(ours=True)}) or a YAML file"
    settings.add_argument("--preset", metavar="NAME", help=text)
    command.add_request_flags(settings, TrainRequest, "loss", "scorer", "neutrality")

    texts = parser.add_argument_group("texts and labels of another source")
    command.add_request_flags(texts, TrainRequest, "documents", "fields", "other_index", fields="NAMES")

    checked = parser.add_argument_group("validation queries (default: a share of the training queries, held out)")
    shown = {
        "validation_labels": "FILE",
        "validation_run": "RUN",
        "validation_qrels": "QRELS",
        "validation_topics": "FILE",
    }
    command.add_request_flags(checked, TrainRequest, *shown, **shown)

    work = parser.add_argument_group("work")
    text = "write none at validations; a killed training begins again"
    work.add_argument("--no-checkpoints", dest="checkpoints", action="store_false", help=text)
    command.add_request_flags(work, TrainRequest, "device", device="NAME")
    return parser


def _presets(ours: bool) -> str:
    """Model by model the presets that have published values, or those that are ours."""
    presets_of = {
        name: sorted(preset for preset in model.Params.presets if (preset in model.Params.ours) == ours)
        for name, model in methods(KIND).items()
    }
    return "; ".join(f"{name}: {', '.join(presets)}" for name, presets in presets_of.items() if presets)


if __name__ == "__main__":
    raise SystemExit(command.run(main))
