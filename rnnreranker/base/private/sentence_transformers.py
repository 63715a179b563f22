"""Of sentence-transformers 6.0: the tokens that MaxSim skips."""

from __future__ import annotations

from typing import Any

USED: dict[str, tuple[str, ...]] = {}  # `_skiplist_ids` is an attribute of objects, not of MultiVectorMask


def skipped_tokens(mask: Any) -> list[int]:
    """The ids of the tokens that a mask of late interaction skips, ascending."""
    return [] if mask._skiplist_ids is None else sorted(mask._skiplist_ids.tolist())
