"""What a shard of a job of labels is made with: the job, and the inputs that whoever makes a shard opens of it."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.device import Devices
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.method import Inputs
from rnnreranker.base.settings import Params
from rnnreranker.data.fields import fields_of, usual_fields
from rnnreranker.data.names import is_there
from rnnreranker.labels.judged import Judged
from rnnreranker.labels.mass.learnt import LearntMass, learn_mass
from rnnreranker.labels.methods.base import Labeler, Source, make_labeler, with_teacher
from rnnreranker.labels.params import LabelParams, unlearnt
from rnnreranker.parts.needs import givers, part

if TYPE_CHECKING:
    from rnnreranker.parts.tokens.queries import QueryTokens
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class Job:
    """What all shards of one job share.

    texts: the folder of an index whose texts are read; None for a method without.
    stored: for what the method needs of the parts of an index, (need, where the part is, what describes it as JSON):
        opened by whoever makes a shard.
    documents: where texts come from in place of the index; fields: what they are, None = the usual ones.
    source: where similarities of documents come from, vectors or the graph.
    learnt: where the mass of `label_params` was learnt, from what.
    devices: where a teacher that takes some computes; None = its own.
    pairs: whose published pairs gave the candidates; None = the run alone.
    """

    method: str
    texts: Path | None
    params: Params
    label_params: LabelParams
    relevant: int
    documents: str | None = None
    source: Source = "vectors"
    stored: tuple[tuple[str, Path, str], ...] = ()
    learnt: LearntMass | None = None
    devices: Devices | None = None
    fields: tuple[str, ...] | None = None
    pairs: str | None = None


def stored_part(need: str, at: Path, described: Mapping[str, Any]) -> tuple[str, Path, str]:
    """What a job says of a part, see `Job.stored`."""
    return need, at, json.dumps(dict(described))


def labeler_of(
    job: Job,
    queries: QueryVectors | None,
    topics: Mapping[str, str] | None,
    docids: Sequence[str],
    threads: int | None = 1,
    tokens: QueryTokens | None = None,
) -> Labeler:
    """The labeler of a job, with what its method needs of these queries and documents."""
    inputs: Inputs = Inputs(
        **{need: functools.partial(_opened, need, at, described) for need, at, described in job.stored},
        query_vectors=queries,
        query_tokens=tokens,
        topics=topics,
        texts=None if job.texts is None and job.documents is None else lambda: _texts(job, docids),
        teacher=lambda: with_teacher(inputs, job.params, threads, job.devices),
    )
    return make_labeler(
        job.method,
        inputs,
        job.params,
        job.label_params,
        relevant=job.relevant,
        threads=threads,
        source=job.source,
    )


def with_learnt_mass(
    job: Job, run: Run, validation: Judged, queries: QueryVectors | None, threads: int | None = None
) -> Job:
    """The job with the share, and the threshold, that its `mass` asks for and its parameters do not give.

    Args:
        job: what to compute.
        run: candidates of the validation queries.
        validation: their positives, see `learn_mass`.
        queries: their vectors; None for a method that needs none.
        threads: None = one per core; nothing depends on it.

    Raises:
        InputError: as `learn_mass`.
    """
    params = job.label_params
    own = dataclasses.replace(job, label_params=dataclasses.replace(params, mass="own"))
    learnt = learn_mass(labeler_of(own, queries, None, (), threads), params.mass or "own", run, validation)
    values = {name: getattr(learnt.params, name) for name in unlearnt(params)}
    return dataclasses.replace(job, label_params=dataclasses.replace(params, **values), learnt=learnt)


def _texts(job: Job, docids: Sequence[str]) -> Mapping[str, str]:
    """The texts of documents: of the job's source of documents, else of its index."""
    from rnnreranker.parts.texts import texts_of

    if job.documents is None:
        assert job.texts is not None
        return texts_of(job.texts, docids)
    texts = _known_texts(job.documents, job.fields)
    return {docid: texts[docid] for docid in dict.fromkeys(docids) if docid in texts}


def digest_of_texts(job: Job) -> str:
    """What tells the texts from others: the digest of their file, or the name of a data set, and fields not usual."""
    from rnnreranker.parts.texts import file_of_texts

    if job.documents is None:
        assert job.texts is not None
        return file_digest(file_of_texts(job.texts))
    named = file_digest(Path(job.documents).expanduser()) if is_there(job.documents) else job.documents
    fields = fields_of(job.documents, job.fields)
    return named if fields == usual_fields(job.documents) else fingerprint(named, fields)


@lru_cache(maxsize=1)
def _known_texts(documents: str, fields: tuple[str, ...] | None) -> Mapping[str, str]:
    from rnnreranker.data.texts_by_id import texts_by_id

    return texts_by_id(documents, fields)


@lru_cache(maxsize=8)
def _opened(need: str, at: Path, described: str) -> Any:
    """The part of an index that gives what a method needs."""
    return part(givers()[need]).open(at, json.loads(described))
