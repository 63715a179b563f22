"""The index as tools for a language model, by the Model Context Protocol: search, explain, get_document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rnnreranker._version import __version__
from rnnreranker.base.errors import RnnrerankerError
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.guard import begin, sentence
from rnnreranker.serve.question import SearchBody
from rnnreranker.serve.request import ServeRequest

ABOUT = (
    "Search one collection of documents and rerank the candidates by reciprocal nearest neighbours. search gives "
    "docids with the first line of their texts, get_document a whole text, explain why candidates moved."
)
QueryText = Annotated[str, Field(description="what is asked, in words")]
Limit = Annotated[int, Field(description="how many documents", ge=1, le=100)]
Rerank = Annotated[str, Field(description="rnn, with settings as rnn:k=20,lam=0.4, or none")]
Retrieve = Annotated[str, Field(description="first stage: auto, dense, bm25, or several joined by +")]


def make_tools(collection: ServedIndex) -> MCPServer:
    """The server of an index; an error is a sentence for the client."""
    seconds = collection.limits.max_seconds

    async def work(function: Callable[..., Any], *args: Any) -> Any:
        begin(seconds)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(function, *args)
        except TimeoutError:
            raise ToolError(f"This took longer than {seconds:g} seconds; ask for less.") from None
        except RnnrerankerError as error:
            raise ToolError(sentence(error)) from None

    server = MCPServer("rnnreranker", version=__version__, instructions=ABOUT, log_level="ERROR")

    @server.tool()
    async def search(
        query: QueryText, limit: Limit = 10, retrieve: Retrieve = "auto", rerank: Rerank = "rnn"
    ) -> list[dict[str, Any]]:
        """The best documents for a question: rank, docid, score, ranks moved by reranking, first line of the text."""
        body = SearchBody(query=query, limit=limit, retrieve=retrieve, rerank=rerank)
        return await work(lambda: collection.rows(collection.answer(body))[1])

    @server.tool()
    async def explain(
        query: QueryText, limit: Limit = 10, retrieve: Retrieve = "auto", rerank: Rerank = "rnn"
    ) -> dict[str, Any]:
        """Why candidates of a question moved: ranks before and after, what each score is the sum of, and whose set of
        reciprocal neighbours each is in."""
        body = SearchBody(query=query, limit=limit, retrieve=retrieve, rerank=rerank)
        answer = await work(collection.explain, body, None)
        return {"parts": answer["parts"], "candidates": answer["candidates"][:limit]}

    @server.tool()
    async def get_document(docid: Annotated[str, Field(description="as search gives it")]) -> str:
        """The text of a document."""
        text: str | None = await work(collection.document, docid)
        if text is None:
            raise ToolError(f"document {docid[:80]}: not in this index, or it keeps no texts")
        return text

    return server


def serve_tools(request: ServeRequest) -> None:
    """Serve the Model Context Protocol on stdin and stdout until the client leaves."""
    collection = ServedIndex(request)
    collection.warm()
    make_tools(collection).run("stdio")
