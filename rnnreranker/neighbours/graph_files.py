"""The folder of a graph, written: block by block, so that a build that was killed goes on to the same bytes.

`edges.u32.np` and `weights.f16.np` are N x K raw values, row after row; `docnos.npids` has the docids, `pt_meta.json`
says what it is: the layout of corpus graphs in pyterrier_dr and pyterrier_adaptive.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from rnnreranker.command import cores, counted, progress
from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint, folder_written_whole, write_atomically
from rnnreranker.neighbours.description import DOCNOS, EDGES, VERSION, WEIGHTS, Origin, docids_mark, write_description
from rnnreranker.neighbours.docnos import write_docnos
from rnnreranker.neighbours.graph import NeighbourGraph, map_graph
from rnnreranker.neighbours.graph_source import GraphSource, entries_of
from rnnreranker.process.blas import one_blas_thread
from rnnreranker.vectors.ids import Ids

K = 16
ROWS = 512  # documents of a block


def write_graph(
    source: GraphSource,
    output: str | os.PathLike[str],
    k: int = K,
    *,
    threads: int | None = None,
    work: Path | None = None,
) -> int:
    """Write the folder of a graph; how many documents an earlier, interrupted build had done.

    Args:
        source: N >= 2 documents.
        output: the folder; one there already is replaced when the new one is whole.
        k: neighbours of a document; N - 1 where that is less.
        threads: workers, each with one thread of BLAS; None = one per core. The bytes do not depend on it.
        work: where blocks are kept until the end; None = `<output>.partial`.

    Raises:
        InputError: fewer than two documents, k < 1; as `entries_of`.
    """
    output = Path(output).expanduser()
    work = output.with_name(output.name + ".partial") if work is None else work
    count = len(source.docids)
    if k < 1:
        raise InputError(f"neighbours={k}: expected an integer >= 1")
    if count < 2:
        raise InputError(f"{counted(count, 'document')}: no neighbours; expected at least two documents")
    k = min(k, count - 1)
    work.mkdir(parents=True, exist_ok=True)
    mark = fingerprint(source.of, source.fingerprint, k, ROWS, VERSION)
    files = {work / f"{first:010d}-{mark}.npy": first for first in range(0, count, ROWS)}
    missing = [file for file in files if not file.is_file()]

    def make(file: Path) -> None:
        entries = entries_of(source, np.arange(files[file], min(files[file] + ROWS, count)), k)
        with write_atomically(file) as stream:
            np.save(stream, entries)
            stream.flush()
            os.fsync(stream.fileno())

    with one_blas_thread(), ThreadPoolExecutor(threads or cores()) as pool:
        waiting = [pool.submit(make, file) for file in missing]
        try:
            for done in progress(waiting, unit="blocks", what="neighbours"):
                done.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    with folder_written_whole(output) as folder:
        _write(folder, list(files), source, k)
    shutil.rmtree(work)
    return count - sum(min(ROWS, count - files[file]) for file in missing)


def _write(folder: Path, blocks: list[Path], source: GraphSource, k: int) -> None:
    with open(folder / EDGES, "wb") as edges, open(folder / WEIGHTS, "wb") as weights:
        for file in blocks:
            entries = np.load(file, allow_pickle=False)
            edges.write(entries["edge"].tobytes())
            weights.write(entries["weight"].tobytes())
    with open(folder / DOCNOS, "wb") as stream:
        write_docnos(stream, source.docids)
    origin = Origin(source.of, source.similarity, source.fingerprint, docids_mark(source.docids), "exact")
    write_description(folder, len(source.docids), k, origin)
    ids = Ids(list(source.docids), str(folder / DOCNOS))
    NeighbourGraph(folder, ids, *map_graph(folder, len(source.docids), k), origin).check_whole()
