"""Parts that are made of other parts of an existing index."""

from __future__ import annotations

import shutil
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.request import Share
from rnnreranker.index.build import Built, add_parts, work_of
from rnnreranker.index.make import makers
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.base import Part, describe, part, stored_parts, stored_settings
from rnnreranker.parts.vectors.ids import read_ids

DOCIDS = ("docid", "ids")  # files that have them, one of which an index must have


def make_share(index: Path, request: IndexRequest, share: Share) -> list[tuple[str, str]]:
    """One process's share of parts that are made of others, in files that `make_beside` puts together.

    No lock is taken: several processes, each with a number of its own, work at the same time on an index that all see.

    Args:
        index, request: as of `make_beside`; share: of this process.

    Returns:
        The parts that are not there yet, each with what was made of it.

    Raises:
        InputError, UnavailableError: as `make_beside`; a part that one process makes.
    """
    _, makers_of = _to_make(index, request)
    made = []
    for maker in makers_of:
        maker.start(_work_of(index, maker), request.threads)
        made.append((maker.name, maker.write_share(index, share)))
    return made


def _work_of(index: Path, maker: Part) -> Path:
    """The folder of what is kept of a part until it is whole."""
    return work_of(index) if describe(index) else index / f"{maker.name}.partial"


def make_beside(index: Path, request: IndexRequest) -> tuple[Built, list[str]]:
    """Parts that are made of others, as a graph, of an index that stands there; and those that were made now.

    An index of this package says of a part what it was made from. Of another folder, as Pyserini's Faiss folders, what
    the part is made of is read, and the folder of the part is all that is written.

    Args:
        index: the folder; an interrupted work goes on.
        request: its parts are made of others; one that is not as it says is replaced, with `overwrite` any. threads: as
            of `Part.start`.

    Raises:
        InputError: no index, one without docids or without a part that these are made of; as `Part.write`.
        UnavailableError: as `Part.check`.
    """
    count, made = _to_make(index, request)
    names = [maker.name for maker in made]
    if not made:
        return Built(index, count, count), []
    if describe(index):
        return add_parts(index, made, threads=request.threads), names
    for maker in made:
        work = _work_of(index, maker)
        maker.start(work, request.threads)
        maker.write(index, index / "corpus", count)
        shutil.rmtree(work)
    return Built(index, count, min(count, max(maker.reused for maker in made))), names


def _to_make(index: Path, request: IndexRequest) -> tuple[int, list[Part]]:
    """How many documents there are, and what makes those parts of a request that are not there as it says."""
    described, there = describe(index), stored_parts(index)
    file = next((index / name for name in DOCIDS if (index / name).is_file()), index)
    for name, one in request.chosen.items():
        possible = part(name).origins(one.params)
        if file == index or not {*possible} & {*there, *request.names}:
            raise InputError(f"{index}: no index of {' or '.join(possible)} with docids, of which {name} could be made")
    beside = stored_settings(index, there) if described else dict.fromkeys(there)
    asked = request.chosen
    missing = [name for name in asked if request.overwrite or not part(name).stands(index, asked[name].params)]
    count = described["count"] if described else len(read_ids(file).names)
    return count, makers(missing, request, beside, index) if missing else []
