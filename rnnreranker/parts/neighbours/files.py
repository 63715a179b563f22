"""Writes the folder of a graph block by block, so that a killed build resumes to the same bytes.

`edges.u32.np` and `weights.f16.np` are N x K raw values, row after row; with `docnos.npids` and `pt_meta.json` they are
a corpus graph of pyterrier_dr and pyterrier_adaptive.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import cores, counted, progress, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, folder_written_whole
from rnnreranker.base.process.backends import check_backend, do_parts
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.base.request import Share
from rnnreranker.parts.neighbours.description import (
    DOCNOS,
    EDGES,
    VERSION,
    WEIGHTS,
    Origin,
    docids_mark,
    map_graph,
    write_description,
    write_docnos,
)
from rnnreranker.parts.neighbours.nearest import ApproximateNeighbours, GraphSource, Nearest, best_of, no_neighbours
from rnnreranker.parts.vectors.npy_files import put_array

K = 16
ROWS = 1024  # documents of a block
LARGEST = float(np.finfo(np.float16).max)
ENTRY = np.dtype([("edge", "<u4"), ("weight", "<f2")])


@dataclass(frozen=True)
class Earlier:
    """An exact graph of the first documents, made before others were added; kept: so many keep their similarities."""

    folder: Path
    count: int
    k: int
    kept: int

    def nearest(self, source: Any, rows: np.ndarray, k: int) -> Nearest:
        """Edges and similarities (R, k) of ascending rows: old neighbours and the nearest new ones are the candidates.

        A row with an old neighbour beyond `kept` is compared with all documents.
        """
        edges, scores = no_neighbours(rows, k)
        old = map_graph(self.folder, self.count, k)[0][rows[rows < self.kept]].astype(np.int64)
        sure = np.zeros(len(rows), dtype=bool)
        sure[: len(old)] = (old < self.kept).all(axis=1)
        if len(own := rows[sure]):
            proposed = np.concatenate([old[sure[: len(old)]], source.nearest(own, k, self.kept)[0]], axis=1)
            edges[sure], scores[sure] = best_of(own, proposed, source.similarities(own, proposed), k)
        if not sure.all():
            edges[~sure], scores[~sure] = source.nearest(rows[~sure], k)
        return edges, scores


@dataclass
class GraphFiles:
    """The files of an unfinished graph; any process can make each of them.

    Args:
        source: N >= 2 documents; k: neighbours of a document; work: the folder of the files.
        threads: files made at the same time, each with one BLAS thread; None = one per core.
        backend, address: as in `do_parts`; all workers must see the folder.
        earlier: a graph with k neighbours of the first documents.

    Raises:
        InputError, MissingDependencyError: fewer than two documents; an unknown or missing backend.
    """

    source: GraphSource
    k: int
    work: Path
    threads: int | None = None
    backend: str = "threads"
    address: str | None = None
    earlier: Earlier | None = None

    def __post_init__(self) -> None:
        source, count = self.source, len(self.source.docids)
        check_backend(self.backend)
        if count < 2:
            raise InputError(f"{counted(count, 'document')}: no neighbours; expected at least two documents")
        self.k = min(self.k, count - 1)
        self.work.mkdir(parents=True, exist_ok=True)
        mark = fingerprint(source.of, source.fingerprint, source.search, source.width, self.k, ROWS, VERSION)
        blocks = [range(first, min(first + ROWS, count)) for first in range(0, count, ROWS)]
        self.files = {self.work / f"{rows.start:010d}-{mark}.npy": rows for rows in blocks}

    def make(self, share: Share = (0, 1)) -> tuple[int, int]:
        """Make the missing files of one process's share; how many documents they have, and all files of the share."""
        own = list(self.files.items())[share[0] :: share[1]]
        earlier = self.earlier if self.earlier is not None and self.earlier.k == self.k else None
        missing = [(self.source, rows, self.k, file, earlier) for file, rows in own if not file.is_file()]
        of_processes = self.source.devices if self.backend != "threads" else 0  # each takes memory of a device
        do_parts(
            make_block,
            missing,
            workers=of_processes or self.threads or cores(),
            backend=self.backend,
            address=self.address,
            shown=lambda made: progress(made, unit="blocks", total=len(missing), what="neighbours"),
            gpus=float(self.source.devices > 0),
        )
        return sum(len(rows) for _, rows, *_ in missing), sum(len(rows) for _, rows in own)


def write_graph(
    source: GraphSource, output: str | os.PathLike[str], k: int = K, *, work: Path | None = None, **how: Any
) -> int:
    """Write the folder of a graph; returns how many documents an interrupted build had finished.

    Args and Raises: as `GraphFiles` and `as_entries`; work: None = `<output>.partial`.
    """
    output = Path(output).expanduser()
    work = output.with_name(output.name + ".partial") if work is None else work
    files = GraphFiles(source, k, work, **how)
    made, count = files.make()
    with folder_written_whole(output) as folder:
        _write(folder, list(files.files), source, files.k)
    shutil.rmtree(work)
    return count - made


def make_block(source: Any, rows: range, k: int, file: Path, earlier: Earlier | None) -> None:
    numbers = np.array(rows)
    with one_blas_thread():
        nearest = source.nearest(numbers, k) if earlier is None else earlier.nearest(source, numbers, k)
        put_array(file, as_entries(source, numbers, *nearest))


def as_entries(source: GraphSource, rows: np.ndarray, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(R, k) of `ENTRY`; InputError: a similarity beyond float16."""
    entries = np.empty(edges.shape, dtype=ENTRY)
    entries["edge"] = edges
    with np.errstate(over="ignore"):
        entries["weight"] = scores
    beyond = ~np.isfinite(entries["weight"]).all(axis=1)
    if beyond.any():
        raise InputError(
            f"the inner products of {source.docids[int(rows[beyond][0])]} with its neighbours are beyond {LARGEST:g}, "
            "the largest that a graph holds; make the vectors shorter, as with --encoder NAME:normalize=true"
        )
    return entries


def _write(folder: Path, blocks: list[Path], source: GraphSource, k: int) -> None:
    with open(folder / EDGES, "wb") as edges, open(folder / WEIGHTS, "wb") as weights:
        for file in blocks:
            entries = np.load(file, allow_pickle=False)
            edges.write(entries["edge"].tobytes())
            weights.write(entries["weight"].tobytes())
    with open(folder / DOCNOS, "wb") as stream:
        write_docnos(stream, source.docids)
    count = len(source.docids)
    origin = Origin(source.of, source.similarity, source.fingerprint, docids_mark(source.docids), source.search)
    if isinstance(source, ApproximateNeighbours):
        sampled, edges_of = len(source.sample), map_graph(folder, count, k)[0][source.sample]
        origin = replace(origin, recall=source.recall_of(edges_of), sampled=sampled)
        say(
            f"neighbours: {source.search} has found {origin.recall:.1%} of the {k} nearest of "
            f"{counted(sampled, 'document')} that were looked for exactly"
        )
    write_description(folder, count, k, origin)
