"""The part `neighbours`: the nearest other documents of every document, by another part of the index.

Blocks of documents are files, so that a killed build resumes to the same bytes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import cores, counted, progress, say
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import check_files, fingerprint, folder_written_whole
from rnnreranker.base.jobs import do_parts, one_blas_thread
from rnnreranker.base.settings import Share, setting
from rnnreranker.parts.base import Part, described_part, part
from rnnreranker.parts.neighbours import nearest
from rnnreranker.parts.neighbours.graph import PART, VERSION, NeighbourGraph, open_neighbours, write_files
from rnnreranker.parts.neighbours.nearest import EXACT, GraphSource
from rnnreranker.parts.postings.source import bm25_postings
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.npy_files import put_array

K = 16
ROWS = 1024  # documents of a block
ENTRY = np.dtype([("edge", "<u4"), ("weight", "<f2")])


@dataclass(frozen=True)
class GraphParams(settings.Params):
    """Settings of a graph; None accepts any graph. InputError: values out of range, ivf of another part than dense."""

    k: int | None = setting(None, "neighbours of a document; none: 16", at_least=1)
    by: Literal["dense", "impact", "terms"] | None = setting(
        None,
        "the part that documents are compared by; none: the first of these that the index has",
    )
    search: Literal["exact", "ivf"] | None = setting(
        None,
        f"of dense vectors; none: exact up to {EXACT} documents and ivf beyond",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == "ivf" and self.by not in (None, "dense"):
            raise InputError(f"graph search {self.search} is of dense vectors; {self.by} is searched exactly")


class NeighboursPart(Part):
    """The folder `neighbours`."""

    name, gives, rank = PART, "neighbours", 50
    Params = GraphParams
    made_of = ("dense", "impact", "terms")

    @classmethod
    def make(cls, params: GraphParams, beside: Mapping[str, Any]) -> NeighboursPart:
        by: Any = next((one for one in cls.origins(params) if one in beside), None)
        return cls(replace(params, by=by))

    @classmethod
    def origins(cls, params: GraphParams) -> tuple[str, ...]:
        return (params.by,) if params.by else cls.made_of

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        """Whether an index has a graph of its own documents, with these settings; None = any."""
        if cls.at(index) is None or params is None:
            return cls.at(index) is not None
        try:
            graph = open_neighbours(index)
            mark = _opened_part(index, graph.origin.of).fingerprint
        except InputError:
            return False
        k = None if params.k is None else min(params.k, len(graph) - 1)
        asked, made = (k, params.by, params.search, mark), graph.origin
        return all(
            one in (None, other) for one, other in zip(asked, (graph.k, made.of, made.search, made.source), strict=True)
        )

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> NeighbourGraph:
        return open_neighbours(at, str(described.get("source", "")))

    def __init__(self, params: GraphParams | None = None) -> None:
        super().__init__(params)
        self._of = self.params.by or self.made_of[0]

    def start(self, work: Path, threads: int | None) -> None:
        self._work = work / PART
        self._how: dict[str, Any] = {"threads": threads, "backend": self.backend, "address": self.address}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        wanted = self.params.k or K
        source = self._source(corpus.parent, min(wanted, max(1, count - 1)))
        self.reused = write_graph(source, folder / PART, wanted, work=self._work, **self._how)
        graph = open_neighbours(folder / PART)
        return {"k": graph.k, **asdict(graph.origin)}

    def write_share(self, index: Path, share: Share) -> str:
        if self._of == "dense" and (self.params.search or search_of(len(open_vectors(index).docids))) == "ivf":
            raise InputError(
                f"{argument('shard_id', share[0])}: a graph with search=ivf is made by one process; leave it out, or "
                "give neighbours:search=exact here and to put it together"
            )
        source = self._source(index)
        k = min(self.params.k or K, len(source.docids) - 1)
        made = make_blocks(source, k, self._work, share, **self._how)[1]
        return f"neighbours of {made} documents made"

    def _source(self, index: Path, k: int = K) -> GraphSource:
        names = self.devices.names if self.devices is not None and self.devices.elsewhere else ()
        return graph_source(index, self._of, self._work, self.params.search, k, names)


def graph_source(
    index: Path, of: str, work: Path, search: str | None = None, k: int = K, devices: tuple[str, ...] = ()
) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        of: "dense", "impact" or "terms"; work: a folder for an approximate index.
        search: as `GraphParams`; k: neighbours that an approximate index is to find; devices: as `DenseNeighbours`.

    Raises:
        InputError: no such part, or one that cannot be used.
    """
    source: GraphSource
    if of == "dense":
        vectors = open_vectors(index)
        approximate = (search or search_of(len(vectors.docids))) == "ivf"
        source = nearest.DenseNeighbours(vectors, () if approximate else devices)
        if approximate:
            source = nearest.ApproximateNeighbours(source, k, work)
    else:
        check_files(index, of)
        words = _opened_part(index, of)
        weights = bm25_postings(words) if of == "terms" else words
        source = nearest.WordNeighbours(weights, of, words.fingerprint)
    source.opened = (_opened, (index, of, work, search, k, devices, source.fingerprint))
    return source


def search_of(documents: int) -> str:
    return "exact" if documents <= EXACT else "ivf"


@lru_cache(maxsize=1)
def _opened(*arguments: Any) -> GraphSource:
    return graph_source(*arguments[:-1])


def _opened_part(index: Path, of: str) -> Any:
    """The part of an index that a graph is made of, opened; InputError: no such part."""
    return part(of).open(index, described_part(index, of))


def make_blocks(
    source: GraphSource,
    k: int,
    work: Path,
    share: Share = (0, 1),
    *,
    threads: int | None = None,
    backend: str = "threads",
    address: str | None = None,
) -> tuple[list[Path], int]:
    """Make the missing files of one process's share of a graph; any process can make each of them.

    Returns all files, and how many documents were made.

    Args:
        source: N >= 2 documents; k: neighbours of a document, below N; work: the folder of the files.
        threads: files made at the same time, each with one BLAS thread; None = one per core.
        backend, address: as in `do_parts`; all workers must see the folder.
    """
    count, mark = len(source.docids), fingerprint(source.of, source.fingerprint, source.search, source.width, k, ROWS)
    work.mkdir(parents=True, exist_ok=True)
    blocks = [range(first, min(first + ROWS, count)) for first in range(0, count, ROWS)]
    files = [work / f"{rows[0]:010d}-{mark}-{VERSION}.npy" for rows in blocks]
    every = [(source, rows, k, file) for rows, file in zip(blocks, files, strict=True)]
    missing = [one for one in every[share[0] :: share[1]] if not one[-1].is_file()]
    of_processes = source.devices if backend != "threads" else 0  # each takes memory of a device
    do_parts(
        make_block,
        missing,
        workers=of_processes or threads or cores(),
        backend=backend,
        address=address,
        shown=lambda made: progress(made, unit="blocks", total=len(missing), what="neighbours"),
        gpus=float(source.devices > 0),
    )
    return files, sum(len(rows) for _, rows, *_ in missing)


def make_block(source: Any, rows: range, k: int, file: Path) -> None:
    """Write the neighbours of some documents, (R, k) of `ENTRY`; InputError: a similarity beyond float16."""
    with one_blas_thread(), np.errstate(over="ignore"):
        edges, scores = source.nearest(np.array(rows), k)
        entries = np.empty(edges.shape, dtype=ENTRY)
        entries["edge"], entries["weight"] = edges, scores
    if not (finite := np.isfinite(entries["weight"]).all(axis=1)).all():
        raise InputError(
            f"the inner products of {source.docids[rows[int(np.argmin(finite))]]} with its neighbours exceed 65504, "
            "the largest that a graph holds; make the vectors shorter, as with --encoder NAME:normalize=true"
        )
    put_array(file, entries)


def write_graph(
    source: GraphSource, output: str | os.PathLike[str], k: int = K, *, work: Path | None = None, **how: Any
) -> int:
    """Write the folder of a graph; returns how many documents an interrupted build had finished.

    k: at most N - 1 neighbours are kept; work: None = `<output>.partial`; how: threads, backend and address.

    Raises:
        InputError: fewer than two documents, a similarity beyond float16.
    """
    output, count = Path(output).expanduser(), len(source.docids)
    if count < 2:
        raise InputError(f"{counted(count, 'document')}: no neighbours; expected at least two documents")
    work, k = output.with_name(output.name + ".partial") if work is None else work, min(k, count - 1)
    files, made = make_blocks(source, k, work, **how)
    with folder_written_whole(output) as folder:
        write_files(folder, (np.load(file, allow_pickle=False) for file in files), k, source)
    if source.sampled:
        say(
            f"neighbours: {source.search} has found {source.recall:.1%} of the {k} nearest of "
            f"{counted(source.sampled, 'document')} that were looked for exactly"
        )
    shutil.rmtree(work)
    return count - made
