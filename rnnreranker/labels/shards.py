"""Labels for many queries: shards in a side folder, made in parallel by joblib, put together at the end.

The side folder's name holds a fingerprint of everything the labels depend on, and a shard's file appears whole or not
at all: a run that was killed goes on where it stopped, and a run with other settings never meets its shards. The final
file holds the shards one after the other: the same bytes however often the work was interrupted and whoever did it.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker._version import __version__
from rnnreranker.base.command import cores, progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.locks import alone
from rnnreranker.base.process.backends import check_backend, do_parts
from rnnreranker.base.process.phases import phase
from rnnreranker.base.shards import Share
from rnnreranker.labels.job import Job, digest_of_texts, labeler_of
from rnnreranker.labels.judged import Judged
from rnnreranker.labels.methods.base import needs_of
from rnnreranker.labels.soft import described, write_joined

if TYPE_CHECKING:
    from rnnreranker.parts.tokens.queries import QueryTokens
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

SHARD = 2048  # queries


@dataclass(frozen=True, eq=False)
class LabelInputs:
    """What labels are made of, besides a job.

    Attributes:
        run: candidates.
        judged: positives by query, see `judged.positives_of`.
        queries: a vector for every query to label; None for a method that needs none.
        topics, tokens: a text, and the tokens, of every query to label; None for a method that needs none.
    """

    run: Run
    judged: Judged
    queries: QueryVectors | None = None
    topics: Mapping[str, str] | None = None
    tokens: QueryTokens | None = None


@dataclass(frozen=True, eq=False)
class Shard:
    """Some queries of the job, and the file that their labels go to.

    threads: of a method that has several; 1 where several shards are made at a time.
    """

    path: Path
    inputs: LabelInputs
    threads: int | None = 1


@phase("making labels")
def make_shards(
    output: str | Path,
    job: Job,
    inputs: LabelInputs,
    *,
    backend: str = "threads",
    jobs: int | None = None,
    address: str | None = None,
    shard_size: int = SHARD,
) -> dict[str, Any]:
    """The metadata of the labels of the run's queries that have positives, after writing the labels to `output`.

    One process at a time writes an output: another waits, and takes what is there when it is the same. Memory holds a
    shard for every job, and one row group while the file is put together, however many queries there
    are; `SoftLabels.read(output)` reads the labels.

    Args:
        output: parquet file; `output.FINGERPRINT-SIZE.parts/` beside it holds finished shards meanwhile.
        job: what to compute.
        inputs: candidates, positives and queries.
        backend: threads of this process, its processes (loky), or the workers of a Dask or Ray cluster, which must see
            the same files.
        jobs: shards made at the same time; None = one per core.
        address: of the cluster; None starts one on this machine.
        shard_size: queries a shard; the file does not depend on it.

    Raises:
        InputError: no query of the run is judged, no positive has a vector, or as the labeler's `infer`.
        MissingDependencyError: a backend that is not installed.
    """
    output = Path(output)
    base, name, folder, shards = _plan(output, job, inputs, backend, shard_size)
    with alone(output, f"{output}: another process is making these labels; waiting for it") as waited:
        if waited and output.is_file() and described(output).get("input") == name:
            return described(output)  # the other has made the same
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _make(job, [shard for shard in shards if not shard.path.is_file()], backend, jobs, address)
        finally:
            if not any(shard.path.is_file() for shard in shards):  # nothing to go on from
                shutil.rmtree(folder, ignore_errors=True)
        if not any(described(shard.path)["queries"] for shard in shards):
            shutil.rmtree(folder)
            raise InputError(
                "no positive has a vector in the index, so no query gets labels; check that qrels, run and index are "
                "of one collection"
            )
        _assemble(output, [shard.path for shard in shards], base | {"input": name})
        shutil.rmtree(folder)
        return described(output)


def make_share(
    output: str | Path,
    job: Job,
    inputs: LabelInputs,
    *,
    share: Share,
    backend: str = "threads",
    jobs: int | None = None,
    address: str | None = None,
    shard_size: int = SHARD,
) -> tuple[int, int]:
    """Make one process's share of the shards that `make_shards` puts together: how many it made, and has in all.

    No lock is taken: several processes, each with a number of its own, work at the same time on an output.

    Args, Raises: as `make_shards`; share: of this process.
    """
    _, _, folder, shards = _plan(Path(output), job, inputs, backend, shard_size)
    folder.mkdir(parents=True, exist_ok=True)
    own = shards[share[0] :: share[1]]
    missing = [shard for shard in own if not shard.path.is_file()]
    _make(job, missing, backend, jobs, address)
    return len(missing), len(own)


def _plan(
    output: Path, job: Job, inputs: LabelInputs, backend: str, shard_size: int
) -> tuple[dict[str, Any], str, Path, list[Shard]]:
    """Metadata, the fingerprint of everything, the side folder and the shards."""
    check_backend(backend)
    run, judged = inputs.run, inputs.judged
    chosen = [query for query, qid in enumerate(run.qids) if judged.get(qid)]
    if not chosen:
        raise InputError(
            f"no query of the run has a positive (run: {', '.join(run.qids[:3])}; judged: "
            f"{', '.join(list(judged)[:3])}); give the judgements of these queries"
        )
    base = _describe(job)
    name = fingerprint(base, *_contents(inputs))
    folder = output.with_name(f"{output.name}.{name}-{shard_size}.parts")
    shards = [
        Shard(folder / f"{number:06d}.parquet", _of_queries(inputs, chosen[first : first + shard_size]))
        for number, first in enumerate(range(0, len(chosen), shard_size))
    ]
    return base, name, folder, shards


def make_shard(job: Job, shard: Shard) -> int:
    """The number of labelled queries, after writing the file of a shard."""
    inputs = shard.inputs
    positives = (docid for pairs in inputs.judged.values() for docid, _ in pairs)
    docids = [*inputs.run.docids.tolist(), *positives]
    labeler = labeler_of(job, inputs.queries, inputs.topics, docids, shard.threads, inputs.tokens)
    labels, without = labeler.infer_from(inputs.run, inputs.judged)
    counts = {"positives_without_vector": without, "queries": len(labels)}
    dataclasses.replace(labels, metadata=counts).write(shard.path)
    return len(labels)


def _make(job: Job, missing: Sequence[Shard], backend: str, jobs: int | None, address: str | None) -> None:
    if not missing:
        return
    make_shard(job, dataclasses.replace(missing[0], threads=jobs))  # compiles, and shows bad input before workers start
    do_parts(
        make_shard,
        [(job, shard) for shard in missing[1:]],
        workers=jobs or cores(),
        backend=backend,
        address=address,
        shown=lambda done: progress(done, unit="shards", total=len(missing) - 1, what="labels"),
    )


def _of_queries(inputs: LabelInputs, numbers: Sequence[int]) -> LabelInputs:
    """What is of these queries, and nothing of the others: it may travel to another machine."""
    from rnnreranker.runs import Run

    part = inputs.run.of_queries(numbers)
    distinct, rows = np.unique(part.rows, return_inverse=True)
    part = Run.from_parts(part.qids, part.offsets, inputs.run.docids[distinct], rows, part.scores)
    vectors, topics, tokens = inputs.queries, inputs.topics, inputs.tokens
    if vectors is not None:
        known = set(vectors.qids)
        vectors = vectors.of([qid for qid in part.qids if qid in known])
    if topics is not None:
        topics = {qid: topics[qid] for qid in part.qids if qid in topics}
    judged = {qid: inputs.judged[qid] for qid in part.qids}
    return LabelInputs(part, judged, vectors, topics, None if tokens is None else tokens.of(part.qids))


def _assemble(output: Path, paths: Sequence[Path], metadata: dict[str, Any]) -> None:
    """Write the shards one after the other, holding one shard and one row group at a time."""
    without = queries = 0
    for path in paths:
        metadata_of_shard = described(path)
        without, queries = (
            without + metadata_of_shard["positives_without_vector"],
            queries + metadata_of_shard["queries"],
        )
    write_joined(output, paths, metadata | {"positives_without_vector": without, "queries": queries})


def _describe(job: Job) -> dict[str, Any]:
    """The metadata of the labels: every parameter, the index, the versions that could change a digit."""
    from rnnreranker.parts.tokens.queries import QueryTokens
    from rnnreranker.parts.vectors import QueryVectors

    none = np.empty((0, 0), dtype=np.float32)
    nobody, no_tokens = QueryVectors((), none), QueryTokens((), none, np.zeros(1, dtype=np.int64))
    described = labeler_of(job, nobody, {}, (), tokens=no_tokens).describe()
    if "texts" in needs_of(job.method, job.params, job.source):
        described["texts"] = digest_of_texts(job)
    if job.devices is not None:
        described["device"] = str(job.devices)
    if job.pairs is not None:
        described["pairs"] = job.pairs
    if job.learnt is not None:
        described["learnt"] = job.learnt.to_dict()
    return described | {"schema": 1, "versions": {"rnnreranker": __version__, "numpy": np.__version__}}


def _contents(inputs: LabelInputs) -> Iterator[Any]:
    run, judged, queries, topics, tokens = inputs.run, inputs.judged, inputs.queries, inputs.topics, inputs.tokens
    docids, rows = _by_appearance(run)
    yield [list(run.qids), docids.tolist(), {qid: list(map(list, pairs)) for qid, pairs in judged.items()}]
    yield run.offsets.tobytes()
    yield rows.tobytes()
    yield run.scores.tobytes()
    if queries is not None:
        yield list(queries.qids)
        yield queries.vectors.tobytes()
    if topics is not None:
        yield dict(topics)
    if tokens is not None:
        yield list(tokens.qids)
        yield tokens.offsets.tobytes()
        yield tokens.vectors.tobytes()


def _by_appearance(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The docids that a run has, as they first appear, and its rows in them: equal runs have equal ones."""
    first = np.full(len(run.docids), len(run.rows))
    first[run.rows[::-1]] = np.arange(len(run.rows))[::-1]  # the last to be assigned is the first entry
    order = np.argsort(first)[: int((first < len(run.rows)).sum())]
    numbers = np.empty(len(run.docids), dtype=np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return run.docids[order], numbers[run.rows]
