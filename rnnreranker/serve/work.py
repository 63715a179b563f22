"""Work of requests in threads; it ends with its request: the client leaves or the time is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
LOOK = 0.2  # seconds after which it is asked whether the client is still there
_thread = threading.local()  # .ended: an event, set when the request ends that this thread works for


class RequestEnded(Exception):
    """The client no longer waits for the answer."""


def check() -> None:
    """Raise RequestEnded if the request of this thread has ended; called about once a second."""
    ended: threading.Event | None = getattr(_thread, "ended", None)
    if ended is not None and ended.is_set():
        raise RequestEnded


class RequestWorkers:
    """Threads that answer requests; count: of threads, None = as `ThreadPoolExecutor`."""

    def __init__(self, count: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="rnnreranker-serve")

    async def do(self, has_left: Callable[[], Awaitable[bool]] | None, function: Callable[..., T], *args: Any) -> T:
        """The result of a function in a thread; `check` ends it when this call is cancelled.

        has_left: whether the client has left; RequestEnded if it has.
        """
        ended = threading.Event()

        def work() -> T:
            _thread.ended = ended
            check()
            return function(*args)

        running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            while not (await asyncio.wait([running], timeout=LOOK))[0]:
                if has_left is not None and await has_left():
                    raise RequestEnded
            return running.result()
        finally:
            ended.set()
            running.cancel()
