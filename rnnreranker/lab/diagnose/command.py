"""`python -m rnnreranker.diagnose`: from a run and its vectors alone, is reranking likely to help?"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError
from rnnreranker.base.files import check_writable
from rnnreranker.rnn import RnnParams
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.search.indexes import Index

EPILOG = """examples:
  python -m rnnreranker.diagnose --run dense.txt --index my-index --topics queries.tsv
  python -m rnnreranker.diagnose --run bm25.txt --index my-index --topics queries.tsv --output bm25.html
  python -m rnnreranker.diagnose --run dense.txt --index my-index --encoded-queries queries.npy --preset tas-b
"""
SUFFIXES = (".json", ".html")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    _check(args)
    params = command.chosen(args, RnnParams, args.preset)
    begun = time.perf_counter()
    from rnnreranker.data.topics import load_topics
    from rnnreranker.lab.diagnose.diagnosis import diagnose, sampled
    from rnnreranker.lab.diagnose.report import print_report
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.search.first_stage import read_first_stage
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.queries import query_vectors

    whole = read_first_stage(args.run)
    run = sampled(whole, args.sample)
    index = open_index(args.index)
    reranker = RnnReranker(index.vectors, params, threads=args.threads, missing=args.missing)
    reranker.check(run)
    topics = load_topics(args.topics) if args.topics else {}
    queries = query_vectors(flags.encoding(args), index, topics, run.qids, threads=args.threads)
    graph = None if index.neighbours is None else index.graph
    found: dict[str, Any] = diagnose(run, queries, reranker, sample=args.sample, graph=graph)
    asked = {qid: topics[qid] for qid in run if qid in topics}
    found["impacts"] = _impacts(args, index, asked)
    found["token_search"] = _token_search(args, index, asked)
    found["queries"]["run"] = len(whole)
    found = {"run": Path(args.run).name, "index": args.index, **found}
    print_report(found)
    if args.output:
        path = Path(args.output).expanduser()
        if path.suffix == ".json":
            from rnnreranker.base.record import of_command, write_records

            about: dict[str, Any] = {"room": "diagnose", "argv": argv, "inputs": {"index": index.vectors.fingerprint}}
            write_records(path, [of_command("diagnosis", Path(args.run).stem, found, begun=begun, **about)])
        else:
            from rnnreranker.lab.diagnose.page import write_diagnosis

            write_diagnosis(path, found)
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("diagnose", "Say from a run and its vectors whether reranking is likely to help.", EPILOG)
    parser.add_argument("--run", required=True, help="the candidates (TREC or MS MARCO format)")
    flags.add_index(parser)
    flags.add_topics(parser)
    parser.add_argument(
        "--sample", type=command.positive, default=500, help="queries looked at, by a hash of their ids (default: 500)"
    )
    parser.add_argument("--output", metavar="FILE.json|.html", help="write its record, or a page, there too")
    flags.add_encoder(parser)
    rerank = parser.add_argument_group("reranking that is judged")
    rerank.add_argument("--preset", help="published parameters (tas-b, cocondenser, …) or a YAML file")
    rerank.add_argument("--missing", choices=("error", "skip"), default="error", help="candidates without a vector")
    command.add_dataclass_flags(rerank, RnnParams)
    speed = parser.add_argument_group("speed (results do not depend on it)")
    speed.add_argument("--threads", type=command.positive, help="default: one per core")
    return parser


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    problems = []
    if args.topics is None and args.encoded_queries is None:
        problems.append("give --topics (queries to encode) or --encoded-queries FILE.npy (their vectors)")
    if args.output is not None and Path(args.output).suffix not in SUFFIXES:
        problems.append(f"--output {args.output}: expected a name that ends in .json or .html")
    if args.encoded_queries is not None and args.encoder is not None:
        problems.append("--encoder makes query vectors and --encoded-queries has them: give one of the two")
    if problems:
        raise InputError("; ".join(problems))
    if args.output is not None:
        check_writable(Path(args.output).expanduser())


def _impacts(args: argparse.Namespace, index: Index, topics: dict[str, str]) -> dict[str, float] | None:
    """How sparse queries and documents are, where the index has impacts and their model is here; else None."""
    if index.impact is None or not topics:
        return None
    from rnnreranker.lab.diagnose.sparsity import sparsity

    try:
        return sparsity(index.impacts, topics, args.threads)
    except (UnavailableError, MissingDependencyError) as error:
        command.say(f"words of queries left out: {error}")
        return None


def _token_search(args: argparse.Namespace, index: Index, topics: dict[str, str]) -> list[dict[str, Any]] | None:
    """What a search by nearest tokens finds, where the index has one and its encoder is here; else None."""
    from rnnreranker.parts.tokens.ivf_pq import FILE

    if index.tokens is None or not topics or not (index.token_vectors.folder / FILE).is_file():
        return None
    from rnnreranker.lab.diagnose.token_search import token_search

    try:
        return token_search(index.token_vectors, topics, args.threads)
    except (UnavailableError, MissingDependencyError) as error:
        command.say(f"search of tokens left out: {error}")
        return None
