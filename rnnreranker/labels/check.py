"""What can be seen to fail in a request for labels, before any work."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.base.arguments import argument, in_command
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.process.backends import CLUSTERS, check_backend
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import LabelsRequest
from rnnreranker.parts.needs import givers

TEXT = (".txt", ".tsv", ".csv", ".json", ".jsonl", ".trec", ".qrels", ".html")  # endings that promise no parquet


def check(request: LabelsRequest, output: str | Path | None = None, *others: tuple[object, str]) -> None:
    """Refuse what can be seen to fail.

    Args:
        request: what is asked for; output: the file to write, None = none.
        others: more faults, reported with those of the request, see `refuse`.

    Raises:
        InputError: everything that is wrong; a method that there is not, settings that it does not have.
        MissingDependencyError: a backend that is not installed.
    """
    asked_fields(request.documents, request.fields)
    labeler = request.labeler
    needs, untold = labeler.needs, request.topics is None
    method, topics = f"{argument('method', labeler.name)} needs", argument("topics")
    of_index = {*givers(), *([] if request.documents else ["texts"])}
    from_index = sorted(needs & of_index, reverse=True)
    without_texts = untold and bool(needs & {"topics", "query tokens"})
    blind = untold and not without_texts and "query vectors" in needs and not request.encoded_queries
    as_text = "--tsv FILE" if in_command() else "labels.export.write_tsv"
    text = output is not None and str(output).removesuffix(".gz").endswith(TEXT)
    refuse(
        (
            from_index and request.index is None,
            f"{method} {argument('index')} (where {' and '.join(from_index)} come from)",
        ),
        (without_texts, f"{method} {topics} (texts of the queries)"),
        (blind, f"{method} {topics} or {argument('encoded_queries')} (vectors of the queries)"),
        (
            request.validation_qrels is not None and not unlearnt(labeler.label_params),
            f"{argument('validation_qrels')} goes with mass=share or confident, where no share or threshold is given",
        ),
        (text, f"{output}: labels are written as parquet; give a name ending in .parquet ({as_text} for text)"),
        (
            (request.device is not None or request.compute_dtype != EXACT)
            and not labeler.takes_device
            and not needs & {"query vectors", "query tokens"},
            f"{argument('device')} says where a teacher such as cross-encoder computes, and queries are encoded: not "
            "with these labels",
        ),
        (
            request.address is not None and request.backend not in CLUSTERS,
            f"{argument('address')} goes with {argument('backend')} {' or '.join(CLUSTERS)}",
        ),
        *others,
    )
    request.devices  # noqa: B018  # read now: it says what is not here
    check_backend(request.backend)
    request.encoding  # noqa: B018  # read now: it says what is wrong with its written form
    if output is not None:
        check_writable(output)
