"""A whole job of labels, from a run in memory to the file: from a graph, and from vectors."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.lab.bench.fresh_process import in_fresh_process, most_anonymous
from rnnreranker.lab.bench.graph_size import make_graph
from rnnreranker.lab.bench.synthetic import collection

K = 16
ASKED = 1000  # distinct queries, each of which is there as often as it takes
SOURCES = {"neighbours": 1.0, "vectors": 0.1}  # of the queries, so many are labelled


def label_jobs(queries: int, depth: int, documents: int, dimension: int) -> list[dict[str, Any]]:
    """Joint labels of queries x depth, one positive each: a process of its own for each source, one core."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        _write(Path(name), documents, dimension, depth)
        in_fresh_process(
            "rnnreranker.lab.bench.graph_size", make_graph.__name__, folder=name, search="exact", k=K, threads=1
        )
        for source, share in SOURCES.items():
            count = max(1, int(queries * share))
            made = in_fresh_process(__name__, "label_job", folder=name, source=source, queries=count)
            row = {"from": source, "queries": count, "candidates": depth, "documents": documents, "d": dimension}
            row |= {"processor_s": made["processor"], "queries_per_s": count / made["processor"]}
            rows.append(row | {"file_MB": made["bytes"] / 1e6, "before_MB": made["before"], "most_MB": made["most"]})
    return rows


def label_job(folder: str, source: str, queries: int) -> dict[str, float]:
    """Processor seconds of a job of so many queries, anonymous MB before it and at most, bytes written."""
    from rnnreranker.labels.job import Job, stored_part
    from rnnreranker.labels.methods.joint import JointLabeler
    from rnnreranker.labels.params import LabelParams
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

    path = Path(folder)
    rows, scores = np.load(path / "rows.npy"), np.load(path / "scores.npy")
    asked, depth = rows.shape
    repeats = -(-queries // asked)
    docids = np.array((path / "docid").read_text(encoding="ascii").split(), dtype=object)
    qids = tuple(f"q{number}" for number in range(queries))
    entries = np.tile(rows, (repeats, 1))[:queries].ravel()
    run = Run.from_parts(
        qids, np.arange(queries + 1) * depth, docids, entries, np.tile(scores, (repeats, 1))[:queries].ravel()
    )
    judged = {qid: [(docids[entries[depth * number]], 1)] for number, qid in enumerate(qids)}
    vectors = None
    if source == "vectors":
        vectors = QueryVectors(qids, np.tile(np.load(path / "queries.npy"), (repeats, 1))[:queries])
    own = stored_part(source, path / ("vectors.npy" if source == "vectors" else "neighbours"), {})
    job = Job("joint", None, JointLabeler.defaults, LabelParams(), 1, source=source, stored=(own,))  # type: ignore[arg-type]
    few = [f"q{number}" for number in range(min(100, queries))]
    _make(path / "few.parquet", job, run.of_queries(range(len(few))), {qid: judged[qid] for qid in few}, vectors)
    used = time.process_time()
    before, most = most_anonymous(lambda: _make(path / "labels.parquet", job, run, judged, vectors), every=0.05)
    used = time.process_time() - used
    return {"processor": used, "before": before, "most": most, "bytes": (path / "labels.parquet").stat().st_size}


def _make(path: Path, job: Any, run: Any, judged: Any, vectors: Any) -> None:
    from rnnreranker.labels.shards import LabelInputs, make_shards

    make_shards(path, job, LabelInputs(run, judged, vectors), jobs=1)


def _write(folder: Path, documents: int, dimension: int, depth: int) -> None:
    """Vectors and docids of a made-up collection, and queries with their first candidates by inner product."""
    made, asked = collection(documents, ASKED, dimension)
    np.save(folder / "vectors.npy", made)
    (folder / "docid").write_text("".join(f"d{row}\n" for row in range(documents)), encoding="ascii")
    (folder / "vectors.ids").write_text((folder / "docid").read_text(encoding="ascii"), encoding="ascii")
    products = asked @ made.T
    rows = np.argsort(-products, axis=1, kind="stable")[:, :depth]
    np.save(folder / "rows.npy", rows)
    np.save(folder / "scores.npy", np.take_along_axis(products, rows, axis=1).astype(np.float64))
    np.save(folder / "queries.npy", asked)
