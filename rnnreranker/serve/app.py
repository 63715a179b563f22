"""The page and the JSON API as an application of FastAPI, and its server."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from functools import partial
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import Discriminator, Tag
from starlette.exceptions import HTTPException

from rnnreranker._version import __version__
from rnnreranker.base.errors import InputError, RnnrerankerError
from rnnreranker.serve import asked
from rnnreranker.serve.answers import explained_answer, search_answer
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.controls import controls
from rnnreranker.serve.guard import Guard, one_line, sentence
from rnnreranker.serve.question import SearchQuestion
from rnnreranker.serve.request import ServeRequest
from rnnreranker.serve.rerank import rerank_body, rerank_documents, rerank_texts
from rnnreranker.serve.work import RequestWorkers

TEMPLATES = {"base": "base.css", "search.explain": "style.css", "serve": "serve.css"}  # whose styles the page has
AS_OTHERS = ("/v1/rerank", "/v2/rerank")  # where clients of Cohere look for `message`, of Jina for `detail`


def _kind(body: Any) -> str:
    """The kind of a body of /rerank: with texts, with documents, or our own."""
    names = body if isinstance(body, dict) else getattr(type(body), "model_fields", {})
    return next((name for name in ("texts", "documents") if name in names), "own")


AnyRerankBody = Annotated[
    Annotated[asked.RerankBody, Tag("own")]
    | Annotated[asked.TextsBody, Tag("texts")]
    | Annotated[asked.DocumentsBody, Tag("documents")],
    Discriminator(_kind),
]


def make_app(collection: ServedIndex) -> Guard:
    """The application of an index; docs/serve.md lists its paths."""
    seconds = collection.limits.max_seconds
    work, work_alone = RequestWorkers(seconds).do, RequestWorkers(seconds, 1).do
    answers: dict[int | str, dict[str, Any]] = {"4XX": {"model": asked.Said}, "503": {"model": asked.Said}}
    about = "Search and rerank one index; every answer that is not 200 has one sentence in `error`."
    app = FastAPI(
        title="rnnreranker", version=__version__, description=about, docs_url=None, redoc_url=None, responses=answers
    )
    _say_errors(app)
    _add_page(app)

    def question(body: asked.SearchBody) -> SearchQuestion:
        """The question of a body; InputError: neither a text nor a topic, or both."""
        if (body.query is None) == (body.topic is None):
            raise InputError("query and topic: expected one of them")
        text = body.query if body.topic is None else collection.text(body.topic)
        hits = body.hits or min(SearchQuestion.hits, collection.limits.max_candidates)
        given = body.model_dump(include={"retrieve", "fuse", "prf", "expand", "rerank", "topic", "limit"})
        return SearchQuestion(str(text), hits=hits, **given)

    @app.get("/health")
    async def health() -> asked.Health:
        """That the server is there."""
        return asked.Health(index=collection.request.name, version=__version__)

    @app.get("/controls")
    async def offered() -> dict[str, Any]:
        """What can be chosen: first stages, rerankers with their settings, limits."""
        return controls(collection)

    @app.get("/topics")
    async def topics() -> list[dict[str, Any]]:
        """The topics that the server offers."""
        return collection.judged()

    @app.post("/search", response_model=asked.SearchAnswer)
    async def search(body: asked.SearchBody) -> Any:
        """Retrieve and rerank: the same ranks and scores as in `python -m rnnreranker.search`."""
        begun = time.perf_counter()
        answer = await work(lambda: search_answer(collection, question(body)))
        return answer | {"milliseconds": round(1000 * (time.perf_counter() - begun), 1)}

    @app.post("/explain", response_model=asked.ExplainAnswer)
    async def explain(body: asked.ExplainBody) -> Any:
        """Why candidates moved, as `search --explain` says it, and the picture of the neighbourhood."""
        return await work_alone(lambda: explained_answer(collection, question(body), body.size))

    @app.post("/rerank", response_model=asked.RerankAnswer | list[dict[str, Any]] | dict[str, Any])
    async def rerank(body: AnyRerankBody) -> Any:
        """Rerank docids, vectors or texts; also what clients of text-embeddings-inference, Jina and Cohere send."""
        if isinstance(body, asked.TextsBody):
            return await work(rerank_texts, collection, body)
        if isinstance(body, asked.DocumentsBody):
            return await work(rerank_documents, collection, body)
        return await work(rerank_body, collection, body)

    @app.post("/v1/rerank", response_model=dict[str, Any])
    @app.post("/v2/rerank", response_model=dict[str, Any])
    async def rerank_as_others(body: asked.DocumentsBody) -> Any:
        """What clients of Cohere and Jina send: texts are encoded by the encoder of the index."""
        return await work(rerank_documents, collection, body)

    @app.get("/documents/{docid:path}", response_model=asked.DocumentAnswer)
    async def document(docid: str) -> Any:
        """The text of a document."""
        text = await work(collection.document, docid)
        if text is None:
            raise HTTPException(404, f"document {docid[:80]}: not in this index, or it keeps no texts.")
        return {"docid": docid, "text": text}

    return Guard(app, collection.request)


def _add_page(app: FastAPI) -> None:
    style = "".join(_template(folder, name) for folder, name in TEMPLATES.items())
    files = {
        "/": (_template("serve", "page.html"), "text/html"),
        "/style.css": (style, "text/css"),
        "/page.js": (_template("serve", "page.js"), "text/javascript"),
        "/icon.svg": (_template("serve", "icon.svg"), "image/svg+xml"),
    }
    for path, (content, media_type) in files.items():
        app.add_route(path, partial(_file, content, media_type))


def _file(content: str, media_type: str, request: Request) -> Response:
    return Response(content, media_type=media_type)


def _template(folder: str, name: str) -> str:
    return resources.files(f"rnnreranker.{folder}").joinpath("templates", name).read_text(encoding="utf-8")


def _say_errors(app: FastAPI) -> None:
    async def answer(request: Request, error: Exception) -> JSONResponse:
        status, text = _said(request, error)
        names = ["error", *(("message", "detail") if request.url.path in AS_OTHERS else ())]
        return JSONResponse(dict.fromkeys(names, one_line(text)), status)

    for kind in (RequestValidationError, RnnrerankerError, TimeoutError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _said(request: Request, error: Exception) -> tuple[int, str]:
    if isinstance(error, RequestValidationError):
        faults = [_fault(one) for one in error.errors()[:3]]
        more = len(error.errors()) - len(faults)
        return 422, "; ".join(faults) + (f"; and {more} more" if more > 0 else "")
    if isinstance(error, HTTPException):
        usual = {404: f"{request.url.path[:80]}: there is no such path.", 405: f"{request.method}: not of this path."}
        own = error.detail not in ("Not Found", "Method Not Allowed")
        return error.status_code, error.detail if own else usual[error.status_code]
    if isinstance(error, TimeoutError):
        return 408, str(error)
    known = 400 if isinstance(error, InputError) else 503
    return known if isinstance(error, RnnrerankerError) else 500, sentence(error)


def _fault(one: dict[str, Any]) -> str:
    where = ".".join(str(step) for step in one["loc"] if step not in ("body", "own", "texts", "documents"))
    if one["type"] == "json_invalid":
        return "the body is not JSON"
    if one["type"] == "extra_forbidden":
        return f"{where[:80]}: no such field"
    return f"{where[:80] or 'the body'}: {one['msg'][:160]}"


def serve(request: ServeRequest) -> None:
    """Serve the page and the API until the process is interrupted; InputError: a port in use, a foreign host."""
    import uvicorn

    from rnnreranker.serve.app import make_app

    with contextlib.closing(_listening(request)) as listening:
        collection = ServedIndex(request)
        collection.warm()
        app = make_app(collection)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"serving {request.index} at http://{shown}:{port}/ (Ctrl-C ends it)", file=sys.stderr, flush=True)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False, ws="none"
        )
        uvicorn.Server(config).run(sockets=[listening])


def serve_tools(request: ServeRequest) -> None:
    """Serve the Model Context Protocol on stdin and stdout until the client leaves."""
    from rnnreranker.serve.tools import make_tools

    collection = ServedIndex(request)
    collection.warm()
    make_tools(collection).run("stdio")


def _listening(request: ServeRequest) -> socket.socket:
    family = socket.AF_INET6 if ":" in request.host else socket.AF_INET
    try:
        bound = socket.create_server((request.host.strip("[]"), request.port), family=family, backlog=256)
    except OSError as error:
        raise InputError(
            f"--host {request.host} --port {request.port}: cannot listen there ({error.strerror or error}); choose "
            "another port, 0 for any free one"
        ) from None
    bound.setblocking(False)
    return bound
