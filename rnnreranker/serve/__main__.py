"""`python -m rnnreranker.serve`: a page and a JSON API on this machine, or tools for a language model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from rnnreranker.base import command
from rnnreranker.base.arguments import for_others
from rnnreranker.base.errors import require
from rnnreranker.evaluate.protocols import PROTOCOL_HELP, PROTOCOLS
from rnnreranker.search import flags
from rnnreranker.serve.request import LOOPBACK, Limits, ServeRequest

EPILOG = """examples:
  python -m rnnreranker.serve --index pydoc
  python -m rnnreranker.serve --index my-index --topics queries.tsv --qrels qrels.txt --port 9000
  python -m rnnreranker.serve --index pydoc --mcp
"""
TOKEN = "RNNRERANKER_TOKEN"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments until it is interrupted; the exit code."""
    args = make_parser().parse_args(argv)
    token = args.token or os.environ.get(TOKEN)
    request = command.request(args, ServeRequest, token=token, limits=command.chosen(args, Limits))
    request.check()
    if args.mcp:
        require("mcp", "tools for language models", "'rnnreranker[mcp]'")
    else:
        require("fastapi", "the server", "'rnnreranker[serve]'")
        require("uvicorn", "the server", "'rnnreranker[serve]'")
    from rnnreranker.serve.serving import serve, serve_tools

    with for_others():
        (serve_tools if args.mcp else serve)(request)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Serve one index on this machine: a page to ask and rerank live, and a JSON API."
    parser = command.parser("serve", text, EPILOG)
    flags.add_index(parser)
    parser.add_argument("--mcp", action="store_true", help="tools for a language model, on stdin and stdout")
    parser.add_argument("--host", default=LOOPBACK, help=f"where to listen (default: {LOOPBACK}); others need --token")
    parser.add_argument("--port", type=int, default=ServeRequest.port, help="default: 8000; 0: any free one")
    parser.add_argument("--token", help=f"what clients must send as a bearer token (or {TOKEN} in the environment)")
    parser.add_argument("--topics", help=f"topics that the page offers: {flags.TOPICS} (default of pydoc: its own)")
    parser.add_argument("--qrels", help=flags.QRELS)
    parser.add_argument("--measures", default=ServeRequest.measures, help=f'default: "{ServeRequest.measures}"')
    parser.add_argument("--protocol", choices=PROTOCOLS, metavar="NAME", help=PROTOCOL_HELP)
    flags.add_encoder(parser)
    command.add_dataclass_flags(parser.add_argument_group("limits of a request"), Limits)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
