"""A request for labels, and its method with checked settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.command import check_apart
from rnnreranker.base.device import ComputesOnDevices
from rnnreranker.base.errors import argument, flag, refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.jobs import BACKENDS, check_backend
from rnnreranker.base.method import Form, fields_of, find, make_params, names, naming
from rnnreranker.base.settings import (
    PRESET,
    Params,
    Request,
    Written,
    check_names,
    hints_of,
    is_file_name,
    sections_of,
    setting,
)
from rnnreranker.data.fields import TextsRequest
from rnnreranker.data.names import QRELS
from rnnreranker.labels.methods.base import Source
from rnnreranker.labels.params import LabelParams, unlearnt
from rnnreranker.parts.base import givers
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE
from rnnreranker.search.request import QueriesRequest

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.runs import Run


SHARD = 2048  # queries
SOURCE, LABEL_PRESET = "from", "label_preset"  # settings of a written form, beside those of the method and of labels


@dataclass(frozen=True)
class ChosenLabeler:
    """A method of labels with checked settings.

    params: of the method; label_params: from scores to a distribution; source: "vectors" or "neighbours".
    """

    name: str
    params: Params
    label_params: LabelParams
    source: Source = "vectors"

    @cached_property
    def needs(self) -> frozenset[str]:
        """Needed inputs, with those of a teacher."""
        return find("labeler", self.name).needs_from(self.source, self.params)


@dataclass(frozen=True)
class SimilarityRequest(Request):
    """Settings of similarities that are flags of their own."""

    source: Source | None = setting(
        None, "where similarities of documents come from (default: vectors)", flag=SOURCE, metavar="WHAT"
    )
    preset: str | None = setting(None, "published settings (tas-b, cocondenser, …) or a YAML file")


def add_similarity_flags(group: Any, shown: Collection[str]) -> None:
    """Add the flags of `SimilarityRequest` and of rNN; the help shows only some."""
    command.add_flags(group, SimilarityRequest, "source", "preset")
    command.add_flags(group, RnnParams, skip=OF_THE_MIXTURE, base=RnnParams.preset("vectors"), shown=shown)


def with_flags(name: str, args: Any, kind: type) -> Written:
    """The written form of a flag, with the settings that other flags give. InputError: a setting is given twice."""
    others = {SOURCE: vars(args)[SOURCE], PRESET: args.preset}
    given = command.given(args, RnnParams) | command.given(args, kind)
    given |= {key: value for key, value in others.items() if value is not None}
    given.pop(name, None)
    return Written.read(getattr(args, name)).beside(given, flag(name))


def choose_labeler(form: Form, of: str = "") -> ChosenLabeler:
    """The labels of a written form, `evidence:k=21,from=neighbours,boost=1.2,label_preset=coder-tas-b`.

    Settings are those of the method, with `preset` and `from`, and of `LabelParams`, with `label_preset`, by default a
    section `labels` of a preset file.

    of: name of the argument, for messages.

    Raises:
        InputError: unknown method, preset, source or setting, values out of range.
    """
    with naming(of, form):
        written = Written.read(form)
        method, given, preset = find("labeler", written.name), dict(written.params), written.preset
        own = fields_of(method)
        hints = {name: hint for name, hint in hints_of(method.Beside).items() if name not in own}
        if method.inner is None:
            check_names(given, [*own, *hints, SOURCE, *[LABEL_PRESET] * bool(hints)])
        of_labels = check_names({name: given.pop(name) for name in hints if name in given}, hints)
        source, usual = str(given.pop(SOURCE, "vectors")), str(given.pop(LABEL_PRESET, ""))
        if not usual and preset and is_file_name(preset) and "labels" in sections_of(preset):
            usual = preset
        params = make_params("labeler", written.name, given, preset or None)
        labels = dataclasses.replace(LabelParams.named(usual) if usual else LabelParams(), **of_labels)
        chosen = ChosenLabeler(written.name, params, labels, source)  # type: ignore[arg-type]
        chosen.needs  # noqa: B018  # worked out now: it says what is wrong with the source, or with a teacher
        return chosen


@dataclass(frozen=True)
class JudgedRunRequest(ComputesOnDevices, QueriesRequest, TextsRequest):
    """A run, its judgements, and the sources of queries and documents: Python objects or files.

    Attributes:
        run: a Run or a file; qrels: a name, a file, {qid: {docid: grade}} or a data frame.
        device, compute_dtype: for query encoders and teachers, as in `devices_of`; None = the processor.
    """

    run: str | Path | Run = setting(MISSING, "candidates (TREC or MS MARCO format)")
    qrels: Qrels = setting(MISSING, f"{QRELS}, `pydoc/train`")
    relevant: int = setting(1, "grade from which on a document is positive", at_least=1)

    def lacking(self, needs: frozenset[str], who: str) -> list[tuple[object, str]]:
        """Faults, as in `refuse`: missing arguments for some needs; who: has these needs."""
        from_index = sorted(needs & {*givers(), *([] if self.documents else ["texts"])}, reverse=True)
        reads = needs & {"topics", "query tokens"}
        blind = reads or ("query vectors" in needs and self.encoded_queries is None)
        either = argument("topics") + ("" if reads else f" or {argument('encoded_queries')}")
        return [
            (
                from_index and self.index is None,
                f"{who} needs {argument('index')} (where {' and '.join(from_index)} come from)",
            ),
            (blind and self.topics is None, f"{who} needs {either} (the queries)"),
        ]


@dataclass(frozen=True)
class LabelsRequest(JudgedRunRequest):
    """Labels to make: the arguments of `make_labels`, and the flags of the command.

    Attributes:
        method: written form, see `choose_labeler`.
        pairs: published pairs (see `load_pairs`) as candidates; if they are missing, the run's candidates.
        validation_qrels: all known positives of the run's queries; None = `qrels`.
        backend, address, jobs, shard_size: as in `make_shards`; labels do not depend on them.
        output: a parquet file; interrupted work resumes.
        tsv, listwise: other files of the labels, see `labels.export`.
    """

    method: Form = setting("evidence", "NAME:key=value,…, one of " + ", ".join(names("labeler")))
    depth: int = setting(1000, "candidates kept", at_least=1)
    pairs: str | None = setting(None, "published pairs, their negatives the candidates: file, ir_datasets id")
    validation_qrels: Qrels | None = setting(
        None, "what mass=share and confident learn from (default: --qrels)", metavar="QRELS"
    )
    backend: str = setting("threads", "who makes shards", one_of=lambda: [*BACKENDS], metavar="NAME")
    address: str | None = setting(None, "of dask or ray (default: start one here)")
    jobs: int | None = setting(None, "shards at the same time (default: one per core)", at_least=1)
    shard_size: int = setting(SHARD, "queries of a shard", at_least=1)
    output: str | Path | None = setting(None, "labels to write", metavar="FILE.parquet")
    tsv: str | None = setting(None, "qid<TAB>docid<TAB>score")
    listwise: str | None = setting(None, "parquet of query, docs, labels for sentence-transformers")
    truth: str | None = setting(
        None, "fuller judgements: print how many candidates are relevant, by their target", metavar="QRELS"
    )

    @cached_property
    def labeler(self) -> ChosenLabeler:
        return choose_labeler(self.method, "method")


def check(request: LabelsRequest, *others: tuple[object, str]) -> None:
    """Check a request before any work; others: further faults.

    Raises:
        InputError: all faults at once.
        MissingDependencyError: a backend is not installed.
    """
    check_apart(vars(request))
    _ = request.document_fields
    labeler, output = request.labeler, request.output
    texts = frozenset({"topics", "texts"} if request.listwise else ())
    refuse(
        *request.lacking(labeler.needs, argument("method", labeler.name)),
        *request.lacking(texts, argument("listwise")),
        (
            request.validation_qrels is not None and not unlearnt(labeler.label_params),
            f"{argument('validation_qrels')} goes with mass=share or confident, where no share or threshold is given",
        ),
        (
            output is not None and not str(output).endswith(".parquet"),
            f"{argument('output', output)}: expected a name that ends in .parquet ({argument('tsv')} writes text)",
        ),
        lambda: check_backend(request.backend, request.address),
        *others,
    )
    _ = request.devices, request.encoding  # each says what is wrong with it
    check_writable(output, request.tsv, request.listwise)
