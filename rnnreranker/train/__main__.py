"""`python -m rnnreranker.train`: soft labels, an index and a query encoder to a better query encoder."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rnnreranker import command
from rnnreranker.encode.params import TRAINED_POOLINGS
from rnnreranker.errors import InputError
from rnnreranker.locks import sole
from rnnreranker.process.phases import phase
from rnnreranker.scorer.params import ScorerParams
from rnnreranker.settings import choices, flag, hints_of
from rnnreranker.train.params import TrainParams, training_settings

SCORERS = choices(hints_of(ScorerParams)["scorer"])
EPILOG = """examples:
  python -m rnnreranker.train --labels labels.parquet --index my-index --topics train.tsv --encoder minilm \\
      --output my-encoder
  python -m rnnreranker.search --index my-index --topics test.tsv --encoder my-encoder

A training that was killed goes on where it stopped when the same command is given again.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    typed = command.given(args, TrainParams) | command.given_of(args, "loss")
    with command.naming_flags(typed):
        params, loss = training_settings(typed, args.preset)
    _check(args)
    scorer = _scorer(args)
    with phase("importing torch and transformers", "imports"):
        from rnnreranker.train.fairness import read_neutrality
        from rnnreranker.train.inputs import load_inputs
        from rnnreranker.train.training import train_encoder

    with phase("reading labels and vectors"):
        found = load_inputs(args, params)
    output = Path(args.output)
    with phase("training"), sole(output, "training to it"):
        trained = train_encoder(
            found.labels,
            found.source,
            found.topics,
            args.encoder,
            output,
            params,
            validation=found.validation,
            pooling=args.pooling,
            normalize=args.l2_norm,
            neutrality=read_neutrality(args.neutrality) if args.neutrality else None,
            loss=loss,
            scorer=scorer,
            other_index=args.other_index,
            checkpoints=args.checkpoints,
            device=_device(args.device),
        )
    if args.plots:
        from rnnreranker.train.plots import write_plots

        for path in write_plots(args.plots, {output.name: trained.record}):
            command.put(path)
    before = trained.history[0]
    for name in ("loss", "kl", "RR@10", "nDCG@10"):
        command.put(f"{name}\tbefore {before[name]:.4f}\tbest {trained.measures[name]:.4f}")
    command.say(
        f"{args.output}: step {trained.best_step} of {trained.steps} is best on validation "
        f"{params.key_measure} ({trained.record['validation_queries']} queries); trained "
        f"{trained.queries_per_second:.0f} queries/s"
        + ("; no step was better than the encoder as it was" if trained.best_step == 0 else "")
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("train", "Fine-tune a query encoder against fixed document vectors (CODER).", EPILOG)
    parser.add_argument("--labels", required=True, metavar="FILE.parquet", help="of python -m rnnreranker.labels")
    parser.add_argument("--index", required=True, help="document vectors: folder, `pydoc`, prebuilt index")
    parser.add_argument("--other-index", action="store_true", help="take labels that were made from another index")
    parser.add_argument("--topics", required=True, help="query texts: file, ir_datasets id, `pydoc/train`")
    command.add_encoder_flag(parser, required=True)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the trained encoder")
    checked = parser.add_argument_group("validation queries (default: a share of the labelled ones, held out)")
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
    settings.add_argument(
        "--preset", help=f"published values ({', '.join(sorted(TrainParams.presets))}) or a YAML file"
    )
    command.add_dataclass_flags(settings, TrainParams)
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


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    output = Path(args.output)
    if output.is_dir() and any(output.iterdir()) and not (output / "training.json").is_file():
        raise InputError(f"{output}: has files that this command did not write; give another --output")
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file, expected a folder to write")
    parent = output.absolute().parent
    if parent.is_dir() and not os.access(parent, os.W_OK):
        raise InputError(f"{parent}: cannot be written; choose another --output")


def _scorer(args: argparse.Namespace) -> ScorerParams | None:
    """The scorer of the flags; None = the inner product."""
    typed = {name: value for name, value in command.given(args, ScorerParams).items() if name != "scorer"}
    if args.scorer == "none":
        if typed:
            raise InputError(f"{flag(next(iter(typed)))}: goes with --scorer {' or '.join(SCORERS)}")
        return None
    with command.naming_flags(typed):
        return ScorerParams(args.scorer, **typed)


def _device(name: str) -> str:
    """The device to train on."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no GPU that torch can use here; leave --device out")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


if __name__ == "__main__":
    raise SystemExit(command.run(main))
