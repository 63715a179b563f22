"""Blocks of encoded parts before the documents stream by: made by the workers of a cluster, or one process's share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from rnnreranker.base.command import cores, progress
from rnnreranker.base.device import Devices
from rnnreranker.base.process.backends import CLUSTERS, do_parts
from rnnreranker.base.request import Share
from rnnreranker.data.document import Document
from rnnreranker.index.build import blocks_of
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.base import Part, part
from rnnreranker.parts.encoded import PartByEncoder

Job = tuple[str, Any, Devices | None, int | None, list[str], Path]  # what `encode_block` takes


def encode_ahead(
    documents: Iterable[Document],
    parts: Iterable[Part],
    request: IndexRequest,
    work: Path,
    share: Share = (0, 1),
) -> tuple[int, int]:
    """Make the files of blocks that `write_index` and `add_parts` take where they are: how many now, and of how many.

    No lock is taken: several processes with a share each, of this machine or others, work in one folder.

    Args:
        documents: all of the index; parts: those of the request that an encoder makes, others are left out.
        request: their settings, the backend, and threads: blocks at a time, each with one thread; of the backend
            `threads`, threads of one block after the other.
        work: the folder of `Part.start`.
        share: of this process.

    Raises:
        InputError, UnavailableError: as `Part.make` and `do_parts`.
    """
    threads = request.threads
    makers = [one for one in parts if isinstance(one, PartByEncoder) and one.encoder]
    for maker in makers:
        maker.start(work, threads)
    made, own = 0, 0
    alone = request.backend == "threads"  # one block after the other, on all cores

    def jobs() -> Iterator[Job]:
        nonlocal made, own
        for number, block in enumerate(blocks_of(documents, makers)):
            if number % share[1] != share[0]:
                continue
            for maker in makers:
                own += 1
                if not (file := maker.file_of(number, block)).is_file():
                    made += 1
                    params = request.chosen[maker.name].params
                    given = threads if alone else 1
                    yield maker.name, params, maker.devices, given, [document.text for document in block], file

    elsewhere = request.devices is not None and request.devices.elsewhere
    do_parts(
        encode_block,
        jobs() if makers else (),
        workers=1 if alone else threads or cores(),
        backend=request.backend,
        address=request.address,
        gpus=1 if elsewhere and request.backend in CLUSTERS else 0,
        shown=partial(progress, unit="blocks", what="index"),
    )
    return made, own


def encode_block(
    name: str, params: Any, devices: Devices | None, threads: int | None, texts: list[str], file: Path
) -> None:
    """Make the file of a block of a part with these settings."""
    _maker(name, params, devices).encode_into(file, texts, threads)


@lru_cache(maxsize=4)
def _maker(name: str, params: Any, devices: Devices | None) -> PartByEncoder:
    """What encodes, loaded once in a process."""
    maker = part(name).make(params, {})
    assert isinstance(maker, PartByEncoder)
    maker.devices = devices
    return maker
