"""`python -m rnnreranker.index`: documents to an index folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import names
from rnnreranker.base.request import Share, ShareRequest
from rnnreranker.base.settings import hints_of, typed_name
from rnnreranker.base.written_form import Written
from rnnreranker.data.fields import asked_fields
from rnnreranker.index.build import Built
from rnnreranker.index.extend import extend_index
from rnnreranker.index.make import encode_share, make_index, obstacles, said
from rnnreranker.index.request import (
    AUTO,
    USUAL,
    FlagsRequest,
    IndexRequest,
    forms_of,
    settings_with_flags,
    usual_parts,
    with_settings,
)
from rnnreranker.parts.base import part

BESIDE = (
    "output",
    "parts",
    "overwrite",
    "threads",
    "backend",
    "address",
    "device",
    "compute_dtype",
    "shard_id",
    "shard_num",
)  # flags that go without --documents
USAGE = """\
python -m rnnreranker.index --documents NAME|FILE --output DIR [--parts NAMES]
       python -m rnnreranker.index --append NAME|FILE --output DIR
       python -m rnnreranker.index --check DIR"""
EPILOG = """\
Parts that are there are not made again. An interrupted build goes on when the same command is run again.
The settings of a part: python -m rnnreranker methods NAME

  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --parts dense,bm25
  python -m rnnreranker.index --documents docs.jsonl --output indexes/mine --encoder tas-b:max_length=128
  python -m rnnreranker.index --documents docs.jsonl --output indexes/mine --parts bm25,neighbours:k=32
  python -m rnnreranker.index --documents vectors.npy --output indexes/vectors --parts neighbours
  python -m rnnreranker.index --documents reqa-cmrc --output indexes/cmrc --parts terms:language=zh
  python -m rnnreranker.index --output a-faiss-folder-of-pyserini --parts neighbours"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    args = make_parser().parse_args(argv)
    if args.check is not None:
        from rnnreranker.index.make import check_index

        _check_typed(args, ("check",), "beside --check, which makes nothing; leave out the one or the other")
        command.put(check_index(Path(args.check).expanduser()))
        return 0
    if args.output is None:
        raise InputError("give --output, the folder for the index, or --check, one to look whole at")
    output = Path(args.output).expanduser()
    started = time.perf_counter()
    if args.append is not None:
        free = ("append", "output", "threads", "backend", "address", "device", "compute_dtype")
        why = "beside --append, which makes every part as it is there; leave out the one or the other"
        _check_typed(args, free, why)
        how = {name: getattr(args, name) for name in free[2:]}
        built, made = extend_index(output, args.append, **how)
        _tell(args, built, made, started)
        return 0
    request, share = _request(args), _share(args)
    if args.documents is None:
        from rnnreranker.index.derived_parts import make_beside, make_share

        if of_texts := [name for name in request.names if not part(name).made_of]:
            raise InputError(
                "give --documents, what to make an index of, --append, what to add to the one in --output, or parts "
                f"alone that are made of others, as --parts neighbours, not {', '.join(of_texts)}"
            )
        _check_typed(args, BESIDE, "without --documents, where parts of those there are made; leave it out")
        if share is not None:
            for name, said_of in make_share(output, request, share):
                command.say(f"{output}: shard {share[0]} of {share[1]} of {name}: {said_of}")
            return 0
        built, made = make_beside(output, request)
    else:
        if args.parts == AUTO:
            request = _possible(request.with_own_vectors(), output, args)
        if share is not None:
            made, count, own = encode_share(request, output, share)
            said_of = f"{count} blocks of documents made, {own - count} were there"
            command.say(f"{output}: shard {share[0]} of {share[1]} of {' and '.join(made)}: {said_of}")
            return 0
        built, made = make_index(request, output)
    _tell(args, built, made, started)
    return 0


def _request(args: argparse.Namespace) -> IndexRequest:
    """The documents and the parts that the flags ask for."""
    if args.parts == AUTO:
        of_vectors = str(args.documents).endswith(".npy")
        usual = [name for name in usual_parts() if not of_vectors or name == USUAL or part(name).made_of]
        written = [Written(name) for name in usual]
    else:
        written = forms_of(USUAL if args.parts is None else args.parts)
    flags = {typed_name(field): getattr(args, typed_name(field)) for _, field in settings_with_flags()}
    return command.request(
        args,
        IndexRequest,
        documents=args.documents or "",
        parts=with_settings(written, flags),
        fields=asked_fields(args.documents, args.fields),
        from_index=Path(args.from_index).expanduser() if args.from_index else None,
    )


def _share(args: argparse.Namespace) -> Share | None:
    """The share of the work that is this process's.

    Raises:
        InputError: as `share_of`; with what one process makes.
    """
    share = command.request(args, ShareRequest).share
    for other in ("overwrite", "from_index"):
        if share and getattr(args, other):
            raise InputError(f"--shard-id {args.shard_id} beside {flag(other)}, which one process does; leave it out")
    return share


def _tell(args: argparse.Namespace, built: Built, made: Sequence[str], started: float) -> None:
    """One line on what was made."""
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


def _possible(request: IndexRequest, output: Path, args: argparse.Namespace) -> IndexRequest:
    """The request with the parts that can be made here; says what is left out."""
    if left_out := obstacles(request):
        again = f"--documents {request.documents} --output {output} --parts {','.join(left_out)}"
        command.say(f"left out: {said(left_out)}; to add it later: python -m rnnreranker.index {again}")
    return request.with_parts([name for name in request.names if name not in left_out])


def _check_typed(args: argparse.Namespace, free: Sequence[str], why: str) -> None:
    """Refuse every flag but those that are free."""
    usual = vars(make_parser().parse_args([]))
    typed = [name for name, value in vars(args).items() if name not in free and value != usual[name]]
    if typed:
        raise InputError(f"{' and '.join(map(flag, typed))} {why}")


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("index", "Make an index of documents, of one part or several.", EPILOG, usage=USAGE)
    command.add_request_flags(parser, FlagsRequest, "documents", "fields", "append", "output", "check", "from_index")
    command.add_request_flags(parser, IndexRequest, "overwrite", "threads", "backend", "address")
    command.add_request_flags(parser, ShareRequest, "shard_id", "shard_num")
    command.add_request_flags(parser, IndexRequest, "device", "compute_dtype")
    group = parser.add_argument_group("parts")
    command.add_request_flags(group, FlagsRequest, "parts")
    for one, field in settings_with_flags():
        known = f"{', '.join(names(one.encoder))}; " if field.name == "encoder" else ""
        about = f"of {one.name}; default: {command.shown_default(field.default)}"
        command.add_flag(group, field, hints_of(one.Params)[field.name], about, before=known)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
