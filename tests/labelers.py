"""Labelers by name and labels from lists, for tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnreranker import LabelParams, SoftLabels
from rnnreranker.base.method import Inputs, defaults_of, find
from rnnreranker.labels.methods.base import Labeler


def make_labeler(
    name: str, inputs: Inputs, params: Any = None, label_params: LabelParams | None = None, **others: Any
) -> Labeler:
    """The labeler of a name; parameters of another class are ignored, those of a base class get its defaults."""
    kind = find("labeler", name)
    own = params if isinstance(params, kind.Params) else None
    if own is None and params is not None and issubclass(kind.Params, type(params)):
        own = dataclasses.replace(defaults_of(kind), **params.to_dict())
    made: Labeler = kind(inputs, own, label_params, **others)
    return made


def soft_labels(
    qids: Sequence[str],
    docids: Sequence[Sequence[str]],
    scores: Sequence[Sequence[float]],
    targets: Sequence[Sequence[float]],
    positive: Sequence[Sequence[bool]],
    metadata: dict[str, Any] | None = None,
) -> SoftLabels:
    """Labels from one list per query in each column."""
    kinds: tuple[Any, ...] = (object, np.float32, np.float32, np.bool_)
    flat = [
        np.array([value for row in column for value in row], dtype=kind)
        for column, kind in zip((docids, scores, targets, positive), kinds, strict=True)
    ]
    return SoftLabels(tuple(qids), np.cumsum([0, *map(len, docids)], dtype=np.int64), *flat, metadata=metadata or {})
