"""`make_labels` and the command: a request is checked and its labels made, from files to a file or in memory."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.request import asked
from rnnreranker.base.shards import Share
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import JudgedRunRequest, LabelsRequest, check
from rnnreranker.labels.soft import SoftLabels
from rnnreranker.parts.needs import givers

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.shards import Job, LabelInputs
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class Made:
    """Labels that were made.

    Attributes:
        path: their file; metadata: what it says of them, or of a share how many shards were `made`, of its `own`.
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


def write_labels(request: LabelsRequest, output: str | Path, share: Share | None = None) -> Made:
    """Write the labels of a request that was checked to a parquet file, or make a share of their shards alone.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `make_labels`.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.evaluate.scores import notice_unjudged
    from rnnreranker.labels.judged import docids_of, positives_of
    from rnnreranker.labels.shards import LabelInputs, make_shards
    from rnnreranker.search.own_documents import notice_own

    labeler = request.labeler
    needs, learns = labeler.needs, unlearnt(labeler.label_params)
    judged = positives_of(qrels_of(request.qrels), request.relevant, request.shown("qrels"))
    validation = judged
    if learns and request.validation_qrels is not None:
        own = qrels_of(request.validation_qrels)
        validation = positives_of(own, request.relevant, request.shown("validation_qrels"))
    run, pairs = candidates_of(request)
    notice_own(run, "leave it out of the run with --remove-query of search, or it is a candidate like others")
    notice_unjudged(
        {request.shown("run"): run}, docids_of(judged), "positives are put in behind the candidates of every query"
    )
    wanted = [qid for qid in run if qid in judged or (learns and qid in validation)]
    begun, tokens = time.perf_counter(), None
    topics, index, queries = opened(request, needs, run, wanted, request.jobs)
    if index is not None and "query tokens" in needs:
        texts = {qid: topics[qid] for qid in wanted}
        tokens = index.given_queries("query tokens", texts, request.jobs, request.devices)
    encoded = time.perf_counter()
    inputs = LabelInputs(run, judged, queries, topics if "topics" in needs else None, tokens)
    job = _job(request, index, pairs)
    if learns:
        job = _with_learnt_mass(job, dataclasses.replace(inputs, judged=validation), request.jobs)
    workers: dict[str, Any] = {name: getattr(request, name) for name in ("backend", "jobs", "address", "shard_size")}
    metadata = make_shards(output, job, inputs, share=share, **workers)
    return Made(Path(output), metadata, topics, index, encoded - begun, time.perf_counter() - encoded)


def _job(request: LabelsRequest, index: IndexOnDisk | None, pairs: str | None) -> Job:
    """What all shards share: the method, and the files that whoever makes a shard opens."""
    import json

    from rnnreranker.labels.shards import Job

    labeler, needs = request.labeler, request.labeler.needs
    job = Job(labeler, request.relevant, devices=request.devices if labeler.takes_device else None, pairs=pairs)
    if index is not None:
        stored = []
        for need in sorted(needs & {*givers()}):
            _ = index.given(need)  # opened once here, so that what is wrong with it is said before any work
            name = givers()[need]
            stored.append((need, index.folders[name], json.dumps(dict(index.described(name)))))
        job = dataclasses.replace(job, stored=tuple(stored))
    if "texts" not in needs:
        return job
    if request.documents is not None:
        fields = asked_fields(request.documents, request.fields) or (None if index is None else index.fields)
        return dataclasses.replace(job, documents=request.documents, fields=fields)
    if index is None or index.texts is None:
        name = argument("index") if index is None else index.name
        raise InputError(f"{name}: no texts in this index; give {argument('documents')}, what it was made from")
    return dataclasses.replace(job, texts=index.texts)


def _with_learnt_mass(job: Job, validation: LabelInputs, threads: int | None) -> Job:
    """The job with the share, and the threshold, that its `mass` asks for and its parameters do not give.

    validation: candidates of the validation queries and their positives, see `learn_mass`, which raises what this does.
    """
    from rnnreranker.labels.mass.learnt import learn_mass
    from rnnreranker.labels.shards import labeler_of

    def with_labels(**changed: Any) -> Job:
        params = dataclasses.replace(job.labeler.label_params, **changed)
        return dataclasses.replace(job, labeler=dataclasses.replace(job.labeler, label_params=params))

    params = job.labeler.label_params
    labeler = labeler_of(with_labels(mass="own"), validation, threads)
    learnt = learn_mass(labeler, params.mass or "own", validation.run, validation.judged)
    say(str(learnt))
    learnt_values = {name: getattr(learnt.params, name) for name in unlearnt(params)}
    return dataclasses.replace(with_labels(**learnt_values), learnt=learnt)


def candidates_of(request: LabelsRequest) -> tuple[Run, str | None]:
    """The candidates of each query of the run, and whose pairs gave them where they were asked for and are here.

    Raises:
        InputError: a run or pairs that cannot be read.
    """
    from rnnreranker.data.pairs import load_pairs
    from rnnreranker.search.first_stage import first_stage_of

    run = first_stage_of(request.run).head(request.depth)
    if request.pairs is None:
        return run, None
    try:
        pairs = load_pairs(request.pairs, request.depth)
    except UnavailableError as error:
        say(f"{error}; candidates are those of {request.shown('run')}, in place of published pairs")
        return run, None
    taken = sum(qid in pairs for qid in run.qids)
    say(f"{request.pairs}: candidates of {taken} of {counted(len(run.qids), 'query', 'queries')}")
    return _first_of(pairs, run), request.pairs


def _first_of(pairs: Run, run: Run) -> Run:
    """The queries of a run, each with its entries of the pairs, or of the run where the pairs have none."""
    import pandas

    from rnnreranker.runs import Run

    codes, docids = pandas.factorize(np.concatenate([run.docids, pairs.docids]))
    rows = np.concatenate([codes[run.rows], codes[len(run.docids) + pairs.rows]])
    scores = np.concatenate([run.scores, pairs.scores])
    bounds = np.concatenate([run.offsets, len(run.rows) + pairs.offsets[1:]])  # the pairs begin where the run ends
    row_of = {qid: len(run.qids) + number for number, qid in enumerate(pairs.qids)}
    chosen = np.array([row_of.get(qid, number) for number, qid in enumerate(run.qids)])
    entries = np.concatenate([np.arange(bounds[number], bounds[number + 1]) for number in chosen.tolist()])
    offsets = np.concatenate([[0], np.cumsum(bounds[chosen + 1] - bounds[chosen])])
    return Run.from_parts(run.qids, offsets, docids, rows[entries], scores[entries])


def opened(
    request: JudgedRunRequest, needs: frozenset[str], run: Run, wanted: Sequence[str], threads: int | None
) -> tuple[dict[str, str], IndexOnDisk | None, QueryVectors | None]:
    """The texts of topics, the index, and the vectors of the queries wanted, of a run, where they are needed.

    Raises:
        InputError: queries that the topics lack, where their texts are read or encoded; no such index or topics.
    """
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.queries import query_vectors

    topics = {} if request.topics is None else topics_of(request.topics)
    read = needs & {"topics", "query tokens"} or ("query vectors" in needs and not request.encoded_queries)
    if read and topics and (lost := [qid for qid in wanted if qid not in topics]):
        raise InputError(
            f"{request.shown('topics')}: {len(lost)} of the {len(wanted)} queries to label are not in it (first: "
            f"{', '.join(lost[:3])}); give the topics that the run was made from"
        )
    index = None if request.index is None else open_index(request.index, needs=needs)
    if index is None or "query vectors" not in needs:
        return topics, index, None
    queries = query_vectors(request.encoding, index, topics, wanted, threads=threads)
    if "vectors" in needs:
        notice_mismatch(run, queries, index.vectors)
    return topics, index, queries
