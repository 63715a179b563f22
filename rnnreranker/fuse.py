"""`python -m rnnreranker.fuse`: the command of `rnnreranker.search.fuse`."""

from __future__ import annotations

from rnnreranker.base import command
from rnnreranker.search.fuse.__main__ import main, make_parser

__all__ = ["main", "make_parser"]

if __name__ == "__main__":
    raise SystemExit(command.run(main))
