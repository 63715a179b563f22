"""Models out: what `train` writes opens in the libraries of its kind, with the same numbers."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoder import (
    make_documents,
    make_encoder,
    make_masked,
    make_qrels,
    make_run,
    make_source,
    make_text_labels,
    make_topics,
    write_text_world,
)

from rnnreranker import train_model
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.java import start_java
from rnnreranker.base.method import Inputs
from rnnreranker.encode.late import make_late_base
from rnnreranker.labels.methods.simple import HardLabeler
from rnnreranker.train.request import Trained

pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")
import sentence_transformers

QUICK = "max_steps=2,evaluate_every=2,batch_size=4,learning_rate=0.001"
PYLATE = ("modules.json", "config_sentence_transformers.json", "1_Dense/config.json")
TEXTS = list(make_documents().values())[:9]
ASKED = list(make_topics().values())[:5]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home-of-ada") / "masked"
    make_masked(folder)
    return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text_world(tmp_path_factory.mktemp("world"))


def trained(world: Path, tiny: Path, out: Path, kind: str, **more: Any) -> Trained:
    given = {"documents": str(world / "documents.jsonl"), "encoder": str(tiny), "device": "cpu", "output": out} | more
    return train_model(make_text_labels(), None, make_topics(), kind, **given)


def pyserini_encoders() -> Any:
    """Pyserini's module of encoders, which wants a Java machine; the test skips without one."""
    try:
        start_java()
    except (UnavailableError, MissingDependencyError) as missing:
        pytest.skip(f"Pyserini's encoders not tried: {missing}")
    return importlib.import_module("pyserini.encode")


@pytest.mark.long
def test_a_query_encoder(tmp_path: Path) -> None:
    from rnnreranker.encode.kinds import Encoder

    start, source = make_encoder(tmp_path / "bert"), make_source(tmp_path / "index")
    labels = HardLabeler(Inputs(vectors=source)).infer(make_run(), make_qrels())
    given = {"encoder": f"{start}:pooling=mean,normalize=true", "device": "cpu", "output": tmp_path / "out"}
    train_model(labels, tmp_path / "index", make_topics(), f"query:{QUICK}", **given)
    expected = Encoder.load(str(tmp_path / "out")).encode(ASKED)
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "out"))
    np.testing.assert_allclose(model.encode_query(ASKED), expected, atol=1e-6)
    theirs = pyserini_encoders().AutoQueryEncoder(str(tmp_path / "out"), device="cpu", pooling="mean", l2_norm=True)
    np.testing.assert_allclose([theirs.encode(text) for text in ASKED], expected, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("towers", ["shared", pytest.param("separate", marks=pytest.mark.slow)])
def test_a_dual_encoder(world: Path, tiny: Path, tmp_path: Path, towers: str) -> None:
    from rnnreranker.encode.kinds import Encoder

    trained(world, tiny, tmp_path / "out", f"dual:{QUICK},towers={towers}")
    folder = str(tmp_path / "out")
    own, model = Encoder.load(folder), sentence_transformers.SentenceTransformer(folder)
    documents = own.encode(TEXTS, what="documents")
    np.testing.assert_allclose(model.encode_query(ASKED), own.encode(ASKED), atol=1e-6)
    np.testing.assert_allclose(model.encode_document(TEXTS), documents, atol=1e-6)
    if towers == "shared":
        encoder = pyserini_encoders().AutoDocumentEncoder
        theirs = encoder(str(tmp_path / "out"), device="cpu", pooling="mean", l2_norm=True)
        np.testing.assert_allclose(theirs.encode(TEXTS, max_length=64), documents, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["max", pytest.param("doc", marks=pytest.mark.slow)])
def test_a_sparse_encoder(world: Path, tiny: Path, tmp_path: Path, architecture: str) -> None:
    from rnnreranker.encode.kinds import SparseEncoder

    trained(world, tiny, tmp_path / "out", f"sparse:{QUICK},architecture={architecture},lambda_d=0")
    folder = str(tmp_path / "out")
    own, model = SparseEncoder.load(folder), sentence_transformers.SparseEncoder(folder)
    weights = own.encode(TEXTS, "document").weights.toarray()

    def named(row: np.ndarray) -> dict[str, float]:
        words = np.flatnonzero(row > 1e-5).tolist()
        return dict(zip(model.tokenizer.convert_ids_to_tokens(words), row[words].tolist(), strict=True))

    np.testing.assert_allclose(model.encode_document(TEXTS).to_dense().numpy(), weights, atol=1e-5)
    pyserini = pyserini_encoders()
    theirs = pyserini.SpladeDocumentEncoder(folder, device="cpu").encode(TEXTS, max_length=64)
    encoder = pyserini.SpladeQueryEncoder(folder, device="cpu")
    theirs += [encoder.encode(text, max_length=64) for text in ASKED]
    for found, row in zip(theirs, [*weights, *own.encode(ASKED, "query").weights.toarray()], strict=True):
        scaled = {word: one * 256 / 5 for word, one in named(row).items()}  # whole numbers, as Lucene's impacts
        assert set(scaled) == {word for word, one in found.items() if one or word in scaled}
        assert found == pytest.approx({word: scaled.get(word, 0.0) for word in found}, abs=0.501)


@pytest.mark.long
def test_a_late_interaction_encoder(world: Path, tiny: Path, tmp_path: Path) -> None:
    from rnnreranker.encode.kinds import LateEncoder

    make_late_base(str(tiny), tmp_path / "start", 16)
    trained(world, tmp_path / "start", tmp_path / "out", f"late:{QUICK}")
    folder = str(tmp_path / "out")
    own, model = LateEncoder.load(folder), sentence_transformers.MultiVectorEncoder(folder)
    for theirs, mine in (
        (model.encode_query(ASKED), own.encode(ASKED, "query")),
        (model.encode_document(TEXTS), own.encode(TEXTS, "document")),
    ):
        for row, tokens in enumerate(theirs):
            expected = mine.vectors[mine.offsets[row] : mine.offsets[row + 1]]
            np.testing.assert_allclose(np.asarray(tokens), expected, atol=1e-5)
    # PyLate opens these files, which a further training begins with and writes again.
    trained(world, tmp_path / "out", tmp_path / "again", f"late:{QUICK}")
    for folder in (tmp_path / "out", tmp_path / "again"):
        assert (folder / "1_Dense" / "model.safetensors").is_file()
        modules, whole, dense = (json.loads((folder / name).read_text()) for name in PYLATE)
        assert [module["type"].rpartition(".")[2] for module in modules] == ["Transformer", "Dense"]
        assert (whole["query_prefix"], whole["document_prefix"]) == ("[Q]", "[D]")
        assert (whole["query_length"], whole["document_length"]) == (32, 64)
        assert set(dense) == {"in_features", "out_features", "bias", "activation_function"}
