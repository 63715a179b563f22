"""Vectors in memory-mapped matrices with docids: `.npy` files, and FlexIndex folders of pyterrier_dr."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.strict import read_json
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.mapped import MappedRows, map_matrix
from rnnreranker.parts.vectors.stored import VectorSource


def npy_vectors(paths: Sequence[Path], ids: Path) -> VectorSource:
    """The vectors in `.npy` matrices, (n, d) float32 or float16 each, with a file of docids, one a line.

    Raises:
        InputError: files that are missing, cut, of the wrong kind, or do not fit together.
    """
    matrices = [map_matrix(path) for path in paths]
    for path, matrix in zip(paths, matrices, strict=True):
        if (matrix.shape[1], matrix.dtype) != (matrices[0].shape[1], matrices[0].dtype):
            raise InputError(
                f"{path}: has {matrix.shape[1]} dimensions of {matrix.dtype}, {paths[0].name} has "
                f"{matrices[0].shape[1]} of {matrices[0].dtype}; expected shards of one matrix"
            )
    whole = paths[0] if len(paths) == 1 else paths[0].parent
    if not ids.is_file():
        rows = sum(map(len, matrices))
        raise InputError(f"{ids}: no such file; {whole} needs its {rows} docids there, one a line")
    return VectorSource(whole, read_ids(ids), MappedRows(matrices), files=[*paths, ids])


def flex_vectors(folder: Path) -> VectorSource:
    """The vectors of a FlexIndex: `vecs.f4`, raw float32 rows, `pt_meta.json`, and the docids of `docnos_of`.

    Raises:
        InputError: files that are missing, cut, or of different lengths.
    """
    path, about = folder / "vecs.f4", folder / "pt_meta.json"
    meta = read_json(about, "description of a FlexIndex")
    if not isinstance(meta, dict) or type(meta.get("vec_size")) is not int:
        raise InputError(f"{about}: no vec_size; expected the description of a FlexIndex of pyterrier_dr")
    dimension, size = meta["vec_size"], path.stat().st_size
    if dimension < 1 or size == 0 or size % (4 * dimension):
        raise InputError(f"{path}: {size} bytes are no whole number of rows of {dimension} float32; copy it again")
    matrix = np.memmap(path, dtype=np.float32, mode="r", shape=(size // (4 * dimension), dimension))
    expected = meta.get("doc_count", len(matrix))
    if expected != len(matrix):
        raise InputError(f"{path}: has {len(matrix)} rows, pt_meta.json says {expected}; copy the folder again")
    ids, origin = docnos_of(folder)
    return VectorSource(path, ids, MappedRows([matrix]), files=[path, origin])


def docnos_of(folder: Path) -> tuple[Ids, Path]:
    """The docids in a folder of PyTerrier's and their file: `docnos.npids`, or a file of lines.

    Raises:
        InputError, MissingDependencyError: no docids there; no package npids.
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
            with npids.Lookup(str(packed)) as lookup:
                ids = Ids([str(name) for name in lookup.fwd], str(packed))
    except Exception as error:  # npids does not say what it raises on a file that is not its own
        raise InputError(
            f"{packed}: npids cannot read it ({' '.join(str(error).split())[:80]}); copy it again"
        ) from None
    ids.check()
    return ids, packed
