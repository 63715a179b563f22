"""Checks before each request: client, origin, size; and the headers of each answer."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from rnnreranker.base.errors import said_of, shown
from rnnreranker.serve.request import ServeRequest, is_local

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
OPEN = ("/", "/style.css", "/page.js", "/icon.svg", "/health")  # have nothing of the index, so that they need no token
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
BODY_SECONDS = 10.0  # in which the body of a request has to come
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
    return FOLDERS.sub("", one_line(said_of(error)))


def one_line(text: str) -> str:
    """A text on one line, without control characters and halves of surrogate pairs."""
    return " ".join(shown(text).split()).encode(errors="backslashreplace").decode()


class Refusal(Exception):
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said


class Guard:
    """An application behind the token and the limits of a server."""

    def __init__(self, app: App, request: ServeRequest) -> None:
        self._app, self._request = app, request
        self._limits = request.limits
        self._reading = self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        try:
            self._check(scope)
            if scope["path"] in OPEN:  # always answered
                await self._answer(scope, b"", receive, with_headers)
                return
            with self._counted("_reading"):
                body = await self._body(scope, receive)
            with self._counted("_at_work"):
                await self._answer(scope, body, receive, with_headers)
        except Refusal as refusal:
            await _say(with_headers, refusal.status, refusal.said)

    @contextlib.contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        """A block for at most `max_waiting` requests at once; Refusal 429 for more."""
        if getattr(self, name) >= self._limits.max_waiting:
            raise Refusal(429, f"{self._limits.max_waiting} requests are at work; ask again in a moment.")
        setattr(self, name, getattr(self, name) + 1)
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) - 1)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a request whose body was read; cancel the work when the client leaves."""
        answer = asyncio.ensure_future(self._app(scope, _replay(body, receive), send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                answer.result()
        finally:
            for task in (answer, gone):
                task.cancel()
            await asyncio.wait((answer, gone))

    def _check(self, scope: Scope) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        host = headers.get(b"host", b"").decode("latin-1")
        if self._request.local and not is_local(_name(host)):  # a page elsewhere whose name leads here
            raise Refusal(400, f"Host {host[:80]!r}: this server answers to localhost alone.")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            raise Refusal(
                403, f"Origin {origin[:80]!r}: this server answers its own page, and programs without Origin."
            )
        if self._request.token is not None and scope["path"] not in OPEN:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._request.token.encode()):
                raise Refusal(401, "Authorization: expected Bearer and the token that the server was started with.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        limit = self._limits.max_body
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise Refusal(413, f"The body has {int(length)} bytes; expected {limit} at most.")
        pieces: list[bytes] = []
        size = 0
        seconds = min(self._limits.max_seconds, BODY_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return b"".join(pieces)
                    size += len(message.get("body", b""))
                    if size > limit:
                        raise Refusal(413, f"The body has more than {limit} bytes.")
                    pieces.append(message.get("body", b""))
                    if not message.get("more_body"):
                        return b"".join(pieces)
        except TimeoutError:
            raise Refusal(408, f"The body did not come within {seconds:g} seconds.") from None


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read, and then the rest."""
    waiting = [body]

    async def again() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


async def _say(send: Send, status: int, said: str) -> None:
    body = json.dumps({"error": said}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
