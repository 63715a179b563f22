"""An encoder without weights: a text's vector counts its words, each in a place that a checksum gives it."""

from __future__ import annotations

import zlib

import numpy as np

from rnnreranker.plugins import TextModel


class Hashed(TextModel):
    """Sixteen counts of words, scaled to length 1."""

    name = "hashed"
    version = "1"
    dimension = 16

    def forward(self, batch: list[str]) -> np.ndarray:
        """(b, 16) float32."""
        counts = np.full((len(batch), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(batch):
            for word in text.lower().split():
                counts[row, zlib.crc32(word.encode()) % self.dimension] += 1
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)
