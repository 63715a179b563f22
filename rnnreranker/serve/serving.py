"""From a request to a server that answers: the index is opened and warm before it listens."""

from __future__ import annotations

import contextlib
import socket
import sys

from rnnreranker.base.errors import InputError
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.request import ServeRequest


def serve(request: ServeRequest) -> None:
    """Serve the page and the API until the process is interrupted.

    Raises:
        InputError: a port that is taken, a host that is not this machine's; as `ServedIndex`.
    """
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
    """Answer a client of the Model Context Protocol on stdin and stdout until it leaves; errors as `ServedIndex`."""
    from rnnreranker.serve.tools import make_tools

    collection = ServedIndex(request)
    collection.warm()
    make_tools(collection).run("stdio")


def _listening(request: ServeRequest) -> socket.socket:
    """A socket that is bound, so that a taken port is told before an index is opened."""
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
