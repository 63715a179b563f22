"""Inner products of vectors kept in fewer bits, by PyTorch: quicker in wide contexts where the processor has such.

What is lost is for the bench to say; nothing takes them unless it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.private.torch import whole_products

Products = Literal["float32", "bfloat16", "int8"]
Product = Callable[[np.ndarray, np.ndarray], object]  # of (m, d) float32, into (m, m) float32


def product_of(products: str) -> Product:
    """What fills (m, m) float32 with the inner products of (m, d) float32, C order.

    "float32": numpy's. "bfloat16": of vectors rounded to 8 bits, products rounded so too. "int8": of vectors divided by
    a 127th of their largest entry and rounded, exact sums of whole numbers, times what they were divided by.

    Raises:
        InputError: another name; no PyTorch, where it is needed.
    """
    if products not in get_args(Products):
        raise InputError(f"products={products!r}: expected one of {', '.join(get_args(Products))}")
    if products == "float32":
        return lambda rows, out: np.matmul(rows, rows.T, out=out)  # both operands the same array: numpy calls syrk
    require("torch", f"products={products!r}", "torch")
    return _bfloat16 if products == "bfloat16" else _int8


def _bfloat16(rows: np.ndarray, out: np.ndarray) -> None:
    import torch

    narrow = torch.from_numpy(rows).bfloat16()
    torch.from_numpy(out).copy_(narrow @ narrow.T)


def _int8(rows: np.ndarray, out: np.ndarray) -> None:
    import torch

    scales = np.maximum(np.abs(rows).max(axis=1), np.float32(1e-30)) / np.float32(127.0)
    narrow = torch.from_numpy(np.rint(rows / scales[:, None]).astype(np.int8))
    sums = whole_products(narrow).numpy()
    np.multiply(sums, scales[:, None] * scales, out=out, casting="same_kind", dtype=np.float32)
