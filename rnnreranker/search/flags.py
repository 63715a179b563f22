"""The flags that commands share: index, topics, query vectors, encoder; and those of retrievers and rerankers."""

from __future__ import annotations

import argparse
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import names
from rnnreranker.data.fields import add_documents_flags
from rnnreranker.encode.params import QUERY_SIDE, EncoderParams
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.runs.passages import PassageParams

HYBRID = ("bm25", "dense")  # what `--retriever hybrid` stands for
AUTO = "auto"  # every part of the index that can be searched, see `auto.py`
NO_RERANKING = "none"
TOPICS = "file (qid<TAB>text), ir_datasets id, or `pydoc`"
QRELS = "judgements: file, ir_datasets id, or `pydoc`"


def add_index(group: Any, *, required: bool = True) -> None:
    """The flag --index."""
    text = "folder, `pydoc`, or the name of a prebuilt index of Pyserini"
    group.add_argument("--index", required=required, help=text)


def add_topics(group: Any, *, required: bool = False) -> None:
    """The flags --topics and --encoded-queries."""
    group.add_argument("--topics", required=required, help=TOPICS)
    group.add_argument("--encoded-queries", metavar="FILE.npy", help="query vectors, rows as in FILE.ids or the topics")


def add_encoder(parser: argparse.ArgumentParser) -> None:
    """The flags of the query encoder, in a group of their own."""
    group = parser.add_argument_group("query encoder (default: the one that made the index)")
    command.add_encoder_flag(group)
    command.add_dataclass_flags(group, EncoderParams, skip=QUERY_SIDE)


def add_retrieval(group: Any) -> None:
    """The flags of retrievers, of their fusion and of all their parameters."""
    known = f"{', '.join(names('retriever'))}, or several joined by + and fused; hybrid is {'+'.join(HYBRID)}"
    text = f"{known}; auto: every part of the index that can be searched here, fused by minmax (default: auto)"
    group.add_argument("--retriever", type=_retriever, metavar="NAME", help=text)
    group.add_argument("--bm25-index", help="a Lucene index that is not inside --index")
    group.add_argument("--hits", type=command.positive, default=1000, help="candidates per query (default: 1000)")
    command.add_method_flags(group, "retriever")
    command.add_dataclass_flags(group, FuseParams)


def add_feedback(group: Any) -> None:
    """The flag --prf and one flag per parameter of every way of feedback."""
    text = f"{', '.join(names('feedback'))}: search again with a query made of the first documents (default: none)"
    group.add_argument("--prf", type=_feedback, metavar="NAME", help=text)
    command.add_method_flags(group, "feedback")


def feedback_names(args: argparse.Namespace) -> list[str]:
    """The feedback of --prf, or none."""
    return [args.prf] if args.prf else []


def _feedback(text: str) -> str:
    if text not in names("feedback"):
        raise argparse.ArgumentTypeError(f"{text}: no such feedback; {nearest(text, names('feedback'))}")
    return text


def retriever_names(text: str) -> list[str]:
    """The retrievers that a text of --retriever joins.

    >>> retriever_names("hybrid"), retriever_names("dense")
    (['bm25', 'dense'], ['dense'])
    """
    return list(HYBRID) if text == "hybrid" else text.split("+")


def _retriever(text: str) -> str:
    found = retriever_names(text)
    for name in found if text != AUTO else []:
        if name == "hybrid":
            raise argparse.ArgumentTypeError(f"{text}: hybrid is {'+'.join(HYBRID)} and stands alone; name its parts")
        if name == AUTO:
            raise argparse.ArgumentTypeError(f"{text}: auto is every part of the index and stands alone")
        if name not in names("retriever"):
            known = nearest(name, [*names("retriever"), "hybrid", AUTO])
            raise argparse.ArgumentTypeError(f"{name or text}: no such retriever; {known}")
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text}: expected different retrievers")
    return text


def fuse_params(args: argparse.Namespace, count: int, base: FuseParams | None = None) -> FuseParams:
    """How the flags say to fuse a number of runs; 0 = as many as may be; `base` = what counts where they say nothing.

    Raises:
        InputError: values out of range, another number of weights, --rrf-k with another method.
    """
    params = command.chosen(args, FuseParams, base=base)
    weights = params.weight_of_runs
    if weights is not None and count and len(weights) != count:
        raise InputError(f"--weights {args.weights}: {len(weights)} for {count} runs; expected one for each")
    if args.rrf_k is not None and params.fuse != "rrf":
        raise InputError(f"--rrf-k is of rrf: not with {params.fuse}")
    return params


def add_passages(group: Any) -> None:
    """The flags --aggregate, --passages and --passage-hits."""
    command.add_dataclass_flags(group, PassageParams)
    text = "passages per query before that; --hits then counts documents (default: 10 times --hits)"
    group.add_argument("--passage-hits", type=command.positive, help=text)


def passage_params(args: argparse.Namespace) -> PassageParams | None:
    """How passages become documents; None where they stay passages.

    Raises:
        InputError: flags of passages without --aggregate.
    """
    params = command.chosen(args, PassageParams)
    if params.aggregate != "none":
        return params
    for name in ("passages", "passage_hits"):
        if getattr(args, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')} is for documents: give --aggregate maxp, firstp or sump too")
    return None


def add_expansion(group: Any) -> None:
    """The flag --expand and one flag per parameter of every expander."""
    text = "more candidates from the part neighbours of the index, before reranking (default: none)"
    group.add_argument(
        "--expand", choices=names("expander"), metavar="NAME", help=f"{', '.join(names('expander'))}: {text}"
    )
    command.add_method_flags(group, "expander")


def add_reranking(group: Any) -> None:
    """The flags --rerank, --preset, --missing, --device and one flag per parameter of every reranker."""
    known = ", ".join([*names("reranker"), NO_RERANKING])
    text = f"{known}; several in order: --rerank A --rerank B (default: rnn)"
    group.add_argument("--rerank", type=_reranker, action="append", metavar="NAME", help=text)
    text = "published parameters (tas-b, cocondenser, …) or a YAML file; rnn, jaccard-plain"
    group.add_argument("--preset", help=text)
    text = (
        "of rnn: similarities of candidates from all their vectors, from the graph of the index, or by MaxSim of their "
        "tokens (default: vectors)"
    )
    group.add_argument(
        "--from", dest="source", choices=("vectors", "neighbours", "tokens"), default="vectors", help=text
    )
    text = (
        "with --from neighbours, similarities to the query: encoded, the run's scores, or none, for which rnn needs no "
        "query vector (--retriever dense, and auto with vectors, still do, to search; default: run after --retriever "
        "dense, else encoded, or none without vectors)"
    )
    group.add_argument("--queries", choices=("encoded", "run", "none"), help=text)
    text = "candidates without what is needed of them (default: error)"
    group.add_argument("--missing", choices=("error", "skip"), default="error", help=text)
    text = "texts of documents, for rerankers that read them: file, ir_datasets id, `pydoc` (default: of the index)"
    add_documents_flags(group, text)
    group.add_argument("--device", help="rerank with tensors on cuda, cuda:1, mps or cpu (default: compiled, on cpu)")
    command.add_method_flags(group, "reranker")


def _reranker(text: str) -> str:
    known = [*names("reranker"), NO_RERANKING]
    if text not in known:
        raise argparse.ArgumentTypeError(f"{text}: no such reranker; {nearest(text, known)}")
    return text
