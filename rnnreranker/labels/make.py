"""`make_labels` and its command: compute labels, from files or objects in memory."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker._version import __version__
from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.command import cores, counted, progress, say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.locks import alone
from rnnreranker.base.method import Inputs
from rnnreranker.base.process.backends import check_backend, do_parts
from rnnreranker.base.process.phases import phase
from rnnreranker.base.request import Share, asked
from rnnreranker.data.fields import asked_fields, fields_of, usual_fields
from rnnreranker.data.names import is_there
from rnnreranker.labels.judged import Judged
from rnnreranker.labels.mass import LearntMass, learn_mass
from rnnreranker.labels.methods.base import Labeler, make_labeler
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import SHARD, ChosenLabeler, JudgedRunRequest, LabelsRequest, check
from rnnreranker.labels.soft import SoftLabels, described, write_joined
from rnnreranker.parts.base import givers
from rnnreranker.parts.texts import file_of_texts, texts_of

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.tokens.source import QueryTokens
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class Job:
    """The inputs of labelling. Another machine that sees the same files may do a part of them.

    Attributes:
        judged: positives by query; relevant: lowest positive grade.
        index: with parts and texts; documents: source of texts instead; fields: of them, None = the usual ones.
        queries, topics, tokens: vectors, texts and tokens of queries, if needed.
        learnt: how the mass was learnt.
        devices: of a teacher; None = its own.
        pairs: published pairs of the candidates; None = the run alone.
    """

    labeler: ChosenLabeler
    run: Run
    judged: Judged
    relevant: int = 1
    index: IndexOnDisk | None = None
    documents: str | None = None
    fields: tuple[str, ...] | None = None
    queries: QueryVectors | None = None
    topics: Mapping[str, str] | None = None
    tokens: QueryTokens | None = None
    learnt: LearntMass | None = None
    devices: Devices | None = None
    pairs: str | None = None

    def of(self, numbers: Sequence[int]) -> Job:
        from rnnreranker.runs import Run

        run = self.run.of_queries(numbers)
        distinct, rows = np.unique(run.rows, return_inverse=True)
        run = Run.from_parts(run.qids, run.offsets, self.run.docids[distinct], rows, run.scores)
        given: dict[str, Any] = {"run": run, "judged": {qid: self.judged[qid] for qid in run.qids}}
        if self.queries is not None:
            known = set(self.queries.qids)
            given["queries"] = self.queries.of([qid for qid in run.qids if qid in known])
        if self.topics is not None:
            given["topics"] = {qid: self.topics[qid] for qid in run.qids if qid in self.topics}
        if self.tokens is not None:
            given["tokens"] = self.tokens.of(run.qids)
        return dataclasses.replace(self, **given)

    def with_labels(self, **changed: Any) -> Job:
        params = dataclasses.replace(self.labeler.label_params, **changed)
        return dataclasses.replace(self, labeler=dataclasses.replace(self.labeler, label_params=params))

    def method(self, threads: int | None = 1) -> Labeler:
        needs = self.labeler.needs
        inputs = Inputs(
            **given_by(self.index, needs),
            query_vectors=self.queries,
            query_tokens=self.tokens,
            topics=self.topics,
            texts=self.texts if "texts" in needs else None,
        )
        return made_of(self.labeler, inputs, relevant=self.relevant, threads=threads, devices=self.devices)

    def texts(self) -> Mapping[str, str]:
        """Texts by docid, of candidates and positives at least. InputError: no source of texts."""
        if self.documents is not None:
            return _known_texts(self.documents, self.fields)
        positives = (docid for pairs in self.judged.values() for docid, _ in pairs)
        return texts_of(self._folder_of_texts, [*self.run.docids.tolist(), *positives])

    @property
    def _folder_of_texts(self) -> Path:
        if self.index is None or self.index.texts is None:
            name = argument("index") if self.index is None else self.index.name
            raise InputError(f"{name}: no texts in this index; give {argument('documents')}, what it was made from")
        return self.index.texts

    def digest_of_texts(self) -> str:
        """Identifies the texts: a file's digest or a data set's name, plus non-default fields."""
        if self.documents is None:
            return file_digest(file_of_texts(self._folder_of_texts))
        named = file_digest(Path(self.documents).expanduser()) if is_there(self.documents) else self.documents
        fields = fields_of(self.documents, self.fields)
        return named if fields == usual_fields(self.documents) else fingerprint(named, fields)

    def describe(self) -> dict[str, Any]:
        """Metadata of the labels: parameters, inputs, versions."""
        described = self.method().describe()
        if "texts" in self.labeler.needs:
            described["texts"] = self.digest_of_texts()
        others = {"device": self.devices, "pairs": self.pairs, "learnt": self.learnt and self.learnt.to_dict()}
        described |= {name: value if name == "learnt" else str(value) for name, value in others.items() if value}
        return described | {"schema": 1, "versions": {"rnnreranker": __version__, "numpy": np.__version__}}

    def contents(self) -> Iterator[Any]:
        """All inputs, to fingerprint; equal runs give equal contents, even if docid tables differ."""
        import pandas

        order = pandas.unique(self.run.rows)  # as the docids first appear
        numbers = np.empty(len(self.run.docids), dtype=np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        judged = {qid: list(map(list, pairs)) for qid, pairs in self.judged.items()}
        yield [list(self.run.qids), self.run.docids[order].tolist(), judged]
        yield from (values.tobytes() for values in (self.run.offsets, numbers[self.run.rows], self.run.scores))
        for given, names in ((self.queries, ("vectors",)), (self.tokens, ("offsets", "vectors"))):
            if given is not None:
                yield list(given.qids)
                yield from (getattr(given, name).tobytes() for name in names)
        yield dict(self.topics or {})


def given_by(index: IndexOnDisk | None, needs: frozenset[str]) -> dict[str, Any]:
    """`Inputs` that the parts of an index give; each opens at its first use."""
    of_parts = needs & {*givers()} if index is not None else ()
    return {need.replace(" ", "_"): partial(index.given, need) for need in of_parts}  # type: ignore[union-attr]


def made_of(chosen: ChosenLabeler, inputs: Inputs, **others: Any) -> Labeler:
    """The chosen labeler; others: as in `Labeler`."""
    return make_labeler(chosen.name, inputs, chosen.params, chosen.label_params, source=chosen.source, **others)


@lru_cache(maxsize=1)
def _known_texts(documents: str, fields: tuple[str, ...] | None) -> Mapping[str, str]:
    from rnnreranker.data.documents import texts_by_id

    return texts_by_id(documents, fields)


@phase("making labels")
def make_shards(
    output: str | Path,
    job: Job,
    *,
    share: Share | None = None,
    backend: str = "threads",
    jobs: int | None = None,
    address: str | None = None,
    shard_size: int = SHARD,
) -> dict[str, Any]:
    """Write the labels of the run's queries that have positives; returns the metadata of the file.

    One process at a time writes an output; another waits, and returns the file if it is the same.

    Args:
        output: parquet file; `output.FINGERPRINT-SIZE.parts/` holds finished shards meanwhile.
        share: only its shards are made; the result counts those `made` and all it has (`own`).
        backend: one of `BACKENDS`; address: of its cluster, which must see the same files.
        jobs: shards at the same time; None = one per core.

    Raises:
        InputError: no query of the run is judged, no positive has a vector, or as the labeler's `infer`.
        MissingDependencyError: a backend is not installed.
    """
    check_backend(backend)
    output, qids = Path(output), job.run.qids
    chosen = [query for query, qid in enumerate(qids) if job.judged.get(qid)]
    if not chosen:
        raise InputError(
            f"no query of the run has a positive (run: {', '.join(qids[:3])}; judged: "
            f"{', '.join(list(job.judged)[:3])}); give the judgements of these queries"
        )
    base = job.describe()
    name = fingerprint(base, *job.contents())
    folder = output.with_name(f"{output.name}.{name}-{shard_size}.parts")
    shards = {
        folder / f"{number:06d}.parquet": chosen[first : first + shard_size]
        for number, first in enumerate(range(0, len(chosen), shard_size))
    }

    def make(paths: Sequence[Path]) -> int:
        folder.mkdir(parents=True, exist_ok=True)
        missing = [path for path in paths if not path.is_file()]
        if missing:  # the first one compiles, and shows bad input before workers start
            make_shard(job.of(shards[missing[0]]), missing[0], jobs)
        do_parts(
            make_shard,
            ((job.of(shards[path]), path) for path in missing[1:]),
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
        if sums["queries"]:
            write_joined(output, list(shards), base | {"input": name} | sums)
        shutil.rmtree(folder)
    if not sums["queries"]:
        raise InputError(
            "no positive has a vector in the index, so no query gets labels; check that qrels, run and index are of "
            "one collection"
        )
    return described(output)


def make_shard(job: Job, path: Path, threads: int | None = 1) -> None:
    """Write the file of a shard; threads: of the method."""
    labels, without = job.method(threads).infer_from(job.run, job.judged)
    counts = {"positives_without_vector": without, "queries": len(labels)}
    dataclasses.replace(labels, metadata=counts).write(path)


@dataclass(frozen=True, eq=False)
class Made:
    """Labels that were made.

    Attributes:
        metadata: of the file, or for a share the numbers of shards `made` and `own`.
        topics: qid → text; index: the opened index or None.
    """

    metadata: dict[str, Any]
    topics: dict[str, str]
    index: IndexOnDisk | None


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
        run, qrels, index, method, topics, others: as in `LabelsRequest`.
        output: a parquet file; interrupted work resumes.

    Raises:
        InputError: all faults of the request at once; a missing index, topics or run.
        UnavailableError, MissingDependencyError: a missing index, encoder or teacher.
    """
    given = {"run": run, "qrels": qrels, "index": index, "method": method, "topics": topics, **others}
    request = asked(LabelsRequest, given)
    check(request, output)
    with tempfile.TemporaryDirectory(prefix="rnnreranker-") as folder:
        path = Path(folder) / "labels.parquet" if output is None else output
        write_labels(request, path)
        return SoftLabels.read(path)


def write_labels(request: LabelsRequest, output: str | Path, share: Share | None = None) -> Made:
    """Write the labels of a checked request to a parquet file, or make a share of their shards; errors as
    `make_labels`.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.evaluate.scores import notice_unjudged
    from rnnreranker.labels.judged import docids_of, positives_of
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
        {request.shown("run"): run}, docids_of(judged), "positives replace the last candidates of every query"
    )
    wanted = [qid for qid in run if qid in judged or (learns and qid in validation)]
    topics, index, queries = opened(request, needs, run, wanted, request.jobs)
    fields = asked_fields(request.documents, request.fields)
    if request.documents is not None and fields is None and index is not None:
        fields = index.fields
    devices, texts = request.devices if labeler.takes_device else None, topics if "topics" in needs else None
    given = request.relevant, index, request.documents, fields, queries, texts
    job = Job(labeler, run, judged, *given, devices=devices, pairs=pairs)
    if index is not None:
        for need in sorted(needs & {*givers()}):
            index.given(need)  # a part that cannot be used is refused before any work
        if "query tokens" in needs:
            texts = {qid: topics[qid] for qid in wanted}
            tokens = index.given_queries("query tokens", texts, request.jobs, request.devices)
            job = dataclasses.replace(job, tokens=tokens)
    if learns:
        learner = dataclasses.replace(job.with_labels(mass="own"), judged=validation).method(request.jobs)
        learnt = learn_mass(learner, labeler.label_params.mass or "own", run, validation)
        say(str(learnt))
        job = job.with_labels(**{name: getattr(learnt.params, name) for name in learns})
        job = dataclasses.replace(job, learnt=learnt)
    how: dict[str, Any] = {name: getattr(request, name) for name in ("backend", "jobs", "address", "shard_size")}
    return Made(make_shards(output, job, share=share, **how), topics, index)


def candidates_of(request: LabelsRequest) -> tuple[Run, str | None]:
    """The candidates of each query of the run, and the name of their published pairs if available."""
    from rnnreranker.data.pairs import load_pairs
    from rnnreranker.search.searching import first_stage_of

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
    """The run, with a query's entries replaced by those of the pairs if the pairs have any."""
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
    """Texts of topics, index, and vectors of the wanted queries, as needed. InputError: missing queries, index or
    topics.
    """
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.queries import query_vectors

    topics = {} if request.topics is None else topics_of(request.topics)
    read = needs & {"topics", "query tokens"} or ("query vectors" in needs and request.encoded_queries is None)
    if read and request.topics is not None and (lost := [qid for qid in wanted if qid not in topics]):
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
