"""`python -m rnnreranker.recover`: the command of `rnnreranker.lab.recover`."""

from __future__ import annotations

from rnnreranker.base import command
from rnnreranker.lab.recover.__main__ import main, make_parser

__all__ = ["main", "make_parser"]

if __name__ == "__main__":
    raise SystemExit(command.run(main))
