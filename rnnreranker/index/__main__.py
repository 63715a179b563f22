"""`python -m rnnreranker.index`: documents to an index folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, flag, refuse
from rnnreranker.base.method import names
from rnnreranker.base.settings import ShareRequest, Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.index.build import Built
from rnnreranker.index.make import check_index, extend_index, make_index, make_share, obstacles, said
from rnnreranker.index.request import (
    AUTO,
    USUAL,
    FlagsRequest,
    IndexRequest,
    forms_of,
    settings_with_flags,
    with_settings,
)
from rnnreranker.parts.base import part, parts

HOW = ("threads", "backend", "address", "device", "compute_dtype")
FREE = {  # what is done → the flags that go with it
    "check": {"check"},
    "append": {"append", "output", *HOW},
    "parts": {"output", "parts", "overwrite", *HOW, "shard_id", "shard_num"},
}
USAGE = """\
python -m rnnreranker.index --documents NAME|FILE --output DIR [--parts NAMES]
       python -m rnnreranker.index --append NAME|FILE --output DIR
       python -m rnnreranker.index --check DIR"""
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
    done = next((name for name in ("check", "append", "documents") if getattr(args, name)), "parts")
    if usual := FREE.get(done):
        left = vars(make_parser().parse_args([]))
        typed = [flag(name) for name, value in vars(args).items() if name not in usual and value != left[name]]
        beside = "without --documents, where only parts of others are made" if done == "parts" else f"beside --{done}"
        refuse((typed, f"{' and '.join(typed)} {beside}; leave it out"))
    if args.check:
        command.put(check_index(Path(args.check).expanduser()))
        return 0
    if args.output is None:
        raise InputError("give --output, the folder for the index, or --check, an index to check")
    output = Path(args.output).expanduser()
    if args.append:
        how = {name: getattr(args, name) for name in HOW}
        _tell(args, *extend_index(output, IndexRequest(args.append, **how)), started)
        return 0
    request, share = _request(args), command.request(args, ShareRequest).share
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
    if args.documents and args.parts == AUTO:
        request = request.with_own_vectors()
        if left_out := obstacles(request):
            again = f"--documents {request.documents} --output {output} --parts {','.join(left_out)}"
            command.say(f"left out: {said(left_out)}; to add it later: python -m rnnreranker.index {again}")
        request = replace(request, parts=[one for one in forms_of(request.parts) if one.name not in left_out])
    if share is None:
        _tell(args, *make_index(request, output), started)
        return 0
    for line in make_share(request, output, share):
        command.say(f"{output}: shard {share[0]} of {share[1]} of {line}")
    return 0


def _request(args: Any) -> IndexRequest:
    """Documents and parts of the flags."""
    if args.parts == AUTO:
        alone = args.documents.endswith(".npy")
        usual = (name for name, one in parts().items() if one.automatic and (not alone or name == USUAL or one.made_of))
        written = [Written(name) for name in usual]
    else:
        written = forms_of(USUAL if args.parts is None else args.parts)
    flags = {hint.flag: getattr(args, hint.flag) for _, hint in settings_with_flags()}
    return command.request(
        args,
        IndexRequest,
        parts=with_settings(written, flags),
        fields=asked_fields(args.documents, args.fields),
        from_index=Path(args.from_index).expanduser() if args.from_index else None,
    )


def _tell(args: Any, built: Built, made: Sequence[str], started: float) -> None:
    documents = command.counted(built.documents, "document")
    if not made:
        command.say(f"{built.path}: already complete, {documents}; --overwrite makes it again")
        return
    seconds = time.perf_counter() - started
    reused = f", {built.reused} of them encoded before" if built.reused else ""
    command.say(
        f"{built.path}: {' and '.join(made)} of {documents}{reused} in {seconds:.1f} seconds "
        f"({built.documents / seconds:.1f} documents/s, {command.counted(args.threads or command.cores(), 'thread')})"
    )


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("index", "Make an index of documents, of one part or several.", EPILOG, usage=USAGE)
    command.add_flags(parser, IndexRequest, "documents")
    command.add_flags(parser, FlagsRequest, "fields", "append", "output", "check")
    command.add_flags(parser, IndexRequest, "from_index", "overwrite", *HOW)
    command.add_flags(parser, ShareRequest, "shard_id", "shard_num")
    group = parser.add_argument_group("parts")
    command.add_flags(group, FlagsRequest, "parts")
    for one, hint in settings_with_flags():
        known = f"{', '.join(names(one.encoder))}; " if hint.field.name == "encoder" else ""
        command.add_flags(group, one.Params, hint.field.name, before=f"of {one.name}: {known}")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
