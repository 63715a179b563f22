"""`make_labels` and its command: compute labels, from files or objects in memory."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker._version import __version__
from rnnreranker.base.command import cores, phase, print_table, progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.jobs import alone, do_parts
from rnnreranker.base.method import Form, Inputs, find
from rnnreranker.base.settings import Share, asked
from rnnreranker.data.documents import texts_by_id
from rnnreranker.data.fields import fields_of
from rnnreranker.data.names import is_there
from rnnreranker.data.pairs import load_pairs
from rnnreranker.data.qrels import grades_of, qrels_of
from rnnreranker.data.topics import topics_of
from rnnreranker.evaluate.scores import notice_unjudged
from rnnreranker.index.opening import Index, open_index
from rnnreranker.labels.export import check_texts, of_labels, write_listwise, write_tsv
from rnnreranker.labels.mass import learn_mass
from rnnreranker.labels.methods.base import Judged, Labeler, positives_of
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import ChosenLabeler, JudgedRunRequest, LabelsRequest, check
from rnnreranker.labels.soft import SoftLabels, described, write_joined
from rnnreranker.parts.base import givers
from rnnreranker.parts.texts import file_of_texts
from rnnreranker.parts.vectors.together import notice_mismatch
from rnnreranker.runs import Run
from rnnreranker.search.inputs import texts_for
from rnnreranker.search.own_documents import notice_own
from rnnreranker.search.queries import query_vectors
from rnnreranker.search.searching import first_stage_of

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels


@dataclass(frozen=True, eq=False)
class Job:
    """What methods read. Another machine that sees the same files may do a part of the queries.

    Attributes:
        judged: positives by query; relevant: lowest positive grade.
        given: vectors and tokens of queries, if needed, as in `Inputs`; topics: texts of queries.
        index: an opened one; documents: source of texts in its place; fields: of them, None = the usual ones.
        devices: of a teacher; None = its own.
    """

    run: Run
    judged: Judged
    given: Mapping[str, Any] = field(default_factory=dict)
    index: Any = None
    documents: str | None = None
    fields: tuple[str, ...] | None = None
    relevant: int = 1
    devices: Devices | None = None
    topics: Mapping[str, str] = field(default_factory=dict)

    def of(self, numbers: Sequence[int]) -> Job:
        """The job for some queries of the run, without the data of others."""
        run = self.run.of_queries(numbers)
        distinct, rows = np.unique(run.rows, return_inverse=True)
        run = Run(run.qids, run.offsets, self.run.docids[distinct], rows.astype(np.int32), run.scores)
        given = {name: value.of(run.qids) for name, value in self.given.items()}
        judged = {qid: self.judged[qid] for qid in run.qids}
        topics = {qid: self.topics[qid] for qid in run.qids if qid in self.topics}
        return dataclasses.replace(self, run=run, judged=judged, given=given, topics=topics)

    def labeler(self, chosen: ChosenLabeler, threads: int | None = 1) -> Labeler:
        parts = chosen.needs & {*givers()} if self.index is not None else ()
        opened: Any = {need.replace(" ", "_"): partial(self.index.given, need) for need in parts}
        texts = {name: getattr(self, name) for name in ("topics", "texts") if name in chosen.needs}
        return find("labeler", chosen.name)(
            Inputs(**opened, **self.given, **texts),
            chosen.params,
            chosen.label_params,
            source=chosen.source,
            threads=threads,
            devices=self.devices,
        )

    def texts(self) -> Mapping[str, str]:
        """Texts by docid, of candidates and positives at least."""
        if self.documents is not None:
            return texts_of_all(self.documents, self.fields, self._digest_of_texts())
        return self.some_texts([*self.run.docids, *itertools.chain(*self.judged.values())])

    def some_texts(self, docids: Collection[str]) -> dict[str, str]:
        """The known texts of some documents."""
        return texts_for(docids, self.index, self.documents, self.fields) if docids else {}

    def describe(self, chosen: ChosenLabeler, **others: Any) -> dict[str, Any]:
        """Metadata of the labels: parameters, inputs, versions, and `others` that are not None."""
        if "texts" in chosen.needs:
            others["texts"] = self._digest_of_texts()
        others["device"] = self.devices and str(self.devices)
        others |= {
            "schema": 1,
            "relevant": self.relevant,
            "versions": {"rnnreranker": __version__, "numpy": np.__version__},
        }
        return self.labeler(chosen).describe() | {name: value for name, value in others.items() if value is not None}

    def _digest_of_texts(self) -> str:
        """Identifies the texts: a file's digest or a data set's name, plus non-default fields."""
        if self.documents is None:
            return file_digest(file_of_texts(self.index.texts))
        named = file_digest(Path(self.documents).expanduser()) if is_there(self.documents) else self.documents
        return fingerprint(named, fields_of(self.documents, self.fields))

    def contents(self) -> Iterator[Any]:
        """All inputs, to fingerprint; equal runs give equal contents, even if docid tables differ."""
        import pandas

        numbers, order = pandas.factorize(self.run.rows)  # as the docids first appear
        judged = {qid: [*positives.items()] for qid, positives in self.judged.items()}  # in their order
        yield [self.run.qids, self.run.docids[order].tolist(), judged]
        yield from (values.tobytes() for values in (self.run.offsets, numbers, self.run.scores))
        for own in self.given.values():
            for value in (getattr(own, each.name) for each in dataclasses.fields(own)):
                yield value.tobytes() if isinstance(value, np.ndarray) else value
        yield self.topics


texts_of_all = lru_cache(maxsize=1)(lambda name, fields, _digest: texts_by_id(name, fields))


def open_job(
    request: JudgedRunRequest,
    run: Run,
    needs: frozenset[str],
    so: str,
    also: Collection[str] = (),
    threads: int | None = None,
) -> Job:
    """Read and open what a method with some needs reads.

    Args:
        so: the consequence if no candidate is judged, for a warning.
        also: queries that are needed beside those with positives.

    Raises:
        InputError: no query with positives, missing queries, index or topics, a part that cannot be used.
    """
    judged = positives_of(qrels_of(request.qrels), request.relevant, request.shown("qrels"))
    notice_unjudged({request.shown("run"): run}, judged, so)
    if not any(qid in judged for qid in run):
        raise InputError("no query of the run has a positive; give the judgements of these queries")
    wanted = [qid for qid in run if qid in judged or qid in also]
    topics, given = {} if request.topics is None else topics_of(request.topics), dict[str, Any]()
    if needs & {"topics", "query tokens"}:
        check_texts(wanted, (), topics, {})
    fields, index = request.document_fields, None
    if request.index is not None:
        index = open_index(request.index, needs=needs)
        fields = fields if fields or request.documents is None else index.fields
        if "query vectors" in needs:
            given["query_vectors"] = query_vectors(request.encoding, index, topics, wanted, threads=threads)
            if "vectors" in needs:
                notice_mismatch(run, given["query_vectors"], index.vectors)
        for need in sorted(needs & {*givers()}):
            index.given(need)
        if "query tokens" in needs:
            texts = {qid: topics[qid] for qid in wanted}
            given["query_tokens"] = index.given_queries("query tokens", texts, threads, request.devices)
    if "texts" in needs and request.documents is None and index is not None and index.texts is None:
        raise InputError(f"{index.name}: no texts in this index; give {argument('documents')}, what it was made from")
    return Job(run, judged, given, index, request.documents, fields, request.relevant, request.devices, topics)


@phase("making labels")
def make_shards(
    request: LabelsRequest,
    output: Path,
    job: Job,
    chosen: ChosenLabeler,
    share: Share | None,
    learnt: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Write the labels of the run's queries that have positives; returns the metadata of the file.

    One process at a time writes an output; another waits.

    Args:
        request: says who makes how large shards.
        output: parquet file; `output.FINGERPRINT-SIZE.parts/` holds finished shards meanwhile.
        share: only its shards are made; the result counts those `made` and all it has (`own`).
        learnt: how the mass was learnt, for the metadata.

    Raises:
        InputError: no positive has a vector, or as the labeler's `infer`.
    """
    judged = [query for query, qid in enumerate(job.run.qids) if job.judged.get(qid)]
    base, size = job.describe(chosen, pairs=request.pairs, learnt=learnt), request.shard_size
    name = fingerprint(base, *job.contents())
    folder = output.with_name(f"{output.name}.{name}-{size}.parts")
    paths = [folder / f"{first // size:06d}.parquet" for first in range(0, len(judged), size)]

    def make(numbers: Sequence[int]) -> int:
        missing = [number for number in numbers if not paths[number].is_file()]
        parts = ((job.of(judged[size * one : size * one + size]), chosen, paths[one]) for one in missing)
        for part in itertools.islice(parts, 1):  # it compiles, and shows bad input before workers start
            make_shard(*part, request.jobs)
        do_parts(
            make_shard,
            parts,
            workers=request.jobs or cores(),
            backend=request.backend,
            address=request.address,
            shown=lambda done: progress(done, unit="shards", total=len(missing) - 1, what="labels"),
        )
        return len(missing)

    every = range(len(paths))
    if share is not None:
        own = every[share[0] :: share[1]]
        return {"made": make(own), "own": len(own)}
    with alone(output, f"{output}: another process is making these labels; waiting for it"):
        make(every)
        counts = [described(path) for path in paths]
        sums = {name: sum(one[name] for one in counts) for name in ("positives_without_vector", "queries")}
        if sums["queries"]:
            write_joined(output, paths, base | {"input": name} | sums)
        shutil.rmtree(folder)
    if not sums["queries"]:
        raise InputError(
            "no positive has a vector in the index, so no query gets labels; check that qrels, run and index are of "
            "one collection"
        )
    return described(output)


def make_shard(job: Job, chosen: ChosenLabeler, path: Path, threads: int | None = 1) -> None:
    """Write the file of a shard; threads: of the method."""
    labels, without = job.labeler(chosen, threads).infer_from(job.run, job.judged)
    path.parent.mkdir(parents=True, exist_ok=True)
    counts = {"positives_without_vector": without, "queries": len(labels)}
    dataclasses.replace(labels, metadata=counts).write(path)


def make_labels(
    run: str | Path | Run,
    qrels: Qrels,
    index: str | Path | Index | None = None,
    method: Form = "evidence",
    **others: Any,
) -> SoftLabels:
    """Soft labels of the candidates of a run, as `python -m rnnreranker.labels`.

    Args:
        run, qrels, index, method, others: as in `LabelsRequest`.

    Raises:
        InputError: all faults of the request at once; a missing index, topics or run.
        UnavailableError, MissingDependencyError: a missing index, encoder or teacher.
    """
    request = asked(LabelsRequest, {"run": run, "qrels": qrels, "index": index, "method": method, **others})
    check(request)
    with tempfile.TemporaryDirectory(prefix="rnnreranker-") as folder:
        path = Path(folder) / "labels.parquet" if request.output is None else Path(request.output)
        write_labels(request, path)
        return SoftLabels.read(path)


def write_labels(request: LabelsRequest, output: Path, share: Share | None = None) -> dict[str, Any]:
    """Write the labels of a checked request and its other files, or a share of the shards; returns as `make_shards`."""
    labeler, run = request.labeler, candidates_of(request)
    validation: Judged = {}
    if (learns := unlearnt(labeler.label_params)) and request.validation_qrels is not None:
        own = qrels_of(request.validation_qrels)
        validation = positives_of(own, request.relevant, request.shown("validation_qrels"))
    notice_own(run, "leave it out of the run with --remove-query of search, or it is a candidate like others")
    so = "positives replace the last candidates of every query"
    job = open_job(request, run, labeler.needs, so, validation, request.jobs)
    about = None
    if learns:
        known = validation or job.judged
        learner = dataclasses.replace(job, judged=known).labeler(labeler, request.jobs)
        learnt, about = learn_mass(learner, run, known)
        labeler = dataclasses.replace(labeler, label_params=learnt)
    made = make_shards(request, output, job, labeler, share, about)
    if share is None and (request.tsv or request.listwise or request.truth):
        labels = SoftLabels.read(output)
        if request.tsv:
            write_tsv(labels, request.tsv)
        if request.listwise:
            write_listwise(labels, request.listwise, job.topics, job.some_texts)
        if request.truth:
            curve = of_labels(labels, grades_of(request.truth), request.relevant)
            print_table(list(curve[0]), [[f"{value:.4g}" for value in one.values()] for one in curve])
    return made


def candidates_of(request: LabelsRequest) -> Run:
    """The candidates of each query of the run: of published pairs if there are such, else of the run."""
    import pandas

    run = first_stage_of(request.run).head(request.depth)
    if request.pairs is None:
        return run
    pairs = load_pairs(request.pairs, request.depth)
    row_of = {qid: len(run) + number for number, qid in enumerate(pairs.qids)}
    codes, docids = pandas.factorize(np.concatenate([run.docids, pairs.docids]))
    rows = np.concatenate([codes[run.rows], codes[len(run.docids) + pairs.rows]])
    offsets = np.append(run.offsets, len(run.rows) + pairs.offsets[1:])
    scores = np.append(run.scores, pairs.scores)
    both = Run((*run.qids, *pairs.qids), offsets, docids, rows.astype(np.int32), scores)
    return both.of_queries([row_of.get(qid, number) for number, qid in enumerate(run.qids)])
