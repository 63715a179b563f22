"""A small collection to serve: documents with a slash and a script in docid and text, judged topics, an index."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from query_sets import write_judged, write_texts
from tiny_encoder import make_encoder

from rnnreranker.index.__main__ import main as index
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.request import ServeRequest

SCRIPT = "<script>document.title='pwned'</script>"
TEXTS = {f"d{number}": f"w{number % 7} w{number % 5} w{number % 3 + 10}" for number in range(60)}
TEXTS |= {SCRIPT: f"w1 w2 {SCRIPT} <img src=x onerror=alert(1)>", "a/b": "w4 w5 & <b>more</b>"}
TOPICS = {"q1": "w1 w2", "q2": "w3 w11", "q3": "w4"}
QRELS = {"q1": {"d1": 1, "d16": 2, "d7": 0, SCRIPT: 3}, "q2": {"d3": 1, "d10": 1}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with corpus.tsv, topics.tsv, qrels.txt and index."""
    folder = tmp_path_factory.mktemp("served")
    make_encoder(folder / "encoder")
    corpus = write_texts(folder / "corpus.tsv", TEXTS)
    write_judged(folder, TOPICS, ((qid, docid, grade) for qid, of in QRELS.items() for docid, grade in of.items()))
    made = f"--documents {corpus} --encoder {folder}/encoder:pooling=mean --parts dense,neighbours:k=16"
    assert index(f"{made} --output {folder}/index".split()) == 0
    return folder


@pytest.fixture(autouse=True)
def one_home(home: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder's graph is made once for all tests of a file."""
    monkeypatch.setenv("RNNRERANKER_HOME", str(world / "home"))


@pytest.fixture(scope="module")
def request_of(world: Path) -> ServeRequest:
    """The server of the index with its judged topics."""
    judged = {"topics": str(world / "topics.tsv"), "qrels": str(world / "qrels.txt")}
    return ServeRequest(str(world / "index"), measures="nDCG@10 RR@10", **judged)


@contextlib.contextmanager
def running(collection: ServedIndex) -> Iterator[str]:
    """A server of uvicorn in a thread of this process; its address."""
    import uvicorn

    from rnnreranker.serve.app import make_app

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(make_app(collection), log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
