"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker import command
from rnnreranker.data.fields import asked_fields
from rnnreranker.errors import InputError, refuse
from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures
from rnnreranker.feedback.base import check_feedback
from rnnreranker.files import check_writable
from rnnreranker.method import find, methods
from rnnreranker.process import phases
from rnnreranker.process.phases import phase
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search import flags, sources
from rnnreranker.search.auto import FUSION, asks_for_reranking, candidates
from rnnreranker.search.to_documents import best_passages, candidates_of
from rnnreranker.settings import flag

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
    args = _parser().parse_args(argv)
    params = _check(args)
    topics = _topics(args)
    qrels = _qrels(args, topics)
    given = _given_run(args, topics)
    if args.explain is not None:
        from rnnreranker.search.explain import check_query

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
        from rnnreranker.search.explain import explain

        reranker: Any = work.rerankers[0]
        explain(
            _explain_output(args),
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


def _parser() -> argparse.ArgumentParser:
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
    out.add_argument("--output", help="run file to write (.gz compresses)")
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


def _check(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the chosen rerankers by name; refuses what can be seen to fail, before any work."""
    query, silent = args.query, args.topics and not args.output and not args.qrels and args.explain is None
    auto = args.retriever == flags.AUTO
    retrievers = candidates() if auto and not args.run else [] if auto else flags.retriever_names(args.retriever)
    passages = flags.passage_params(args)
    joins = command.given(args, FuseParams) if len(retrievers) < 2 else {}
    source = "--run" if not retrievers else f"--retriever {args.retriever}"
    refuse(
        ((args.topics is None) == (query is None), "give either --topics (many queries) or --query (one query's text)"),
        (query is not None and not query.strip(), "--query is empty: expected the text of a query"),
        (query and query.encode(errors="ignore").decode() != query, "--query is not UTF-8 text"),
        (query and args.qrels, "--qrels judges topics: give --topics in place of --query"),
        (silent, "--topics needs --output RUN (where to write) or --qrels (what to evaluate with)"),
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
        from rnnreranker.rnn.torch import usable_device

        usable_device(args.device)
    check_writable(args.output, args.explain and _explain_output(args))
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

    run = read_first_stage(args.run) if args.rerank else Run.read(args.run)
    run = run.head(candidates_of(args))
    lost = [qid for qid in run if qid not in topics]
    if lost:
        raise InputError(
            f"{args.run}: {len(lost)} of its {len(run)} queries are not in {args.topics or '--query'} "
            f"(first: {', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return run


if __name__ == "__main__":
    sys.exit(command.run(main))
