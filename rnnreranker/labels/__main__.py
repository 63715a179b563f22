"""`python -m rnnreranker.labels`: a run and sparse judgements to soft labels, exports, an audit page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.files import check_writable
from rnnreranker.base.request import ShareRequest
from rnnreranker.base.settings import hints_of
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.export import FormsRequest
from rnnreranker.labels.make import Made, write_labels
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.request import LabelsRequest, add_similarity_flags, check, with_flags

EVERYDAY = ("boost", "n_max", "normalization")  # settings of labels that are flags too
SHOWN = ("k", "lam")  # settings of rNN that help shows
EPILOG = """examples (settings of a method, and of labels, stand behind a colon; `rnnreranker methods` lists them):
  python -m rnnreranker.labels --run run.txt --index my-index --topics train.tsv --qrels train-qrels.txt \\
      --method evidence:k=21,include_level=0.1 --n-max 8 --output labels.parquet --audit 50
  python -m rnnreranker.labels ... --method teacher:teacher=cross-encoder,normalization=none,boost=1,n_max=none
A job that was killed goes on where it stopped when the same command is given again."""
USAGE = "python -m rnnreranker.labels --run RUN --qrels QRELS --output FILE.parquet [--index INDEX] [flags]"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = make_parser().parse_args(argv)
    request = command.request(args, LabelsRequest, method=with_flags("method", args, LabelParams))
    forms = command.request(args, FormsRequest)
    texts: frozenset[str] = frozenset({"topics", "texts"} if forms.listwise or forms.audit else ())
    check(
        request,
        forms.output,
        *request.lacking(texts, "--listwise or --audit"),
        (forms.audit_output and not forms.audit, "--audit-output goes with --audit N"),
        (forms.truth and not forms.audit, "--truth goes with --audit N"),
    )
    check_writable(forms.tsv, forms.qrels_output, forms.listwise, forms.audit_output)
    share = command.request(args, ShareRequest).share
    made = write_labels(request, forms.output, share)
    if share is not None:
        now, own = made.metadata["made"], made.metadata["own"]
        there = f"{command.counted(now, 'shard file')} made, {own - now} were there"
        command.say(f"{forms.output}: shard {share[0]} of {share[1]}: {there}")
        return 0
    _export(forms, request, made)
    without = made.metadata["positives_without_vector"]
    command.say(
        f"{forms.output}: {command.counted(made.metadata['queries'], 'query', 'queries')}"
        + (f"; {command.counted(without, 'positive')} without a vector left out" if without else "")
    )
    return 0


def _export(forms: FormsRequest, request: LabelsRequest, made: Made) -> None:
    """Write the other forms."""
    if not (forms.tsv or forms.qrels_output or forms.listwise or forms.audit):
        return
    from rnnreranker.labels import export
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.search.inputs import texts_for

    labels, fields = SoftLabels.read(forms.output), asked_fields(request.documents, request.fields)
    texts_of = partial(texts_for, index=made.index, documents=request.documents, fields=fields)
    if forms.tsv:
        export.write_tsv(labels, forms.tsv)
    if forms.qrels_output:
        export.write_qrels(labels, forms.qrels_output, forms.highest)
    if forms.listwise:
        export.write_listwise(labels, forms.listwise, made.topics, texts_of, forms.list_size)
    if forms.audit:
        from rnnreranker.data.qrels import grades_of
        from rnnreranker.labels.report.audit import of_labels, proposals, write_audit

        path = Path(forms.audit_output or f"{forms.output}.audit.html")
        curve = of_labels(labels, grades_of(forms.truth), request.relevant) if forms.truth else ()
        write_audit(path, proposals(labels, forms.audit), made.topics, texts_of, labels.metadata, curve)
        command.put(path)


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    text = "Make soft relevance labels for the candidates of a run."
    parser = command.parser("labels", text, EPILOG, usage=USAGE)
    command.add_request_flags(parser, LabelsRequest, "run", "qrels")
    command.add_request_flags(parser, FormsRequest, "output")
    of_queries = ("index", "topics", "encoded_queries", "encoder")
    command.add_request_flags(parser, LabelsRequest, *of_queries, "relevant", "depth", "pairs", encoded_queries="NPY")

    method = parser.add_argument_group("method (any setting of rnn is a flag too)")
    command.add_request_flags(method, LabelsRequest, "method")
    add_similarity_flags(method, SHOWN)
    others = set(hints_of(LabelParams)) - set(EVERYDAY)
    command.add_dataclass_flags(method, LabelParams, others)
    command.add_request_flags(method, LabelsRequest, "validation_qrels", validation_qrels="QRELS")
    command.add_request_flags(method, LabelsRequest, "device", "compute_dtype")

    speed = parser.add_argument_group("work (labels do not depend on it)")
    command.add_request_flags(speed, LabelsRequest, "backend", "address", "jobs", "shard_size", backend="NAME")
    command.add_request_flags(speed, ShareRequest, "shard_id", "shard_num")

    out = parser.add_argument_group("other forms")
    command.add_request_flags(
        out, FormsRequest, "tsv", "qrels_output", "highest", "listwise", "list_size", qrels_output="QRELS"
    )
    command.add_request_flags(out, LabelsRequest, "documents", "fields", fields="NAMES")
    command.add_request_flags(out, FormsRequest, "audit", "audit_output", "truth", audit_output="HTML")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
