"""What was computed last, in memory: bounded, and asked by several threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class LastUsed(Generic[V]):
    """The values of the keys that were asked for last.

    >>> kept = LastUsed[int](limit=2)
    >>> [kept.get(text, lambda text=text: len(text)) for text in ("a", "bb", "a", "ccc")], len(kept)
    ([1, 2, 1, 3], 2)
    >>> kept.get("a", lambda: 0), kept.get("bb", lambda: 0)
    (1, 0)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, made where it is not there; two threads may make the same."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)
