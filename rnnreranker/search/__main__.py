"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, problems_of
from rnnreranker.base.files import check_writable
from rnnreranker.base.process import phases
from rnnreranker.base.process.phases import phase
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOL_HELP, PROTOCOLS, protocol_of
from rnnreranker.search import flags
from rnnreranker.search.check import check
from rnnreranker.search.request import NO_RERANKING, RNN, SearchRequest
from rnnreranker.search.searching import Searched, read_queries, searched

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run
    from rnnreranker.search.pipeline import Pipeline

EPILOG = """examples (a method takes its settings behind a colon; `python -m rnnreranker methods` lists them all):
  python -m rnnreranker.search --index pydoc --query "remove duplicates from a list but keep order"
  python -m rnnreranker.search --index my-index --topics queries.tsv --output run.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --run bm25.txt --output reranked.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --retriever bm25:k1=0.8+dense --fuse minmax \\
      --prf rocchio:fb_docs=5 --rerank rnn:context=100 --rerank zhong --output run.txt
"""
USAGE = "python -m rnnreranker.search --index INDEX (--topics TOPICS | --query TEXT | --run RUN) [flags]"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    phases.spent.clear()
    args = make_parser().parse_args(argv)
    request = _checked(args)
    topics, given = read_queries(request)
    qrels = _qrels(args, topics)
    if args.explain is not None:
        from rnnreranker.search.explain.query_page import check_query

        check_query(args.explain, topics, args.topics or "--query, which is called `query`", given)
    result = searched(request, topics, given, qrels)
    stages, work = result.stages, result.pipeline
    joined = f"; {_joined(stages[0], stages[1])}" if work.expander else ""
    with phase("writing"):
        runs = _runs(args, result)
        if args.output:
            _write(args, argv, request, result.pipeline, runs[-1])
        _show(args, result, runs, qrels)
    command.say(f"{command.counted(len(stages[0]), 'query', 'queries')} on cpu: {phases.summary()}{joined}")
    return 0


def _checked(args: argparse.Namespace) -> SearchRequest:
    """What the flags ask for; what can be seen to fail is refused before any work, all at once."""
    silent = args.query is None and (args.topics or args.run) and not args.output and not args.qrels
    wrong, rerank = "", [*(args.rerank or [RNN])]
    try:
        rerank = flags.rerankers(args)
    except InputError as error:
        wrong = str(error)
    request = command.request(
        args,
        SearchRequest,
        retrieve=args.retriever,
        rerank=rerank[0] if len(rerank) == 1 else rerank,
        encoder=args.encoder,
    )
    check(
        request,
        (wrong, wrong),
        (
            args.topics is None and args.query is None and args.explain is not None,
            "--explain shows the query: give --topics, or --query and its text",
        ),
        (args.query and args.qrels, "--qrels judges topics: give --topics in place of --query"),
        (
            silent and args.explain is None,
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
        (args.explain is not None and args.aggregate, "--explain shows passages: not with --aggregate"),
        *(
            (True, problem)
            for problem in problems_of(*([partial(parse_measures, args.measures)] if args.qrels else []))
        ),
    )
    if args.explain is not None:
        if [one.name for one in request.rerankers] != ["rnn"]:
            shown = " ".join(f"--rerank {one.name}" for one in request.rerankers) or "--rerank none"
            raise InputError(f"--explain shows what rnn does: not with {shown}")
        if request.rerankers[0].source == "tokens":
            raise InputError("--explain: shows similarities of vectors or of a graph, not --from tokens")
    check_writable(args.output, args.explain and _explain_output(args))
    if args.output:
        from rnnreranker.search.ir_metadata import actor, file_beside

        actor()  # read now: it says what is wrong with it
        check_writable(file_beside(args.output))
    return request


def _explain_output(args: argparse.Namespace) -> Path:
    from rnnreranker.search.explain import file_name

    return Path(args.explain_output or file_name(args.explain)).expanduser()


def _joined(before: Run, after: Run) -> str:
    """How many candidates an expansion added, over all queries and to each."""
    new = sum(len(set(after.ranked(qid)) - set(before.ranked(qid))) for qid in after)
    return f"{command.counted(new, 'candidate')} joined, {new / max(len(after), 1):.1f} a query"


def _runs(args: argparse.Namespace, result: Searched) -> list[Run]:
    """The runs that are written, shown and evaluated: `--hits` documents a query."""
    work, stages = result.pipeline, result.stages
    return [work.documents(stage, work.hits) for stage in (stages if args.query or args.qrels else stages[-1:])]


def _write(args: argparse.Namespace, argv: Sequence[str], request: SearchRequest, work: Pipeline, run: Run) -> None:
    """Write a run, and beside it what it was made of."""
    from rnnreranker.search.ir_metadata import OfCommand, file_beside, write_ir_metadata

    by = [one.name for one in ([work.expander] if work.expander else []) + work.rerankers]
    tag = (
        args.tag
        or f"{'run' if args.run else work.retrieved_by}.{'.'.join(by if work.rerankers else [*by, NO_RERANKING])}"
        + (f".{work.passages.aggregate}" if work.passages else "")
    )
    beside = file_beside(args.output)
    run.write(args.output, tag=tag, format=args.output_format)
    if beside is not None:
        asked = OfCommand(argv, args.qrels, args.measures, args.protocol or "")
        write_ir_metadata(beside, tag, asked, request, work)


def _show(args: argparse.Namespace, result: Searched, stages: list[Run], qrels: pandas.DataFrame | None) -> None:
    """Show, explain and evaluate, as the flags say."""
    work, passages = result.pipeline, result.stages[-1]
    before = [work.expander.name] if work.expander else []
    by = [reranker.name for reranker in work.rerankers]
    if args.query:
        from rnnreranker.search.show import show_results
        from rnnreranker.search.to_documents import best_passages

        text_of = best_passages(passages, work.passages) if work.passages else {}
        before_all = work.documents(result.stages[0])
        show_results(work.index, before_all, stages[-1], limit=args.show, text_of=text_of)
    if args.explain is not None:
        from rnnreranker.search.explain.query_page import explain

        explain(
            _explain_output(args),
            work.index,
            result.stages[-2],
            result.stages[-1],
            work.rerankers[0],  # type: ignore[arg-type]  # rnn, as was checked
            qid=args.explain,
            text=result.topics[args.explain],
            source=f"{args.run or work.retrieved_by} · index {args.index}",
        )
    if qrels is not None:
        from rnnreranker.search.show import show_evaluation

        first = Path(args.run).name if args.run else work.retrieved_by
        runs = {first: stages[0] if args.run else stages[0].as_written()}  # as evaluate has them from their files
        for count, run in enumerate(stages[1:], 1):
            runs[f"+ {' + '.join([*before, *by][:count])}"] = run.as_written()
        show_evaluation(runs, qrels, args.measures)


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Retrieve candidates and rerank them by reciprocal nearest neighbours."
    parser = command.parser("search", text, EPILOG, usage=USAGE)
    flags.add_index(parser)
    flags.add_topics(parser)
    parser.add_argument("--query", metavar="TEXT", help="one query; its results are shown")
    parser.add_argument("--run", help="rerank this run (TREC or MS MARCO format) in place of retrieving")
    flags.add_encoder(parser)
    flags.add_retrieval(parser.add_argument_group("retrieval"))
    flags.add_reranking(parser.add_argument_group("reranking (any setting of rnn is a flag too)"))
    text = "passages to documents: maxp, firstp, sump[:passages=#,hits=5000]"
    parser.add_argument("--aggregate", metavar="NAME", help=text)

    out = parser.add_argument_group("output")
    out.add_argument("--output", metavar="RUN", help="run file to write (.gz compresses; -: stdout)")
    out.add_argument(
        "--output-format", choices=("trec", "msmarco"), default="trec", metavar="NAME", help="trec, msmarco"
    )
    out.add_argument("--tag", help="run tag (default: retriever.reranker, or run.reranker)")
    out.add_argument("--show", type=command.positive, default=10, help="results shown for --query (default: 10)")
    out.add_argument("--explain", metavar="QID", help="write a page that shows why this query's candidates moved")
    out.add_argument("--explain-output", metavar="HTML", help="default: QID.html (of --query: query.html)")
    out.add_argument("--qrels", help=flags.QRELS)
    out.add_argument("--measures", default="nDCG@10 RR@10", help='default: "nDCG@10 RR@10"')
    out.add_argument("--protocol", choices=PROTOCOLS, metavar="NAME", help=PROTOCOL_HELP)
    out.add_argument("--threads", type=command.positive, metavar="N", help="default: one per core")
    text = "queries at a time (default: 256)"
    out.add_argument("--batch-size", type=command.positive, default=256, metavar="N", help=text)
    return parser


def _qrels(args: argparse.Namespace, topics: dict[str, str]) -> pandas.DataFrame | None:
    """The judgements of --qrels of the topics that are searched, at least one of them; None without --qrels."""
    if not args.qrels:
        return None
    from rnnreranker.data.qrels import load_qrels

    qrels = load_qrels(args.qrels)
    args.protocol = qrels.attrs["protocol"] = protocol_of(qrels, args.protocol)  # by all of them, not those searched
    judged = qrels["query_id"].unique().tolist()
    if not set(judged) & set(topics):
        raise InputError(
            f"{args.qrels}: judges none of the {len(topics)} topics (topics: {', '.join(list(topics)[:3])}; judged: "
            f"{', '.join(judged[:3])}); give the judgements of these topics"
        )
    if others := len(set(judged) - set(topics)):
        command.say(
            f"{args.qrels}: {command.counted(others, 'judged topic')} of {len(judged)} not searched and left out; "
            f"measures are of the other {len(judged) - others}"
        )
    return qrels[qrels["query_id"].isin(set(topics))].reset_index(drop=True)


if __name__ == "__main__":
    raise SystemExit(command.run(main))
