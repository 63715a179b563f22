"""What a loss takes of the groups of a batch: which of its documents are whose, with which targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rnnreranker.train.group.batch_teacher import BatchTeacher
from rnnreranker.train.group.groups import Group, LabelScale, scaled_labels


def documents_of(groups: Sequence[Group]) -> list[str]:
    """The U distinct documents of all groups, in their order."""
    return list(dict.fromkeys(docid for group in groups for docid in group.docids))


def in_groups(groups: Sequence[Group], docids: Sequence[str]) -> dict[str, torch.Tensor]:
    """Every query with the n candidates of its own group.

    Returns:
        (B, n) each: columns int64, of `docids`; targets float32; positive and valid bool, all valid.
    """
    positive = np.stack([group.positive for group in groups])
    return _tensors(_columns(groups, docids), np.stack([g.targets for g in groups]), positive, np.ones_like(positive))


def in_batch(
    groups: Sequence[Group], docids: Sequence[str], teacher: BatchTeacher | None = None
) -> dict[str, torch.Tensor]:
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
    label: dict[str, torch.Tensor], groups: Sequence[Group], docids: Sequence[str], scale: LabelScale
) -> dict[str, torch.Tensor]:
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


def _tensors(
    columns: np.ndarray, targets: np.ndarray, positive: np.ndarray, valid: np.ndarray
) -> dict[str, torch.Tensor]:
    given = {"columns": columns, "targets": targets, "positive": positive, "valid": valid}
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in given.items()}
