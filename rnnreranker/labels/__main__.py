"""`python -m rnnreranker.labels`: a run and sparse judgements to soft labels, exports, an audit page, pictures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.device import add_flags as add_device_flags
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import check_writable
from rnnreranker.base.method import fields_of, find, names
from rnnreranker.base.process.backends import BACKENDS
from rnnreranker.base.settings import hints_of
from rnnreranker.base.shards import add_flags as add_share_flags
from rnnreranker.base.shards import share_of
from rnnreranker.base.typed_numbers import number
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.labels.check import check
from rnnreranker.labels.make import Made, write_labels, write_share
from rnnreranker.labels.methods.base import Source
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import SOURCE, LabelsRequest
from rnnreranker.labels.shards import SHARD
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE
from rnnreranker.search import flags

if TYPE_CHECKING:
    from rnnreranker.labels.soft import SoftLabels

EVERYDAY = ("boost", "n_max", "normalization")  # settings of labels that are flags too
SHOWN = ("k", "lam")  # settings of rNN that help shows
EPILOG = """examples (settings of a method, and of labels, stand behind a colon; `rnnreranker methods` lists them):
  python -m rnnreranker.labels --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --method evidence:k=21,include_level=0.1 --n-max 8 --output labels.parquet --audit 50
  python -m rnnreranker.labels ... --method teacher:teacher=cross-encoder,normalization=none,boost=1,n_max=none
  python -m rnnreranker.labels scores one.parquet two.parquet      how the scores of labels are distributed
A job that was killed goes on where it stopped when the same command is given again."""
USAGE = "python -m rnnreranker.labels --run RUN --qrels QRELS --output FILE.parquet [--index INDEX] [flags]"
SCORES = """examples:
  python -m rnnreranker.labels scores tf-idf.parquet scorer.parquet evidence.parquet --plots pictures
  python -m rnnreranker.labels scores sbert.parquet le-bs.parquet --distances

Of labels --method run from the cosines of several models, --distances gives what Figure 5 of paper 004 shows.
"""


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    if command.first_word(argv, ["scores"]) == "scores":
        from rnnreranker.labels.report.scores import show_scores

        show_scores(**vars(make_scores_parser().parse_args(argv[1:])))
    else:
        args = make_parser().parse_args(argv)
        request = command.request(args, LabelsRequest, method=_method(args))
        _check(args, request)
        if (share := share_of(args.shard_id, args.shard_num)) is not None:
            made_now, own = write_share(request, args.output, share)
            there = f"{command.counted(made_now, 'shard file')} made, {own - made_now} were there"
            command.say(f"{args.output}: shard {share[0]} of {share[1]}: {there}")
            return 0
        made = write_labels(request, args.output)
        _export(args, made)
        _say(args.output, made)
    return 0


def _method(args: argparse.Namespace) -> Written:
    """The method of --method with what the other flags say of its settings, and of those of labels.

    Raises:
        InputError: flags of settings that the method does not have, or of what its written form says too.
    """
    form = Written.read(args.method)
    typed: dict[str, Any] = command.given(args, RnnParams)
    if form.name in names("labeler"):
        own = _settings(form.name)
        if foreign := [name for name in typed if name not in own]:
            takers = " or ".join(name for name in names("labeler") if set(foreign) <= _settings(name))
            raise InputError(f"{', '.join(map(flag, foreign))}: of {takers}, not with --method {form.name}")
    typed |= command.given(args, LabelParams)
    typed |= {name: value for name in (SOURCE, PRESET) if (value := getattr(args, name)) is not None}
    return form.beside(typed, "--method")


def _settings(name: str) -> set[str]:
    return {field.name for field in fields_of(find("labeler", name))}


def _check(args: argparse.Namespace, request: LabelsRequest) -> None:
    """Refuse what can be seen to fail, before any work."""
    shown = args.listwise or args.audit
    check(
        request,
        args.output,
        (shown and not args.topics, "--listwise and --audit need --topics (texts of the queries)"),
        (
            shown and not (args.index or args.documents),
            "--listwise and --audit need --index or --documents (texts of the documents)",
        ),
        (args.audit_output and not args.audit, "--audit-output goes with --audit N"),
        (args.truth and not args.audit, "--truth goes with --audit N"),
        (args.listwise and args.list_size < 2, f"--list-size {args.list_size}: expected at least 2"),
    )
    check_writable(args.tsv, args.qrels_output, args.listwise, args.audit_output)


def _export(args: argparse.Namespace, made: Made) -> None:
    """Write the labels in the other forms that the flags ask for."""
    if not (args.tsv or args.qrels_output or args.listwise or args.audit or args.plots):
        return
    from rnnreranker.labels import export
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.search.texts import texts_for

    labels = SoftLabels.read(made.path)
    texts = made.index, args.documents, asked_fields(args.documents, args.fields)
    if args.tsv:
        export.write_tsv(labels, args.tsv)
    if args.qrels_output:
        export.write_qrels(labels, args.qrels_output, args.highest)
    if args.listwise:
        wanted = {one.docids[candidate] for one in labels for candidate in export.best(one.targets, args.list_size)}
        export.write_listwise(labels, args.listwise, made.topics, texts_for(wanted, *texts), args.list_size)
    if args.audit:
        from rnnreranker.labels.report.audit import proposals, write_audit

        to_judge = proposals(labels, args.audit)
        wanted = {docid for one in to_judge for docid in (*one.positives, *one.proposed)}
        path = Path(args.audit_output or f"{args.output}.audit.html")
        curve = _curve(args, labels) if args.truth else ()
        write_audit(path, to_judge, made.topics, texts_for(wanted, *texts), labels.metadata, curve)
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


def _say(output: str, made: Made) -> None:
    without, labelled = made.metadata["positives_without_vector"], made.metadata["queries"]
    command.say(
        f"{output}: {command.counted(labelled, 'query', 'queries')}; "
        f"query vectors {made.encoding_seconds:.2f} s, labels {made.seconds:.2f} s, "
        f"{labelled / made.seconds:.0f} queries/s"
        + (f"; {command.counted(without, 'positive')} without a vector left out" if without else "")
    )


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Make soft relevance labels for the candidates of a run."
    parser = command.parser("labels", text, EPILOG, usage=USAGE)
    parser.add_argument("--run", required=True, help="candidates (TREC or MS MARCO format)")
    parser.add_argument("--qrels", required=True, help=f"{flags.QRELS}, `pydoc/train`")
    parser.add_argument("--output", required=True, metavar="FILE.parquet", help="labels to write")
    parser.add_argument("--index", help="where vectors, texts, … come from: folder, `pydoc`, prebuilt index")
    flags.add_topics(parser)
    flags.add_encoder(parser)
    parser.add_argument(
        "--relevant", type=command.positive, default=1, metavar="N", help="grade from which on positive (default: 1)"
    )
    parser.add_argument(
        "--depth", type=command.positive, default=1000, metavar="N", help="candidates kept (default: 1000)"
    )
    text = "published pairs, their negatives the candidates: file, ir_datasets id"
    parser.add_argument("--pairs", metavar="NAME", help=text)

    method = parser.add_argument_group("method (any setting of rnn is a flag too)")
    text = f"{', '.join(names('labeler'))} (default: evidence)"
    method.add_argument("--method", default="evidence", metavar="NAME", help=text)
    text = "where similarities come from: vectors, neighbours (default: vectors)"
    method.add_argument(flag(SOURCE), dest=SOURCE, choices=get_args(Source), metavar="WHAT", help=text)
    method.add_argument("--preset", help="of the method: tas-b, cocondenser, … or a YAML file")
    base = RnnParams.preset("vectors")
    command.add_dataclass_flags(method, RnnParams, OF_THE_MIXTURE, base, shown=SHOWN)
    others = set(hints_of(LabelParams)) - set(EVERYDAY)
    command.add_dataclass_flags(method, LabelParams, others)
    text = "what mass=share and confident learn from (default: --qrels)"
    method.add_argument("--validation-qrels", metavar="QRELS", help=text)
    add_device_flags(method, "queries, teacher")

    speed = parser.add_argument_group("work (labels do not depend on it)")
    speed.add_argument("--backend", choices=BACKENDS, default="threads", metavar="NAME", help=f"{', '.join(BACKENDS)}")
    speed.add_argument("--address", metavar="ADDRESS", help="of dask or ray (default: start one here)")
    speed.add_argument(
        "--jobs", type=command.positive, metavar="N", help="shards at the same time (default: one per core)"
    )
    speed.add_argument(
        "--shard-size", type=command.positive, default=SHARD, metavar="N", help=f"queries (default: {SHARD})"
    )
    add_share_flags(speed, "the labels")

    out = parser.add_argument_group("other forms")
    out.add_argument("--tsv", metavar="FILE", help="qid<TAB>docid<TAB>score")
    out.add_argument("--qrels-output", metavar="FILE", help="TREC qrels; a query's largest target becomes --highest")
    out.add_argument("--highest", type=command.positive, default=100, metavar="N", help="its grade (default: 100)")
    out.add_argument("--listwise", metavar="FILE.parquet", help="query, docs, labels for sentence-transformers")
    text = "documents a query there (default: 16)"
    out.add_argument("--list-size", type=command.positive, default=16, metavar="N", help=text)
    add_documents_flags(out, "texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    out.add_argument("--audit", type=command.positive, metavar="N", help="page with N queries' proposed positives")
    out.add_argument("--audit-output", metavar="HTML", help="default: OUTPUT.audit.html")
    out.add_argument("--truth", metavar="QRELS", help="fuller judgements: how many proposals are relevant")
    out.add_argument("--plots", metavar="DIR", help="pictures of scores and label mass by rank")
    return parser


def make_scores_parser() -> argparse.ArgumentParser:
    """The arguments of `labels scores`, named as those of `show_scores`."""
    parser = command.parser("labels scores", "Show how the scores of labels are distributed, file by file.", SCORES)
    parser.add_argument("files", nargs="+", metavar="FILE.parquet", help="of python -m rnnreranker.labels")
    parser.add_argument(
        "--distances", action="store_true", help="(1 - score) / 2, of scores that are cosines, in place of them"
    )
    text = "of scores (default: 0 1)"
    parser.add_argument(
        "--range", dest="between", nargs=2, type=number, default=(0.0, 1.0), metavar=("LOW", "HIGH"), help=text
    )
    parser.add_argument("--bins", type=command.positive, default=10, help="equal parts of it (default: 10)")
    parser.add_argument("--plots", metavar="DIR", help="picture of the shares by range")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
