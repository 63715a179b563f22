"""`make_labels` and the command: a request is checked and its labels made, from files to a file or in memory."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.request import asked
from rnnreranker.base.shards import Share
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.check import check
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import LabelsRequest
from rnnreranker.labels.soft import SoftLabels
from rnnreranker.parts.needs import givers

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.job import Job
    from rnnreranker.labels.judged import Judged
    from rnnreranker.labels.shards import LabelInputs
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class Made:
    """Labels that were made.

    Attributes:
        path: their file; metadata: what it says of them.
        topics: query id to text, empty where none were given; index: that was opened, None without one.
        encoding_seconds: that the vectors of queries took; seconds: that the labels took.
    """

    path: Path
    metadata: dict[str, Any]
    topics: dict[str, str]
    index: IndexOnDisk | None
    encoding_seconds: float
    seconds: float


def make_labels(
    run: str | Path | Run,
    qrels: Qrels,
    index: str | Path | IndexOnDisk | None = None,
    method: Form = "evidence",
    *,
    topics: str | Path | Mapping[str, str] | None = None,
    output: str | Path | None = None,
    **others: Any,
) -> SoftLabels:
    """Soft labels of the candidates of a run, as `python -m rnnreranker.labels`.

    Args:
        run, qrels, index, method, topics, others: as of `LabelsRequest`.
        output: a parquet file that keeps them; work that was interrupted goes on when it is asked for again.

    Raises:
        InputError: everything that can be seen to be wrong, at once; no such index, topics or run.
        UnavailableError, MissingDependencyError: an index, an encoder or a teacher that cannot be had here.
    """
    given = {"run": run, "qrels": qrels, "index": index, "method": method, "topics": topics, **others}
    request = asked(LabelsRequest, given)
    check(request, output)
    if output is not None:
        return SoftLabels.read(write_labels(request, output).path)
    with tempfile.TemporaryDirectory(prefix="rnnreranker-") as folder:
        return SoftLabels.read(write_labels(request, Path(folder) / "labels.parquet").path)


def write_labels(request: LabelsRequest, output: str | Path) -> Made:
    """The labels of a request that was checked, in a parquet file; errors as `make_labels`."""
    from rnnreranker.labels.shards import make_shards

    inputs = _inputs(request)
    metadata = make_shards(output, inputs.job, inputs.of_labels, **_workers(request))
    return Made(
        Path(output), metadata, inputs.topics, inputs.index, inputs.seconds, time.perf_counter() - inputs.encoded
    )


def write_share(request: LabelsRequest, output: str | Path, share: Share) -> tuple[int, int]:
    """One process's share of `write_labels`, as of `make_share`."""
    from rnnreranker.labels.shards import make_share

    inputs = _inputs(request)
    return make_share(output, inputs.job, inputs.of_labels, share=share, **_workers(request))


def _workers(request: LabelsRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("backend", "jobs", "address", "shard_size")}


@dataclass(frozen=True)
class _Inputs:
    """What a request names, opened: a job and its inputs; topics, index, how long encoding took, when it ended."""

    job: Job
    of_labels: LabelInputs
    topics: dict[str, str]
    index: IndexOnDisk | None
    seconds: float
    encoded: float


def _inputs(request: LabelsRequest) -> _Inputs:
    """What a request that was checked names, opened and encoded; errors as `make_labels`."""
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.evaluate.scores import notice_unjudged
    from rnnreranker.index.opening import open_index
    from rnnreranker.labels.candidates import candidates_of
    from rnnreranker.labels.job import with_learnt_mass
    from rnnreranker.labels.judged import docids_of, positives_of
    from rnnreranker.labels.shards import LabelInputs
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.own_documents import notice_own
    from rnnreranker.search.queries import query_vectors

    labeler = request.labeler
    needs = labeler.needs
    judged = positives_of(qrels_of(request.qrels), request.relevant, request.shown("qrels"))
    validation: Judged = {}
    if unlearnt(labeler.label_params):
        source = "qrels" if request.validation_qrels is None else "validation_qrels"
        validation = positives_of(qrels_of(getattr(request, source)), request.relevant, request.shown(source))
    run, pairs = candidates_of(request)
    notice_own(run, "leave it out of the run with --remove-query of search, or it is a candidate like others")
    notice_unjudged(
        {request.shown("run"): run}, docids_of(judged), "positives are put in behind the candidates of every query"
    )
    wanted = [qid for qid in run if qid in judged or qid in validation]
    topics = _topics(request, needs, wanted)
    index = None if request.index is None else open_index(request.index, needs=needs)
    begun = time.perf_counter()
    queries = tokens = None
    if index is not None and "query vectors" in needs:
        queries = query_vectors(request.encoding, index, topics, wanted, threads=request.jobs)
        if "vectors" in needs:
            notice_mismatch(run, queries, index.vectors)
    if index is not None and "query tokens" in needs:
        tokens = index.given_queries(
            "query tokens", {qid: topics[qid] for qid in wanted}, request.jobs, request.devices
        )
    encoded = time.perf_counter()
    job = dataclasses.replace(_job(request, index), pairs=pairs)
    if unlearnt(labeler.label_params):
        job = with_learnt_mass(job, run, validation, queries, threads=request.jobs)
        say(str(job.learnt))
    asked_topics = topics if "topics" in needs else None
    return _Inputs(
        job, LabelInputs(run, judged, queries, asked_topics, tokens), topics, index, encoded - begun, encoded
    )


def _job(request: LabelsRequest, index: IndexOnDisk | None) -> Job:
    """What all shards share: the method, and the files that whoever makes a shard opens."""
    from rnnreranker.labels.job import Job, stored_part

    labeler, needs = request.labeler, request.labeler.needs
    stored, texts = [], None
    if index is not None:
        for need in sorted(needs & {*givers()}):
            _ = index.given(need)  # opened once here, so that what is wrong with it is said before any work
            name = givers()[need]
            stored.append(stored_part(need, index.folders[name], index.described(name)))
        texts = index.texts if "texts" in needs else None
    documents = request.documents if "texts" in needs else None
    if "texts" in needs and documents is None and texts is None:
        name = index.name if index is not None else argument("index")
        raise InputError(f"{name}: no texts in this index; give {argument('documents')}, what it was made from")
    fields = asked_fields(request.documents, request.fields) or (index.fields if index is not None else None)
    return Job(
        labeler.name,
        texts,
        labeler.params,
        labeler.label_params,
        request.relevant,
        documents,
        labeler.source,
        tuple(stored),
        devices=request.devices if labeler.takes_device else None,
        fields=fields if documents else None,
    )


def _topics(request: LabelsRequest, needs: frozenset[str], wanted: Sequence[str]) -> dict[str, str]:
    """The texts of the topics; all that are to be labelled are there where the method reads or encodes them."""
    if request.topics is None:
        return {}
    from rnnreranker.data.topics import topics_of

    topics = topics_of(request.topics)
    lost = [qid for qid in wanted if qid not in topics]
    if lost and (needs & {"topics", "query tokens"} or ("query vectors" in needs and not request.encoded_queries)):
        raise InputError(
            f"{request.shown('topics')}: {len(lost)} of the {len(wanted)} queries to label are not in it (first: "
            f"{', '.join(lost[:3])}); give the topics that the run was made from"
        )
    return topics
