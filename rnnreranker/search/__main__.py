"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker import command
from rnnreranker.encode.params import QUERY_SIDE, EncoderParams
from rnnreranker.errors import InputError
from rnnreranker.evaluate.measures import PROTOCOLS
from rnnreranker.method import Inputs, find, methods
from rnnreranker.search.rerankers import add_rerank_flags, rerank_params
from rnnreranker.search.retrieve import RETRIEVERS

if TYPE_CHECKING:
    import pandas

    from rnnreranker.rerank import Reranker
    from rnnreranker.runs import Run
    from rnnreranker.search.indexes import Index
    from rnnreranker.vectors import QueryVectors

EPILOG = """examples:
  python -m rnnreranker.search --index pydoc --query "remove duplicates from a list but keep order"
  python -m rnnreranker.search --index my-index --topics queries.tsv --output run.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --run bm25.txt --output reranked.txt
  python -m rnnreranker.search --index cranfield-index --topics cranfield --qrels cranfield --protocol binary
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    _check(args)
    params = rerank_params(args)
    topics = _topics(args)

    qrels = _qrels(args, topics)
    given = _given_run(args, topics)
    if args.explain is not None:
        from rnnreranker.search.explain import check_query

        check_query(args.explain, topics, args.topics or "--query, which is called `query`", given)
    index, reranker = _open(args, params, given, topics)

    times = [time.perf_counter()]
    asks = reranker is not None and "query vectors" in reranker.needs
    queries = _query_vectors(args, index, topics) if asks or _retrieves_with_vectors(args) else None
    if queries is not None:
        from rnnreranker.search.queries import check_dimension

        check_dimension(queries, index, args.encoded_queries or args.encoder)
    times.append(time.perf_counter())
    base = _retrieve(args, index, topics, queries) if given is None else given
    times.append(time.perf_counter())
    reranked = base if reranker is None else reranker.rerank(base, queries)
    times.append(time.perf_counter())

    if args.output:
        tag = args.tag or f"{'run' if args.run else args.retriever}.{args.rerank}"
        reranked.write(args.output, tag=tag, format=args.output_format)
    if args.query:
        from rnnreranker.search.show import show_results

        show_results(index, base, reranked, limit=args.show)
    if args.explain is not None and queries is not None:
        from rnnreranker.search.explain import explain

        path = _explain_output(args)
        qid, source = args.explain, f"{args.run or args.retriever} · index {args.index}"
        explain(path, index, base, reranked, queries, params, qid=qid, text=topics[qid], source=source)
    if qrels is not None:
        from rnnreranker.search.show import show_evaluation

        before = Path(args.run).name if args.run else args.retriever
        runs = {before: base.as_written() if given is None else given}  # as evaluate finds them in their files
        if reranked is not base:
            runs[f"+ {args.rerank}"] = reranked.as_written()
        show_evaluation(runs, qrels, args.measures, args.protocol)
    last = f"reranking on {args.device}" if args.device else "reranking"
    steps = ("query vectors", "retrieval", last)  # each with the loading of what it needs
    spent = (f"{step} {after - before:.2f} s" for step, before, after in zip(steps, times, times[1:], strict=False))
    command.say(f"{command.counted(len(base), 'query', 'queries')} on cpu: {', '.join(spent)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("search", "Retrieve candidates and rerank them by reciprocal nearest neighbours.", EPILOG)
    parser.add_argument("--index", required=True, help="folder, `pydoc`, or the name of a prebuilt index of Pyserini")
    what = parser.add_argument_group("what to search")
    what.add_argument("--topics", help="file (qid<TAB>text), ir_datasets id, or `pydoc`")
    what.add_argument("--query", help="one query's text; its results are shown")
    what.add_argument("--encoded-queries", metavar="FILE.npy", help="query vectors, rows as in FILE.ids or the topics")
    what.add_argument("--run", help="rerank this run (TREC or MS MARCO format) in place of retrieving")

    base = parser.add_argument_group("retrieval")
    text = "default: dense; hybrid is dense and bm25 joined by reciprocal rank fusion"
    base.add_argument("--retriever", choices=RETRIEVERS, default="dense", help=text)
    base.add_argument("--bm25-index", help="a Lucene index that is not inside --index")
    base.add_argument("--k1", type=float, default=0.9, help="BM25 (default: 0.9)")
    base.add_argument("--b", type=float, default=0.4, help="BM25 (default: 0.4)")
    base.add_argument("--hits", type=command.positive, default=1000, help="candidates per query (default: 1000)")

    encoder = parser.add_argument_group("query encoder (default: the one that made the index)")
    command.add_encoder_flag(encoder)
    command.add_dataclass_flags(encoder, EncoderParams, skip=QUERY_SIDE)

    rerank = parser.add_argument_group("reranking")
    rerank.add_argument("--device", help="rerank with tensors on cuda, cuda:1, mps or cpu (default: compiled, on cpu)")
    add_rerank_flags(rerank)

    out = parser.add_argument_group("output")
    out.add_argument("--output", help="run file to write (.gz compresses)")
    out.add_argument("--output-format", choices=("trec", "msmarco"), default="trec")
    out.add_argument("--tag", help="run tag (default: retriever.reranker, or run.reranker)")
    out.add_argument("--show", type=command.positive, default=10, help="results shown for --query (default: 10)")
    out.add_argument("--explain", metavar="QID", help="write a page that shows why this query's candidates moved")
    out.add_argument("--explain-output", metavar="FILE.html", help="default: QID.html (of --query: query.html)")
    out.add_argument("--qrels", help="judgements: file, ir_datasets id, or `pydoc`")
    out.add_argument("--measures", default="nDCG@10 RR@10", help='default: "nDCG@10 RR@10"')
    out.add_argument("--protocol", choices=PROTOCOLS, default="trec", help="which grades count: see evaluate --help")

    speed = parser.add_argument_group("speed (results do not depend on it)")
    speed.add_argument("--threads", type=command.positive, help="default: one per core")
    speed.add_argument("--batch-size", type=command.positive, default=256, help="queries at a time (default: 256)")
    return parser


def _check(args: argparse.Namespace) -> None:
    """Refuse what can be seen to fail, before any work."""
    problems = []
    if (args.topics is None) == (args.query is None):
        problems.append("give either --topics (many queries) or --query (one query's text)")
    if args.query is not None and not args.query.strip():
        problems.append("--query is empty: expected the text of a query")
    if args.query is not None and args.query.encode(errors="ignore").decode() != args.query:
        problems.append("--query is not UTF-8 text")
    if not 0 <= args.b <= 1:
        problems.append(f"--b {args.b}: expected a number in [0, 1]")
    if not 0 <= args.k1 < math.inf:
        problems.append(f"--k1 {args.k1}: expected a finite number >= 0")
    if args.query and args.qrels:
        problems.append("--qrels judges topics: give --topics in place of --query")
    if args.topics and not args.output and not args.qrels and args.explain is None:
        problems.append("--topics needs --output RUN (where to write) or --qrels (what to evaluate with)")
    if args.explain_output is not None and args.explain is None:
        problems.append("--explain-output needs --explain QID (which query)")
    if args.explain is not None and args.rerank != "rnn":
        problems.append(f"--explain shows what rnn does: not with --rerank {args.rerank}")
    if args.device is not None and not (args.rerank != "none" and find("reranker", args.rerank).takes_device):
        takers = " and ".join(name for name, kind in methods("reranker").items() if kind.takes_device)
        problems.append(f"--device says where {takers} compute: not with --rerank {args.rerank}")
    if args.tag is not None and args.tag.split() != [args.tag]:
        problems.append(f"--tag {args.tag!r}: expected a word without white space")
    if problems:
        raise InputError("; ".join(problems))
    if args.device is not None:
        from rnnreranker.rnn.torch import usable_device

        usable_device(args.device)
    if args.output:
        from rnnreranker.files import check_writable

        check_writable(args.output)
    if args.explain is not None:
        from rnnreranker.files import check_writable

        check_writable(_explain_output(args))
    if args.qrels:
        from rnnreranker.evaluate.measures import parse_measures

        parse_measures(args.measures)


def _explain_output(args: argparse.Namespace) -> Path:
    from rnnreranker.explain import file_name

    return Path(args.explain_output or file_name(args.explain)).expanduser()


def _topics(args: argparse.Namespace) -> dict[str, str]:
    if args.query:
        return {"query": args.query}
    from rnnreranker.data.topics import load_topics

    return load_topics(args.topics)


def _qrels(args: argparse.Namespace, topics: dict[str, str]) -> pandas.DataFrame | None:
    """The judgements of --qrels, which judge at least one of the topics; None without --qrels."""
    if not args.qrels:
        return None
    from rnnreranker.data.qrels import load_qrels

    qrels = load_qrels(args.qrels)
    judged = qrels["query_id"].unique().tolist()
    if not set(judged) & set(topics):
        raise InputError(
            f"{args.qrels}: judges none of the {len(topics)} topics (topics: {', '.join(list(topics)[:3])}; judged: "
            f"{', '.join(judged[:3])}); give the judgements of these topics"
        )
    return qrels


def _given_run(args: argparse.Namespace, topics: dict[str, str]) -> Run | None:
    """The run of --run, cut at --hits, whose queries are all among the topics; None without --run."""
    if not args.run:
        return None
    from rnnreranker.runs import Run
    from rnnreranker.search.first_stage import read_first_stage

    run = Run.read(args.run) if args.rerank == "none" else read_first_stage(args.run)
    run = run.head(args.hits)
    lost = [qid for qid in run if qid not in topics]
    if lost:
        raise InputError(
            f"{args.run}: {len(lost)} of its {len(run)} queries are not in {args.topics or '--query'} "
            f"(first: {', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return run


def _open(
    args: argparse.Namespace, params: Any, given: Run | None, topics: dict[str, str]
) -> tuple[Index, Reranker | None]:
    """The index and, unless --rerank none, the reranker; what they lack is found here, before queries are encoded."""
    from rnnreranker.java import start_java
    from rnnreranker.rerank import make_reranker
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.show import texts_in

    needs_bm25 = given is None and args.retriever != "dense"
    index = open_index(args.index, args.bm25_index, need_bm25=needs_bm25)
    if needs_bm25 and index.lucene:
        start_java()
    if _retrieves_with_vectors(args) or (args.rerank != "none" and "vectors" in find("reranker", args.rerank).needs):
        index.vectors  # noqa: B018  opened now: what it lacks is said before queries are encoded
    if args.rerank == "none":
        return index, None
    inputs = Inputs(topics=topics, vectors=lambda: index.vectors, texts=lambda: texts_in(index))
    reranker = make_reranker(
        args.rerank, inputs, params, threads=args.threads, missing=args.missing, device=args.device
    )
    if given is not None:
        reranker.check(given)
    return index, reranker


def _retrieves_with_vectors(args: argparse.Namespace) -> bool:
    return not args.run and args.retriever != "bm25"


def _query_vectors(args: argparse.Namespace, index: Index, topics: dict[str, str]) -> QueryVectors:
    from rnnreranker.search.queries import encode_topics
    from rnnreranker.vectors.queries import load_encoded_queries

    if args.encoded_queries:
        return load_encoded_queries(args.encoded_queries, tuple(topics))
    typed = command.chosen(args, EncoderParams).given()
    return encode_topics(index, topics, args.encoder, typed, args.threads)


def _retrieve(args: argparse.Namespace, index: Index, topics: dict[str, str], queries: QueryVectors | None) -> Run:
    from rnnreranker.search.retrieve import retrieve

    return retrieve(
        args.retriever,
        index,
        topics,
        queries,
        hits=args.hits,
        threads=args.threads,
        batch_size=args.batch_size,
        k1=args.k1,
        b=args.b,
    )


if __name__ == "__main__":
    sys.exit(command.run(main))
