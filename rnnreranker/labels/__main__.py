"""`python -m rnnreranker.labels`: a run and sparse judgements to soft labels, exports, an audit page, pictures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import names
from rnnreranker.base.process.backends import BACKENDS, check_backend
from rnnreranker.base.settings import Params, is_file_name, sections_of
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.labels.job import Job
from rnnreranker.labels.methods.base import Source, needs_of, takes_device
from rnnreranker.labels.params import LabelParams, unlearnt
from rnnreranker.labels.shards import SHARD, make_labels
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.search.indexes import Index

TEXT = (".txt", ".tsv", ".csv", ".json", ".jsonl", ".trec", ".qrels", ".html")  # endings that promise no parquet
EPILOG = """examples:
  python -m rnnreranker.labels --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --output labels.parquet
  python -m rnnreranker.labels ... --method uniform --output uniform.parquet
  python -m rnnreranker.labels ... --output labels.parquet --audit 50
  python -m rnnreranker.labels --from neighbours --run run.txt --index my-index --qrels train-qrels.txt \\
      --output labels.parquet

A job that was killed goes on where it stopped when the same command is given again.
`python -m rnnreranker.labels scores --help`: how the scores of label files are distributed.
`python -m rnnreranker.labels words --help`: a page of two texts, their words shaded by a term scorer's weights.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    asked = command.first_word(argv, ["scores", "words"])
    if asked == "words":
        from rnnreranker.labels.report.words_command import show_words, words_parser

        return show_words(words_parser().parse_args(argv[1:]))
    if asked == "scores":
        from rnnreranker.labels.report.scores_command import scores_parser, show_scores

        return show_scores(scores_parser().parse_args(argv[1:]))
    args = make_parser().parse_args(argv)
    params, label_params = _params(args)
    needs = needs_of(args.method, params, args.source)
    _check(args, needs, params, label_params)
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.labels.job import with_learnt_mass
    from rnnreranker.labels.judged import positives_of
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.parts.tokens.queries import query_tokens
    from rnnreranker.search.first_stage import read_first_stage
    from rnnreranker.search.indexes import open_index
    from rnnreranker.search.inputs import query_vectors

    judged = positives_of(load_qrels(args.qrels), args.relevant, args.qrels)
    learnt_from = args.validation_qrels or args.qrels
    validation = positives_of(load_qrels(learnt_from), args.relevant, learnt_from) if unlearnt(label_params) else {}
    run = read_first_stage(args.run).head(args.depth)
    wanted = [qid for qid in run if qid in judged or qid in validation]
    topics = _topics(args, needs, wanted)
    index = open_index(args.index, needs=needs) if args.index else None
    begun = time.perf_counter()
    queries = tokens = None
    if index is not None and "query vectors" in needs:
        queries = query_vectors(args, index, topics, wanted, encoded=args.encoded_queries, threads=args.jobs)
    if index is not None and "query tokens" in needs:
        tokens = query_tokens(index.token_vectors, {qid: topics[qid] for qid in wanted}, args.jobs)
    encoded = time.perf_counter()
    of_index = graph = None
    if index is not None and needs & {"vectors", "texts"}:
        of_index = index.dense if "vectors" in needs else index.texts
    if index is not None and "neighbours" in needs:
        graph = index.graph.path
    documents = args.documents if "texts" in needs else None
    if "texts" in needs and documents is None and of_index is None:
        raise InputError(f"{args.index}: no texts in this index; give --documents, what it was made from")
    stored = index.tokens if index is not None and "tokens" in needs else None
    words = None
    if index is not None and "terms" in needs:
        words = index.term_source.index
    chosen = args.method, of_index, params, label_params, args.relevant, documents, args.source, graph, stored
    fields = asked_fields(args) or (index.fields if index is not None else None)
    job = Job(*chosen, terms=words, device=args.device, fields=fields if documents else None)
    if unlearnt(label_params):
        job = with_learnt_mass(job, run, validation, queries, threads=args.jobs)
        command.say(str(job.learnt))
    metadata = make_labels(
        args.output,
        job,
        run,
        judged,
        queries,
        topics if "topics" in needs else None,
        tokens,
        backend=args.backend,
        jobs=args.jobs,
        cluster=args.cluster,
        shard_size=args.shard_size,
    )
    spent = time.perf_counter() - encoded
    if args.tsv or args.qrels_output or args.listwise or args.audit or args.plots:
        _export(args, SoftLabels.read(args.output), topics, index)
    without, labelled = metadata["positives_without_vector"], metadata["queries"]
    command.say(
        f"{args.output}: {command.counted(labelled, 'query', 'queries')}; "
        f"query vectors {encoded - begun:.2f} s, labels {spent:.2f} s, {labelled / spent:.0f} queries/s"
        + (f"; {command.counted(without, 'positive')} without a vector left out" if without else "")
    )
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = command.parser("labels", "Make soft relevance labels for the candidates of a run.", EPILOG)
    parser.add_argument("--run", required=True, help="candidates (TREC or MS MARCO format)")
    parser.add_argument("--qrels", required=True, help="judgements: file, ir_datasets id, `pydoc` or `pydoc/train`")
    parser.add_argument("--output", required=True, metavar="FILE.parquet", help="labels to write")
    parser.add_argument("--method", choices=names("labeler"), default="evidence", help="default: evidence")
    text = "similarities of documents: vectors, or the part neighbours of the index"
    parser.add_argument(
        "--from", dest="source", choices=get_args(Source), default="vectors", help=f"{text} (default: vectors)"
    )
    parser.add_argument("--index", help="where vectors come from: folder, `pydoc`, prebuilt index (not for hard)")
    flags.add_topics(parser)
    parser.add_argument(
        "--relevant", type=command.positive, default=1, help="grade from which on positive (default: 1)"
    )
    parser.add_argument("--depth", type=command.positive, default=1000, help="candidates kept (default: 1000)")

    flags.add_encoder(parser)

    labels = parser.add_argument_group("from similarities to labels")
    labels.add_argument(
        "--label-preset", help=f"published values ({', '.join(sorted(LabelParams.presets))}) or a YAML file"
    )
    command.add_dataclass_flags(labels, LabelParams)
    labels.add_argument(
        "--validation-qrels",
        metavar="QRELS",
        help="all known positives of queries of the run: what --mass share and confident learn from; nothing may "
        "be tested on these queries (default: --qrels)",
    )
    similarity = parser.add_argument_group("parameters of the method")
    similarity.add_argument("--preset", help="published values (tas-b, cocondenser, …) or a YAML file")
    command.add_method_flags(similarity, "labeler")
    text = "where a teacher such as cross-encoder computes: cuda, cuda:1, mps or cpu (default: cpu)"
    similarity.add_argument("--device", help=text)

    speed = parser.add_argument_group("work (labels do not depend on it)")
    speed.add_argument("--backend", choices=BACKENDS, default="threads", help="default: threads")
    speed.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler or Ray head (default: start one here)")
    speed.add_argument("--jobs", type=command.positive, help="shards at the same time (default: one per core)")
    speed.add_argument(
        "--shard-size", type=command.positive, default=SHARD, metavar="QUERIES", help=f"default: {SHARD}"
    )

    out = parser.add_argument_group("other forms")
    out.add_argument("--tsv", metavar="FILE", help="qid<TAB>docid<TAB>score")
    out.add_argument("--qrels-output", metavar="FILE", help="TREC qrels; a query's largest target becomes --highest")
    out.add_argument("--highest", type=command.positive, default=100, help="grade for --qrels-output (default: 100)")
    out.add_argument("--listwise", metavar="FILE.parquet", help="query, docs, labels for sentence-transformers")
    out.add_argument("--list-size", type=command.positive, default=16, help="documents a query there (default: 16)")
    add_documents_flags(out, "texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    out.add_argument("--audit", type=command.positive, metavar="N", help="page with N queries' proposed positives")
    out.add_argument("--audit-output", metavar="FILE.html", help="default: OUTPUT.audit.html")
    out.add_argument(
        "--truth",
        metavar="QRELS",
        help="fuller judgements: the page says how many proposals are relevant, by probability",
    )
    out.add_argument("--plots", metavar="DIR", help="pictures of scores and label mass by rank")
    return parser


def _check(args: argparse.Namespace, needs: frozenset[str], params: Params, label_params: LabelParams) -> None:
    """Refuse what can be seen to fail, before any work."""
    asked_fields(args)
    method, shown = f"--method {args.method} needs", args.listwise or args.audit
    of_index = {"vectors", "neighbours", "tokens", "terms", *([] if args.documents else ["texts"])}
    from_index = sorted(needs & of_index, reverse=True)
    untold = needs & {"topics", "query tokens"} and not args.topics
    blind = not untold and "query vectors" in needs and not (args.topics or args.encoded_queries)
    text = args.output.removesuffix(".gz").endswith(TEXT)
    refuse(
        (from_index and not args.index, f"{method} --index (where {' and '.join(from_index)} come from)"),
        (untold, f"{method} --topics (texts of the queries)"),
        (blind, f"{method} --topics or --encoded-queries (vectors of the queries)"),
        (shown and not args.topics, "--listwise and --audit need --topics (texts of the queries)"),
        (
            shown and not (args.index or args.documents),
            "--listwise and --audit need --index or --documents (texts of the documents)",
        ),
        (
            args.validation_qrels and not unlearnt(label_params),
            "--validation-qrels goes with --mass share or confident, where no share or threshold is given",
        ),
        (args.audit_output and not args.audit, "--audit-output goes with --audit N"),
        (args.truth and not args.audit, "--truth goes with --audit N"),
        (args.listwise and args.list_size < 2, f"--list-size {args.list_size}: expected at least 2"),
        (text, f"{args.output}: labels are written as parquet; give a name ending in .parquet (--tsv FILE for text)"),
        (
            args.device and not takes_device(args.method, params),
            "--device says where a teacher such as cross-encoder computes: not with these labels",
        ),
        (args.cluster and args.backend not in ("dask", "ray"), "--cluster goes with --backend dask or ray"),
    )
    if args.device is not None:
        from rnnreranker.rnn.engines.torch import usable_device

        usable_device(args.device)
    check_backend(args.backend)
    check_writable(args.output, args.tsv, args.qrels_output, args.listwise, args.audit_output)


def _params(args: argparse.Namespace) -> tuple[Params, LabelParams]:
    """Of the method and of the labels: flag before preset before default."""
    in_file = args.preset and is_file_name(args.preset) and "labels" in sections_of(args.preset)
    labels = args.label_preset or (args.preset if in_file else None)
    [params] = command.method_params(args, "labeler", [args.method], args.preset)
    return params, command.chosen(args, LabelParams, labels)


def _topics(args: argparse.Namespace, needs: frozenset[str], wanted: Sequence[str]) -> dict[str, str]:
    """The texts of the topics; all that are to be labelled are there where the method reads or encodes them."""
    if not args.topics:
        return {}
    from rnnreranker.data.topics import load_topics

    topics = load_topics(args.topics)
    lost = [qid for qid in wanted if qid not in topics]
    if lost and (needs & {"topics", "query tokens"} or ("query vectors" in needs and not args.encoded_queries)):
        raise InputError(
            f"{args.topics}: {len(lost)} of the {len(wanted)} queries to label are not in it (first: "
            f"{', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return topics


def _export(args: argparse.Namespace, labels: SoftLabels, topics: Mapping[str, str], index: Index | None) -> None:
    from rnnreranker.labels import export

    if args.tsv:
        export.write_tsv(labels, args.tsv)
    if args.qrels_output:
        export.write_qrels(labels, args.qrels_output, args.highest)
    if args.listwise:
        wanted = {one.docids[place] for one in labels for place in export.best(one.targets, args.list_size)}
        texts = texts_for(wanted, index, args.documents, asked_fields(args))
        export.write_listwise(labels, args.listwise, topics, texts, args.list_size)
    if args.audit:
        from rnnreranker.labels.report.audit import proposals, write_audit

        found = proposals(labels, args.audit)
        wanted = {docid for one in found for docid in (*one.positives, *one.proposed)}
        path = Path(args.audit_output or f"{args.output}.audit.html")
        curve = _curve(args, labels) if args.truth else ()
        texts = texts_for(wanted, index, args.documents, asked_fields(args))
        write_audit(path, found, topics, texts, labels.metadata, curve)
        command.put(path)
    if args.plots:
        from rnnreranker.labels.report.plots import write_plots

        for path in write_plots(labels, args.plots):
            command.put(path)


def _curve(args: argparse.Namespace, labels: SoftLabels) -> list[dict[str, float]]:
    """How often what the labels propose is relevant, by judgements that they were not made from."""
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.labels.report.confidence import of_labels

    qrels = load_qrels(args.truth)
    pairs = zip(qrels["query_id"], qrels["doc_id"], strict=True)
    return of_labels(labels, dict(zip(pairs, qrels["relevance"].tolist(), strict=True)), args.relevant)


def texts_for(
    docids: Iterable[str], index: Index | None, documents: str | None, fields: Sequence[str] | None = None
) -> dict[str, str]:
    """The texts of documents, by docid: from `documents` where given, else from the index; some may have none.

    Args:
        docids: those wanted.
        index, documents: where they come from; fields: what the texts of `documents` are, None = as in the index.
    """
    wanted = set(docids)
    if fields is None and index is not None:
        fields = index.fields
    if documents:
        from rnnreranker.data.documents import load_documents

        found = command.progress(load_documents(documents, fields), unit="documents", what="read")
        return {document.docid: document.text for document in found if document.docid in wanted}
    if index is None or index.texts is None:
        return {}
    from rnnreranker.parts.texts import texts_of

    return texts_of(index.texts, sorted(wanted))


if __name__ == "__main__":
    raise SystemExit(command.run(main))
