"""`python -m rnnreranker.index`: documents to an index folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, flag, refuse
from rnnreranker.base.method import names
from rnnreranker.base.settings import ShareRequest
from rnnreranker.index.build import Built
from rnnreranker.index.make import extend_index, make_index, make_share
from rnnreranker.index.request import FlagsRequest, IndexRequest, settings_with_flags
from rnnreranker.parts.base import part

HOW = ("threads", "backend", "address", "device", "compute_dtype")
FREE = {  # what is done → the flags that go with it
    "append": {"append", "output", *HOW},
    "parts": {"output", "parts", "overwrite", *HOW, "shard_id", "shard_num"},
}
USAGE = """\
python -m rnnreranker.index --documents NAME|FILE --output DIR [--parts NAMES]
       python -m rnnreranker.index --append NAME|FILE --output DIR"""
EPILOG = """\
Parts that are there are not made again. An interrupted build goes on when the same command is run again.
The settings of a part: python -m rnnreranker methods NAME

  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --parts dense,bm25
  python -m rnnreranker.index --documents docs.jsonl --output indexes/mine --encoder tas-b:max_length=128
  python -m rnnreranker.index --documents docs.jsonl --output indexes/mine --parts terms,neighbours:k=32
  python -m rnnreranker.index --documents vectors.npy --output indexes/vectors --parts neighbours
  python -m rnnreranker.index --documents reqa-cmrc --output indexes/cmrc --parts terms:language=zh
  python -m rnnreranker.index --output a-faiss-folder-of-pyserini --parts neighbours"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    args, started = make_parser().parse_args(argv), time.perf_counter()
    done = "append" if args.append else "" if args.documents else "parts"
    if done:
        left = vars(make_parser().parse_args([]))
        typed = [flag(name) for name, value in vars(args).items() if name not in FREE[done] and value != left[name]]
        beside = "without --documents, where only parts of others are made" if done == "parts" else "beside --append"
        refuse((typed, f"{' and '.join(typed)} {beside}; leave it out"))
    if args.output is None:
        raise InputError("give --output, the folder for the index")
    output = Path(args.output).expanduser()
    if args.append:
        how = {name: getattr(args, name) for name in HOW}
        _tell(args, extend_index(output, IndexRequest(args.append, **how)), started)
        return 0
    settings = {hint.flag: getattr(args, hint.flag) for _, hint in settings_with_flags()}
    request, share = command.request(args, IndexRequest, settings=settings), command.request(args, ShareRequest).share
    of_texts = ", ".join(name for name in request.chosen if not part(name).made_of)
    refuse(
        *(
            (share and getattr(args, other), f"--shard-id {args.shard_id} beside {flag(other)}, which one process does")
            for other in ("overwrite", "from_index")
        ),
        (
            not args.documents and of_texts,
            "give --documents, what to make an index of, --append, what to add to the one in --output, or parts "
            f"alone that are made of others, as --parts neighbours, not {of_texts}",
        ),
    )
    if share is None:
        _tell(args, make_index(request, output), started)
        return 0
    for line in make_share(request, output, share):
        command.say(f"{output}: shard {share[0]} of {share[1]} of {line}")
    return 0


def _tell(args: Any, built: Built, started: float) -> None:
    documents = command.counted(built.documents, "document")
    if not built.made:
        command.say(f"{built.path}: already complete, {documents}; --overwrite makes it again")
        return
    seconds = time.perf_counter() - started
    reused = f", {built.reused} of them encoded before" if built.reused else ""
    command.say(
        f"{built.path}: {' and '.join(built.made)} of {documents}{reused} in {seconds:.1f} seconds "
        f"({built.documents / seconds:.1f} documents/s, {command.counted(args.threads or command.cores(), 'thread')})"
    )


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("index", "Make an index of documents, of one part or several.", EPILOG, usage=USAGE)
    command.add_flags(parser, IndexRequest, "documents", "fields")
    command.add_flags(parser, FlagsRequest, "append", "output")
    command.add_flags(parser, IndexRequest, "from_index", "overwrite", *HOW)
    command.add_flags(parser, ShareRequest, "shard_id", "shard_num")
    group = parser.add_argument_group("parts")
    command.add_flags(group, IndexRequest, "parts")
    for one, hint in settings_with_flags():
        known = f"{', '.join(names(one.encoder))}; " if hint.field.name == "encoder" else ""
        command.add_flags(group, one.Params, hint.field.name, before=f"of {one.name}: {known}")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
