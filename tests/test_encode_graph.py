"""The graph of an encoder in the home folder: the vectors of the model without torch, or no graph."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal
from tiny_encoder import WORDS, make_encoder, make_texts

from rnnreranker.base.errors import DataWarning
from rnnreranker.data.document import Document
from rnnreranker.encode import graph as graph_store
from rnnreranker.encode.graph import FILES
from rnnreranker.encode.kinds import Encoder
from rnnreranker.index.build import write_index
from rnnreranker.index.opening import open_index
from rnnreranker.parts.vectors.part import DensePart
from rnnreranker.search.queries import QueryEncoding, open_query_encoder

pytest.importorskip("onnx")
TEXTS = [*make_texts().values(), "w1", "unknown W2", ""]
LARGER: dict[str, dict[str, Any]] = {  # what a kind calls the sizes of a small model
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 64},
    "roberta": {"max_position_embeddings": 66, "pad_token_id": 0},
    "mpnet": {"max_position_embeddings": 66, "pad_token_id": 0},
    "electra": {"embedding_size": 16},
}


def of_kind(kind: str, folder: Path, model: str = "AutoModel", **more: Any) -> Path:
    """A model of a kind, random weights of two layers, with the tokenizer of `make_encoder`."""
    import torch
    import transformers

    make_encoder(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    sizes = {"vocab_size": 5 + len(WORDS), "max_position_embeddings": 64, **sizes, **more, **LARGER.get(kind, {})}
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(kind, **sizes)
    getattr(transformers, model).from_config(config).save_pretrained(folder)
    return folder


def open_mean(folder: Path) -> Encoder:
    return Encoder.open(str(folder), pooling="mean")


def indexed(encoder: Encoder, folder: Path) -> Path:
    documents = [Document(docid, text) for docid, text in make_texts().items()]
    return write_index(documents, folder / "index", [DensePart(encoder)]).path


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.allclose(ours, theirs, rtol=1e-4, atol=1e-5))


@pytest.mark.parametrize(
    ("kind", "pooling"), [("electra", "mean"), ("mpnet", "cls"), ("roberta", "max"), ("distilbert", "mean")]
)
def test_a_known_kind_has_a_graph_of_the_same_vectors(kind: str, pooling: str, tmp_path: Path) -> None:
    name, how = str(of_kind(kind, tmp_path / kind)), {"pooling": pooling, "max_length": 40, "normalize": True}
    model, graph = Encoder.load(name, **how), Encoder.open(name, **how)
    assert graph.graph is not None
    assert close(graph.encode(TEXTS), model.encode(TEXTS))
    assert (graph.fingerprint, graph.dimension, graph.options) == (model.fingerprint, 32, model.options)


def test_a_graph_is_made_once_and_serves_other_prompts_and_lengths(
    tiny: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_mean(tiny)
    monkeypatch.setattr("rnnreranker.encode.kinds.Encoder.load", None)  # would fail
    again = Encoder.open(str(tiny), **{**first.options, "query_prompt": "w3 ", "max_length": 5})  # as of an index
    assert again.graph.content == first.graph.content  # type: ignore[union-attr]
    assert again.fingerprint != first.fingerprint
    assert [one.name for one in (home / "graphs").iterdir()] == [first.graph.folder.name]  # type: ignore[union-attr]
    assert close(again.encode(["w1 w2 w5 w6"]), first.encode(["w3 w1 w2"]))
    with pytest.raises(TypeError):  # another pooling is another graph
        Encoder.open(str(tiny), pooling="cls")


@pytest.mark.long
@pytest.mark.usefixtures("as_command")
def test_a_damaged_graph_is_made_again(tiny: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = open_mean(tiny)
    for name in FILES:
        path = first.graph.folder / name  # type: ignore[union-attr]
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        again = open_mean(tiny)
        said = capsys.readouterr().err
        assert f"{name}: its bytes are not those that were written; the graph is made again" in said
        np.testing.assert_array_equal(again.encode(TEXTS), first.encode(TEXTS))


@pytest.mark.usefixtures("as_command")
def test_without_a_home_folder_the_model_encodes(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Encoder.load(str(tiny), pooling="mean").encode(TEXTS)
    capsys.readouterr()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RNNRERANKER_HOME", str(tmp_path / "file"))
    first = open_mean(tiny)
    assert first.graph is None
    np.testing.assert_array_equal(first.encode(TEXTS), expected)
    assert capsys.readouterr().err == ""


def test_models_that_it_does_not_know_have_no_graph(tiny: Path, tmp_path: Path, home: Path) -> None:
    """The model encodes, as if no graph had been tried."""
    for name, how in ((of_kind("albert", tmp_path / "albert"), {}), (tiny, {"document_type": 1})):
        opened, loaded = (one(str(name), pooling="mean", **how) for one in (Encoder.open, Encoder.load))
        assert opened.graph is None
        np.testing.assert_array_equal(opened.encode(TEXTS), loaded.encode(TEXTS))
    assert not (home / "graphs").exists()


def test_a_graph_of_other_numbers_is_not_used(tiny: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_store, "lowest_cosine", lambda model, graph: 0.9999)
    opened = open_mean(tiny)
    assert opened.graph is None
    assert not any((home / "graphs").glob("encoder-*"))
    np.testing.assert_array_equal(opened.encode(TEXTS), Encoder.load(str(tiny), pooling="mean").encode(TEXTS))


def test_a_trained_dual_encoder_that_did_not_make_the_index_is_refused(tiny: Path, home: Path, tmp_path: Path) -> None:
    index = open_index(indexed(open_mean(tiny), tmp_path))
    make_encoder(tmp_path / "trained", WORDS[::-1])
    how = QueryEncoding(f"{tmp_path / 'trained'}:pooling=mean")
    for kind in ("query", "dual"):
        (tmp_path / "trained" / "training.json").write_text(f'{{"model": "{kind}"}}')
        if kind == "query":
            assert open_query_encoder(how, index).dimension == index.vectors.dimension
        else:
            with refusal("was trained as a dual encoder"):
                open_query_encoder(how, index)


def test_a_query_encoder_for_documents_of_another_encoder_is_reported(tiny: Path, home: Path, tmp_path: Path) -> None:
    made_by = open_mean(tiny)
    trained, index = make_encoder(tmp_path / "trained", WORDS[::-1]), open_index(indexed(made_by, tmp_path))
    own, other = {"name": made_by.name, "fingerprint": made_by.fingerprint}, {"name": "x", "fingerprint": "y"}
    for by in (own, other):
        (trained / "training.json").write_text(json.dumps({"model": "query", "documents_by": by}))
        said = pytest.warns(DataWarning, match="is for document vectors of x") if by is other else nullcontext()
        with said:
            open_query_encoder(QueryEncoding(f"{trained}:pooling=mean"), index)


def test_an_encoder_that_has_changed_since_is_refused(tiny: Path, home: Path, tmp_path: Path) -> None:
    """Where the graph is gone it is made again of the same encoder, and of no other."""
    folder = shutil.copytree(tiny, tmp_path / "encoder")
    index = indexed(open_mean(folder), tmp_path)

    def of_index() -> Encoder:
        return open_query_encoder(QueryEncoding(), open_index(index))

    expected = of_index().encode(TEXTS)
    shutil.rmtree(home / "graphs")
    np.testing.assert_array_equal(of_index().encode(TEXTS), expected)
    shutil.rmtree(folder)
    make_encoder(folder, WORDS[::-1])
    with refusal(r"the files of its encoder .* have changed since"):
        of_index()
