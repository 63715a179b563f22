"""Of PyTorch 2.4 to 2.13: products of matrices of whole numbers in 8 bits."""

from __future__ import annotations

from typing import Any

USED = {"torch": ("_int_mm",)}


def whole_products(rows: Any) -> Any:
    """(n, n) int32: the products of all pairs of rows of an int8 tensor (n, d)."""
    import torch

    return torch._int_mm(rows, rows.T)
