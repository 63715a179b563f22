"""The graph that an index keeps of its encoder: the vectors of the model without torch, or no graph."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoder import WORDS, make_encoder, make_texts

from rnnreranker.data.document import Document
from rnnreranker.encode import graph_export
from rnnreranker.encode.encoder import load_encoder
from rnnreranker.encode.graph_export import KNOWN, write_query_graph
from rnnreranker.encode.kept_queries import queries_by_graph
from rnnreranker.encode.query_graph import FILES, open_query_graph
from rnnreranker.errors import InputError
from rnnreranker.index.build import build_index, describe
from rnnreranker.index.dense import DensePart
from rnnreranker.vectors import open_vectors

pytest.importorskip("onnx")
TEXTS = [*make_texts().values(), "w1", "unknown W2", ""]
LARGER: dict[str, dict[str, Any]] = {  # what a kind calls the sizes of a small model
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 64},
    "roberta": {"max_position_embeddings": 66, "pad_token_id": 0},
    "xlm-roberta": {"max_position_embeddings": 66, "pad_token_id": 0},
    "mpnet": {"max_position_embeddings": 66, "pad_token_id": 0},
    "electra": {"embedding_size": 16},
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("graph") / "tiny")


@pytest.fixture(scope="module")
def graph(tiny: Path) -> Path:
    folder = tiny.parent / "made"
    assert write_query_graph(load_encoder(str(tiny), pooling="mean"), folder) == ""
    return folder


def of_kind(kind: str, folder: Path) -> Path:
    """A model of a kind, random weights of two layers, with the tokenizer of `make_encoder`."""
    import torch
    from transformers import AutoConfig, AutoModel

    make_encoder(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    sizes = {"vocab_size": 5 + len(WORDS), "max_position_embeddings": 64, **sizes, **LARGER.get(kind, {})}
    torch.manual_seed(1)
    AutoModel.from_config(AutoConfig.for_model(kind, **sizes)).save_pretrained(folder)
    return folder


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.allclose(ours, theirs, rtol=1e-4, atol=1e-5))


@pytest.mark.parametrize("kind", KNOWN)
def test_every_known_kind_has_a_graph_of_the_same_vectors(kind: str, tmp_path: Path) -> None:
    encoder = load_encoder(str(of_kind(kind, tmp_path / kind)), pooling="mean", max_length=40, normalize=True)
    assert write_query_graph(encoder, tmp_path / "graph") == ""
    again = open_query_graph(tmp_path / "graph")
    assert close(again.encode(TEXTS), encoder.encode(TEXTS))
    assert (again.fingerprint, again.dimension, again.options) == (encoder.fingerprint, 32, encoder.options)


@pytest.mark.parametrize("pooling", ["cls", "max", "lasttoken"])
def test_every_pooling_is_in_the_graph(pooling: str, tiny: Path, tmp_path: Path) -> None:
    encoder = load_encoder(str(tiny), pooling=pooling, query_prompt="w3 ")
    assert write_query_graph(encoder, tmp_path / "graph") == ""
    assert close(open_query_graph(tmp_path / "graph").encode(TEXTS), encoder.encode(TEXTS))


def test_vectors_depend_neither_on_order_nor_on_threads(graph: Path) -> None:
    encoder = open_query_graph(graph)
    found = encoder.encode(TEXTS, threads=1)
    np.testing.assert_array_equal(encoder.encode(TEXTS[::-1], threads=3)[::-1], found)


def test_the_model_is_as_it_was_after_its_graph_is_made(tiny: Path, tmp_path: Path) -> None:
    encoder = load_encoder(str(tiny), pooling="mean")
    before, attends = encoder.encode(TEXTS), encoder.transformer.config._attn_implementation
    assert write_query_graph(encoder, tmp_path / "graph") == ""
    assert encoder.transformer.config._attn_implementation == attends
    np.testing.assert_array_equal(encoder.encode(TEXTS), before)


def other_tokens(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenize = encoder.model.tokenize
    monkeypatch.setattr(encoder.model, "tokenize", lambda texts: [[2, *entry] for entry in tokenize(texts)])


def other_vectors(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = encoder.model.forward
    monkeypatch.setattr(encoder.model, "forward", lambda batch: forward(batch) + np.float32(0.2))


def too_large(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_export, "LARGEST", 1000)


def not_exported(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def export(*args: Any, **options: Any) -> None:
        raise RuntimeError("no such operator\nmore")

    monkeypatch.setattr(torch.onnx, "export", export)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (other_tokens, "its tokenizer.json gives other tokens than its tokenizer"),
        (other_vectors, "cosines to its vectors are from 0."),
        (too_large, "its weights are larger than a graph can be"),
        (not_exported, "torch cannot export it (RuntimeError no such operator)"),
    ],
)
def test_no_graph_is_kept_that_differs(
    spoil: Callable[..., None], said: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(str(tiny), pooling="mean")
    spoil(encoder, monkeypatch)
    assert write_query_graph(encoder, tmp_path / "graph").startswith(said)
    assert list(tmp_path.iterdir()) == []


def test_models_that_it_does_not_know_have_no_graph(tiny: Path, tmp_path: Path) -> None:
    half = load_encoder(str(tiny), pooling="mean", dtype="bfloat16")
    assert write_query_graph(half, tmp_path / "graph").endswith("not of bfloat16 bert")
    other = load_encoder(str(of_kind("albert", tmp_path / "albert")), pooling="mean")
    assert write_query_graph(other, tmp_path / "graph").endswith("not of float32 albert")
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused(name: str, graph: Path, tmp_path: Path) -> None:
    for file in graph.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: is not the file that was written there; make the index again"):
        open_query_graph(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"{name}: no such file"):
        open_query_graph(tmp_path)


@pytest.mark.parametrize("change", [{"pad": "0"}, {"settings": {}}, {"sha256": None}])
def test_a_damaged_description_is_refused(change: dict[str, Any], graph: Path, tmp_path: Path) -> None:
    said = json.loads((graph / "query-encoder.json").read_text())
    (tmp_path / "query-encoder.json").write_text(json.dumps(said | change))
    with pytest.raises(InputError, match=r"query-encoder\.json: .*make the index again, or give --encoder"):
        open_query_graph(tmp_path)


def test_queries_are_kept(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rnnreranker.encode import query_graph

    monkeypatch.setenv("RNNRERANKER_HOME", str(tmp_path))
    first = queries_by_graph(graph, TEXTS, 1)
    monkeypatch.setattr(query_graph, "open_query_graph", None)  # would fail
    np.testing.assert_array_equal(queries_by_graph(graph, TEXTS, 2), first)


def test_an_index_goes_on_as_it_was_begun(tiny: Path, tmp_path: Path) -> None:
    """What was made by the model itself, as before there were graphs, gets no vectors of a graph."""
    documents = [Document(docid, text) for docid, text in make_texts().items()]
    encoder = load_encoder(str(tiny), pooling="mean")
    build_index(documents[:5], tmp_path / "old", [DensePart(encoder)], threads=2)
    path = tmp_path / "old" / "rnnreranker.json"
    described = json.loads(path.read_text())
    assert described["parts"]["dense"]["encoder"].pop("documents") == "graph"
    path.write_text(json.dumps(described))
    part = DensePart(encoder)
    part.extend(tmp_path / "old")
    build_index(documents, tmp_path / "new", [part])
    assert "documents" not in describe(tmp_path / "new")["parts"]["dense"]["encoder"]
    texts = [document.text for document in documents]
    vectors = open_vectors(tmp_path / "new").fetch(np.arange(len(texts)))
    np.testing.assert_array_equal(vectors, encoder.encode(texts, what="documents"))


def test_an_index_says_how_near_bfloat16_comes(tiny: Path, tmp_path: Path) -> None:
    half = load_encoder(str(tiny), pooling="mean", dtype="bfloat16")
    build_index([Document("d1", "w1 w2")], tmp_path / "half", [DensePart(half)])
    described = describe(tmp_path / "half")["parts"]["dense"]["encoder"]
    assert 0.99 < described["cosine"] < 0.99999
    assert (described["settings"]["dtype"], "documents" in described) == ("bfloat16", False)


CHILD = """
import sys
from rnnreranker.index.__main__ import main as index
from rnnreranker.search.__main__ import main as search
args = sys.argv[2:]
(index if sys.argv[1] == "index" else search)(args)
print(*sorted({"torch", "transformers", "numba"} & set(sys.modules)))
"""


def in_process(*args: str) -> str:
    """The last line of a process that runs a command: which of three libraries it has imported."""
    done = subprocess.run([sys.executable, "-c", CHILD, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_search_needs_neither_torch_nor_transformers_nor_numba(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RNNRERANKER_HOME", str(tmp_path / "home"))
    lines = (json.dumps({"id": docid, "contents": text}) for docid, text in make_texts().items())
    (tmp_path / "documents.jsonl").write_text("".join(f"{line}\n" for line in lines))
    index, run = str(tmp_path / "index"), str(tmp_path / "run.txt")
    (tmp_path / "topics.tsv").write_text("q1\tw1 w2\nq2\tw3\n")
    documents = str(tmp_path / "documents.jsonl")
    made = ("--documents", documents, "--parts", "dense", "--encoder", str(tiny), "--pooling", "mean")
    in_process("index", *made, "--output", index)
    described = describe(Path(index))["parts"]["dense"]["encoder"]
    assert (described["graph"], described["documents"]) == (True, "graph")
    assert 0.99999 <= described["cosine"] <= 1.000001
    by_graph_too = open_query_graph(Path(index) / "query-encoder").encode([*make_texts().values()], what="documents")
    np.testing.assert_array_equal(open_vectors(index).fetch(np.arange(len(by_graph_too))), by_graph_too)
    asked = ("--index", index, "--topics", str(tmp_path / "topics.tsv"), "--retriever", "dense", "--output", run)
    assert in_process("search", *asked) == ""  # nor numba, for two queries
    by_graph = Path(run).read_text()
    assert "torch" in in_process("search", *asked, "--encoder", str(tiny), "--pooling", "mean").split()
    ours, theirs = ([line.split() for line in text.splitlines()] for text in (by_graph, Path(run).read_text()))
    assert [line[:4] for line in ours] == [line[:4] for line in theirs]
