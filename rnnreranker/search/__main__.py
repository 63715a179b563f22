"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, flag, nearest
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import RNN, SOURCES, Form, find, names
from rnnreranker.base.settings import PRESET, Written, hints_of
from rnnreranker.evaluate.measures import notice_cut, parse_measures
from rnnreranker.evaluate.protocols import MEASURES, protocol_of, relevant_from
from rnnreranker.rnn.params import RnnParams
from rnnreranker.search.flags import EVERYDAY, typed_rnn
from rnnreranker.search.request import NO_RERANKING, OutputRequest, SearchRequest

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
    command.spent.clear()
    args = make_parser().parse_args(argv)
    from rnnreranker.search.own_documents import documents_of  # --help needs none of these
    from rnnreranker.search.pipeline import Pipeline
    from rnnreranker.search.searching import read_queries

    wanted = command.request(args, OutputRequest)
    request = _checked(args, wanted)
    topics, given = read_queries(request)
    qrels = None if wanted.qrels is None else _qrels(wanted.qrels, wanted.protocol, topics)
    if (qid := wanted.explain) is not None and qid not in topics:
        source = request.topics or "--query, which is called `query`"
        raise InputError(f"--explain {qid}: no such query in {source}, {nearest(qid, topics)}")
    work = Pipeline(request, topics, qrels, given)
    stages = work.stages()
    with phase("writing"):
        kept = stages if request.query or wanted.qrels else stages[-1:]
        whole = kept if request.passages is None else [documents_of(stage, request.passages) for stage in kept]
        runs = [run.head(request.hits) for run in whole]
        if wanted.output:
            _write(wanted, work, runs[-1])
        if request.query:
            from rnnreranker.search.own_documents import best_passages
            from rnnreranker.search.show import show_results

            text_of = {} if request.passages is None else best_passages(stages[-1], request.passages)
            show_results(work.index, whole[0], runs[-1], limit=wanted.show, text_of=text_of)
        if qid is not None:
            _explain(wanted, work, stages, qrels)
        if qrels is not None:
            _evaluate(wanted.measures, work, runs, qrels)
    said = f"{command.counted(len(stages[0]), 'query', 'queries')} on {request.devices or 'cpu'}"
    command.say(f"{said}: {command.summary()}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    text = "Retrieve candidates and rerank them by reciprocal nearest neighbours."
    parser = command.parser("search", text, EPILOG, usage=USAGE)
    add = command.add_flags
    add(parser, SearchRequest, "index", "topics", "encoded_queries", "query", "run", "encoder")
    retrieval = ("retrieve", "fuse", "hits", "remove_query", "prf", "expand", "bm25_index")
    add(parser.add_argument_group("retrieval"), SearchRequest, *retrieval)
    group = parser.add_argument_group("reranking (any setting of rnn is a flag too)")
    add(group, SearchRequest, "rerank")
    add(group, OutputRequest, "preset")
    add(group, RnnParams, shown=EVERYDAY)
    add(group, OutputRequest, "source", "queries")
    add(group, SearchRequest, "missing", "documents", "fields", "device", "compute_dtype", "aggregate")
    out = parser.add_argument_group("output")
    written = ("output", "output_format", "tag", "show", "explain", "explain_output", "qrels", "measures", "protocol")
    add(out, OutputRequest, *written)
    add(out, SearchRequest, "threads", "batch_size")
    return parser


def _checked(args: Any, wanted: OutputRequest) -> SearchRequest:
    """The request of the flags; raises all faults that are visible before any work."""
    explain, rerank, wrong = wanted.explain is not None, list[Form]([*(args.rerank or [RNN])]), ""
    try:
        rerank = _rerankers(args, explain)
    except InputError as error:
        wrong = str(error)
    request = command.request(args, SearchRequest, rerank=rerank[0] if len(rerank) == 1 else rerank)
    asked, shown = args.query is not None or explain or wanted.output or wanted.qrels, args.topics or args.query
    request.check(
        (wrong, wrong),
        lambda: wanted.qrels and parse_measures(wanted.measures),
        (explain and not shown, "--explain shows the query: give --topics, or --query and its text"),
        (
            not wanted.qrels and (wanted.measures != MEASURES or wanted.protocol is not None),
            "--measures and --protocol are of judgements: give --qrels too",
        ),
        (args.query and wanted.qrels, "--qrels judges topics: give --topics in place of --query"),
        (
            (args.topics or args.run) and not asked,
            f"{'--topics' if args.topics else '--run'} needs --output RUN (where to write) or --qrels (judgements)",
        ),
        (wanted.explain_output is not None and not explain, "--explain-output needs --explain QID (which query)"),
        (
            wanted.tag is not None and wanted.tag.split() != [wanted.tag],
            f"--tag {wanted.tag!r}: expected a word without white space",
        ),
        (wanted.show != OutputRequest.show and args.query is None, "--show is of one query: give --query"),
        (
            not wanted.output and (wanted.tag, wanted.output_format) != (None, OutputRequest.output_format),
            "--tag and --output-format are of the written run: give --output",
        ),
        (explain and args.aggregate, "--explain shows passages: not with --aggregate"),
    )
    rerankers = request.rerankers
    if explain and [(one.name, one.source == "tokens") for one in rerankers] != [("rnn", False)]:
        named = " ".join(f"--rerank {one.name}:from={one.source}" for one in rerankers) or "--rerank none"
        raise InputError(f"--explain shows what rnn does with vectors or a graph: not with {named}")
    check_writable(wanted.output, _page(wanted) if explain else None)
    return request


def _rerankers(args: Any, explained: bool) -> list[Form]:
    """The rerankers of --rerank with the settings of other flags; the default one if no flag says more.

    explained: whether a page shows the reranker, so that it cannot be left out.
    """
    others = {"from": vars(args)["from"], "queries": args.queries}
    typed = typed_rnn(args) | {name: value for name, value in others.items() if value is not None}
    if not args.rerank and not typed:
        return [str(RNN) if explained else RNN]
    forms = [Written.read(one) for one in args.rerank or [RNN]]
    if not {form.name for form in forms} <= {*names("reranker"), NO_RERANKING}:
        return list(forms)  # refused with the request
    taken = [_taken(form.name) for form in forms]
    if strange := [name for name in typed if not any(name in own for own in taken)]:
        shown = " ".join(f"--rerank {form.name}" for form in forms)
        raise InputError(f"{flag(strange[0])}: of rnn, not with {shown}")
    own = [{name: value for name, value in typed.items() if name in of} for of in taken]
    return [form.beside(values, "--rerank") for form, values in zip(forms, own, strict=True)]


def _taken(reranker: str) -> set[str]:
    """The flags of rNN that a reranker takes: all settings of rNN, `context` alone, or none."""
    if reranker == NO_RERANKING:
        return set()
    method = find("reranker", reranker)
    own = {*hints_of(method.Params)}
    own = own | {PRESET} if issubclass(method.Params, RnnParams) else own & {"context"}
    return own | {*SOURCES} if method.takes_source else own


def _page(wanted: OutputRequest) -> Path:
    from rnnreranker.search.explain.page import file_name

    return Path(wanted.explain_output or file_name(str(wanted.explain))).expanduser()


def _write(wanted: OutputRequest, work: Pipeline, run: Run) -> None:
    by = [work.retrieved_by or "run", *work.steps, *([] if work.rerankers else [NO_RERANKING])]
    passages = work.request.passages
    tag = wanted.tag or ".".join([*by, *([passages.aggregate] if passages else [])])
    run.write(str(wanted.output), tag=tag, format=wanted.output_format)


def _explain(wanted: OutputRequest, work: Pipeline, stages: list[Run], qrels: pandas.DataFrame | None) -> None:
    from rnnreranker.search.explain.page import explain

    qid, grades = str(wanted.explain), dict[str, int]()
    if qrels is not None:
        own = qrels[qrels["query_id"] == qid]
        grades = dict(zip(own["doc_id"], own["relevance"].tolist(), strict=True))
    explain(
        _page(wanted),
        work.index,
        stages[-2],
        stages[-1],
        work.rerankers[0],  # type: ignore[arg-type]  # rnn, as was checked
        qid=qid,
        query=work.inputs.topics[qid],
        source=f"{work.request.run or work.retrieved_by} · index {work.request.index}",
        grades=grades,
        relevant_from=1 if qrels is None else relevant_from(qrels.attrs["protocol"]),
    )


def _evaluate(measures: str, work: Pipeline, runs: list[Run], qrels: pandas.DataFrame) -> None:
    from rnnreranker.evaluate.evaluating import EvaluateRequest, evaluated

    given = work.request.run
    name = Path(str(given)).name if given else work.retrieved_by
    named = {name: runs[0] if given else runs[0].as_written()}  # as evaluate has them from their files
    for count, run in enumerate(runs[1:], 1):
        named[f"+ {' + '.join(work.steps[:count])}"] = run.as_written()
    notice_cut(measures, work.request.hits)
    evaluated(EvaluateRequest(named, qrels, measures, compare=len(named) > 1)).show()


def _qrels(name: str, protocol: str | None, topics: dict[str, str]) -> pandas.DataFrame:
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
