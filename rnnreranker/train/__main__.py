"""`python -m rnnreranker.train`: labels or negatives, texts and a model to a better model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.device import AUTO
from rnnreranker.base.method import methods, names
from rnnreranker.base.settings import hints_of
from rnnreranker.base.typed_numbers import READERS
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.data.fields import CHOICES
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.request import KIND, SCORERS, TrainRequest
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
    if args.plots:
        from rnnreranker.train.plots import write_plots

        for path in write_plots(args.plots, {trained.path.name: trained.record}):
            command.put(path)
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
    text = f"what is trained: {', '.join(names(KIND))} (default: query)"
    parser.add_argument("--model", default="query", metavar="NAME", help=text)
    parser.add_argument("--labels", metavar="FILE.parquet", help="of python -m rnnreranker.labels")
    parser.add_argument("--negatives", metavar="FILE", help="of python -m rnnreranker.negatives, in place of labels")
    parser.add_argument("--index", help="document vectors, or texts: folder, `pydoc`, prebuilt index")
    parser.add_argument("--topics", help="query texts: file, ir_datasets id, `pydoc/train`")
    text = "NAME|FOLDER|hub id[:pooling=cls]; none = a new model (default: that of the index)"
    parser.add_argument("--encoder", help=f"to begin with: {text}")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the trained model")
    parser.add_argument("--plots", metavar="DIR", help="curves of the training")

    settings = parser.add_argument_group("training (all other settings: --model NAME:key=value)")
    for name, text in EVERYDAY.items():
        kind = hints_of(TrainParams)[name]
        settings.add_argument(flag(name), type=READERS[kind], metavar="NUMBER", help=text)
    text = f"published values ({_presets(ours=False)}), ours ({_presets(ours=True)}) or a YAML file"
    settings.add_argument("--preset", metavar="NAME", help=text)
    settings.add_argument("--loss", metavar="NAME", help=f"{', '.join(names('loss'))} (default: that of the model)")
    text = f"of candidates, for search --rerank scorer: {', '.join(SCORERS)} (default: the inner product)"
    settings.add_argument("--scorer", metavar="NAME", help=text)
    text = "docid<TAB>value in [0, 1], for query:neutrality_weight"
    settings.add_argument("--neutrality", metavar="FILE.tsv", help=text)

    texts = parser.add_argument_group("texts and labels of another source")
    texts.add_argument("--documents", help="texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    text = f"of --documents: {' or '.join(CHOICES)}"
    texts.add_argument("--fields", choices=tuple(CHOICES), metavar="NAMES", help=text)
    texts.add_argument("--other-index", action="store_true", help="take labels that were made from another index")

    checked = parser.add_argument_group("validation queries (default: a share of the training queries, held out)")
    checked.add_argument("--validation-labels", metavar="FILE", help="candidates and targets of them")
    checked.add_argument("--validation-run", metavar="RUN", help="candidates of them, in place of labels")
    checked.add_argument(
        "--validation-qrels", metavar="QRELS", help="judgements, beside a run; from grade 1 on relevant"
    )
    checked.add_argument("--validation-topics", metavar="FILE", help="texts of them, where --topics has them not")

    work = parser.add_argument_group("work")
    text = "write none at validations; a killed training begins again"
    work.add_argument("--no-checkpoints", dest="checkpoints", action="store_false", help=text)
    work.add_argument("--device", default=AUTO, metavar="NAME", help=f"cpu, cuda, {AUTO} (default: {AUTO})")
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
