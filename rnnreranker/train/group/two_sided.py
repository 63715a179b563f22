"""What models share that read queries and documents apart: their batches, and the texts of validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from rnnreranker.encode.model_settings import TextKind
from rnnreranker.labels.soft import Labels
from rnnreranker.train.group.batch import documents_of, in_batch, in_groups
from rnnreranker.train.group.groups import Group
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.learner import GroupLearner
from rnnreranker.train.losses import BatchLoss, Loss
from rnnreranker.train.params import GroupParams

AT_ONCE = 256  # texts of validation that are cut into tokens together


class TwoSidedLearner(GroupLearner):
    """See `GroupLearner`; a subclass says what its model makes of texts.

    Attributes:
        wide: whether the documents of all groups of a batch are candidates of each of its queries.
    """

    def __init__(self, encoder: str, params: GroupParams, ranking: Loss, inputs: GroupInputs) -> None:
        super().__init__(encoder, params, ranking, inputs)
        self.wide = isinstance(ranking, BatchLoss) or params.of_batch

    @abstractmethod
    def features(self, texts: list[str], kind: TextKind) -> dict[str, torch.Tensor]:
        """What `loss` takes of texts."""

    @abstractmethod
    def parts(self, features: dict[str, torch.Tensor], kind: TextKind) -> Iterable[Any]:
        """What the model makes of texts that stand in about the order of their lengths, some of them at a time."""

    @abstractmethod
    def joined(self, parts: list[Any], rows: np.ndarray) -> Any:
        """All texts in their order: the rows of what stands in `parts`, one part after the other."""

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, torch.Tensor]:
        """Which of the documents of a batch are whose, with which targets."""
        return (in_batch if self.wide else in_groups)(groups, docids)

    def batch(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Tokens of the queries and of the distinct documents of all groups, and which documents are whose."""
        docids = documents_of(groups)
        sides: dict[TextKind, list[str]] = {
            "query": [self.inputs.queries[group.qid] for group in groups],
            "document": [self.inputs.documents[docid] for docid in docids],
        }
        features = {
            f"{kind}_{name}": value
            for kind, texts in sides.items()
            for name, value in self.features(texts, kind).items()
        }
        return {"label": self.label(groups, docids), **features}

    def encoded(self, lists: Sequence[Labels]) -> tuple[Any, Any, list[list[int]]]:
        """The queries of lists, their distinct documents, and which of these are the candidates of each query."""
        docids = list(dict.fromkeys(docid for one in lists for docid in one.docids))
        column_of = {docid: column for column, docid in enumerate(docids)}
        queries = self._side([self.inputs.queries[one.qid] for one in lists], "query")
        documents = self._side([self.inputs.documents[docid] for docid in docids], "document")
        return queries, documents, [[column_of[docid] for docid in one.docids] for one in lists]

    def _side(self, texts: list[str], kind: TextKind) -> Any:
        order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
        parts: list[Any] = []
        for start in range(0, len(order), AT_ONCE):
            features = self.features([texts[i] for i in order[start : start + AT_ONCE]], kind)
            parts += self.parts({name: value.to(self.model.device) for name, value in features.items()}, kind)
        return self.joined(parts, np.argsort(order))


def of_columns(loss: Loss, scores: torch.Tensor, labels: Mapping[str, torch.Tensor], begin: str = "") -> torch.Tensor:
    """A loss of the scores (B, U) of every query with every document, at the columns that the labels of a batch name.

    begin: before the names of what the labels say.
    """
    own = {name: labels[f"{begin}{name}"] for name in ("columns", "targets", "positive", "valid")}
    return loss(scores.gather(1, own.pop("columns")), **own)


TOKENS = {"cpu": 2**11, "cuda": 2**17}  # padded tokens of the texts that go through the model together


def padded_parts(features: dict[str, torch.Tensor]) -> Iterator[dict[str, torch.Tensor]]:
    """The tensors (n, t) of texts that stand in order of their lengths, a part of the texts at a time, (c, longest).

    features: with `attention_mask`; texts are padded on the right.
    """
    lengths = features["attention_mask"].sum(dim=1).tolist()
    most = TOKENS[features["attention_mask"].device.type]
    start = 0
    while start < len(lengths):
        stop = start + 1
        while stop < len(lengths) and max(lengths[start : stop + 1]) * (stop + 1 - start) <= most:
            stop += 1
        longest = max(lengths[start:stop])
        yield {name: value[start:stop, :longest] for name, value in features.items()}
        start = stop
