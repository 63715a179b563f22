"""Columns of Arrow tables, as LanceDB and DuckDB return them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    import pyarrow


def column_of(store: str, table: pyarrow.Table, name: str, advice: str) -> pyarrow.ChunkedArray:
    if name not in table.column_names:
        raise InputError(f"{store}: no column {name} among {', '.join(table.column_names)}; {advice}")
    return table.column(name)


def vectors_of(column: pyarrow.ChunkedArray) -> Sequence[Any] | np.ndarray:
    """(N, d) if all rows have as many numbers; else N rows, some perhaps None."""
    import pyarrow.compute as compute
    import pyarrow.types as types

    kind = column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return column.to_pylist()
    lengths = compute.list_value_length(column)
    if column.null_count or len(compute.unique(lengths)) != 1 or not lengths[0].as_py():
        return column.to_pylist()
    numbers = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks])
    return numbers.reshape(len(column), -1)
