"""Labels for many queries: shards in a side folder, made in parallel by joblib, put together at the end.

The side folder's name holds a fingerprint of everything the labels depend on, and a shard's file appears whole or not
at all: a run that was killed goes on where it stopped, and a run with other settings never meets its shards. The final
file holds the shards one after the other: the same bytes however often the work was interrupted and whoever did it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker._version import __version__
from rnnreranker.base.command import cores, progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.locks import alone
from rnnreranker.base.method import Inputs
from rnnreranker.base.process.backends import check_backend, do_parts
from rnnreranker.base.process.phases import phase
from rnnreranker.base.shards import Share
from rnnreranker.data.fields import fields_of, usual_fields
from rnnreranker.data.names import is_there
from rnnreranker.labels.judged import Judged
from rnnreranker.labels.mass.learnt import LearntMass
from rnnreranker.labels.methods.base import Labeler, make_labeler, with_teacher
from rnnreranker.labels.request import SHARD, ChosenLabeler
from rnnreranker.labels.soft import described, write_joined
from rnnreranker.parts.needs import givers, part

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.parts.tokens.queries import QueryTokens
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class Job:
    """What all shards of one job share; it may travel to another machine, which sees the same files.

    labeler: the method with its settings; relevant: grade from which on positive.
    stored: for what the method needs of the parts of an index, (need, where the part is, what describes it as JSON):
        opened by whoever makes a shard.
    texts: the folder of an index whose texts are read; None for a method without.
    documents: where texts come from in place of the index; fields: what they are, None = the usual ones.
    learnt: where the mass of the labels was learnt, from what.
    devices: where a teacher that takes some computes; None = its own.
    pairs: whose published pairs gave the candidates; None = the run alone.
    """

    labeler: ChosenLabeler
    relevant: int = 1
    stored: tuple[tuple[str, Path, str], ...] = ()
    texts: Path | None = None
    documents: str | None = None
    fields: tuple[str, ...] | None = None
    learnt: LearntMass | None = None
    devices: Devices | None = None
    pairs: str | None = None

    def texts_of(self, docids: Sequence[str]) -> Mapping[str, str]:
        """The texts of documents: of the job's source of documents, else of its index."""
        from rnnreranker.parts.texts import texts_of

        if self.documents is None:
            return texts_of(self.texts or "", docids)
        texts = _known_texts(self.documents, self.fields)
        return {docid: texts[docid] for docid in dict.fromkeys(docids) if docid in texts}

    def digest_of_texts(self) -> str:
        """What tells the texts from others: the digest of their file, or the name of a data set, and unusual fields."""
        from rnnreranker.parts.texts import file_of_texts

        if self.documents is None:
            return file_digest(file_of_texts(self.texts or Path()))
        named = file_digest(Path(self.documents).expanduser()) if is_there(self.documents) else self.documents
        fields = fields_of(self.documents, self.fields)
        return named if fields == usual_fields(self.documents) else fingerprint(named, fields)


@lru_cache(maxsize=1)
def _known_texts(documents: str, fields: tuple[str, ...] | None) -> Mapping[str, str]:
    from rnnreranker.data.texts_by_id import texts_by_id

    return texts_by_id(documents, fields)


@lru_cache(maxsize=8)
def _opened(need: str, at: Path, described: str) -> Any:
    """The part of an index that gives what a method needs."""
    return part(givers()[need]).open(at, json.loads(described))


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

    def of(self, numbers: Sequence[int]) -> LabelInputs:
        """What is of these queries of the run, and nothing of the others: it may travel to another machine."""
        import numpy as np

        from rnnreranker.runs import Run

        part = self.run.of_queries(numbers)
        distinct, rows = np.unique(part.rows, return_inverse=True)
        part = Run.from_parts(part.qids, part.offsets, self.run.docids[distinct], rows, part.scores)
        vectors, topics = self.queries, self.topics
        if vectors is not None:
            known = set(vectors.qids)
            vectors = vectors.of([qid for qid in part.qids if qid in known])
        if topics is not None:
            topics = {qid: topics[qid] for qid in part.qids if qid in topics}
        judged = {qid: self.judged[qid] for qid in part.qids}
        return LabelInputs(part, judged, vectors, topics, self.tokens and self.tokens.of(part.qids))

    def contents(self) -> Iterator[Any]:
        """All of it, for a fingerprint: equal runs have equal contents, whatever their tables of docids are."""
        import numpy as np
        import pandas

        order = pandas.unique(self.run.rows)  # as the docids first appear
        numbers = np.empty(len(self.run.docids), dtype=np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        judged = {qid: list(map(list, pairs)) for qid, pairs in self.judged.items()}
        yield [list(self.run.qids), self.run.docids[order].tolist(), judged]
        yield from map(_bytes, (self.run.offsets, numbers[self.run.rows], self.run.scores))
        for given, names in ((self.queries, ("vectors",)), (self.tokens, ("offsets", "vectors"))):
            if given is not None:
                yield list(given.qids)
                yield from (_bytes(getattr(given, name)) for name in names)
        yield dict(self.topics or {})


def _bytes(values: np.ndarray) -> bytes:
    return values.tobytes()


def labeler_of(job: Job, inputs: LabelInputs, threads: int | None = 1) -> Labeler:
    """The labeler of a job, with what its method needs of these queries and their documents."""

    def texts() -> Mapping[str, str]:
        positives = (docid for pairs in inputs.judged.values() for docid, _ in pairs)
        return job.texts_of([*inputs.run.docids.tolist(), *positives])

    own: Inputs = Inputs(
        **{need: functools.partial(_opened, need, at, described) for need, at, described in job.stored},
        query_vectors=inputs.queries,
        query_tokens=inputs.tokens,
        topics=inputs.topics,
        texts=None if job.texts is None and job.documents is None else texts,
        teacher=lambda: with_teacher(own, job.labeler.params, threads, job.devices),
    )
    chosen = job.labeler
    given: dict[str, Any] = {"relevant": job.relevant, "threads": threads, "source": chosen.source}
    return make_labeler(chosen.name, own, chosen.params, chosen.label_params, **given)


@phase("making labels")
def make_shards(
    output: str | Path,
    job: Job,
    inputs: LabelInputs,
    *,
    share: Share | None = None,
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
        share: make only this share of the shards, without a lock: several processes, each with a number of its own,
            work at the same time. The answer is then how many were `made`, and how many the share has, its `own`.
        backend: threads of this process, its processes (loky), or the workers of a Dask or Ray cluster, which must see
            the same files.
        jobs: shards made at the same time; None = one per core.
        address: of the cluster; None starts one on this machine.
        shard_size: queries a shard; the file does not depend on it.

    Raises:
        InputError: no query of the run is judged, no positive has a vector, or as the labeler's `infer`.
        MissingDependencyError: a backend that is not installed.
    """
    check_backend(backend)
    output, run = Path(output), inputs.run
    chosen = [query for query, qid in enumerate(run.qids) if inputs.judged.get(qid)]
    if not chosen:
        raise InputError(
            f"no query of the run has a positive (run: {', '.join(run.qids[:3])}; judged: "
            f"{', '.join(list(inputs.judged)[:3])}); give the judgements of these queries"
        )
    base = _describe(job, inputs)
    name = fingerprint(base, *inputs.contents())
    folder = output.with_name(f"{output.name}.{name}-{shard_size}.parts")
    shards = {
        folder / f"{number:06d}.parquet": chosen[first : first + shard_size]
        for number, first in enumerate(range(0, len(chosen), shard_size))
    }

    def make(paths: Sequence[Path]) -> int:
        """The number of shards that were missing and are made."""
        folder.mkdir(parents=True, exist_ok=True)
        missing = [path for path in paths if not path.is_file()]
        if missing:  # the first one compiles, and shows bad input before workers start
            make_shard(job, missing[0], inputs.of(shards[missing[0]]), jobs)
        do_parts(
            make_shard,
            ((job, path, inputs.of(shards[path])) for path in missing[1:]),
            workers=jobs or cores(),
            backend=backend,
            address=address,
            shown=lambda done: progress(done, unit="shards", total=len(missing) - 1, what="labels"),
        )
        return len(missing)

    if share is not None:
        own = list(shards)[share[0] :: share[1]]
        return {"made": make(own), "own": len(own)}
    with alone(output, f"{output}: another process is making these labels; waiting for it") as waited:
        if waited and output.is_file() and described(output).get("input") == name:
            return described(output)  # the other has made the same
        try:
            make(list(shards))
        finally:
            if not any(path.is_file() for path in shards):  # nothing to go on from
                shutil.rmtree(folder, ignore_errors=True)
        counts = [described(path) for path in shards]
        sums = {name: sum(one[name] for one in counts) for name in ("positives_without_vector", "queries")}
        if not sums["queries"]:
            shutil.rmtree(folder)
            raise InputError(
                "no positive has a vector in the index, so no query gets labels; check that qrels, run and index are "
                "of one collection"
            )
        write_joined(output, list(shards), base | {"input": name} | sums)
        shutil.rmtree(folder)
        return described(output)


def make_shard(job: Job, path: Path, inputs: LabelInputs, threads: int | None = 1) -> None:
    """Write the file of a shard; threads: of a method that has several, 1 where several shards are made at a time."""
    labels, without = labeler_of(job, inputs, threads).infer_from(inputs.run, inputs.judged)
    counts = {"positives_without_vector": without, "queries": len(labels)}
    dataclasses.replace(labels, metadata=counts).write(path)


def _describe(job: Job, inputs: LabelInputs) -> dict[str, Any]:
    """The metadata of the labels: every parameter, the index, the versions that could change a digit."""
    import numpy

    described = labeler_of(job, inputs).describe()
    if "texts" in job.labeler.needs:
        described["texts"] = job.digest_of_texts()
    others = {
        "device": job.devices and str(job.devices),
        "pairs": job.pairs,
        "learnt": job.learnt and job.learnt.to_dict(),
    }
    described |= {name: value for name, value in others.items() if value is not None}
    return described | {"schema": 1, "versions": {"rnnreranker": __version__, "numpy": numpy.__version__}}
