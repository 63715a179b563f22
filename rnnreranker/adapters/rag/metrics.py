"""Checks of all frameworks' components: metrics, counts and names of fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rnnreranker.adapters.stores.metrics import COSINE, INNER, SQUARED_DISTANCE
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.given import count_of

METRICS = {"cosine": COSINE, "dot_product": INNER, "l2": SQUARED_DISTANCE.of_fusion()}


def checked_count(value: Any, argument: str) -> int | None:
    """The number of documents returned, None = all; InputError: no integer of at least one."""
    return None if value is None else count_of(value, argument)


def check_fields(component: str, given: Iterable[str], known: Iterable[str]) -> None:
    known = {*known}
    if unknown := [name for name in given if name not in known]:
        raise InputError(f"{component}: unknown field {unknown[0]}; {nearest(unknown[0], known)}")
