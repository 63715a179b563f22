"""`python -m rnnreranker`: which commands there are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rnnreranker import __version__
from rnnreranker.base import command
from rnnreranker.base.errors import InputError, nearest

COMMANDS = {
    "index": "documents to vectors (Faiss folder) and BM25 (Lucene)",
    "search": "topics to candidates, reranked: a run, a table or an evaluation",
    "fuse": "runs of the same topics to one, by reciprocal ranks or scores",
    "evaluate": "runs and qrels to measures, differences and tests",
    "pool": "runs to a judgement sheet, and back to qrels",
    "diagnose": "a run and its vectors to a forecast, without judgements",
    "recover": "topics with several positives to how well one finds the others",
    "tune": "topics and qrels to parameters, with their value on unseen topics",
    "labels": "a run and sparse judgements to soft labels for training",
    "train": "soft labels and fixed vectors to a query encoder fine-tuned for the same index (CODER)",
    "negatives": "a run and judgements to hard negatives without likely positives",
    "study": "every way of training, with seeds, tested on unseen queries",
    "regress": "specs to values, compared with those on record, and pages",
    "bench": "what a reranked query costs on this machine",
}


def main(argv: Sequence[str]) -> int:
    """List the commands; a command's name as an argument is an error that says how to write it.

    Raises:
        InputError: an argument that does not ask for the list.
    """
    name = argv[0] if argv else "--help"
    if name in COMMANDS:
        raise InputError(f"write python -m rnnreranker.{name}")
    if name not in ("--help", "-h", "--version"):
        raise InputError(f"{name}: no such command, {nearest(name, COMMANDS)}; python -m rnnreranker lists them")
    print(f"rnnreranker {__version__}: python -m rnnreranker.COMMAND --help")
    if name != "--version":
        for known, what in COMMANDS.items():
            print(f"  {known:9} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
