"""`python -m rnnreranker.negatives`: the command of `rnnreranker.labels.negatives`."""

from __future__ import annotations

from rnnreranker.base import command
from rnnreranker.labels.negatives.__main__ import main, make_parser

__all__ = ["main", "make_parser"]

if __name__ == "__main__":
    raise SystemExit(command.run(main))
