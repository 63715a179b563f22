"""`python -m rnnreranker`: which commands there are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from rnnreranker._version import __version__
from rnnreranker.base import command
from rnnreranker.base.errors import InputError, nearest

METHODS = "methods"
DOCTOR = "doctor"
COMMANDS = {
    "index": "documents to vectors (Faiss folder) and BM25 (Lucene)",
    "search": "topics to candidates, reranked: a run, a table or an evaluation",
    "serve": "an index to a page, a JSON API and tools for language models, on this machine",
    "fuse": "runs of the same topics to one, by reciprocal ranks or scores",
    "evaluate": "runs and qrels to measures, differences and tests",
    "experiment": "topics and qrels to a table of systems, and which of them to take",
    "diagnose": "a run and its vectors to a forecast, without judgements",
    "recover": "topics with several positives to how well one finds the others",
    "tune": "topics and qrels to parameters, with their value on unseen topics",
    "labels": "a run and sparse judgements to soft labels for training",
    "train": "soft labels and fixed vectors to a query encoder fine-tuned for the same index (CODER)",
    "negatives": "a run and judgements to hard negatives without likely positives",
    "study": "every way of training, with seeds, tested on unseen queries",
    "regress": "specs to values, compared with those on record, and pages",
}


@command.main
def main(argv: Sequence[str]) -> int:
    """List the commands, or the methods; a command's name as an argument is an error that says how to write it.

    Raises:
        InputError: an argument that asks for neither.
    """
    name = argv[0] if argv else "--help"
    if name == METHODS:
        from rnnreranker.base.method import described, listed

        for line in (line for one in argv[1:] for line in described(one)) if argv[1:] else listed():
            command.put(line)
        return 0
    if name == DOCTOR:
        if argv[1:]:
            raise InputError(f"{DOCTOR}: takes no arguments, got {' '.join(argv[1:])}")
        from rnnreranker.index.doctor import abilities

        for line in abilities():
            command.put(line)
        return 0
    if name in COMMANDS:
        raise InputError(f"write python -m rnnreranker.{name}")
    if name not in ("--help", "-h", "--version"):
        hint = nearest(name, [*COMMANDS, METHODS, DOCTOR])
        raise InputError(f"{name}: no such command, {hint}; python -m rnnreranker lists them")
    print(f"rnnreranker {__version__}: python -m rnnreranker.COMMAND --help")
    if name != "--version":
        for known, what in COMMANDS.items():
            print(f"  {known:10} {what}")
        print(f"python -m rnnreranker {METHODS} [NAME]: every method, or the settings of one")
        print(f"python -m rnnreranker {DOCTOR}: what this machine can do, and what to install for the rest")
    return 0


def script() -> NoReturn:
    """The console script: `rnnreranker COMMAND …` is `python -m rnnreranker.COMMAND …`."""
    name, rest = (sys.argv[1], sys.argv[2:]) if sys.argv[1:2] and sys.argv[1] in COMMANDS else ("", sys.argv[1:])
    words = [sys.executable, "-m", f"rnnreranker.{name}" if name else "rnnreranker", *rest]
    if os.name == "posix":
        os.execv(sys.executable, words)  # this very process, with its signals
    raise SystemExit(subprocess.run(words, check=False).returncode)


if __name__ == "__main__":
    sys.exit(command.run(main))
