"""`python -m rnnreranker.serve`: a page and a JSON API on this machine, or tools for a language model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from rnnreranker.base import command
from rnnreranker.base.errors import for_others, require
from rnnreranker.serve.request import TOKEN, Limits, ServeRequest

EPILOG = """examples:
  python -m rnnreranker.serve --index pydoc
  python -m rnnreranker.serve --index my-index --topics queries.tsv --qrels qrels.txt --port 9000
  python -m rnnreranker.serve --index pydoc --mcp
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command until it is interrupted; the exit code."""
    args = make_parser().parse_args(argv)
    token = os.environ.get(TOKEN) if args.token is None else args.token
    request = command.request(args, ServeRequest, token=token, limits=command.request(args, Limits))
    request.check()
    extra = "mcp" if request.mcp else "serve"
    for package in ("mcp",) if request.mcp else ("fastapi", "uvicorn"):
        require(package, "the server", f"'rnnreranker[{extra}]'")
    with for_others():
        if request.mcp:
            from rnnreranker.serve.tools import serve_tools

            serve_tools(request)
        else:
            from rnnreranker.serve.app import serve

            serve(request)
    return 0


def make_parser() -> argparse.ArgumentParser:
    text = "Serve one index on this machine: a page to ask and rerank live, and a JSON API."
    parser = command.parser("serve", text, EPILOG)
    served = ("index", "mcp", "host", "port", "token", "topics", "qrels", "measures", "protocol", "encoder")
    command.add_flags(parser, ServeRequest, *served)
    command.add_flags(parser.add_argument_group("limits of a request"), Limits)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
