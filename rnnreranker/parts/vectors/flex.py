"""Vectors in a FlexIndex folder of pyterrier_dr: `vecs.f4`, raw float32 rows, and `docnos`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files.json_files import read_json
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.mapped import MappedRows
from rnnreranker.parts.vectors.matrix_files import MatrixVectors


class FlexVectors(MatrixVectors):
    """A `VectorSource` over a FlexIndex.

    Args:
        folder: has `vecs.f4`, `pt_meta.json`, and docids in `docnos.npids` (needs the package npids) or, one a line, in
            `docnos`, `docnos.txt` or `docid`.

    Raises:
        InputError: files that are missing, cut short, or of different lengths.
        MissingDependencyError: `docnos.npids` without npids.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "vecs.f4"
        meta = _meta(folder)
        dimension, size = int(meta["vec_size"]), path.stat().st_size
        if dimension < 1 or size == 0 or size % (4 * dimension):
            raise InputError(f"{path}: {size} bytes are no whole number of rows of {dimension} float32; copy it again")
        matrix = np.memmap(path, dtype=np.float32, mode="r", shape=(size // (4 * dimension), dimension))
        expected = meta.get("doc_count", len(matrix))
        if expected != len(matrix):
            raise InputError(f"{path}: has {len(matrix)} rows, pt_meta.json says {expected}; copy the folder again")
        ids, origin = docnos_of(folder)
        self._use(MappedRows([matrix]), path, ids, [path, origin])

    def __reduce__(self) -> tuple[Any, ...]:
        return FlexVectors, (self._path.parent.absolute(),)


def _meta(folder: Path) -> dict[str, int]:
    path = folder / "pt_meta.json"
    meta = read_json(path, "description of a FlexIndex")
    if not isinstance(meta, dict) or type(meta.get("vec_size")) is not int:
        raise InputError(f"{path}: no vec_size; expected the description of a FlexIndex of pyterrier_dr")
    return meta


def docnos_of(folder: Path) -> tuple[Ids, Path]:
    """The docids in a folder of PyTerrier's and the file they are from: `docnos.npids`, or one of lines beside it.

    Raises:
        InputError: no docids there.
        MissingDependencyError: `docnos.npids` without npids.
    """
    for name in ("docnos", "docnos.txt", "docid"):
        if (folder / name).is_file():
            return read_ids(folder / name), folder / name
    packed = folder / "docnos.npids"
    if not packed.is_file():
        raise InputError(f"{packed}: no such file; expected its docids there")
    npids = require("npids", f"reading {packed}", "npids")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it may be of a format before the first
            _check_blocks(packed)
            with npids.Lookup(str(packed)) as lookup:
                names = [str(name) for name in lookup.fwd]
    except Exception as error:  # npids does not say what it raises on a file that is not its own
        raise InputError(
            f"{packed}: npids cannot read it ({' '.join(str(error).split())[:80]}); copy it again"
        ) from None
    ids = Ids(names, str(packed))
    ids.check()
    return ids, packed


def _check_blocks(packed: Path) -> None:
    """Look that each block of a file of npids names one behind it, or none: at another, npids would go round for ever.

    Raises:
        ValueError: one before it, or itself; whatever npids raises on a file that is not its own.
    """
    from npids.utils import FileManager

    with FileManager(str(packed), "r") as file:
        at = file.tell()
        while at != -1:
            file.seek(at)
            following = file.read_header()[1]
            if following != -1 and following <= at:
                raise ValueError(f"the block at byte {at} names one at {following} as the next")
            at = following
