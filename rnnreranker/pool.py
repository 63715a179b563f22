"""`python -m rnnreranker.pool`: the command of `rnnreranker.evaluate.pool`."""

from __future__ import annotations

from rnnreranker.base import command
from rnnreranker.evaluate.pool.__main__ import main, make_parser

__all__ = ["main", "make_parser"]

if __name__ == "__main__":
    raise SystemExit(command.run(main))
