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
from rnnreranker.base.java import start_java
from rnnreranker.base.jobs import do_parts, one_blas_thread
from rnnreranker.base.settings import Share, setting
from rnnreranker.parts.base import Part, describe, described_part
from rnnreranker.parts.neighbours import nearest
from rnnreranker.parts.neighbours.graph import PART, VERSION, NeighbourGraph, open_neighbours, write_files
from rnnreranker.parts.neighbours.nearest import EXACT, GraphSource
from rnnreranker.parts.postings.source import ImpactSource
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.npy_files import put_array

K = 16
ROWS = 1024  # documents of a block
ENTRY = np.dtype([("edge", "<u4"), ("weight", "<f2")])


@dataclass(frozen=True)
class GraphParams(settings.Params):
    """Settings of a graph; None accepts any graph. InputError: values out of range, ivf of another part than dense."""

    k: int | None = setting(None, "neighbours of a document; none: 16", at_least=1)
    by: Literal["dense", "impact", "bm25"] | None = setting(
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
    made_of = ("dense", "impact", "bm25")

    @classmethod
    def make(cls, params: GraphParams, beside: Mapping[str, Any]) -> NeighboursPart:
        by: Any = next((one for one in cls.origins(params) if one in beside), None)
        return cls(replace(params, by=by))

    @classmethod
    def origins(cls, params: GraphParams) -> tuple[str, ...]:
        return (params.by,) if params.by else cls.made_of

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        """Whether an index has a whole graph of its own documents, with these settings; None = any."""
        if cls.at(index) is None or params is None:
            return cls.at(index) is not None
        try:
            graph = open_neighbours(index)
            made = graph.origin
            asked = ((params.by, made.of), (params.search, made.search), (source_mark(index, made.of), made.source))
            if any(one not in (None, other) for one, other in asked):
                return False
            graph.check_whole()
        except InputError:
            return False
        return params.k is None or graph.k == min(params.k, len(graph) - 1)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> NeighbourGraph:
        return open_neighbours(at, str(described.get("source", "")))

    def __init__(self, params: GraphParams | None = None) -> None:
        super().__init__(params)
        self._of = self.params.by or self.made_of[0]

    def check(self) -> None:
        if self._of == "bm25":
            start_java()

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
        search = self.params.search or ("exact" if self._of != "dense" else search_of(len(open_vectors(index).docids)))
        if self._of == "bm25" or search == "ivf":
            raise InputError(
                f"{argument('shard_id', share[0])}: a graph of {self._of} with search={search} is made by one process; "
                "leave it out, or give neighbours:search=exact here and to put it together"
            )
        source = self._source(index)
        k = min(self.params.k or K, len(source.docids) - 1)
        _, made, own = make_blocks(source, k, self._work, share, **self._how)
        return f"neighbours of {made} documents made, of {own - made} were there"

    def _source(self, index: Path, k: int = K) -> GraphSource:
        names = self.devices.names if self.devices is not None and self.devices.elsewhere else ()
        return graph_source(index, self._of, self._work, self.params.search, k, names)


def graph_source(
    index: Path, of: str, work: Path, search: str | None = None, k: int = K, devices: tuple[str, ...] = ()
) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        of: "dense", "impact" or "bm25"; work: a folder for an approximate index.
        search: as `GraphParams`; k: neighbours that an approximate index is to find; devices: as `DenseNeighbours`.

    Raises:
        InputError, UnavailableError: no such part, or one that cannot be used; as `bm25_words`.
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
        words = _impacts(index) if of == "impact" else nearest.bm25_words(index)
        source = nearest.WordNeighbours(words, of, source_mark(index, of))
    source.opened = (_opened, (index, of, work, search, k, devices, source.fingerprint))
    return source


def search_of(documents: int) -> str:
    return "exact" if documents <= EXACT else "ivf"


@lru_cache(maxsize=1)
def _opened(*arguments: Any) -> GraphSource:
    return graph_source(*arguments[:-1])


def _impacts(index: Path) -> ImpactSource:
    return ImpactSource(index, described_part(index, "impact"))


def source_mark(index: Path, of: str) -> str:
    """The fingerprint of what a graph is made of; for BM25 that of the texts."""
    if of == "dense":
        return open_vectors(index).fingerprint
    if of == "impact":
        return _impacts(index).fingerprint
    return fingerprint(
        "bm25", describe(index).get("content"), described_part(index, of).get("settings"), nearest.K1, nearest.B
    )


def make_blocks(
    source: GraphSource,
    k: int,
    work: Path,
    share: Share = (0, 1),
    *,
    threads: int | None = None,
    backend: str = "threads",
    address: str | None = None,
) -> tuple[list[Path], int, int]:
    """Make the missing files of one process's share of a graph; any process can make each of them.

    Returns all files, how many documents were made, and how many the share has.

    Args:
        source: N >= 2 documents; k: neighbours of a document, below N; work: the folder of the files.
        threads: files made at the same time, each with one BLAS thread; None = one per core.
        backend, address: as in `do_parts`; all workers must see the folder.
    """
    count, mark = len(source.docids), fingerprint(source.of, source.fingerprint, source.search, source.width, k, ROWS)
    work.mkdir(parents=True, exist_ok=True)
    starts = range(0, count, ROWS)
    files = {work / f"{first:010d}-{mark}-{VERSION}.npy": range(first, min(first + ROWS, count)) for first in starts}
    own = [(source, rows, k, file) for file, rows in files.items()][share[0] :: share[1]]
    missing = [one for one in own if not one[-1].is_file()]
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
    return [*files], sum(len(rows) for _, rows, *_ in missing), sum(len(rows) for _, rows, *_ in own)


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
    files, made, _ = make_blocks(source, k, work, **how)
    with folder_written_whole(output) as folder:
        write_files(folder, (np.load(file, allow_pickle=False) for file in files), k, source)
    if source.sampled:
        say(
            f"neighbours: {source.search} has found {source.recall:.1%} of the {k} nearest of "
            f"{counted(source.sampled, 'document')} that were looked for exactly"
        )
    shutil.rmtree(work)
    return count - made
