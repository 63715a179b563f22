"""Checks before each request: client, origin, size, time; and the headers of each answer."""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import time
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rnnreranker.base.errors import said_of, shown
from rnnreranker.serve.request import ServeRequest, is_local

OPEN = ("/", "/base.css", "/style.css", "/serve.css", "/page.js", "/icon.svg", "/health")  # need no token
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FOLDERS = re.compile(r"(?<![\w/.~-])(?:/|[A-Za-z]:\\)(?:[^\s/\\:;,'\"()]+[/\\])+")  # of an absolute path


def sentence(error: Exception) -> str:
    """An error for a client: one line, without the folders of this machine.

    >>> sentence(ValueError("/home/ann/index/dense: no such file, https://example.org/a/b is")).partition(": ")[2][:40]
    'dense: no such file, https://example.org'
    """
    return FOLDERS.sub("", said_of(error))


def refusal(status: int, text: str) -> JSONResponse:
    """An answer with one line: `error`, and the names that clients of Cohere (`message`) and Jina (`detail`) read."""
    line = " ".join(shown(text).split()).encode(errors="backslashreplace").decode()  # no halves of surrogate pairs
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(dict.fromkeys(("error", "message", "detail"), line), status, headers)


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)  # of a request, time.monotonic()


def begin(seconds: float) -> None:
    """Set the deadline of this request, for `check` in its threads."""
    _deadline.set(time.monotonic() + seconds)


def check() -> None:
    """Raise TimeoutError if the time of this request is over; called about once a second."""
    if time.monotonic() > _deadline.get():
        raise TimeoutError


class Guard:
    """An application behind the host, the token and the limits of a server."""

    def __init__(self, app: ASGIApp, request: ServeRequest) -> None:
        self._app, self._request, self._at_work = app, request, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begun = False

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        seconds, most = self._request.limits.max_seconds, self._request.limits.max_waiting
        refused, counts = self._refused(Request(scope)), scope["path"] not in OPEN
        if refused is None and counts and self._at_work >= most:
            refused = refusal(429, f"{most} requests are at work; ask again in a moment.")
        if refused is not None:
            await refused(scope, receive, with_headers)
            return
        self._at_work += counts
        begin(seconds)
        try:
            async with asyncio.timeout(seconds):  # of the body and the work
                await self._app(scope, receive, with_headers)
        except TimeoutError:
            if not begun:
                late = refusal(408, f"This took longer than {seconds:g} seconds; ask for less.")
                await late(scope, receive, with_headers)
        finally:
            self._at_work -= counts

    def _refused(self, client: Request) -> JSONResponse | None:
        headers, limit, token = client.headers, self._request.limits.max_body, self._request.token
        host, origin, length = (headers.get(name, "") for name in ("host", "origin", "content-length"))
        name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
        if is_local(self._request.host) and not is_local(name):  # a page elsewhere whose name leads here
            return refusal(400, f"Host {host[:80]!r}: this server answers to localhost alone.")
        if origin and origin.partition("://")[2] != host:
            said = f"Origin {origin[:80]!r}: this server answers its own page, and programs without Origin."
            return refusal(403, said)
        if token is not None and client.scope["path"] not in OPEN:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
                return refusal(401, "Authorization: expected Bearer and the token that the server was started with.")
        if "transfer-encoding" in headers:
            return refusal(411, "Transfer-Encoding: expected a body with its Content-Length.")
        if length.isdigit() and int(length) > limit:
            return refusal(413, f"The body has {int(length)} bytes; expected {limit} at most.")
        return None
