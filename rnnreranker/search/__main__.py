"""`python -m rnnreranker.search`: retrieve, rerank, write, show and evaluate."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.chosen_method import SOURCES, Form
from rnnreranker.base.errors import InputError, nearest, problems_of
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import find, names
from rnnreranker.base.process import phases
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import protocol_of, relevant_from
from rnnreranker.rnn.params import RnnParams
from rnnreranker.search.defaults import RNN
from rnnreranker.search.flags import EVERYDAY, typed_rnn
from rnnreranker.search.request import NO_RERANKING, OutputRequest, RnnFlags, SearchRequest, check

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
    from rnnreranker.search.own_documents import documents_of  # --help needs none of these
    from rnnreranker.search.pipeline import open_pipeline
    from rnnreranker.search.searching import read_queries

    wanted = command.request(args, OutputRequest)
    request = _checked(args, wanted)
    topics, given = read_queries(request)
    qrels = None if wanted.qrels is None else _qrels(wanted.qrels, wanted.protocol, topics)
    if (qid := wanted.explain) is not None:
        if qid not in topics:
            source = request.topics or "--query, which is called `query`"
            raise InputError(f"--explain {qid}: no such query in {source}, {nearest(qid, topics)}")
        if given is not None and (qid not in given or not given.ranked(qid)):
            raise InputError(f"--explain {qid}: the run of --run has no candidates for this query")
    work = open_pipeline(request, topics, qrels, given)
    stages = work.stages(given)
    with phase("writing"):
        kept = stages if request.query or wanted.qrels else stages[-1:]
        whole = [documents_of(stage, request.methods.passages) for stage in kept]
        runs = [run.head(request.hits) for run in whole]
        if wanted.output:
            _write(wanted, argv, work, runs[-1], "" if qrels is None else qrels.attrs["protocol"])
        _show(wanted, work, stages, whole[0], runs, qrels)
    said = f"{command.counted(len(stages[0]), 'query', 'queries')} on {request.devices or 'cpu'}"
    command.say(f"{said}: {phases.summary()}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    text = "Retrieve candidates and rerank them by reciprocal nearest neighbours."
    parser = command.parser("search", text, EPILOG, usage=USAGE)
    add = command.add_request_flags
    add(parser, SearchRequest, "index", "topics", "encoded_queries", "query", "run", "encoder")
    retrieval = ("retrieve", "fuse", "hits", "remove_query", "prf", "expand", "bm25_index")
    add(parser.add_argument_group("retrieval"), SearchRequest, *retrieval)
    group = parser.add_argument_group("reranking (any setting of rnn is a flag too)")
    add(group, SearchRequest, "rerank")
    add(group, RnnFlags, "preset")
    command.add_dataclass_flags(group, RnnParams, shown=EVERYDAY)
    add(group, RnnFlags, "source", "queries")
    add(group, SearchRequest, "missing", "documents", "fields", "device", "compute_dtype", "aggregate")
    out = parser.add_argument_group("output")
    add(out, OutputRequest, *(field.name for field in dataclasses.fields(OutputRequest)))
    add(out, SearchRequest, "threads", "batch_size")
    return parser


def _checked(args: Any, wanted: OutputRequest) -> SearchRequest:
    """The request of the flags; raises all faults that are visible before any work."""
    silent = args.query is None and (args.topics or args.run) and not wanted.output and not wanted.qrels
    wrong, rerank, explain = "", [*(args.rerank or [RNN])], wanted.explain is not None
    try:
        rerank = _rerankers(args, explain)
    except InputError as error:
        wrong = str(error)
    request = command.request(args, SearchRequest, rerank=rerank[0] if len(rerank) == 1 else rerank)
    problems = problems_of(partial(parse_measures, wanted.measures)) if wanted.qrels else []
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
        *((True, problem) for problem in problems),
    )
    rerankers = request.methods.rerankers
    if explain and [(one.name, one.source == "tokens") for one in rerankers] != [("rnn", False)]:
        shown = " ".join(f"--rerank {one.name}" for one in rerankers) or "--rerank none"
        shown += " --from tokens" if any(one.source == "tokens" for one in rerankers) else ""
        raise InputError(f"--explain shows what rnn does with vectors or a graph: not with {shown}")
    check_writable(wanted.output, _explain_output(wanted) if explain else None)
    if wanted.output:
        from rnnreranker.search.ir_metadata import actor, file_beside

        actor()  # read now: it says what is wrong with it
        check_writable(file_beside(wanted.output))
    return request


def _rerankers(args: Any, explained: bool) -> list[Form]:
    """The rerankers of --rerank with the settings of other flags; the default one if no flag says more.

    explained: whether a page shows the reranker, so that it cannot be left out.
    """
    others = {"from": args.source, "queries": args.queries}
    typed = typed_rnn(args) | {name: value for name, value in others.items() if value is not None}
    forms = [Written.read(one) for one in args.rerank or ([RNN] if typed else [])]
    if not forms:
        return [str(RNN) if explained else RNN]
    if not all(form.name in names("reranker") for form in forms):
        return list(forms)  # refused with the request
    for name in typed:
        if not any(_takes(form.name, name) for form in forms):
            shown = " ".join(f"--rerank {form.name}" for form in forms)
            takers = " or ".join(one for one in names("reranker") if _takes(one, name))
            raise InputError(f"{flag(name)}: of {takers}, not with {shown}")
    own = [{name: value for name, value in typed.items() if _takes(form.name, name)} for form in forms]
    return [form.beside(values, "--rerank") for form, values in zip(forms, own, strict=True)]


def _takes(reranker: str, name: str) -> bool:
    method = find("reranker", reranker)
    if name == "context":
        return name in hints_of(method.Params)
    return bool(method.takes_source) if name in SOURCES else issubclass(method.Params, RnnParams)


def _explain_output(wanted: OutputRequest) -> Path:
    from rnnreranker.search.explain import file_name

    return Path(wanted.explain_output or file_name(str(wanted.explain))).expanduser()


def _write(wanted: OutputRequest, argv: Sequence[str], work: Pipeline, run: Run, protocol: str) -> None:
    from rnnreranker.search.ir_metadata import file_beside, write_ir_metadata

    by = [work.retrieved_by or "run", *work.steps, *([] if work.rerankers else [NO_RERANKING])]
    passages = work.request.methods.passages
    tag = wanted.tag or ".".join([*by, *([passages.aggregate] if passages else [])])
    output = str(wanted.output)
    beside = file_beside(output)
    run.write(output, tag=tag, format=wanted.output_format)
    if beside is not None:
        write_ir_metadata(beside, tag, argv, wanted, protocol, work)


def _show(
    wanted: OutputRequest,
    work: Pipeline,
    stages: list[Run],
    first: Run,
    runs: list[Run],
    qrels: pandas.DataFrame | None,
) -> None:
    """Show, explain and evaluate as the flags say; first: the documents of the first stage; runs: of all, cut."""
    request = work.request
    if request.query:
        from rnnreranker.search.own_documents import best_passages
        from rnnreranker.search.show import show_results

        passages = request.methods.passages
        text_of = best_passages(stages[-1], passages) if passages else {}
        show_results(work.index, first, runs[-1], limit=wanted.show, text_of=text_of)
    if wanted.explain is not None:
        from rnnreranker.search.explain import explain

        grades: dict[str, int] = {}
        if qrels is not None:
            own = qrels[qrels["query_id"] == wanted.explain]
            grades = dict(zip(own["doc_id"], own["relevance"].tolist(), strict=True))
        explain(
            _explain_output(wanted),
            work.index,
            stages[-2],
            stages[-1],
            work.rerankers[0],  # type: ignore[arg-type]  # rnn, as was checked
            qid=wanted.explain,
            query=work.inputs.topics[wanted.explain],
            source=f"{request.run or work.retrieved_by} · index {request.index}",
            grades=grades,
            relevant_from=1 if qrels is None else relevant_from(qrels.attrs["protocol"]),
        )
    if qrels is not None:
        from rnnreranker.search.show import show_evaluation

        name = Path(str(request.run)).name if request.run else work.retrieved_by
        named = {name: runs[0] if request.run else runs[0].as_written()}  # as evaluate has them from their files
        for count, run in enumerate(runs[1:], 1):
            named[f"+ {' + '.join(work.steps[:count])}"] = run.as_written()
        show_evaluation(named, qrels, wanted.measures)


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
