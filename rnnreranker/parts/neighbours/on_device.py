"""Products of each two stretches of a collection in half precision, on devices of torch; float64 decides afterwards.

The products of two stretches are one file, which any process can make. The files of all pairs propose the nearest of
every document. A kept product is not below the true one: it is the product of the rounded vectors plus

    |q - q'| max |v| + |q'| max |v - v'| + (2^-11 + d 2^-23) |q'| max |v'|

where q' and v' are q and v in half precision, v runs over one stretch, and the last term bounds the rounding of a
product of d numbers summed in single precision. So the lowest kept product is above all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.files import fingerprint
from rnnreranker.parts.vectors.npy_files import map_array, put_array

STRIP = 32  # products whose maximum is looked at before them
LARGEST = 16384  # rows and columns of a block of products at most
LONGEST = 64.0  # vectors are made so long at most, for products that half precision holds
PROPOSED = np.dtype([("score", "<f4"), ("document", "<u4")])
STRETCHES = 16  # of a large collection; every document has proposals of each
LEAST = 8192  # documents of a stretch, where there are more
SPARE = 16  # documents proposed beyond a list and the document itself
Lists = tuple[np.ndarray, np.ndarray]  # scores (R, m) float32, -inf where there are fewer, and documents (R, m) int64


@dataclass(frozen=True)
class HalfProducts:
    """Where the products of stretches are made.

    Args:
        device: as torch names it; memory: bytes for a block of products and its vectors, None = half of the free
            memory; the half-precision vectors of both stretches come on top.
    """

    device: str
    memory: int | None = None

    def highest(self, fetch: Callable[[range], np.ndarray], own: range, others: range, count: int) -> list[Lists]:
        """The highest products of the documents of two stretches with each other's; of one stretch, with its own."""
        torch = require("torch", "a graph on a device", "torch")
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums are in single precision
        sides = [_Side(torch, self.device, fetch, stretch, count) for stretch in dict.fromkeys((own, others))]
        left, right = sides[0], sides[-1]
        size = self._rows(torch, left.halves.shape[1])
        for first in range(0, len(own), size):
            rows = slice(first, first + size)
            for start in range(first if left is right else 0, len(others), size):
                columns = slice(start, start + size)
                products = left.halves[rows] @ right.halves[columns].T
                left.join(rows, products, others.start + start, right)
                if left is not right or rows != columns:
                    right.join(columns, products.T.contiguous(), own.start + first, left)
        return [(side.scores.cpu().numpy(), side.documents.cpu().numpy()) for side in sides]

    def _rows(self, torch: Any, dimension: int) -> int:
        rows, memory = LARGEST, self.memory
        if memory is None:
            cuda = self.device.startswith("cuda")
            memory = int(torch.cuda.mem_get_info(self.device)[0] // 2) if cuda else 2**30
        while rows > STRIP and 2 * rows * (2 * rows + 4 * dimension) > memory:
            rows //= 2
        return rows


class _Side:
    """A stretch on a device: its scaled vectors in half precision, and the highest products of its documents so far."""

    def __init__(
        self, torch: Any, device: str, fetch: Callable[[range], np.ndarray], stretch: range, count: int
    ) -> None:
        self._torch = torch
        starts = range(stretch.start, stretch.stop, LARGEST)
        parts = [range(first, min(first + LARGEST, stretch.stop)) for first in starts]
        longest = max(float(np.linalg.norm(fetch(rows), axis=1).max()) for rows in parts)
        # a power of two, which changes no digit
        self.scale = 1.0 if longest == 0 else float(2.0 ** np.floor(np.log2(LONGEST / longest)))
        halves, lengths = [], []
        for rows in parts:
            vectors = torch.from_numpy(fetch(rows)).to(device).double()
            halves.append((vectors * self.scale).half())
            rounded = halves[-1].double() / self.scale
            lengths.append(torch.stack([one.norm(dim=1) for one in (vectors, rounded, vectors - rounded)]))
        self.halves = torch.cat(halves)
        self.lengths, self.kept, self.lost = torch.cat(lengths, dim=1)  # of vectors, as rounded, and of what that takes
        shape = len(stretch), count
        self.scores = torch.full(shape, -torch.inf, dtype=torch.float32, device=device)
        self.documents = torch.zeros(shape, dtype=torch.int64, device=device)

    def join(self, rows: slice, products: Any, first: int, other: _Side) -> None:
        """Keep the highest of scaled products (R, C) of some documents with those from `first` on."""
        scores, columns = self._best(products)
        scale, of_sums = self.scale * other.scale, 2.0**-11 + self.halves.shape[1] * 2.0**-23
        above = self.lost[rows] * other.lengths.max() + 2.0**-24 / scale
        above += self.kept[rows] * (other.lost.max() + of_sums * other.kept.max())
        scores = self._torch.cat([self.scores[rows], scores.float() / scale + above.float()[:, None]], dim=1)
        documents = self._torch.cat([self.documents[rows], columns + first], dim=1)
        self.scores[rows], chosen = scores.topk(self.scores.shape[1], dim=1)
        self.documents[rows] = documents.gather(1, chosen)

    def _best(self, products: Any) -> tuple[Any, Any]:
        """The highest of every row, and their columns, by the highest strip maxima."""
        count, strips = self.scores.shape[1], products.shape[1] // STRIP
        if products.shape[1] % STRIP or strips <= count:
            return tuple(products.topk(min(count, products.shape[1]), dim=1))
        by_strips = products.view(len(products), strips, STRIP)
        highest = by_strips.amax(2).topk(count, dim=1).indices
        inside = by_strips.gather(1, highest[:, :, None].expand(-1, -1, STRIP)).reshape(len(products), -1)
        scores, chosen = inside.topk(count, dim=1)
        return scores, highest.gather(1, chosen // STRIP) * STRIP + chosen % STRIP


@dataclass(frozen=True)
class Pairs:
    """All pairs of stretches of a collection, and the files of their proposals.

    Args:
        source: of the vectors; count: m, products kept of a document, from each stretch.
        stretches: all documents; half: the devices that make the products, in turn.
        files: of the pairs, the first number not above the second.
    """

    source: Any
    count: int
    stretches: list[range]
    files: dict[tuple[int, int], Path]
    half: tuple[HalfProducts, ...]

    @classmethod
    def of(cls, source: Any, k: int, block: int, work: Path, half: tuple[HalfProducts, ...]) -> Pairs:
        """The pairs for a graph with k neighbours; a stretch is whole blocks of `block`, files are in the folder
        `work`.
        """
        count = len(source.docids)
        size = -(-max(LEAST, -(-count // STRETCHES)) // block) * block
        stretches = [range(first, min(first + size, count)) for first in range(0, count, size)]
        mark = fingerprint(source.fingerprint, k, size, SPARE)
        pairs = [(one, other) for one in range(len(stretches)) for other in range(one, len(stretches))]
        files = {(one, other): work / f"{one:03d}x{other:03d}-{mark}.npy" for one, other in pairs}
        return cls(source, min(count, k + 1 + SPARE), stretches, files, half)

    def make(self, pair: tuple[int, int]) -> None:
        """Write the file of two stretches, (A + B, m) of `PROPOSED`, or of one with itself, (A, m)."""
        own, others = (self.stretches[number] for number in pair)
        made = self.half[sum(pair) % len(self.half)].highest(self._fetch, own, others, self.count)
        proposed = np.empty((sum(len(scores) for scores, _ in made), self.count), dtype=PROPOSED)
        proposed["score"] = np.concatenate([scores for scores, _ in made])
        proposed["document"] = np.concatenate([documents for _, documents in made])
        put_array(self.files[pair], proposed)

    def nearest(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Edges and similarities (R, k) of successive rows of one stretch, among the proposals of the files."""
        number = next(at for at, one in enumerate(self.stretches) if int(rows[0]) in one)
        begin = int(rows[0]) - self.stretches[number].start
        proposed = []
        for (one, other), file in self.files.items():
            if number in (one, other):
                first = begin + (len(self.stretches[one]) if number != one else 0)
                proposed.append(map_array(file)[first : first + len(rows)])
        joined = np.concatenate(proposed, axis=1)
        order = np.argsort(-joined["score"], axis=1, kind="stable")[:, : self.count]
        best = np.take_along_axis(joined, order, axis=1)
        nearest: tuple[np.ndarray, np.ndarray] = self.source.nearest(
            rows, k, proposed=(best["score"], best["document"].astype(np.int64))
        )
        return nearest

    def _fetch(self, rows: range) -> np.ndarray:
        return self.source.vectors.fetch(np.array(rows))
