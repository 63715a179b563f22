"""What can be seen to fail in the flags of `search`, before any work."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import find, methods
from rnnreranker.base.settings import flag
from rnnreranker.data.fields import asked_fields
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search import flags, sources
from rnnreranker.search.auto import FUSION, asks_for_reranking, candidates


def check(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the chosen rerankers by name; refuses what can be seen to fail, before any work."""
    query = args.query
    silent = query is None and (args.topics or args.run) and not args.output and not args.qrels and args.explain is None
    chosen = args.retriever
    args.retriever = chosen or flags.AUTO
    auto, encoded = args.retriever == flags.AUTO, args.encoded_queries
    retrievers = candidates() if auto and not args.run else [] if auto else flags.retriever_names(args.retriever)
    passages = flags.passage_params(args)
    joins = command.given(args, FuseParams) if len(retrievers) < 2 else {}
    source = "--run" if not retrievers else f"--retriever {args.retriever}"
    refuse(
        (args.topics is not None and query is not None, "give either --topics (many queries) or --query (one)"),
        (
            args.topics is None and query is None and not args.run,
            "give either --topics (many queries) or --query (one query's text)",
        ),
        (
            args.topics is None and query is None and args.explain is not None,
            "--explain shows the query: give --topics, or --query and its text",
        ),
        (
            args.topics is None and query is None and encoded and not Path(encoded).with_suffix(".ids").is_file(),
            f"--encoded-queries {encoded}: which query is which row? give --topics, or write the query ids to "
            f"{encoded and Path(encoded).with_suffix('.ids')}, one a line",
        ),
        (
            chosen is not None and args.run,
            f"--retriever {chosen}: not with --run, whose candidates are there already",
        ),
        (
            args.run and args.output and _same_file(args.run, args.output),
            f"--output {args.output}: is the file of --run, the first stage's run; give another name",
        ),
        (query is not None and not query.strip(), "--query is empty: expected the text of a query"),
        (query and query.encode(errors="ignore").decode() != query, "--query is not UTF-8 text"),
        (query and args.qrels, "--qrels judges topics: give --topics in place of --query"),
        (
            silent,
            f"{'--topics' if args.topics else '--run'} needs --output RUN (where to write) or --qrels (judgements)",
        ),
        (
            args.explain_output is not None and args.explain is None,
            "--explain-output needs --explain QID (which query)",
        ),
        (
            args.tag is not None and args.tag.split() != [args.tag],
            f"--tag {args.tag!r}: expected a word without white space",
        ),
        (args.explain is not None and passages, "--explain shows passages: not with --aggregate"),
        (args.prf and args.run, "--prf searches again: not with --run, whose candidates are there already"),
        (joins, f"{', '.join(map(flag, joins))}: joins several retrievers, not {source}"),
        *((True, problem) for problem in [*_check_rerankers(args), *sources.problems(args)]),
    )
    if len(retrievers) > 1:
        flags.fuse_params(args, 0 if auto else len(retrievers), FUSION if auto else None)
    if args.prf and not auto:
        check_feedback(args.prf, retrievers)
    command.method_params(args, "feedback", flags.feedback_names(args))
    command.method_params(args, "retriever", retrievers)
    command.method_params(args, "expander", [args.expand] if args.expand else [])
    params = dict(zip(args.rerank, command.method_params(args, "reranker", args.rerank, args.preset), strict=True))
    if args.device is not None:
        from rnnreranker.rnn.engines.torch import usable_device

        usable_device(args.device)
    check_writable(args.output, args.explain and explain_output(args))
    if args.qrels:
        parse_measures(args.measures)
    return params


def _check_rerankers(args: argparse.Namespace) -> list[str]:
    """What is wrong with the choice of rerankers; `args.rerank` becomes their names, empty for none."""
    problems = []
    args.rerank_by_default = not asks_for_reranking(args)
    chosen = args.rerank or ["rnn"]
    if flags.NO_RERANKING in chosen and len(chosen) > 1:
        problems.append(
            f"--rerank none beside {', '.join(name for name in chosen if name != flags.NO_RERANKING)}; "
            "leave none out, or give it alone"
        )
    if any(one == other for one, other in itertools.pairwise(chosen)):
        problems.append("--rerank: the same reranker twice in a row would change nothing; give it once")
    shown = " ".join(f"--rerank {name}" for name in chosen)
    args.rerank = [name for name in chosen if name != flags.NO_RERANKING]
    if args.explain is not None and args.rerank != ["rnn"]:
        problems.append(f"--explain shows what rnn does: not with {shown}")
    asked_fields(args)
    if args.documents and not any("texts" in find("reranker", name).needs for name in args.rerank):
        takers = " and ".join(name for name, kind in methods("reranker").items() if "texts" in kind.needs)
        problems.append(f"--documents gives texts to {takers}: not with {shown}")
    if args.device is not None and not any(find("reranker", name).takes_device for name in args.rerank):
        takers = " and ".join(name for name, kind in methods("reranker").items() if kind.takes_device)
        problems.append(f"--device says where {takers} compute: not with {shown}")
    return problems


def explain_output(args: argparse.Namespace) -> Path:
    from rnnreranker.search.explain import file_name

    return Path(args.explain_output or file_name(args.explain)).expanduser()


def _same_file(one: str, other: str) -> bool:
    return Path(one).expanduser().resolve() == Path(other).expanduser().resolve()
