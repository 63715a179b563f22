"""The server: answers are those of the library, requests that cannot be are refused in a sentence, limits hold."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install 'rnnreranker[serve]'")
pytest.importorskip("httpx", reason="httpx is not installed, which the test client of fastapi needs")

import serve_world
from query_sets import write_queries
from serve_world import QRELS, SCRIPT, TEXTS, TOPICS, running
from starlette.testclient import TestClient
from store_worlds import examples_of

from rnnreranker import RnnParams, Run, evaluate_run, open_index, rerank_hits
from rnnreranker.base.errors import UnavailableError
from rnnreranker.serve import guard
from rnnreranker.serve.__main__ import main as serve
from rnnreranker.serve.app import make_app
from rnnreranker.serve.collection import ServedIndex
from rnnreranker.serve.request import Limits, ServeRequest

world, one_home, request_of = serve_world.world, serve_world.one_home, serve_world.request_of
LOCAL = "http://127.0.0.1:8000"
ASKED = {"query": "w1 'w2' --k $HOME"}
FORMS: list[dict[str, Any]] = [
    {},
    {"rerank": None, "hits": 7},
    {"rerank": "rnn:k=4,context=20"},
    {"rerank": {"rnn": {"k": 4, "lam": 0.25, "preset": "vectors"}}},
    {"rerank": ["mmr:lam=0.7", {"rnn": {}}], "retrieve": "dense"},
    {"retrieve": {"dense": {}}, "prf": "rocchio:fb_docs=2", "hits": 30},
    {"rerank": "zhong", "limit": 40},
    {"retrieve": "dense", "expand": "neighbours", "rerank": "rnn:from=neighbours,k=5", "hits": 15},
]


@pytest.fixture(scope="module")
def collection(request_of: ServeRequest) -> ServedIndex:
    made = ServedIndex(request_of)
    made.warm()
    return made


@pytest.fixture(scope="module")
def client(collection: ServedIndex) -> TestClient:
    return TestClient(make_app(collection), base_url=LOCAL, raise_server_exceptions=False)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_answers_are_those_of_the_library(client: TestClient, request_of: ServeRequest, form: dict[str, Any]) -> None:
    answer = client.post("/search", json={**ASKED, **form}).json()
    assert answer["milliseconds"] > 0
    asked, index = {name: value for name, value in form.items() if name != "limit"}, open_index(request_of.index)
    before, after = (index.search(ASKED, **one)["query"] for one in (asked | {"rerank": None, "expand": None}, asked))
    limit = form.get("limit", 10)
    for name, run in (("before", before), ("after", after)):
        assert [(one["docid"], one["score"]) for one in answer[name]] == run[:limit]
    ranks = {docid: rank for rank, (docid, _) in enumerate(before, 1)}
    moves = [ranks[docid] - rank if docid in ranks else None for rank, (docid, _) in enumerate(after, 1)]
    assert [one["moved"] for one in answer["after"]] == moves[:limit]


def test_a_judged_topic_is_measured_as_evaluate_does(client: TestClient, request_of: ServeRequest) -> None:
    assert client.get("/controls").json()["topics"] == [
        {"topic": qid, "query": text, "judged": len(QRELS.get(qid, {}))} for qid, text in TOPICS.items()
    ]
    index = open_index(request_of.index)
    for qid, text in TOPICS.items():
        answer, judged = client.post("/search", json={"topic": qid, "rerank": "rnn:k=5"}).json(), QRELS.get(qid, {})
        assert answer["query"] == text
        assert all(one["grade"] == judged.get(one["docid"]) for one in answer["after"])
        runs = {name: index.search({qid: text}, rerank=form) for name, form in (("before", None), ("after", "rnn:k=5"))}
        table = evaluate_run(runs, {qid: judged}, "nDCG@10 RR@10") if judged else {}
        expected = [{"measure": name, "protocol": "trec", **dict(table[name])} for name in table]
        assert answer["measures"] == expected


def test_a_context_is_explained_with_its_picture(client: TestClient) -> None:
    body = {"query": "w1 w2", "rerank": "rnn:k=5,context=12", "limit": 12}
    answer, ranks = client.post("/explain", json=body).json(), client.post("/search", json=body).json()
    assert [one["docid"] for one in answer["candidates"]] == [one["docid"] for one in ranks["after"]]
    assert [one["moved"] for one in answer["candidates"]] == [one["moved"] for one in ranks["after"]]
    for one in answer["candidates"]:
        assert sum(map(float, one["summands"])) == pytest.approx(one["score"], abs=1e-3)
    assert answer["svg"].startswith('<svg class="net wide"')
    assert answer["svg"].count('<a class="node') == 12
    assert "<script" not in answer["svg"]
    narrow = client.post("/explain", json={**body, "size": "narrow"}).json()["svg"]
    assert 'class="net narrow"' in narrow


def test_docids_and_vectors_are_reranked_as_by_the_index_and_rerank_hits(
    client: TestClient, request_of: ServeRequest
) -> None:
    given = Run.from_dict({"query": {f"d{number}": float(number % 7) for number in range(30)}}).as_written()["query"]
    docids, scores = map(list, zip(*given, strict=True))  # without ties
    run = Run.from_dict({"query": dict(given)})
    expected = open_index(request_of.index).rerank(run, "rnn:k=6", topics={"query": "w1 w3"})["query"]
    body = {"query": "w1 w3", "docids": docids, "scores": scores, "rerank": "rnn:k=6"}
    answer = client.post("/rerank", json=body).json()["results"]
    assert [(one["docid"], one["score"]) for one in answer] == expected
    assert [docids[one["index"]] for one in answer] == [docid for docid, _ in expected]

    drawn = np.random.default_rng(1).normal(size=(21, 5)).astype(np.float32)
    vectors, query, falling = drawn[1:], drawn[0], np.arange(20, 0, -1.0)
    for asked, given in ((query, None), (query, falling), (None, falling)):
        order, similarities = rerank_hits(asked, vectors, given, RnnParams(k=4))
        sides = {"query_vector": asked, "scores": given}
        body = {name: one.tolist() for name, one in sides.items() if one is not None}
        body |= {"vectors": vectors.tolist(), "rerank": "rnn:k=4", "top_n": 7}
        answer = client.post("/rerank", json=body).json()["results"]
        assert [one["index"] for one in answer] == order[:7].tolist()
        assert [one["score"] for one in answer] == pytest.approx(similarities[:7].tolist())


def test_distances_for_scores_are_reported_in_the_answer(client: TestClient, collection: ServedIndex) -> None:
    docids = [f"d{number}" for number in range(30)]
    vectors = collection.index.vectors.fetch(collection.index.vectors.rows(docids))
    query = collection.vector_of("w1 w3")[0]
    products = (vectors @ query).astype(float)
    by_docids = {"query": "w1 w3", "docids": docids}
    by_vectors = {"query_vector": query.tolist(), "vectors": vectors.tolist()}
    for body in (by_docids, by_vectors):
        answer = client.post("/rerank", json={**body, "scores": (-products).tolist()}).json()
        assert len(answer["results"]) == 30
        assert [one[:17] for one in answer["warnings"]] == ["scores fall where"]
        for scores in (products.tolist(), None):
            assert [*client.post("/rerank", json={**body, "scores": scores}).json()] == ["results"]


def test_texts_are_reranked_for_clients_of_other_rerankers(client: TestClient, collection: ServedIndex) -> None:
    texts = list(TEXTS.values())[:12]
    vectors, query = collection.encode(texts, "documents"), collection.encode(["w1 w2"])[0]
    order, scores = rerank_hits(query, vectors)
    body = {"model": "rerank-v3.5", "query": "w1 w2", "documents": [texts[0], *({"text": one} for one in texts[1:])]}
    for path in ("/v1/rerank", "/v2/rerank"):  # Cohere and Jina
        answer = client.post(path, json={**body, "top_n": 3, "return_documents": True, "of_tomorrow": 1}).json()
        assert [one["index"] for one in answer["results"]] == order[:3].tolist()
        assert [one["relevance_score"] for one in answer["results"]] == pytest.approx(scores[:3].tolist())
        assert [one["document"]["text"] for one in answer["results"]] == [texts[row] for row in order[:3].tolist()]
        assert answer["model"] == "rerank-v3.5"
    answer = client.post("/v1/rerank", json={"model": "rnn:k=2", "query": "w1 w2", "documents": texts}).json()
    order, _ = rerank_hits(query, vectors, None, RnnParams(k=2))
    assert [one["index"] for one in answer["results"]] == order.tolist()


def test_an_encoder_of_queries_encodes_no_documents(collection: ServedIndex, request_of: ServeRequest) -> None:
    other, texts = ServedIndex(dataclasses.replace(request_of, encoder=":pooling=cls")), list(TEXTS.values())[:5]
    np.testing.assert_array_equal(other.encode(texts, "documents"), collection.encode(texts, "documents"))
    assert not np.allclose(other.encode(texts), collection.encode(texts))


def test_documents_and_what_is_offered(client: TestClient) -> None:
    for docid in ("d3", SCRIPT, "a/b"):
        assert client.get(f"/documents/{docid}").json() == {"docid": docid, "text": TEXTS[docid]}
    offered = client.get("/controls").json()
    assert offered["retrievers"] == ["auto", "dense"]
    assert offered["rerankers"][0]["name"] == "rnn"
    settings = {one["name"]: one for one in offered["rerankers"][0]["settings"]}
    assert set(settings) >= set(RnnParams().to_dict())
    assert settings["lam"]["default"] == RnnParams().lam
    for one in offered["rerankers"]:
        assert client.post("/search", json={"query": "w1", "rerank": one["name"]}).status_code == 200
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/search", "/rerank", "/documents/{docid}", "/health"} <= set(paths)


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?://", page.text)
    for link in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
        own = client.get(f"/{link}")
        assert own.status_code == 200
        assert not re.search(r"https?://(?!www\.w3\.org)", own.text)


BIG = "9" * 400
NOT_JSON: list[tuple[str, str, bytes]] = [
    ("/search", "POST", b"{"),
    ("/search", "POST", b"[" * 5000),
    ("/search", "GET", b""),
    ("/documents/none-of-that-docid", "GET", b""),
    ("/search/../../etc/passwd", "GET", b""),
]
OF_QUERY: list[dict[str, Any]] = [  # /search beside query=w1
    {"topic": "q1"},
    {"hits": 10**6},
    {"rerank": "rnn:context=999,k=999,k_exp=999"},
    {"rerank": ["mmr", "rnn"] * 6},
    {"rerank": f"rnn:k={BIG}"},
    {"rerank": "rnn:preset=/etc/passwd"},
    {"rerank": "rnn:preset=secret.yaml"},
    {"rerank": "cross-encoder"},
    {"rerank": "cross-encoder:model=../secret"},
    {"retrieve": {"impact": {"encoder": "bert-base"}}},
    {"retrieve": "late"},
    {"expand": "ladr:hops=1000000"},
    {"prf": "average:fb_docs=1001"},
]
MALFORMED: list[tuple[str, dict[str, Any]]] = [
    *(("/search", {"query": "w1", **one}) for one in OF_QUERY),
    *(("/search", {"query": text}) for text in (None, "", 5, "\ud800", "w " * 9000)),
    ("/search", {"topic": "q99"}),
    ("/explain", {"query": "w1", "rerank": "rnn:context=400,k=399,k_exp=400,probes=400"}),
    ("/explain", {"query": "w1", "rerank": "mmr"}),
    ("/rerank", {}),
    ("/rerank", {"query": "w1", "docids": ["d1", "d1"]}),
    ("/rerank", {"query": "w1", "docids": ["d1"], "scores": [1, 2]}),
    ("/rerank", {"query": "w1", "docids": ["d1"], "scores": [float("nan")]}),
    ("/rerank", {"query": "w1", "vectors": [[1, 2]]}),
    ("/rerank", {"query_vector": [1, 2], "docids": ["d1"]}),
    ("/rerank", {"query_vector": [1, float("inf")], "vectors": [[1, 2]]}),
    ("/rerank", {"query_vector": [1], "vectors": [[1]], "rerank": "mmr"}),
    ("/rerank", {"query_vector": [1], "vectors": [[1]] * 1001}),
    ("/rerank", {"query_vector": [1], "vectors": [[1]] * 999, "rerank": "rnn:k=999,probes=999"}),
    *(
        ("/v1/rerank", {"query": "w1", "documents": texts})
        for texts in ([], [1], ["a"] * 201, ["w1 " * 3000, "w2"], [{"image": "x"}])
    ),
]


def said(answer: Any) -> str:
    """The sentence of an answer that is a refusal: one line that says what to do, without a traceback."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    assert list(answer.json()) == ["error", "message", "detail"]  # which clients of Cohere and Jina read
    sentence: str = answer.json()["error"]
    assert 10 < len(sentence) < 1200
    assert "\n" not in sentence
    assert not re.search(r"Traceback|nobody foresaw|rnnreranker/|--(?!parts)\w", sentence), sentence
    return sentence


def test_malformed_requests_are_refused_in_a_sentence(client: TestClient) -> None:
    sentences = set()
    for path, body in MALFORMED:
        content = json.dumps(body).encode()
        sentences.add(said(client.post(path, content=content, headers={"content-type": "application/json"})))
    for path, method, content in NOT_JSON:
        sentences.add(said(client.request(method, path, content=content, headers={"content-type": "application/json"})))
    assert len(sentences) > 25
    assert client.post("/search", json={"query": "w1"}).status_code == 200


def test_who_may_ask(client: TestClient, collection: ServedIndex, request_of: ServeRequest) -> None:
    body = {"query": "w1"}
    assert "localhost alone" in said(client.post("/search", json=body, headers={"host": "evil.example"}))
    assert "Origin" in said(client.post("/search", json=body, headers={"origin": "http://evil.example"}))
    assert client.post("/search", json=body, headers={"origin": LOCAL}).status_code == 200
    assert said(client.post("/search", content=json.dumps(body), headers={"content-type": "text/plain"}))
    collection_of_all = ServedIndex(dataclasses.replace(request_of, host="0.0.0.0", token="a-secret-word"))
    guarded = TestClient(make_app(collection_of_all), base_url="http://server.example")
    for headers in ({}, {"authorization": "Bearer a-secret"}, {"authorization": "a-secret-word"}):
        answer = guarded.post("/search", json=body, headers=headers)
        assert (answer.status_code, "Bearer" in said(answer)) == (401, True)
    for scheme in ("Bearer", "bearer", "BEARER"):  # RFC 9110: case does not count
        headers = {"authorization": f"{scheme} a-secret-word"}
        assert guarded.post("/search", json=body, headers=headers).status_code == 200
    for path in ("/", "/health", "/page.js", "/base.css", "/style.css", "/serve.css"):
        assert guarded.get(path).status_code == 200
    assert guarded.get("/controls").status_code == guarded.get("/openapi.json").status_code == 401


@pytest.mark.long
def test_limits_of_body_time_and_requests_at_work(request_of: ServeRequest) -> None:
    limits = Limits(max_body=2000, max_seconds=0.5, max_waiting=2, max_candidates=20)
    collection = ServedIndex(dataclasses.replace(request_of, limits=limits))
    collection.warm()
    client = TestClient(make_app(collection), base_url=LOCAL)
    assert client.post("/search", content=b"x" * 3000).status_code == 413
    pieces = (b"x" * 1000 for _ in range(5))
    assert client.post("/search", content=pieces).status_code == 411
    assert "20" in said(client.post("/search", json={"query": "w1", "hits": 21}))
    assert client.post("/search", json={"query": "w1"}).json()["candidates"] == 20
    held, released = collection.answer, threading.Event()
    collection.answer = lambda body: (released.wait(5), held(body))[1]  # type: ignore[method-assign]
    with ThreadPoolExecutor(5) as pool:
        codes = sorted(pool.map(lambda n: client.post("/search", json={"query": f"w{n}"}).status_code, range(5)))
        released.set()
    assert set(codes) == {408, 429}


def open_requests(address: str, sent: bytes, count: int) -> list[socket.socket]:
    """Connections that have sent the same bytes."""
    port = int(address.rpartition(":")[2])
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for one in connections:
        one.sendall(sent)
    return connections


@pytest.mark.long
def test_half_sent_bodies_do_not_block_others(request_of: ServeRequest) -> None:
    import httpx

    collection = ServedIndex(dataclasses.replace(request_of, limits=Limits(max_waiting=2, max_seconds=3)))
    collection.warm()
    half = b'POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"query'
    with running(collection) as address, httpx.Client(base_url=address, timeout=10) as client:
        connections = open_requests(address, half, 8)
        codes = [client.get(path).status_code for path in ("/health", "/", "/health")]
        answers = {one.recv(1000).split()[1] for one in connections}
        assert codes == [200, 200, 200]
        assert answers == {b"429", b"408"}
        assert client.post("/search", json={"query": "w1"}).status_code == 200


def test_work_ends_with_its_request(request_of: ServeRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = ServedIndex(dataclasses.replace(request_of, limits=Limits(max_seconds=0.5)))
    collection.warm()
    ended = threading.Event()

    def slow(text: str) -> Any:
        try:
            while True:  # many short steps
                guard.check()
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(collection, "vector_of", slow)
    head = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
    with running(collection) as address:
        (connection,) = open_requests(address, head + b'{"query": "w1"}', 1)
        assert b" 408 " in connection.recv(1000)
        assert ended.wait(10)


def test_no_client_sees_the_folders_of_this_machine(
    collection: ServedIndex, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = TestClient(make_app(collection), base_url=LOCAL, raise_server_exceptions=False)
    assert client.get("/health").json()["index"] == client.get("/controls").json()["index"] == "index"
    lost = str(world / "index" / "dense" / "docid")
    damaged = UnavailableError(f"{lost}: damaged ('{lost}')")
    for error in (FileNotFoundError(2, "No such file", lost), damaged, KeyError(lost)):
        monkeypatch.setattr(collection, "answer", lambda question, error=error: raiser(error))
        answer = client.post("/search", json={"query": "w1"})
        assert answer.status_code in (500, 503)
        assert "docid" in answer.json()["error"]
        assert str(world) not in answer.text


def raiser(error: Exception) -> None:
    raise error


@pytest.mark.long
def test_many_at_once_get_the_same(client: TestClient) -> None:
    asked = [{"query": f"w{n % 9} w{n % 5}", "rerank": f"rnn:k={3 + n % 4}"} for n in range(60)]

    def results(body: dict[str, Any]) -> list[dict[str, Any]]:
        after: list[dict[str, Any]] = client.post("/search", json=body).json()["after"]
        return after

    alone = [results(body) for body in asked]
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(results, asked)) == alone


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "other machines could search this index; give --token"),
        (["--token", "short"], "8 or more"),
        (["--token", ""], "8 or more"),
        (["--port", "99999"], r"--port 99999: expected a number in \[0, 65535\]"),
        (["--qrels", "q.txt"], "--qrels judges topics: give --topics too"),
        (["--max-body", "5"], "--max-body 5: expected an integer >= 1024"),
    ],
)
def test_what_cannot_be_served_is_refused(world: Path, words: list[str], said: str) -> None:
    with refusal(said):
        serve(["--index", f"{world}/index", *words])


def test_a_port_that_is_taken_is_told(world: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with refusal(f"--port {port}: cannot listen there"):
            serve(f"--index {world}/index --port {port}".split())


def test_the_python_of_the_page_runs(collection: ServedIndex, capsys: pytest.CaptureFixture[str]) -> None:
    block = examples_of("serve.md", "The API")
    with running(collection) as address:
        names: dict[str, Any] = {}
        exec(block.replace("http://127.0.0.1:8000", address), names)
    assert len(capsys.readouterr().out.splitlines()) == 10
    assert len(names["best"]["results"]) == 3
    assert len(names["same"]["results"]) == 2


def test_the_service_on_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code, over vectors of a file, answers as `rerank_hits`; unknown docids are refused."""
    vectors = np.random.default_rng(3).standard_normal((40, 8), dtype=np.float32)
    write_queries(tmp_path / "vectors.npy", [f"d{row}" for row in range(40)], vectors)
    code = examples_of("fastapi.md")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "service"}
    exec(compile(code, "service.py", "exec", dont_inherit=True), names)
    client, rows = TestClient(names["app"]), [5, 30, 7, 12, 0]
    body = {"query": vectors[3].tolist(), "docids": [f"d{row}" for row in rows], "scores": [5.0, 4.0, 3.0, 2.0, 1.0]}
    order, scores = rerank_hits(vectors[3], vectors[rows], np.float32(body["scores"]))
    expected = [{"docid": f"d{rows[at]}", "score": float(score)} for at, score in zip(order, scores, strict=True)]
    assert client.post("/rerank", json=body).json() == expected
    for wrong in ({"docids": ["d5", "d30", "d7", "d12", "x"]}, {"scores": [1.0]}):
        assert client.post("/rerank", json={**body, **wrong}).status_code == 422
