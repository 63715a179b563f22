"""`python -m rnnreranker.train`: labels or negatives, texts and a model to a better model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.locks import sole
from rnnreranker.base.method import fields_of, find, methods, names
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import flag, typed_name
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.encode.params import TRAINED_POOLINGS
from rnnreranker.encode.scorer.params import ScorerParams
from rnnreranker.train.models.query import SCORERS
from rnnreranker.train.params import settings_for

KIND = "trained-model"  # of method
EPILOG = """examples:
  python -m rnnreranker.train --labels labels.parquet --index my-index --topics train.tsv --encoder minilm \\
      --output my-encoder
  python -m rnnreranker.search --index my-index --topics test.tsv --encoder my-encoder
  python -m rnnreranker.train --model cross --labels labels.parquet --index my-index --topics train.tsv \\
      --encoder minilm --output my-reranker
  python -m rnnreranker.train --model dual --labels labels.parquet --index my-index --topics train.tsv \\
      --encoder minilm --output my-dual
  python -m rnnreranker.train --model dual --labels labels.parquet --index my-index --topics train.tsv \\
      --encoder none --preset f-ebr --output my-words
  python -m rnnreranker.train --model sparse --negatives triplets.parquet --encoder splade-tiny --output my-splade
  python -m rnnreranker.train --model late --negatives triplets.parquet --encoder minilm --output my-colbert

A training that was killed goes on where it stopped when the same command is given again.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    _check(args)
    model = find(KIND, args.model)()
    typed = command.given_of(args, KIND) | command.given_of(args, "loss")
    with command.naming_flags(typed):
        params, loss = settings_for(model.Params, typed, args.preset)
    with phase("training"), sole(Path(args.output), "training to it"), command.naming_flags(typed):
        trained = model.train(args, params, loss, _device(args.device))
    if args.plots:
        from rnnreranker.train.plots import write_plots

        for path in write_plots(args.plots, {Path(args.output).name: trained.record}):
            command.put(path)
    before = trained.history[0]
    for name in [name for name in trained.measures if name in before]:
        command.put(f"{name}\tbefore {before[name]:.4f}\tbest {trained.measures[name]:.4f}")
    command.say(
        f"{args.output}: step {trained.best_step} of {trained.steps} is best on validation "
        f"{params.key_measure} ({_validated(trained.record)}); trained "
        f"{trained.queries_per_second:.0f} {trained.unit}/s"
        + ("; no step was better than the encoder as it was" if trained.best_step == 0 else "")
    )
    return 0


def _validated(record: Mapping[str, Any]) -> str:
    """How many queries, or texts, a training was validated with."""
    if "validation_texts" in record:
        return command.counted(record["validation_texts"], "text")
    return f"{record['validation_queries']} queries"


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser(
        "train",
        "Train an encoder (query, dual, sparse, late), a cross-encoder, a scorer of words or a language model.",
        EPILOG,
    )
    parser.add_argument("--model", choices=names(KIND), default="query", help="what is trained (default: query)")
    parser.add_argument("--labels", metavar="FILE.parquet", help="of python -m rnnreranker.labels")
    parser.add_argument("--negatives", metavar="FILE", help="of python -m rnnreranker.negatives, in place of labels")
    parser.add_argument("--index", help="document vectors, or texts: folder, `pydoc`, prebuilt index")
    add_documents_flags(parser, "texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    parser.add_argument("--other-index", action="store_true", help="take labels that were made from another index")
    parser.add_argument("--topics", help="query texts: file, ir_datasets id, `pydoc/train`")
    command.add_encoder_flag(parser, also="; none = a new model (dual, masked)", required=True)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the trained model")
    checked = parser.add_argument_group("validation queries (default: a share of the training queries, held out)")
    checked.add_argument("--validation-labels", metavar="FILE.parquet", help="candidates and targets of them")
    checked.add_argument("--validation-run", metavar="RUN", help="candidates of them, in place of labels")
    checked.add_argument("--validation-qrels", help="judgements of them, with --validation-run; relevant from grade 1")
    checked.add_argument("--validation-topics", help="texts of them; not needed beside labels where --topics has them")
    parser.add_argument("--pooling", choices=TRAINED_POOLINGS, help="default: the model's own")
    parser.add_argument(
        "--l2-norm", action=argparse.BooleanOptionalAction, default=None, help="length-1 vectors (default: model's own)"
    )
    parser.add_argument("--neutrality", metavar="FILE.tsv", help="docid<TAB>value in [0, 1], with --neutrality-weight")
    parser.add_argument("--plots", metavar="DIR", help="curves of the training")
    settings = parser.add_argument_group("training")
    text = f"published values ({_presets(ours=False)}), ours ({_presets(ours=True)}) or a YAML file"
    settings.add_argument("--preset", help=text)
    command.add_method_flags(settings, KIND)
    command.add_method_flags(settings, "loss")
    scorers = parser.add_argument_group("scorer of candidates (default: none, the inner product)")
    scorers.add_argument(
        "--scorer", choices=("none", *SCORERS), default="none", help="OUTPUT is then for search --rerank scorer"
    )
    command.add_dataclass_flags(scorers, ScorerParams, skip=("scorer",))
    work = parser.add_argument_group("work")
    work.add_argument(
        "--checkpoints", action=argparse.BooleanOptionalAction, default=True, help="at every validation, to resume from"
    )
    work.add_argument("--device", choices=("cpu", "cuda", "auto"), default="auto", help="default: auto")
    return parser


def _presets(ours: bool) -> str:
    """Model by model the presets that have published values, or those that are ours."""
    found = {
        name: sorted(preset for preset in model.Params.presets if (preset in model.Params.ours) == ours)
        for name, model in methods(KIND).items()
    }
    return "; ".join(f"{name}: {', '.join(presets)}" for name, presets in found.items() if presets)


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    of: dict[str, list[str]] = {}  # a flag -> the models that it means something to
    for name, found in methods(KIND).items():
        for dest in (*found.flags, *(typed_name(field) for field in fields_of(found))):
            of.setdefault(dest, []).append(name)
    for dest, own in of.items():
        if args.model not in own and getattr(args, dest) not in (None, False, "none"):
            raise InputError(f"{flag(dest)}: is for --model {' or '.join(own)}, not for {args.model}")
    asked_fields(args)
    output = Path(args.output)
    if output.is_dir() and any(output.iterdir()) and not (output / "training.json").is_file():
        raise InputError(f"{output}: has files that this command did not write; give another --output")
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file, expected a folder to write")
    parent = output.absolute().parent
    if parent.is_dir() and not os.access(parent, os.W_OK):
        raise InputError(f"{parent}: cannot be written; choose another --output")


def _device(name: str) -> str:
    """The device to train on."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no GPU that torch can use here; leave --device out")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


if __name__ == "__main__":
    raise SystemExit(command.run(main))
