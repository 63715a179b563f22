"""The graph of an index that stands there, whoever made it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.index.build import Built, add_parts
from rnnreranker.parts.description import describe
from rnnreranker.parts.neighbours import open_neighbours
from rnnreranker.parts.neighbours.graph import PART
from rnnreranker.parts.neighbours.params import GRAPHS, GraphParams
from rnnreranker.parts.neighbours.part import NeighboursPart, has_graph
from rnnreranker.parts.vectors import open_vectors


def make_graph(
    index: Path, params: GraphParams, threads: int | None = None, overwrite: bool = False
) -> tuple[Built, bool]:
    """The graph of an index that stands there, whoever made it, and whether it was made now.

    An index of this package says of it what it was made from. Of another folder, as Pyserini's Faiss folders, vectors
    and docids are read, and a folder `neighbours` is all that is written.

    Args:
        index: the folder; an interrupted work goes on.
        params: of the graph; a graph that is not as it says is replaced, with `overwrite` any. threads: as in
            `write_graph`.

    Raises:
        InputError: no index, one without docids or a part that a graph is of; as `write_graph`.
        UnavailableError: as `write_bm25_words`.
    """
    described = describe(index)
    parts = described["parts"] if described else {"dense": {}}
    possible = [params.of] if params.of else GRAPHS
    of = next((one for one in possible if one in parts), "")
    if not of or not any((index / name).is_file() for name in ("docid", "ids")):
        raise InputError(f"{index}: no index of {' or '.join(possible)} with docids, of which a graph could be made")
    if not overwrite and has_graph(index, params):
        count = len(open_neighbours(index))
        return Built(index, count, count), False
    part = NeighboursPart(replace(params, of=of))
    if described:
        return add_parts(index, [part], threads=threads), True
    work, count = index / f"{PART}.partial", len(open_vectors(index).docids)
    part.start(work, threads)
    part.write(index, index / "corpus", count)
    shutil.rmtree(work)
    return Built(index, count, part.reused), True
