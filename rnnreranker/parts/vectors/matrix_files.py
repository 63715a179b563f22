"""Vectors in memory-mapped `.npy` matrices with a file of ids beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.parts.vectors.exact import by_blocks, exact_search
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.mapped import MappedRows, map_matrix
from rnnreranker.parts.vectors.validity import check_fetch, check_finite, check_search

QUERIES = 256  # searched at a time
BLOCK = 2**27  # bytes of the matrix that a search turns into float32 at a time


class MatrixVectors:
    """A `VectorSource` over one `.npy` matrix, or several that stand behind each other.

    Args:
        paths: the matrices, (n, d) float32 or float16 each, of one width and type, in their order.
        ids: the file with as many docids as there are rows in all, one a line.

    Raises:
        InputError: files that are missing, cut short, of the wrong kind, or of different widths or lengths.
    """

    exact = True

    def __init__(self, paths: Path | Sequence[Path], ids: Path) -> None:
        paths = [paths] if isinstance(paths, Path) else list(paths)
        matrices = [map_matrix(path) for path in paths]
        for path, matrix in zip(paths, matrices, strict=True):
            if (matrix.shape[1], matrix.dtype) != (matrices[0].shape[1], matrices[0].dtype):
                raise InputError(
                    f"{path}: has {matrix.shape[1]} dimensions of {matrix.dtype}, {paths[0].name} has "
                    f"{matrices[0].shape[1]} of {matrices[0].dtype}; expected shards of one matrix"
                )
        whole = paths[0] if len(paths) == 1 else paths[0].parent
        rows = MappedRows(matrices)
        if not ids.is_file():
            raise InputError(f"{ids}: no such file; {whole} needs its {len(rows)} docids there, one a line")
        self._use(rows, whole, read_ids(ids), [*paths, ids])

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process maps the files again."""
        *paths, ids = (path.absolute() for path in self._files)
        return MatrixVectors, (paths, ids)

    def _use(self, rows: MappedRows, path: Path, ids: Ids, files: Sequence[Path]) -> None:
        self._matrix, self._path, self._ids, self._files = rows, path, ids, files
        self.docids: Sequence[str] = ids.names
        self.dimension = rows.dimension
        if len(self.docids) != len(rows):
            raise InputError(
                f"{files[-1]}: has {len(self.docids)} docids but {path} has {len(rows)} rows; expected as many"
            )

    @cached_property
    def fingerprint(self) -> str:
        """What tells these vectors and docids from others."""
        return fingerprint("matrix", *map(file_digest, self._files))

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        return self._ids.rows(docids)

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        rows, out = check_fetch(rows, out, len(self.docids), self.dimension)
        self._matrix.take(rows, out)
        check_finite(out, rows, self.docids, str(self._path))
        return out

    def search(
        self, queries: np.ndarray, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        queries, hits = check_search(queries, hits, self.dimension)
        scores: list[np.ndarray] = []
        rows: list[np.ndarray] = []
        for first in range(0, len(queries), QUERIES):  # bounds the memory; results do not depend on it
            part = exact_search(queries[first : first + QUERIES], hits, self.docids, self._propose, self.fetch)
            scores += part[0]
            rows += part[1]
        return scores, rows

    def _propose(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The best `count` rows of every query by float32 products, block by block."""
        step = max(count, BLOCK // (4 * self.dimension))

        def refuse(first: int, block: np.ndarray) -> None:
            check_finite(block, np.arange(first, first + len(block)), self.docids, str(self._path))

        return by_blocks(queries, count, self._matrix.blocks(step), refuse)
