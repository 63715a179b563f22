"""`python -m rnnreranker.train`: trains a model from labels or negatives and texts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rnnreranker.base import command
from rnnreranker.base.errors import argument
from rnnreranker.base.settings import Written
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import TrainRequest, train

USAGE = "python -m rnnreranker.train --labels FILE --index INDEX --topics TOPICS --output DIR [flags]"
EPILOG = """examples (a model takes its settings behind a colon; `python -m rnnreranker methods` lists them all):
  python -m rnnreranker.train --labels labels.parquet --index my-index --topics train.tsv --output my-model
  python -m rnnreranker.search --index my-index --topics test.tsv --encoder my-model --output run.txt
  python -m rnnreranker.train --model cross:group_size=4,max_length=128 --epochs 1 --output my-reranker \\
      --labels labels.parquet --index my-index --topics train.tsv --encoder minilm
  python -m rnnreranker.train --model dual --loss distance:alpha=0.2 --output my-dual \\
      --labels labels.parquet --index my-index --topics train.tsv --encoder minilm
  python -m rnnreranker.train --model late --negatives triplets.parquet --encoder minilm --output my-colbert

presets: published values, which `python -m rnnreranker methods NAME` lists, or a YAML file

A training that was killed goes on where it stopped when the same command is given again.
"""
EVERYDAY = ("learning_rate", "epochs", "max_steps", "batch_size", "seed", "loss")  # settings that are flags too
TRAINING = "training (defaults: those of --model query; all other settings: --model NAME:key=value)"
SHOWN = {
    "": ("model", "labels", "negatives", "index", "topics", "encoder", "output"),
    TRAINING: ("preset", "scorer", "neutrality", "device"),
    "texts and labels of another source": ("documents", "fields", "other_index"),
    "validation queries (default: a share of the training queries, held out)": (
        *("validation_run", "validation_qrels", "validation_topics"),
    ),
}


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    typed = command.given(args, TrainParams)
    with command.naming_flags(typed):
        model = Written.read(args.model).beside(typed, argument("model"))
        request = command.request(args, TrainRequest, model=model)
        trained = train(request)
    before, record = trained.history[0], trained.record
    for name, best in trained.measures.items():
        command.put(f"{name}\tbefore {before[name]:.4f}\tbest {best:.4f}")
    texts = record.get("validation_texts")
    validated = f"{record['validation_queries']} queries" if texts is None else command.counted(texts, "text")
    key = request.training.params.key_measure  # type: ignore[attr-defined]
    command.say(
        f"{request.output}: step {trained.best_step} of {trained.steps} is best on validation {key} ({validated}); "
        f"trained {trained.seconds:.0f} s"
    )
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Train an encoder (query, dual, sparse, late), a cross-encoder, a scorer of words or a language model."
    parser = command.parser("train", text, EPILOG, USAGE)
    for title, fields in SHOWN.items():
        group = parser.add_argument_group(title) if title else parser
        if title == TRAINING:
            command.add_flags(group, TrainParams, *EVERYDAY)
        command.add_flags(group, TrainRequest, *fields)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
