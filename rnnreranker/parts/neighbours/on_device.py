"""Products of two stretches of a collection in half precision, on a device of torch; float64 decides afterwards.

What is kept of a product is not below what it is in truth: the product of the rounded vectors and

    |q - q'| max |v| + |q'| max |v - v'| + (2^-11 + d 2^-23) |q'| max |v'|

where q' and v' are q and v in half precision, v goes through one stretch, and the last term is the rounding of a
product of d numbers that was summed in single precision. So the lowest that is kept is above all that is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.errors import require

STRIP = 32  # products whose maximum is looked at before them
LARGEST = 16384  # rows and columns of a block of products at most
LONGEST = 64.0  # vectors are made so long at most, for products that half precision holds
Lists = tuple[np.ndarray, np.ndarray]  # scores (R, m) float32, -inf where there are fewer, and documents (R, m) int64


@dataclass(frozen=True)
class HalfProducts:
    """Where the products of stretches are made.

    Args:
        device: as torch names it; memory: bytes of it for vectors and products, None = half of what is free.
    """

    device: str
    memory: int | None = None

    def highest(self, fetch: Callable[[range], np.ndarray], own: range, others: range, count: int) -> list[Lists]:
        """What the documents of two stretches have as the highest products with each other's; of one, with its own."""
        torch = require("torch", "a graph on a device", "torch")
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums are in single precision
        sides = [_Side(torch, self.device, fetch, rows, count) for rows in ([own] if own == others else [own, others])]
        left, right = sides[0], sides[-1]
        size = self._rows(left.dimension)
        for rows in left.parts(size):
            vectors = left.halves(rows)
            for columns in right.parts(size):
                if left is right and columns.start < rows.start:
                    continue
                products = vectors @ right.halves(columns).T
                left.join(rows, products, columns.start, right)
                if left is not right or rows != columns:
                    right.join(columns, products.T.contiguous(), rows.start, left)
        return [side.lists() for side in sides]

    def room(self) -> int:
        """Bytes of the device's memory that may be taken."""
        if self.memory is not None:
            return self.memory
        torch = require("torch", "a graph on a device", "torch")
        return int(torch.cuda.mem_get_info(self.device)[0] // 2) if self.device.startswith("cuda") else 2**30

    def _rows(self, dimension: int) -> int:
        """Of a block of products: it, twice, and the vectors of both sides fit the memory."""
        rows, memory = LARGEST, self.room()
        while rows > STRIP and 2 * rows * (2 * rows + 4 * dimension) > memory:
            rows //= 2
        return rows


class _Side:
    """A stretch on a device: how long its vectors are, and the highest so far of its documents."""

    def __init__(
        self, torch: Any, device: str, fetch: Callable[[range], np.ndarray], stretch: range, count: int
    ) -> None:
        self._torch, self._device, self._fetch, self._stretch = torch, device, fetch, stretch
        longest = max(float(np.linalg.norm(fetch(rows), axis=1).max()) for rows in self.parts(LARGEST))
        # a power of two, which changes no digit
        self.scale = 1.0 if longest == 0 else float(2.0 ** np.floor(np.log2(LONGEST / longest)))
        self.lengths, self.lost, self.kept = (np.empty(len(stretch)) for _ in range(3))
        for rows in self.parts(LARGEST):
            vectors = fetch(rows).astype(np.float64)
            self.dimension, at = vectors.shape[1], self._at(rows)
            halves = (vectors * self.scale).astype(np.float16).astype(np.float64) / self.scale
            self.lengths[at], self.kept[at] = np.linalg.norm(vectors, axis=1), np.linalg.norm(halves, axis=1)
            self.lost[at] = np.linalg.norm(vectors - halves, axis=1)
        shape = len(stretch), count
        self._scores = torch.full(shape, -torch.inf, dtype=torch.float32, device=device)
        self._documents = torch.zeros(shape, dtype=torch.int64, device=device)

    def parts(self, size: int) -> list[range]:
        """The stretch in parts of so many documents."""
        first, last = self._stretch.start, self._stretch.stop
        return [range(begin, min(begin + size, last)) for begin in range(first, last, size)]

    def halves(self, rows: range) -> Any:
        """Vectors, scaled, in half precision on the device."""
        scaled = (self._fetch(rows) * np.float32(self.scale)).astype(np.float16)
        return self._torch.from_numpy(scaled).to(self._device)

    def join(self, rows: range, products: Any, first: int, other: _Side) -> None:
        """Take what is among the highest of scaled products (R, C) of some documents with those from `first` on."""
        torch, at = self._torch, self._at(rows)
        scores, columns = self._best(products)
        of_sums = 2.0**-11 + self.dimension * 2.0**-23
        rounding = self.lost[at] * other.lengths.max() + self.kept[at] * (other.lost.max() + of_sums * other.kept.max())
        rounding += 2.0**-24 / (self.scale * other.scale)
        above = torch.from_numpy(rounding.astype(np.float32)).to(self._device)
        scores = scores.float() / (self.scale * other.scale) + above[:, None]
        joined = torch.cat([self._scores[at], scores], dim=1)
        best, chosen = joined.topk(self._scores.shape[1], dim=1)
        documents = torch.cat([self._documents[at], columns + first], dim=1)
        self._scores[at], self._documents[at] = best, documents.gather(1, chosen)

    def lists(self) -> Lists:
        """The highest of every document."""
        return self._scores.cpu().numpy(), self._documents.cpu().numpy()

    def _best(self, products: Any) -> tuple[Any, Any]:
        """The highest of every row, and their columns: they are in the strips of the highest maxima."""
        count, strips = self._scores.shape[1], products.shape[1] // STRIP
        if products.shape[1] % STRIP or strips <= count:
            return tuple(products.topk(min(count, products.shape[1]), dim=1))
        by_strips = products.view(len(products), strips, STRIP)
        highest = by_strips.amax(2).topk(count, dim=1).indices
        inside = by_strips.gather(1, highest[:, :, None].expand(-1, -1, STRIP)).reshape(len(products), -1)
        scores, chosen = inside.topk(count, dim=1)
        return scores, highest.gather(1, chosen // STRIP) * STRIP + chosen % STRIP

    def _at(self, rows: range) -> slice:
        return slice(rows.start - self._stretch.start, rows.stop - self._stretch.start)
