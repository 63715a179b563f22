"""Products of all vectors of a collection in half precision, on a device of torch; float64 decides afterwards.

A kept product is not below the true one: it is the product of the rounded vectors plus

    |q - q'| max |v| + |q'| max |v - v'| + (2^-11 + d 2^-23) |q'| max |v'|

where q' and v' are q and v in half precision, v runs over the collection, and the last term bounds the rounding of a
product of d numbers summed in single precision. So the lowest kept product is above all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.parts.vectors import VectorSource

STRIP = 32  # products whose maximum is looked at before them
COLUMNS = 2**16  # documents that a block of rows is compared with at a time
READ = 2**14  # documents that are rounded at a time
LONGEST = 64.0  # vectors are made so long at most, for products that half precision holds


class OnDevice:
    """The vectors of a collection on a device, in half precision: two bytes a number of its memory.

    device: as torch names it.
    """

    def __init__(self, device: str, vectors: VectorSource) -> None:
        self._torch = torch = require("torch", "a graph on a device", "torch")
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums are in single precision
        self._device, count = device, len(vectors.docids)
        parts = [np.arange(first, min(first + READ, count)) for first in range(0, count, READ)]
        longest = max(float(np.linalg.norm(vectors.fetch(rows), axis=1).max()) for rows in parts)
        # a power of two, which changes no digit
        self._scale = 1.0 if longest == 0 else float(2.0 ** np.floor(np.log2(LONGEST / longest)))
        self._halves = torch.empty((count, vectors.dimension), dtype=torch.float16, device=device)
        self._most = np.zeros(3)  # the largest lengths of vectors, as rounded, and of what that takes
        for rows in parts:
            self._halves[rows[0] : rows[-1] + 1], lengths = self._rounded(vectors.fetch(rows))
            self._most = np.maximum(self._most, lengths.max(axis=1))

    def propose(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The highest products (Q, count) float32 of (Q, d) float32, descending, and rows (Q, count) int64."""
        (halves, (_, kept, lost)), torch = self._rounded(queries), self._torch
        longest, rounded, rounding = self._most
        above = lost * longest + kept * (rounding + (2.0**-11 + queries.shape[1] * 2.0**-23) * rounded)
        scores = torch.empty((len(queries), 0), dtype=torch.float16, device=self._device)
        rows = torch.empty((len(queries), 0), dtype=torch.int64, device=self._device)
        for start in range(0, len(self._halves), COLUMNS):
            highest, columns = self._best(halves @ self._halves[start : start + COLUMNS].T, count)
            joined = torch.cat([scores, highest], dim=1)
            scores, chosen = joined.topk(min(count, joined.shape[1]), dim=1)
            rows = torch.cat([rows, columns + start], dim=1).gather(1, chosen)
        values = scores.cpu().numpy().astype(np.float64) / self._scale**2 + (above + 2.0**-24 / self._scale**2)[:, None]
        return values.astype(np.float32), rows.cpu().numpy()

    def _rounded(self, vectors: np.ndarray) -> tuple[Any, np.ndarray]:
        """Scaled vectors in half precision, and (3, n) float64 lengths as in `_most`."""
        exact = self._torch.from_numpy(vectors).to(self._device).double()
        halves = (exact * self._scale).half()
        rounded = halves.double() / self._scale
        return halves, np.stack([one.norm(dim=1).cpu().numpy() for one in (exact, rounded, exact - rounded)])

    def _best(self, products: Any, count: int) -> tuple[Any, Any]:
        """The highest of every row, and their columns, by the highest strip maxima."""
        strips = products.shape[1] // STRIP
        if products.shape[1] % STRIP or strips <= count:
            return tuple(products.topk(min(count, products.shape[1]), dim=1))
        by_strips = products.view(len(products), strips, STRIP)
        highest = by_strips.amax(2).topk(count, dim=1).indices
        inside = by_strips.gather(1, highest[:, :, None].expand(-1, -1, STRIP)).reshape(len(products), -1)
        scores, chosen = inside.topk(count, dim=1)
        return scores, highest.gather(1, chosen // STRIP) * STRIP + chosen % STRIP
