"""The page and the JSON API as an application of FastAPI, and its server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from rnnreranker._version import __version__
from rnnreranker.base.errors import InputError, RnnrerankerError
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.controls import controls
from rnnreranker.serve.guard import Guard, refusal, sentence
from rnnreranker.serve.question import DocumentsBody, ExplainBody, RerankBody, SearchBody
from rnnreranker.serve.request import ServeRequest
from rnnreranker.serve.rerank import rerank_body, rerank_documents

TEMPLATES: list[str | tuple[str, str]] = [
    (f"rnnreranker.{name}", "templates") for name in ("serve", "base", "search.explain")
]  # files of the page


def make_app(collection: ServedIndex) -> Guard:
    """The application of an index; docs/serve.md lists its paths."""
    about = "Search and rerank one index; every answer that is not 200 has one sentence in `error`."
    app = FastAPI(title="rnnreranker", version=__version__, description=about, docs_url=None, redoc_url=None)
    for kind in (RequestValidationError, RnnrerankerError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer_of)

    @app.get("/health")
    async def health() -> dict[str, str]:
        """That the server is there."""
        return {"status": "ok", "index": collection.request.name, "version": __version__}

    @app.get("/controls")
    async def offered() -> dict[str, Any]:
        """What can be chosen: first stages, rerankers with their settings, limits, topics."""
        return controls(collection)

    @app.post("/search")
    async def search(body: SearchBody) -> dict[str, Any]:
        """Retrieve and rerank: the same ranks and scores as in `python -m rnnreranker.search`."""
        begun = time.perf_counter()
        answer = await asyncio.to_thread(collection.search, body)
        return answer | {"milliseconds": round(1000 * (time.perf_counter() - begun), 1)}

    @app.post("/explain")
    async def explain(body: ExplainBody) -> dict[str, Any]:
        """Why candidates moved, as `search --explain` says it, and the picture of the neighbourhood."""
        return await asyncio.to_thread(collection.explain, body, body.size)

    @app.post("/rerank")
    async def rerank(body: RerankBody) -> dict[str, Any]:
        """Rerank docids or vectors."""
        return await asyncio.to_thread(rerank_body, collection, body)

    @app.post("/v1/rerank")
    @app.post("/v2/rerank")
    async def rerank_texts(body: DocumentsBody) -> dict[str, Any]:
        """Rerank texts, as clients of Jina and Cohere send them."""
        return await asyncio.to_thread(rerank_documents, collection, body)

    @app.get("/documents/{docid:path}")
    async def document(docid: str) -> dict[str, str]:
        """The text of a document."""
        text = await asyncio.to_thread(collection.document, docid)
        if text is None:
            raise HTTPException(404, f"document {docid[:80]}: not in this index, or it keeps no texts.")
        return {"docid": docid, "text": text}

    app.mount("/", StaticFiles(packages=TEMPLATES, html=True))
    return Guard(app, collection.request)


async def _answer_of(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestValidationError):
        faults = [".".join(map(str, one["loc"]))[:80] + f": {one['msg'][:160]}" for one in error.errors()[:3]]
        return refusal(422, "; ".join(faults))
    if isinstance(error, HTTPException):
        return refusal(error.status_code, f"{request.method} {request.url.path[:80]}: {error.detail}")
    known = 400 if isinstance(error, InputError) else 503
    return refusal(known if isinstance(error, RnnrerankerError) else 500, sentence(error))


def serve(request: ServeRequest) -> None:
    """Serve the page and the API until the process is interrupted; InputError: a port in use, a foreign host."""
    import uvicorn

    family = socket.AF_INET6 if ":" in request.host else socket.AF_INET
    try:
        bound = socket.create_server((request.host.strip("[]"), request.port), family=family, backlog=256)
    except OSError as error:
        raise InputError(
            f"--host {request.host} --port {request.port}: cannot listen there ({error.strerror or error}); choose "
            "another port, 0 for any free one"
        ) from None
    with contextlib.closing(bound):
        bound.setblocking(False)
        collection = ServedIndex(request)
        collection.warm()
        app = make_app(collection)
        host, port = bound.getsockname()[:2]
        print(f"serving {request.index} at http://{host}:{port}/ (Ctrl-C ends it)", file=sys.stderr, flush=True)
        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
        uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", **quiet)).run(sockets=[bound])
