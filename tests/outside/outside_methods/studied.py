"""How a kind of training is studied: its encoder searches all documents."""

from __future__ import annotations

from typing import Any

from rnnreranker import Run
from rnnreranker.encode.dense.encoder import Encoder
from rnnreranker.plugins import StudiedModel


class StudiedAsItIs(StudiedModel):
    """The encoder that was copied, tested by inner products with all documents."""

    name = "as-it-is"

    def tested(self, model: str, task: Any) -> dict[str, Any]:
        """The values of the documents in the order of their inner products with a query."""
        encoder = Encoder.load(model, pooling="mean")
        documents = encoder.encode(list(self.documents.values()))
        scores = encoder.encode([task.topics[qid] for qid in task.test]) @ documents.T
        rows = [dict(zip(self.documents, row.tolist(), strict=True)) for row in scores]
        return {"values": self.values(Run.from_dict(dict(zip(task.test, rows, strict=True))), task)}
