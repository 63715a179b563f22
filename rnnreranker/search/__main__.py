"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.process import phases
from rnnreranker.base.process.phases import phase
from rnnreranker.evaluate.measures import PROTOCOLS
from rnnreranker.search import flags
from rnnreranker.search.check import check, explain_output
from rnnreranker.search.to_documents import best_passages, candidates_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run
    from rnnreranker.search.pipeline import Pipeline

EPILOG = """examples:
  python -m rnnreranker.search --index pydoc --query "remove duplicates from a list but keep order"
  python -m rnnreranker.search --index my-index --topics queries.tsv --output run.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --run bm25.txt --output reranked.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --retriever bm25+dense --fuse minmax \\
      --rerank rnn --rerank zhong --output run.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --retriever dense --prf rocchio --output prf.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --retriever bm25 --expand neighbours \\
      --output run.txt
  python -m rnnreranker.search --index my-index --topics queries.tsv --run bm25.txt --from neighbours --queries none \\
      --output reranked.txt
  python -m rnnreranker.search --index passages --topics queries.tsv --aggregate maxp --passages "#" --output run.txt
  python -m rnnreranker.search --index cranfield-index --topics cranfield --qrels cranfield --protocol binary
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    phases.spent.clear()
    args = make_parser().parse_args(argv)
    params = check(args)
    topics = _topics(args)
    given = _given_run(args, topics)
    if topics is None:
        assert given is not None
        topics = dict.fromkeys(given, "")
    qrels = _qrels(args, topics)
    if args.explain is not None:
        from rnnreranker.search.explain.query_page import check_query

        check_query(args.explain, topics, args.topics or "--query, which is called `query`", given)
    from rnnreranker.search.pipeline import open_pipeline

    with phase("opening the index"):
        work = open_pipeline(args, params, topics, qrels, given)

    with phase("query vectors"):
        for need in sorted({"query vectors", "query tokens"} & work.needs):
            getattr(work.inputs, need.replace(" ", "_"))  # loaded now
    with phase("retrieval"):
        stages = [work.retrieve() if given is None else given]
    if work.expander is not None:
        with phase(f"expanding by {work.expander.name}"):
            stages.append(work.expander.expand(stages[0]))
    for reranker in work.rerankers:
        step = "reranking" if len(work.rerankers) == 1 else f"reranking by {reranker.name}"
        with phase(f"{step} on {args.device}" if reranker.device else step):
            stages.append(reranker.rerank(stages[-1]))
    joined = f"; {_joined(stages[0], stages[1])}" if args.expand else ""
    passages = stages[-1]
    if work.passages is not None:
        stages = [work.documents(stage) for stage in (stages if args.query or args.qrels else stages[-1:])]
    with phase("writing"):
        _show(args, work, topics, qrels, stages, passages)
    command.say(f"{command.counted(len(stages[0]), 'query', 'queries')} on cpu: {phases.summary()}{joined}")
    return 0


def _joined(before: Run, after: Run) -> str:
    """How many candidates an expansion added, over all queries and to each."""
    new = sum(len(set(after.ranked(qid)) - set(before.ranked(qid))) for qid in after)
    return f"{command.counted(new, 'candidate')} joined, {new / max(len(after), 1):.1f} a query"


def _show(
    args: argparse.Namespace,
    work: Pipeline,
    topics: dict[str, str],
    qrels: pandas.DataFrame | None,
    stages: list[Run],
    passages: Run,
) -> None:
    """Write, show, explain and evaluate, as the flags say; the passages are those of the last stage."""
    before, by = [args.expand] if args.expand else [], [reranker.name for reranker in work.rerankers]
    if args.output:
        tag = (
            args.tag
            or f"{'run' if args.run else work.retrieved_by}.{'.'.join([*before, *(by or [flags.NO_RERANKING])])}"
            + (f".{work.passages.aggregate}" if work.passages else "")
        )
        stages[-1].write(args.output, tag=tag, format=args.output_format)
    if args.query:
        from rnnreranker.search.show import show_results

        text_of = best_passages(passages, work.passages) if work.passages else {}
        show_results(work.index, stages[0], stages[-1], limit=args.show, text_of=text_of)
    if args.explain is not None:
        from rnnreranker.search.explain.query_page import explain

        reranker: Any = work.rerankers[0]
        explain(
            explain_output(args),
            work.index,
            stages[-2],
            stages[-1],
            reranker,
            qid=args.explain,
            text=topics[args.explain],
            source=f"{args.run or work.retrieved_by} · index {args.index}",
        )
    if qrels is not None:
        from rnnreranker.search.show import show_evaluation

        first = Path(args.run).name if args.run else work.retrieved_by
        runs = {first: stages[0] if args.run else stages[0].as_written()}  # as evaluate finds them in their files
        for count, run in enumerate(stages[1:], 1):
            runs[f"+ {' + '.join([*before, *by][:count])}"] = run.as_written()
        show_evaluation(runs, qrels, args.measures, args.protocol)


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("search", "Retrieve candidates and rerank them by reciprocal nearest neighbours.", EPILOG)
    flags.add_index(parser)
    what = parser.add_argument_group("what to search")
    flags.add_topics(what)
    what.add_argument("--query", help="one query's text; its results are shown")
    what.add_argument("--run", help="rerank this run (TREC or MS MARCO format) in place of retrieving")
    flags.add_retrieval(parser.add_argument_group("retrieval"))
    flags.add_feedback(parser.add_argument_group("pseudo-relevance feedback"))
    flags.add_encoder(parser)
    flags.add_expansion(parser.add_argument_group("expansion (of the candidates, by a graph of neighbours)"))
    flags.add_reranking(parser.add_argument_group("reranking"))
    flags.add_passages(parser.add_argument_group("passages to documents (after everything else)"))

    out = parser.add_argument_group("output")
    out.add_argument("--output", help="run file to write (.gz compresses; -: stdout)")
    out.add_argument("--output-format", choices=("trec", "msmarco"), default="trec")
    out.add_argument("--tag", help="run tag (default: retriever.reranker, or run.reranker)")
    out.add_argument("--show", type=command.positive, default=10, help="results shown for --query (default: 10)")
    out.add_argument("--explain", metavar="QID", help="write a page that shows why this query's candidates moved")
    out.add_argument("--explain-output", metavar="FILE.html", help="default: QID.html (of --query: query.html)")
    out.add_argument("--qrels", help=flags.QRELS)
    out.add_argument("--measures", default="nDCG@10 RR@10", help='default: "nDCG@10 RR@10"')
    out.add_argument("--protocol", choices=PROTOCOLS, default="trec", help="which grades count: see evaluate --help")

    speed = parser.add_argument_group("speed (results do not depend on it)")
    speed.add_argument("--threads", type=command.positive, help="default: one per core")
    speed.add_argument("--batch-size", type=command.positive, default=256, help="queries at a time (default: 256)")
    return parser


def _topics(args: argparse.Namespace) -> dict[str, str] | None:
    """The topics; None where neither they nor a query is given, as those of a run may do."""
    if args.query:
        return {"query": args.query}
    if args.topics is None:
        return None
    from rnnreranker.data.topics import load_topics

    return load_topics(args.topics)


def _qrels(args: argparse.Namespace, topics: dict[str, str]) -> pandas.DataFrame | None:
    """The judgements of --qrels of the topics that are searched, at least one of them; None without --qrels."""
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
    if others := len(set(judged) - set(topics)):
        command.say(
            f"{args.qrels}: {command.counted(others, 'judged topic')} of {len(judged)} not searched and left out; "
            f"measures are of the other {len(judged) - others}"
        )
    return qrels[qrels["query_id"].isin(set(topics))].reset_index(drop=True)


def _given_run(args: argparse.Namespace, topics: dict[str, str] | None) -> Run | None:
    """The run of --run, cut at --hits, whose queries are all among the topics, if any are; None without --run."""
    if not args.run:
        return None
    from rnnreranker.runs import Run
    from rnnreranker.search.first_stage import read_first_stage

    run = read_first_stage(args.run) if args.rerank else Run.read(args.run)
    run = run.head(candidates_of(args))
    lost = [qid for qid in run if topics is not None and qid not in topics]
    if lost:
        raise InputError(
            f"{args.run}: {len(lost)} of its {len(run)} queries are not in {args.topics or '--query'} "
            f"(first: {', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return run


if __name__ == "__main__":
    sys.exit(command.run(main))
