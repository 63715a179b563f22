"""The folder of a graph, written: block by block, so that a build that was killed goes on to the same bytes.

`edges.u32.np` and `weights.f16.np` are N x K raw values, row after row; `docnos.npids` has the docids, `pt_meta.json`
says what it is: the layout of corpus graphs in pyterrier_dr and pyterrier_adaptive.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import cores, counted, progress, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, folder_written_whole
from rnnreranker.base.process.backends import check_backend, do_parts
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.base.shards import Share
from rnnreranker.parts.neighbours.approximate import ProposedNeighbours, recall_of, sample_of
from rnnreranker.parts.neighbours.description import (
    DOCNOS,
    EDGES,
    VERSION,
    WEIGHTS,
    Origin,
    docids_mark,
    write_description,
)
from rnnreranker.parts.neighbours.docnos import write_docnos
from rnnreranker.parts.neighbours.graph import NeighbourGraph, map_graph
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.neighbours.pairs import Pairs
from rnnreranker.parts.neighbours.source import ENTRY, Earlier, GraphSource, as_entries, entries_of
from rnnreranker.parts.vectors.ids import Ids
from rnnreranker.parts.vectors.npy_files import put_array

K = 16
ROWS = 1024  # documents of a block


def write_graph(
    source: GraphSource,
    output: str | os.PathLike[str],
    k: int = K,
    *,
    threads: int | None = None,
    backend: str = "threads",
    address: str | None = None,
    work: Path | None = None,
    earlier: Earlier | None = None,
    half: tuple[HalfProducts, ...] = (),
) -> int:
    """Write the folder of a graph; how many documents an earlier, interrupted build had done.

    Before the second block, one line says how large the graph is and how long it takes at the pace of the first.

    Args:
        source: N >= 2 documents.
        output: the folder; one there already is replaced when the new one is whole.
        k: neighbours of a document; N - 1 where that is less.
        threads: blocks made at the same time, each with one thread of BLAS; None = one per core. The bytes do not
            depend on it.
        backend: threads of this process, its processes (loky), or the workers of a Dask or Ray cluster, which must see
            the same files.
        address: of the cluster; None starts one on this machine.
        work: where blocks are kept until the end; None = `<output>.partial`.
        earlier: as `entries_of`; half: devices for the products of vectors; the bytes depend on neither.

    Raises:
        InputError: fewer than two documents, k < 1, an unknown backend; as `entries_of`.
        MissingDependencyError: a backend that is not installed.
    """
    output = Path(output).expanduser()
    work = output.with_name(output.name + ".partial") if work is None else work
    count = len(source.docids)
    k = _checked(source, k, backend)
    work.mkdir(parents=True, exist_ok=True)
    rows_of = _files(source, k, work)
    missing = [file for file in rows_of if not file.is_file()]
    done = count - sum(len(rows_of[file]) for file in missing)
    do, workers = partial(_do_all, backend=backend, address=address), threads or cores()
    pairs = None
    if missing and earlier is None and isinstance(source, DenseNeighbours):
        pairs = Pairs.of(source, k, ROWS, work, half)
        lacking = [pair for pair, file in pairs.files.items() if not file.is_file()]
        tell_pairs = partial(_foretell, source, k, "pair", 2 if len(pairs.stretches) > 1 else 1)
        do([(pairs.make, pair) for pair in lacking], tell_pairs, "pairs", "neighbours", workers=len(half) or workers)
    blocks = [(make_block, source, rows_of[file], k, file, earlier, pairs) for file in missing]
    do(
        blocks,
        partial(_foretell, source, k, "block", 1) if pairs is None else None,
        "blocks",
        "neighbours",
        workers=workers,
    )
    with folder_written_whole(output) as folder:
        _write(folder, list(rows_of), source, k, work)
    shutil.rmtree(work)
    return done


def write_share(
    source: GraphSource,
    k: int,
    share: Share,
    work: Path,
    *,
    threads: int | None = None,
    backend: str = "threads",
    address: str | None = None,
    half: tuple[HalfProducts, ...] = (),
) -> tuple[int, int]:
    """Make one process's share of the files that `write_graph` puts together: how many it made, and has in all.

    Args:
        source, k, threads, backend, address, half: as there; an exact search.
        share: of this process; work: where files are kept, the same of all of them.

    Raises:
        InputError, MissingDependencyError: as `write_graph`.
    """
    k = _checked(source, k, backend)
    work.mkdir(parents=True, exist_ok=True)
    jobs: dict[Path, tuple[Any, ...]]
    if isinstance(source, DenseNeighbours):
        pairs, unit = Pairs.of(source, k, ROWS, work, half), "pair"
        jobs = {file: (pairs.make, pair) for pair, file in pairs.files.items()}
    else:
        unit = "block"
        jobs = {file: (make_block, source, rows, k, file) for file, rows in _files(source, k, work).items()}
    own = list(jobs)[share[0] :: share[1]]
    lacking = [jobs[file] for file in own if not file.is_file()]
    tell = partial(_foretell, source, k, unit, 1)
    workers = len(half) or threads or cores()
    _do_all(lacking, tell, f"{unit}s", "neighbours", workers=workers, backend=backend, address=address)
    return len(lacking), len(own)


def _checked(source: GraphSource, k: int, backend: str) -> int:
    """The neighbours that documents can have, at most k.

    Raises:
        InputError, MissingDependencyError: as `write_graph`.
    """
    count = len(source.docids)
    check_backend(backend)
    if k < 1:
        raise InputError(f"neighbours={k}: expected an integer >= 1")
    if count < 2:
        raise InputError(f"{counted(count, 'document')}: no neighbours; expected at least two documents")
    return min(k, count - 1)


def make_block(
    source: GraphSource, rows: range, k: int, file: Path, earlier: Earlier | None = None, pairs: Pairs | None = None
) -> None:
    """Write some rows of the graph into a file that appears when they are all there.

    pairs: whose files propose the nearest; None = they are looked for.
    """
    numbers = np.array(rows)
    with one_blas_thread():
        if pairs is None:
            entries = entries_of(source, numbers, k, earlier)
        else:
            nearest = pairs.source.nearest(numbers, k, proposed=pairs.proposals(rows))
            entries = as_entries(source, numbers, *nearest)
    put_array(file, entries)


def _do_all(
    jobs: Sequence[tuple[Any, ...]],
    tell: Callable[[int, int, float], None] | None,
    unit: str,
    what: str,
    *,
    workers: int,
    backend: str,
    address: str | None,
) -> None:
    """Do jobs, functions with what they are given: the first, then those that are left, several at a time.

    tell: is given how many are left, the workers, and the seconds that the first took.
    """
    if not jobs:
        return
    begun = time.perf_counter()
    _do(*jobs[0])
    if tell is not None:
        tell(len(jobs) - 1, workers, time.perf_counter() - begun)
    do_parts(
        _do,
        jobs[1:],
        workers=workers,
        backend=backend,
        address=address,
        shown=lambda made: progress(made, unit=unit, total=len(jobs) - 1, what=what),
    )


def _do(do: Callable[..., None], *given: Any) -> None:
    do(*given)


def _files(source: GraphSource, k: int, work: Path) -> dict[Path, range]:
    """Files of blocks, named by everything that they depend on, and their rows."""
    width = source.width if isinstance(source, ProposedNeighbours) else 0
    mark = fingerprint(source.of, source.fingerprint, source.search, width, k, ROWS, VERSION)
    count = len(source.docids)
    firsts = range(0, count, ROWS)
    return {work / f"{first:010d}-{mark}.npy": range(first, min(first + ROWS, count)) for first in firsts}


def _foretell(source: GraphSource, k: int, unit: str, beside: int, jobs: int, workers: int, seconds: float) -> None:
    """Say how large a graph is and how long the jobs that are left take, each `beside` times as long as the first."""
    if jobs:
        size = len(source.docids) * k * ENTRY.itemsize
        took = seconds * beside * -(-jobs // workers)
        units = ((3600, "hours"), (60, "minutes"), (1, "seconds"))
        of_time, name = next((one for one in units if took >= one[0]), units[-1])
        say(
            f"neighbours: {k} of each of {counted(len(source.docids), 'document')} take {size / 1e6:.3g} MB; "
            f"{counted(jobs, unit)} to come, about {took / of_time:.1f} {name} at the pace of the first"
        )


def _write(folder: Path, blocks: list[Path], source: GraphSource, k: int, work: Path) -> None:
    with open(folder / EDGES, "wb") as edges, open(folder / WEIGHTS, "wb") as weights:
        for file in blocks:
            entries = np.load(file, allow_pickle=False)
            edges.write(entries["edge"].tobytes())
            weights.write(entries["weight"].tobytes())
    with open(folder / DOCNOS, "wb") as stream:
        write_docnos(stream, source.docids)
    count = len(source.docids)
    origin = Origin(source.of, source.similarity, source.fingerprint, docids_mark(source.docids), source.search)
    mapped_edges, values = map_graph(folder, count, k)
    if isinstance(source, ProposedNeighbours):
        rows, nearest = sample_of(source.exact, k, work)
        origin = replace(origin, recall=recall_of(mapped_edges[rows], nearest), sampled=len(rows))
        say(
            f"neighbours: {source.search} has found {origin.recall:.1%} of the {k} nearest of "
            f"{counted(origin.sampled, 'document')} that were looked for exactly"
        )
    write_description(folder, count, k, origin)
    NeighbourGraph(folder, Ids(list(source.docids), str(folder / DOCNOS)), mapped_edges, values, origin).check_whole()
