"""The page of the server in headless Chromium: a question, controls, the picture, topics, a phone."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'rnnreranker[serve]'")

import serve_world
from browser import Browser
from serve_world import running

from rnnreranker import open_index
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.request import ServeRequest

world, one_home, request_of = serve_world.world, serve_world.one_home, serve_world.request_of
DOCIDS = "[...document.querySelectorAll('#{table} tbody tr')].map(row => row.dataset.docid)"
MOVES = "[...document.querySelectorAll('#now .move-label')].map(one => one.textContent)"
READY = """new Promise(done => {
  const look = () => document.documentElement.dataset.ready === 'yes' ? done(true) : setTimeout(look, 20);
  setTimeout(look, 20);
})"""
SIDEWAYS = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def address(request_of: ServeRequest) -> Iterator[str]:
    collection = ServedIndex(request_of)
    collection.warm()
    with running(collection) as where:
        yield where


def change(browser: Browser, name: str, value: str, event: str = "input") -> None:
    """Set a control as its user does, and wait for the answer."""
    browser.js(
        f"{{const one = document.getElementById({json.dumps(name)}); one.value = {json.dumps(value)};"
        f"one.dispatchEvent(new Event({json.dumps(event)}, {{bubbles: true}}))}}"
    )
    browser.js(READY)


def ask(browser: Browser, text: str) -> None:
    browser.js("document.getElementById('query').select()")
    browser.click("#query")
    browser.js("document.getElementById('query').value = ''")
    browser.call("Input.insertText", text=text)
    browser.key("Enter")
    browser.js(READY)


def ranked(index: Path, text: str, **others: Any) -> list[str]:
    return open_index(index).search({"query": text}, **others).ranked("query")[:10]


@pytest.mark.long
def test_a_question_its_controls_and_its_picture(browser: Browser, address: str, world: Path) -> None:
    browser.show(address, 1400)
    assert browser.js("document.activeElement.id") == "query"
    browser.click("#examples button:last-child")
    browser.js(READY)
    assert browser.js("document.getElementById('topic').selectedIndex") == 3
    assert len(browser.js(DOCIDS.format(table="now"))) == 10
    ask(browser, "w1 w2 w11")
    before, after = (ranked(world / "index", "w1 w2 w11", rerank=form) for form in (None, "rnn"))
    assert browser.js(DOCIDS.format(table="was")) == before
    assert browser.js(DOCIDS.format(table="now")) == after
    assert browser.js("document.querySelectorAll('#net .node').length") == 60
    pictured = browser.js("document.querySelector('#net svg').outerHTML")

    change(browser, "s-k", "4")
    change(browser, "s-lam", "0.2")
    after = ranked(world / "index", "w1 w2 w11", rerank="rnn:k=4,lam=0.2")
    assert browser.js(DOCIDS.format(table="now")) == after
    moved = [("▲" if up > 0 else "▼") + str(abs(up)) if up else "=" for up in moves(world, after)]
    assert browser.js(MOVES) == moved
    assert browser.js("document.querySelector('#net svg').outerHTML") != pictured
    assert "k=4,lam=0.2" in browser.js("decodeURIComponent(location.hash)")

    browser.show(f"{address}/{browser.js('location.hash')}", 1400)  # the address has it all
    assert browser.js(DOCIDS.format(table="now")) == after
    assert browser.js("document.getElementById('s-k').value") == "4"
    browser.click("button[type=reset]")
    browser.js(READY)
    assert browser.js(DOCIDS.format(table="now")) == ranked(world / "index", "w1 w2 w11")
    change(browser, "rerank", "none", "change")
    assert browser.js(DOCIDS.format(table="now")) == before
    assert browser.js("document.getElementById('neighbourhood').hidden") is True
    assert browser.errors == []


def moves(world: Path, after: list[str]) -> list[int]:
    """Ranks up."""
    first = open_index(world / "index").search({"query": "w1 w2 w11"}, rerank=None).ranked("query")
    return [first.index(docid) + 1 - rank for rank, docid in enumerate(after, 1)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_the_dark_and_the_keyboard(browser: Browser, address: str, scheme: str) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for width in (390, 1400):
        browser.show(f"{address}/#query=w1+w2", width)
        assert browser.js(SIDEWAYS) <= width
        assert browser.js("document.getElementById('panel').open") is (width == 1400)
        if width == 390:
            assert browser.js("document.querySelectorAll('#net .narrow .node').length") == 14
            browser.click("#panel > summary")
            browser.click("#more > summary")
            assert browser.js("document.getElementById('s-smoothing').checkVisibility()") is True
            assert browser.js(SIDEWAYS) <= width
        light = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
        assert (browser.js(light) > 128) is (scheme == "light")
    browser.js("document.querySelector('button.docid').focus()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    assert browser.js("document.activeElement.id") == "query"
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert browser.errors == []


def test_what_cannot_be_and_a_token_are_said(browser: Browser, address: str, request_of: ServeRequest) -> None:
    browser.show(f"{address}/#query=w1+w2", 1400)
    change(browser, "s-k", "0")
    assert "k=0: expected an integer >= 1" in browser.js("document.getElementById('error').textContent")
    assert browser.js("document.getElementById('answer').hidden") is True  # it is of other settings
    change(browser, "s-k", "9")
    hidden = "['error', 'working', 'answer'].map(one => document.getElementById(one).hidden)"
    assert browser.js(hidden) == [True, True, False]
    browser.errors.clear()  # the browser itself tells of a status that is not 200
    with running(ServedIndex(dataclasses.replace(request_of, token="a-secret-word"))) as guarded:
        browser.show(f"{guarded}/#query=w1+w2", 1400)
        assert browser.js("document.getElementById('login').hidden") is False
        assert browser.js("document.getElementById('answer').hidden") is True
        browser.click("#token")
        browser.call("Input.insertText", text="a-secret-word")
        browser.key("Enter")
        browser.js("new Promise(done => setTimeout(done, 300))")
        browser.js(READY)
        assert len(browser.js(DOCIDS.format(table="now"))) == 10
        assert browser.js("document.getElementById('login').hidden") is True
    browser.errors.clear()
