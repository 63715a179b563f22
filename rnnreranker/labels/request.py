"""What labels are asked for: a request, and the method that it names with its settings, checked before any work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.chosen_method import Form, naming
from rnnreranker.base.device import EXACT, ComputesOnDevices
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import fields_of, find, make_params, names
from rnnreranker.base.preset_files import is_file_name, sections_of
from rnnreranker.base.request import Request
from rnnreranker.base.settings import Params, hints_of, plain, setting
from rnnreranker.base.written_form import Written
from rnnreranker.labels.methods.base import Source, needs_of, takes_device
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.shards import SHARD
from rnnreranker.search.queries import QueryEncoding

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


SOURCE, LABEL_PRESET = "from", "label_preset"  # settings of a written form, beside those of the method and of labels


@dataclass(frozen=True)
class ChosenLabeler:
    """A method of labels with settings that were checked.

    Attributes:
        name: of the method; params: its settings.
        label_params: from its scores to a distribution.
        source: where similarities of documents come from, "vectors" or "neighbours".
    """

    name: str
    params: Params
    label_params: LabelParams
    source: Source = "vectors"

    @cached_property
    def needs(self) -> frozenset[str]:
        """What must be opened for it."""
        return needs_of(self.name, self.params, self.source)

    @property
    def takes_device(self) -> bool:
        """Whether it can compute elsewhere than on the processor."""
        return takes_device(self.name, self.params)


def choose_labeler(form: Form, of: str = "") -> ChosenLabeler:
    """The method of labels of a written form, `evidence:k=21,from=neighbours,boost=1.2,label_preset=coder-tas-b`.

    Settings are those of the method, `preset` and `from` among them, and those of `LabelParams`, with `label_preset`,
    a published name or a file. A preset file with a section `labels` is the label preset too, unless one is given.

    Args:
        form: the method; of: the argument that it was given with, for messages; "" = none.

    Raises:
        InputError: no such method, settings that it does not have, values out of range, no such preset, a source that
            is not for it.
    """
    with naming(of, form):
        chosen = _chosen(Written.read(form))
        chosen.needs  # noqa: B018  # worked out now: it says what is wrong with the source, or with a teacher
    return chosen


def _chosen(written: Written) -> ChosenLabeler:
    if written.name not in names("labeler"):
        raise InputError(f"{written.name}: no such labeler; {nearest(written.name, names('labeler'))}")
    own = [field.name for field in fields_of(find("labeler", written.name))]
    hints = {name: hint for name, hint in hints_of(LabelParams).items() if name not in own}
    known = [*own, *hints, SOURCE, LABEL_PRESET]
    method = find("labeler", written.name)
    others = [name for name in written.params if name not in known]
    if others and method.inner is None:
        raise InputError("; ".join(f"no setting {name}, {nearest(name, known)}" for name in others))
    in_file = written.preset and is_file_name(written.preset) and "labels" in sections_of(written.preset)
    preset = written.params.get(LABEL_PRESET) or (written.preset if in_file else None)
    of_labels = {name: plain(value, hints[name]) for name, value in written.params.items() if name in hints}
    return ChosenLabeler(
        written.name,
        make_params(
            "labeler",
            written.name,
            {name: value for name, value in written.params.items() if name in (*own, *others)},
            written.preset or None,
        ),
        dataclasses.replace(LabelParams.named(str(preset)) if preset else LabelParams(), **of_labels),
        str(written.params.get(SOURCE, "vectors")),  # type: ignore[arg-type]  # looked at with the needs
    )


@dataclass(frozen=True)
class JudgedRunRequest(ComputesOnDevices, Request):
    """A run, its judgements, and where its queries and documents come from.

    Attributes:
        run: candidates, a Run or a file.
        qrels: judgements: a name, a file, {qid: {docid: grade}} or a data frame.
        index: where vectors, texts, … come from: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini;
            None where nothing reads it.
        topics: a name, a file, or qid → text; None where nothing reads a text of a query.
        encoder: of queries, `name:key=value,…`; None = the one that made the index.
        encoded_queries: a .npy file of query vectors, `QueryVectors`, or (Q, d) floats of the topics in their order.
        relevant: grade from which on a document is positive.
        documents: texts in place of those of the index; fields: which of theirs, "title,text" or "text".
        device, compute_dtype: where and in which type queries are encoded, and of labels a teacher such as a
            cross-encoder computes, as of `devices_of`; None = on the processor.
    """

    run: str | Path | Run
    qrels: Qrels
    index: str | Path | IndexOnDisk | None = None
    topics: str | Path | Mapping[str, str] | None = None
    encoder: Form | None = None
    encoded_queries: str | Path | QueryVectors | np.ndarray | None = None
    relevant: int = setting(1, "grade from which on a document is positive", at_least=1)
    documents: str | None = None
    fields: str | None = None
    device: str | None = None
    compute_dtype: str = EXACT

    @property
    def encoding(self) -> QueryEncoding:
        """How queries become vectors."""
        return QueryEncoding.of(self.encoder, self.encoded_queries, self.topics, self.devices)


@dataclass(frozen=True)
class LabelsRequest(JudgedRunRequest):
    """Labels to be made: the arguments of `make_labels`, and the flags of the command.

    Attributes:
        method: in its written form, see `choose_labeler`.
        depth: candidates kept of the run, or of the pairs.
        pairs: published pairs of a relevant and another document, see `load_pairs`: these others are the candidates of
            the queries that have pairs, in place of those of the run. Where the pairs are not here the run's are taken.
        validation_qrels: all known positives of queries of the run, which `mass` share and confident learn from;
            None = `qrels`.
        backend, address: who makes shards, as `do_parts`; jobs: shards at the
            same time, None = one per core; shard_size: queries of one. Labels depend on none of these.
    """

    method: Form = "evidence"
    depth: int = setting(1000, "candidates kept of the run", at_least=1)
    pairs: str | None = None
    validation_qrels: Qrels | None = None
    backend: str = "threads"
    address: str | None = None
    jobs: int | None = setting(None, "shards at the same time, one per core where None", at_least=1)
    shard_size: int = setting(SHARD, "queries of a shard", at_least=1)

    @cached_property
    def labeler(self) -> ChosenLabeler:
        """The method, and how its scores become labels."""
        return choose_labeler(self.method, "method")
