"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, nearest, problems_of
from rnnreranker.base.files import check_writable
from rnnreranker.base.process import phases
from rnnreranker.base.process.phases import phase
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import protocol_of, relevant_from
from rnnreranker.search import flags
from rnnreranker.search.check import check
from rnnreranker.search.request import NO_RERANKING, RNN, OutputRequest, SearchRequest
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
    wanted = command.request(args, OutputRequest)
    request = _checked(args, wanted)
    topics, given = read_queries(request)
    qrels = None if wanted.qrels is None else _qrels(wanted.qrels, wanted.protocol, topics)
    if wanted.explain is not None:
        if wanted.explain not in topics:
            source = request.topics or "--query, which is called `query`"
            raise InputError(
                f"--explain {wanted.explain}: no such query in {source}, {nearest(wanted.explain, topics)}"
            )
        if given is not None and (wanted.explain not in given or not given.ranked(wanted.explain)):
            raise InputError(f"--explain {wanted.explain}: the run of --run has no candidates for this query")
    result = searched(request, topics, given, qrels)
    stages, work = result.stages, result.pipeline
    joined = f"; {_joined(stages[0], stages[1])}" if work.expander else ""
    with phase("writing"):
        kept = stages if request.query or wanted.qrels else stages[-1:]
        runs = [work.documents(stage, work.hits) for stage in kept]
        if wanted.output:
            _write(wanted, argv, request, work, runs[-1], "" if qrels is None else qrels.attrs["protocol"])
        _show(request, wanted, result, runs, qrels)
    said = f"{command.counted(len(stages[0]), 'query', 'queries')} on {request.devices or 'cpu'}"
    command.say(f"{said}: {phases.summary()}{joined}")
    return 0


def _checked(args: Any, wanted: OutputRequest) -> SearchRequest:
    """What the flags ask for; what can be seen to fail is refused before any work, all at once."""
    silent = args.query is None and (args.topics or args.run) and not wanted.output and not wanted.qrels
    wrong, rerank, explain = "", [*(args.rerank or [RNN])], wanted.explain is not None
    try:
        rerank = flags.rerankers(args, explain)
    except InputError as error:
        wrong = str(error)
    request = command.request(args, SearchRequest, rerank=rerank[0] if len(rerank) == 1 else rerank)
    check(
        request,
        (wrong, wrong),
        (
            args.topics is None and args.query is None and explain,
            "--explain shows the query: give --topics, or --query and its text",
        ),
        (args.query and wanted.qrels, "--qrels judges topics: give --topics in place of --query"),
        (
            silent and not explain,
            f"{'--topics' if args.topics else '--run'} needs --output RUN (where to write) or --qrels (judgements)",
        ),
        (wanted.explain_output is not None and not explain, "--explain-output needs --explain QID (which query)"),
        (
            wanted.tag is not None and wanted.tag.split() != [wanted.tag],
            f"--tag {wanted.tag!r}: expected a word without white space",
        ),
        (explain and args.aggregate, "--explain shows passages: not with --aggregate"),
        *(
            (True, problem)
            for problem in problems_of(*([partial(parse_measures, wanted.measures)] if wanted.qrels else []))
        ),
    )
    if explain:
        if [one.name for one in request.rerankers] != ["rnn"]:
            shown = " ".join(f"--rerank {one.name}" for one in request.rerankers) or "--rerank none"
            raise InputError(f"--explain shows what rnn does: not with {shown}")
        if request.rerankers[0].source == "tokens":
            raise InputError("--explain: shows similarities of vectors or of a graph, not --from tokens")
    check_writable(wanted.output, wanted.explain and _explain_output(wanted))
    if wanted.output:
        from rnnreranker.search.ir_metadata import actor, file_beside

        actor()  # read now: it says what is wrong with it
        check_writable(file_beside(wanted.output))
    return request


def _explain_output(wanted: OutputRequest) -> Path:
    from rnnreranker.search.explain import file_name

    return Path(wanted.explain_output or file_name(str(wanted.explain))).expanduser()


def _joined(before: Run, after: Run) -> str:
    """How many candidates an expansion added, over all queries and to each."""
    new = sum(len(set(after.ranked(qid)) - set(before.ranked(qid))) for qid in after)
    return f"{command.counted(new, 'candidate')} joined, {new / max(len(after), 1):.1f} a query"


def _write(
    wanted: OutputRequest, argv: Sequence[str], request: SearchRequest, work: Pipeline, run: Run, protocol: str
) -> None:
    """Write a run, and beside it what it was made of."""
    from rnnreranker.search.ir_metadata import OfCommand, file_beside, write_ir_metadata

    by = [one.name for one in ([work.expander] if work.expander else []) + work.rerankers]
    tag = (
        wanted.tag
        or f"{'run' if request.run else work.retrieved_by}.{'.'.join(by if work.rerankers else [*by, NO_RERANKING])}"
        + (f".{work.passages.aggregate}" if work.passages else "")
    )
    output = str(wanted.output)
    beside = file_beside(output)
    run.write(output, tag=tag, format=wanted.output_format)
    if beside is not None:
        write_ir_metadata(beside, tag, OfCommand(argv, wanted.qrels, wanted.measures, protocol), request, work)


def _show(
    request: SearchRequest, wanted: OutputRequest, result: Searched, stages: list[Run], qrels: pandas.DataFrame | None
) -> None:
    """Show, explain and evaluate, as the flags say."""
    work, passages = result.pipeline, result.stages[-1]
    before = [work.expander.name] if work.expander else []
    by = [reranker.name for reranker in work.rerankers]
    if request.query:
        from rnnreranker.search.own_documents import best_passages
        from rnnreranker.search.show import show_results

        text_of = best_passages(passages, work.passages) if work.passages else {}
        before_all = work.documents(result.stages[0])
        show_results(work.index, before_all, stages[-1], limit=wanted.show, text_of=text_of)
    if wanted.explain is not None:
        from rnnreranker.search.explain import explain

        own = None if qrels is None else qrels[qrels["query_id"] == wanted.explain]
        explain(
            _explain_output(wanted),
            work.index,
            result.stages[-2],
            result.stages[-1],
            work.rerankers[0],  # type: ignore[arg-type]  # rnn, as was checked
            qid=wanted.explain,
            query=result.topics[wanted.explain],
            source=f"{request.run or work.retrieved_by} · index {request.index}",
            grades={} if own is None else dict(zip(own["doc_id"], own["relevance"].tolist(), strict=True)),
            relevant_from=1 if qrels is None else relevant_from(qrels.attrs["protocol"]),
        )
    if qrels is not None:
        from rnnreranker.search.show import show_evaluation

        first = Path(str(request.run)).name if request.run else work.retrieved_by
        runs = {first: stages[0] if request.run else stages[0].as_written()}  # as evaluate has them from their files
        for count, run in enumerate(stages[1:], 1):
            runs[f"+ {' + '.join([*before, *by][:count])}"] = run.as_written()
        show_evaluation(runs, qrels, wanted.measures)


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Retrieve candidates and rerank them by reciprocal nearest neighbours."
    parser = command.parser("search", text, EPILOG, usage=USAGE)
    add = command.add_request_flags
    add(parser, SearchRequest, "index", "topics", "encoded_queries", "query", "run", "encoder")
    retrieval = ("retrieve", "fuse", "hits", "remove_query", "prf", "expand", "bm25_index")
    add(parser.add_argument_group("retrieval"), SearchRequest, *retrieval)
    group = parser.add_argument_group("reranking (any setting of rnn is a flag too)")
    flags.add_reranking(group)
    add(group, SearchRequest, "missing", "documents", "fields", "device", "compute_dtype", "aggregate")
    out = parser.add_argument_group("output")
    add(out, OutputRequest, *(field.name for field in dataclasses.fields(OutputRequest)))
    add(out, SearchRequest, "threads", "batch_size")
    return parser


def _qrels(name: str, protocol: str | None, topics: dict[str, str]) -> pandas.DataFrame:
    """The judgements of the topics that are searched, at least one of them."""
    from rnnreranker.data.qrels import load_qrels

    qrels = load_qrels(name)
    qrels.attrs["protocol"] = protocol_of(qrels, protocol)  # by all of them, not those searched
    judged = qrels["query_id"].unique().tolist()
    if not set(judged) & set(topics):
        raise InputError(
            f"{name}: judges none of the {len(topics)} topics (topics: {', '.join(list(topics)[:3])}; judged: "
            f"{', '.join(judged[:3])}); give the judgements of these topics"
        )
    if others := len(set(judged) - set(topics)):
        command.say(
            f"{name}: {command.counted(others, 'judged topic')} of {len(judged)} not searched and left out; "
            f"measures are of the other {len(judged) - others}"
        )
    return qrels[qrels["query_id"].isin(set(topics))].reset_index(drop=True)


if __name__ == "__main__":
    raise SystemExit(command.run(main))
