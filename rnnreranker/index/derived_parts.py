"""Parts that are made of others, for an index that stands there, whoever made it."""

from __future__ import annotations

import shutil
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.index.build import Built, add_parts
from rnnreranker.index.make import makers
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.description import describe
from rnnreranker.parts.needs import part, stored_parts, stored_settings
from rnnreranker.parts.vectors.ids import read_ids

DOCIDS = ("docid", "ids")  # files that have them, one of which an index must have


def make_beside(
    index: Path, request: IndexRequest, threads: int | None = None, overwrite: bool = False
) -> tuple[Built, list[str]]:
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
    described, there = describe(index), stored_parts(index)
    file = next((index / name for name in DOCIDS if (index / name).is_file()), index)
    for name, one in request.chosen.items():
        possible = part(name).origins(one.params)
        if file == index or not {*possible} & {*there, *request.names}:
            raise InputError(f"{index}: no index of {' or '.join(possible)} with docids, of which {name} could be made")
    beside = stored_settings(index, there) if described else dict.fromkeys(there)
    asked = request.chosen
    missing = [name for name in asked if overwrite or not part(name).stands(index, asked[name].params)]
    count = described["count"] if described else len(read_ids(file).names)
    if not missing:
        return Built(index, count, count), []
    made = makers(missing, request, beside, index)
    if described:
        return add_parts(index, made, threads=threads), missing
    for maker in made:
        work = index / f"{maker.name}.partial"
        maker.start(work, threads)
        maker.write(index, index / "corpus", count)
        shutil.rmtree(work)
    return Built(index, count, min(count, max(maker.reused for maker in made))), missing
