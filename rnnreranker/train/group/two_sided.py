"""Models that read queries and documents apart: their batches, what a loss takes of them, and texts of validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnreranker.encode.model_folder import TextKind
from rnnreranker.labels.soft import Labels
from rnnreranker.train.group.batch_teacher import BatchTeacher
from rnnreranker.train.group.groups import Group, LabelScale, scaled_labels
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.learner import GroupLearner
from rnnreranker.train.losses import BatchLoss, Loss
from rnnreranker.train.params import GroupParams


def documents_of(groups: Sequence[Group]) -> list[str]:
    """The U distinct documents of all groups, in their order."""
    return list(dict.fromkeys(docid for group in groups for docid in group.docids))


def in_groups(groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
    """Every query with the n candidates of its own group.

    Returns:
        (B, n) each: columns int64, of `docids`; targets float32; positive and valid bool, all valid.
    """
    positive = np.stack([group.positive for group in groups])
    return _tensors(_columns(groups, docids), np.stack([g.targets for g in groups]), positive, np.ones_like(positive))


def in_batch(groups: Sequence[Group], docids: Sequence[str], teacher: BatchTeacher | None = None) -> dict[str, Tensor]:
    """Every query with the candidates of all groups.

    A teacher's targets are the softmax of its scores over all of them (paper 002, eqs. 2, 3 and 6: every passage p').
    Without a teacher a query's known positives in other groups are not valid, as they are no negatives, and candidates
    of other groups have the targets that the labels of the query give them, 0 where they do not know them. The targets
    of a query sum to 1 over what is valid.

    Returns:
        As `in_groups`, (B, U) each.
    """
    shape = len(groups), len(docids)
    columns = _columns(groups, docids)
    valid = np.array([[teacher is not None or docid not in group.known for docid in docids] for group in groups])
    np.put_along_axis(valid, columns, True, axis=1)
    positive = np.zeros(shape, dtype=bool)
    np.put_along_axis(positive, columns, np.stack([group.positive for group in groups]), axis=1)
    if teacher is None:
        targets = np.where(valid, np.stack([group.targets_of(docids) for group in groups]), 0)
    else:
        pools = [group.pool for group in groups if group.pool is not None]
        logits = teacher.logits(pools, docids)
        targets = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float32)
    targets /= targets.sum(axis=1, keepdims=True)
    return _tensors(np.broadcast_to(np.arange(shape[1]), shape), targets, positive, valid)


def with_scaled_labels(
    label: dict[str, Tensor], groups: Sequence[Group], docids: Sequence[str], scale: LabelScale
) -> dict[str, Tensor]:
    """What `in_groups` or `in_batch` says, with scaled labels for targets: 0 where the labels know none."""
    rows = np.zeros((len(groups), len(docids)), dtype=np.float32)
    for row, group in enumerate(groups):
        assert group.pool is not None
        known = dict(zip(group.pool.docids, scaled_labels(group.pool, scale).tolist(), strict=True))
        rows[row] = [known.get(docid, 0.0) for docid in docids]
    return label | {"targets": torch.from_numpy(rows).gather(1, label["columns"])}


def _columns(groups: Sequence[Group], docids: Sequence[str]) -> np.ndarray:
    columns = {docid: column for column, docid in enumerate(docids)}
    return np.array([[columns[docid] for docid in group.docids] for group in groups])


def _tensors(columns: np.ndarray, targets: np.ndarray, positive: np.ndarray, valid: np.ndarray) -> dict[str, Tensor]:
    given = {"columns": columns, "targets": targets, "positive": positive, "valid": valid}
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in given.items()}


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
    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        """What `loss` takes of texts."""

    @abstractmethod
    def parts(self, features: dict[str, Tensor], kind: TextKind) -> Iterable[Any]:
        """What the model makes of texts that stand in about the order of their lengths, some of them at a time."""

    @abstractmethod
    def joined(self, parts: list[Any], rows: np.ndarray) -> Any:
        """All texts in their order: the rows of what stands in `parts`, one part after the other."""

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
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


def of_columns(loss: Loss, scores: Tensor, labels: Mapping[str, Tensor], begin: str = "") -> Tensor:
    """A loss of the scores (B, U) of every query with every document, at the columns that the labels of a batch name.

    begin: before the names of what the labels say.
    """
    own = {name: labels[f"{begin}{name}"] for name in ("columns", "targets", "positive", "valid")}
    return loss(scores.gather(1, own.pop("columns")), **own)


TOKENS = {"cpu": 2**11, "cuda": 2**17}  # padded tokens of the texts that go through the model together


def padded_parts(features: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
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
