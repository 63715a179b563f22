"""The tools for language models, asked by the client of the package mcp, in memory and over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="mcp is not installed: pip install 'rnnreranker[mcp]'")

import serve_world
from mcp import Client
from serve_world import SCRIPT, TEXTS

from rnnreranker import open_index
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.request import ServeRequest
from rnnreranker.serve.tools import make_tools

world, one_home = serve_world.world, serve_world.one_home


def calls(world: Path, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of tools by their in-memory client."""
    collection = ServedIndex(ServeRequest(str(world / "index")))

    async def go() -> list[Any]:
        async with Client(make_tools(collection)) as client:
            tools = (await client.list_tools()).tools
            assert sorted(one.name for one in tools) == ["explain", "get_document", "search"]
            assert all(one.description for one in tools)
            return [await client.call_tool(name, arguments) for name, arguments in asked]

    return asyncio.run(go())


def test_tools_answer_as_the_library(world: Path) -> None:
    found, explained, document = calls(
        world,
        ("search", {"query": "w1 w2", "limit": 5, "rerank": "rnn:k=4"}),
        ("explain", {"query": "w1 w2", "limit": 3}),
        ("get_document", {"docid": SCRIPT}),
    )
    run = open_index(world / "index").search({"query": "w1 w2"}, rerank="rnn:k=4")
    results = found.structured_content["result"]
    assert [(one["docid"], one["score"]) for one in results] == run["query"][:5]
    assert json.loads(found.content[0].text)["rank"] == 1 or len(json.loads(found.content[0].text)) == 5
    account = explained.structured_content
    assert len(account["candidates"]) == 3
    assert any("similarity to the query" in one for one in account["parts"])
    assert document.content[0].text == TEXTS[SCRIPT]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search", {"query": "w1", "limit": 0}, "greater than or equal to 1"),
        ("search", {"query": "w1", "rerank": "rnn:k=0"}, "k=0: expected an integer >= 1"),
        ("explain", {"query": "w1", "rerank": "none"}, "expected rnn alone"),
        ("get_document", {"docid": "nothing"}, "not in this index"),
    ],
)
def test_what_cannot_be_is_said(world: Path, tool: str, arguments: dict[str, Any], said: str) -> None:
    (result,) = calls(world, (tool, arguments))
    assert result.is_error
    assert said in result.content[0].text


@pytest.mark.slow
def test_the_command_speaks_on_stdin_and_stdout(world: Path) -> None:
    import os
    import sys

    from mcp.client.stdio import StdioServerParameters

    words = ["-m", "rnnreranker.serve", "--index", str(world / "index"), "--mcp"]
    parameters = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def go() -> Any:
        async with Client(parameters) as client:
            return await client.call_tool("get_document", {"docid": "a/b"})

    assert asyncio.run(go()).content[0].text == TEXTS["a/b"]
