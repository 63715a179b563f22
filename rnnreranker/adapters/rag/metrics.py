"""What the frameworks' vectors are compared by; scores of their documents are higher where they are better."""

from __future__ import annotations

from rnnreranker.adapters.stores.metrics import COSINE, INNER, SQUARED_DISTANCE
from rnnreranker.base.errors import InputError

METRICS = {"cosine": COSINE, "dot_product": INNER, "l2": SQUARED_DISTANCE.of_fusion()}


def checked_count(value: int | None, argument: str) -> int | None:
    """How many documents are given back, None = all; InputError: less than one."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{argument}={value!r}: expected an integer >= 1")
    return value
