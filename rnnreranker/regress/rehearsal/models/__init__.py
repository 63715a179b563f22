"""Models as the hub and their authors hand them out, in architecture, files and names: two layers, 32 wide, drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files.atomic import folder_written_whole
from rnnreranker.regress.rehearsal.models import (
    albert,
    bert,
    colbert,
    cross_encoder,
    distilbert,
    electra,
    repbert,
    roberta,
)
from rnnreranker.regress.rehearsal.models.hub import cache, snapshot

KINDS = (bert, distilbert, roberta, electra, albert, cross_encoder, colbert, repbert)  # each has NAMES and write()


def known() -> Iterator[str]:
    """The models that there are miniatures of: ids of the hub, and folders."""
    return (name for kind in KINDS for name in kind.NAMES)


def write_models(folder: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Write the miniatures of models; those that are there already stay.

    Args:
        folder: that the steps are taken in: a model of a hub id goes into a cache of the hub below it, a folder as
            `checkpoints/repbert` beside that.
        wanted: ids of the hub and folders, as in `Needs.models`.

    Returns:
        The environment variables with which they are opened, and nothing is asked for over the network.

    Raises:
        InputError: a model that there is no miniature of.
    """
    for name in dict.fromkeys(wanted):
        kind = next((kind for kind in KINDS if name in kind.NAMES), None)
        if kind is None:
            raise InputError(f"{name}: no miniature of this model; {nearest(name, list(known()))}")
        path = folder / name if kind is repbert else snapshot(folder, name)
        if path.is_dir():
            continue
        with folder_written_whole(path) as new:
            kind.write(new, name)
    return cache(folder)
