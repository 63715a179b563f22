"""What each stage of a large collection takes, measured at sizes that fit here, each in a process of its own."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import say
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.lab.bench.corpus import write_corpus
from rnnreranker.lab.bench.encoding import TEXTS
from rnnreranker.lab.bench.fresh_process import anonymous, in_fresh_process, most_anonymous
from rnnreranker.lab.bench.summaries import quartiles

BATCH, TIMES = 32, 5  # queries of a training step; how often one is gathered
WORKERS, SHARDS = 2, 8  # of Dask, and what they are given


def collection_size(
    sizes: tuple[int, ...], queries: int, candidates: int, depth: int, dimension: int, encoder: str, texts: int
) -> list[dict[str, Any]]:
    """A row for every stage and size: processor and elapsed seconds, MB on disk, anonymous MB added.

    Labels are made by one thread, of the largest size by Dask, too; `depth` candidates of each of a training step's 32
    queries are gathered; the encoder encodes `texts` documents of pydoc, and half as many.
    """
    rows = [*_encoding(encoder, (max(1, texts // 2), texts))]
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            path = write_corpus(Path(name), size, dimension)
            disk = sum(file.stat().st_size for file in Path(name).iterdir()) / 1e6
            own: dict[str, Any] = {"folder": name, "queries": queries, "candidates": min(candidates, size)}
            measured = in_fresh_process(__name__, "opened", path=str(path))
            rows.append(_row("vectors", size, dimension, measured | {"disk": disk}))
            measured = in_fresh_process(__name__, "labelled", workers=0, **own)
            rows.append(_row("labels", size, dimension, measured, queries))
            measured = in_fresh_process(__name__, "gathered", path=str(path), depth=min(depth, size))
            rows.append(_row("batch", size, dimension, measured, BATCH))
            if size == sizes[-1] and importlib.util.find_spec("distributed") is not None:
                measured = in_fresh_process(__name__, "labelled", workers=WORKERS, **own)
                rows.append(_row("labels", size, dimension, measured, queries, WORKERS))
    return rows


def opened(path: str) -> dict[str, float]:
    """Open vectors and find a document by its id."""
    from rnnreranker.parts.vectors import open_vectors

    def work() -> None:
        source = open_vectors(path)
        source.rows([source.docids[-1]])
        kept.append(source)

    kept: list[Any] = []
    return _measured(work)


def labelled(folder: str, queries: int, candidates: int, workers: int) -> dict[str, float]:
    """Joint labels of so many queries, one positive each; workers: of Dask on this machine, 0 = one thread of ours."""
    from rnnreranker.labels.job import Job, stored_part
    from rnnreranker.labels.methods.joint import JointLabeler
    from rnnreranker.labels.params import LabelParams
    from rnnreranker.labels.shards import LabelInputs, make_shards
    from rnnreranker.parts.vectors import QueryVectors, open_vectors
    from rnnreranker.runs import Run

    path = Path(folder)
    source = open_vectors(path / "vectors.npy")
    count, rng = len(source.docids), np.random.default_rng(0)
    first = rng.integers(count, size=(queries, 1))
    drawn = (first + np.arange(candidates) * (count // candidates)) % count  # from everywhere, each once
    distinct, rows = np.unique(drawn, return_inverse=True)
    docids = np.array([source.docids[row] for row in distinct], dtype=object)
    qids = tuple(f"q{number}" for number in range(queries))
    scores = np.tile(np.arange(candidates, 0, -1, dtype=np.float64), queries)
    run = Run.from_parts(qids, np.arange(queries + 1) * candidates, docids, rows.ravel().astype(np.int32), scores)
    judged = {qid: [(source.docids[row], 1)] for qid, row in zip(qids, drawn[:, 0].tolist(), strict=True)}
    vectors = QueryVectors(qids, rng.standard_normal((queries, source.dimension), dtype=np.float32))
    job = Job(
        "joint", params=JointLabeler.defaults, label_params=LabelParams(), relevant=1, source="vectors",
        texts=None, stored=(stored_part("vectors", path / "vectors.npy", {}),),
    )  # fmt: skip
    del source

    def make(name: str, run: Run, address: str | None) -> None:
        shard = max(1, len(run.qids) // SHARDS)
        own = {"backend": "dask", "address": address} if address else {"backend": "threads"}
        make_shards(path / name, job, LabelInputs(run, judged, vectors), jobs=max(1, workers), shard_size=shard, **own)

    def both(address: str | None) -> dict[str, float]:
        make("few.parquet", run.of_queries(range(min(SHARDS, queries))), address)  # imports and compiles
        return _measured(lambda: make("labels.parquet", run, address))

    if workers:
        import distributed

        with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
            measured = both(cluster.scheduler_address)
    else:
        measured = both(None)
    return measured | {"disk": (path / "labels.parquet").stat().st_size / 1e6}


def gathered(path: str, depth: int) -> dict[str, float]:
    """The table of all documents' vectors in memory, and the distinct ones of a training step's candidates."""
    from rnnreranker.parts.vectors import open_vectors
    from rnnreranker.train.query.table import load_table

    source = open_vectors(path)
    before = anonymous()
    table = load_table(source, np.arange(len(source.docids)))
    added, rng = anonymous() - before, np.random.default_rng(0)
    seconds, used = [], time.process_time()
    for _ in range(TIMES + 1):
        rows = rng.integers(len(table), size=(BATCH, depth))
        begun = time.perf_counter()
        table.gather_distinct(rows)
        seconds.append(time.perf_counter() - begun)
    used = (time.process_time() - used) / (TIMES + 1)
    return {"processor": used, "elapsed": quartiles(seconds[1:])[1], "added": added}


def encoded(name: str, count: int, others: int) -> dict[str, float]:
    """Vectors of documents of pydoc as `index` makes them, on one thread, after the graph was made of others."""
    from rnnreranker.data.documents import load_documents
    from rnnreranker.encode.dense.encoder import Encoder
    from rnnreranker.parts.vectors.part import DensePart

    documents = list(itertools.islice(load_documents(TEXTS), count + others))
    with tempfile.TemporaryDirectory() as folder:
        part = DensePart(Encoder.load(name))
        part.start(Path(folder), threads=1)
        part.add(documents[count:])
        measured = _measured(lambda: part.add(documents[:count]))
    return {key: value for key, value in measured.items() if key != "added"}  # of a block, however many documents


def _encoding(name: str, counts: tuple[int, ...]) -> list[dict[str, Any]]:
    from rnnreranker.encode.model_folder import find_model

    try:
        find_model(name)
        return [
            _row("encode", n, 0, in_fresh_process(__name__, "encoded", name=name, count=n, others=8)) for n in counts
        ]
    except (UnavailableError, MissingDependencyError) as error:
        say(f"collection: {name} left out: {error}")
        return []


def _measured(work: Callable[[], object]) -> dict[str, float]:
    begun, used = time.perf_counter(), time.process_time()
    before, most = most_anonymous(work, every=0.005)
    return {
        "processor": time.process_time() - used, "elapsed": time.perf_counter() - begun, "added": most - before,
    }  # fmt: skip


def _row(
    stage: str, size: int, dimension: int, measured: dict[str, float], queries: int = 0, workers: int = 0
) -> dict[str, Any]:
    """A row of the table; processor seconds of Dask's workers are not those of this process, and left out."""
    row: dict[str, Any] = {"stage": stage, "documents": size, "d": dimension or None, "queries": queries or None}
    row |= {"by": f"dask, {workers}" if workers else "one thread", "elapsed_s": measured["elapsed"]}
    row |= {"processor_s": None if workers else measured["processor"], "disk_MB": measured.get("disk")}
    return row | {"RssAnon_MB": measured.get("added")}
