"""Encoders: pooling and settings against a tiny model worked out by other means, and MiniLM against known truths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal
from tiny_encoder import make_encoder

from rnnreranker.encode import kinds, model_folder
from rnnreranker.encode.kinds import Encoder
from rnnreranker.encode.model_folder import read_settings

WORDS = ["a", "cat", "dog", "runs", "the", "query", ":", "sleeps"]
TEXTS = ["the cat runs", "a dog", "", "the dog sleeps a the cat runs", "a cat", "the the the the"] * 40


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of random weights, 2 layers of 8 dimensions, without settings of sentence-transformers."""
    return make_encoder(tmp_path_factory.mktemp("plain"), WORDS, 8, 12)


def sentence_transformers_folder(folder: Path, plain: Path, **files: Any) -> Path:
    """The plain model with the settings files of sentence-transformers."""
    for file in plain.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    contents: dict[str, Any] = {
        "modules": modules,
        "pooling": {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
        "sentence_bert_config": {"max_seq_length": 6, "do_lower_case": False},
        "config_sentence_transformers": {"prompts": {"query": "query: ", "passage": "the "}},
        **files,
    }
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(contents.pop("pooling")))
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def token_states(plain: Path, text: str) -> np.ndarray:
    """(tokens, 8): the last hidden states of one text alone, without padding."""
    import torch
    import transformers

    tokens = transformers.AutoTokenizer.from_pretrained(plain)(
        text, truncation=True, max_length=12, return_tensors="pt"
    )
    with torch.no_grad():
        return transformers.AutoModel.from_pretrained(plain).eval()(**tokens).last_hidden_state[0].numpy()


POOLED = {
    "mean": lambda states: states.mean(axis=0),
    "cls": lambda states: states[0],
    "max": lambda states: states.max(axis=0),
    "lasttoken": lambda states: states[-1],
}


@pytest.mark.parametrize("pooling", sorted(POOLED))
def test_pooling_leaves_padding_out(plain: Path, pooling: str) -> None:
    vectors = Encoder.load(str(plain), pooling=pooling).encode(TEXTS[:6])
    expected = np.stack([POOLED[pooling](token_states(plain, text)) for text in TEXTS[:6]])
    np.testing.assert_allclose(vectors, expected, atol=2e-6)


def test_order_and_threads_change_no_bit(plain: Path) -> None:
    encoder = Encoder.load(str(plain), pooling="mean")
    vectors = encoder.encode(TEXTS, threads=1)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    permuted = encoder.encode([TEXTS[place] for place in order], threads=3)
    assert permuted.tobytes() == vectors[order].tobytes()


def test_settings_of_sentence_transformers_are_followed(plain: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(str(sentence_transformers_folder(tmp_path, plain)))
    assert encoder.options == {
        "pooling": "mean",
        "normalize": True,
        "max_length": 6,
        "query_prompt": "query: ",
        "document_prompt": "the ",
    }
    bare = Encoder.load(str(plain), pooling="mean", normalize=True, max_length=6)
    np.testing.assert_array_equal(encoder.encode(["cat"], what="queries"), bare.encode(["query: cat"]))
    np.testing.assert_array_equal(encoder.encode(["cat"], what="documents"), bare.encode(["the cat"]))
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS[:6]), axis=1), 1, rtol=1e-6)


def test_an_empty_prompt_is_a_prompt(plain: Path, tmp_path: Path) -> None:
    given = {"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"}
    settings = read_settings(sentence_transformers_folder(tmp_path, plain, config_sentence_transformers=given))
    assert (settings.query_prompt, settings.document_prompt) == ("query: ", "")


def test_modules_of_their_own_go_to_sentence_transformers(plain: Path, tmp_path: Path) -> None:
    package = pytest.importorskip("sentence_transformers")
    from sentence_transformers import models

    (tmp_path / "plain").mkdir()
    start = sentence_transformers_folder(tmp_path / "plain", plain)
    model = package.SentenceTransformer(modules=[models.Transformer(str(start)), models.Pooling(8), models.Dense(8, 3)])
    model.save(str(tmp_path / "dense"))
    encoder = Encoder.load(str(tmp_path / "dense"))
    assert encoder.dimension == 3
    np.testing.assert_allclose(encoder.encode(TEXTS[:6]), model.encode(TEXTS[:6]), atol=2e-6)
    assert Encoder.load(encoder.name, **encoder.options).fingerprint == encoder.fingerprint
    activation = tmp_path / "dense" / "2_Dense" / "config.json"
    was = activation.read_text()
    activation.write_text(was.replace("activation.Tanh", "activation.ReLU"))
    assert Encoder.load(encoder.name).fingerprint != encoder.fingerprint
    activation.write_text(was)
    with refusal("has a module Dense, so pooling is fixed"):
        Encoder.load(str(tmp_path / "dense"), pooling="cls")
    from rnnreranker.encode.coder import load_query_encoder

    trained, tokens, _ = load_query_encoder(str(tmp_path / "dense"), 3)  # a training goes on with its projection
    vectors = trained.eval()(*tokens.pad(tokens.cut(["the cat runs"]))).detach().numpy()
    np.testing.assert_allclose(vectors, model.encode(["the cat runs"]), atol=2e-6)
    with refusal("gives 3 numbers by its own linear layer, the index has 4"):
        load_query_encoder(str(tmp_path / "dense"), 4)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None),
        ({"pooling_mode_mean_tokens": True, "include_prompt": False}, None),
    ],
)
def test_pooling_is_read_or_left_to_sentence_transformers(
    plain: Path, tmp_path: Path, pooling: dict[str, Any], expected: str | None
) -> None:
    found = read_settings(sentence_transformers_folder(tmp_path, plain, pooling=pooling))
    assert found.pooling == expected
    assert found.beyond == ("" if expected else "Pooling")


def test_a_pooling_without_prompts_has_none(plain: Path, tmp_path: Path) -> None:
    pooling = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True, "include_prompt": False}
    folder = str(sentence_transformers_folder(tmp_path, plain, pooling=pooling))
    with refusal(r"its pooling leaves prompts out .* the prompts 'query: ' and 'the '; give"):
        Encoder.load(folder)
    bare = Encoder.load(str(plain), pooling="mean", normalize=True, max_length=6)
    alone = Encoder.load(folder, query_prompt="", document_prompt="")
    np.testing.assert_allclose(alone.encode(TEXTS[:6]), bare.encode(TEXTS[:6]), atol=2e-6)


def test_texts_are_cut_at_max_length(plain: Path) -> None:
    cut, whole = Encoder.load(str(plain), pooling="mean", max_length=4).encode(["the cat runs a dog", "the cat"])
    np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "do not say how token vectors become one; give pooling="),
        ({"pooling": "median"}, "pooling='median': expected one of mean, cls"),
        ({"pooling": "mean", "max_length": 13}, "takes at most 12 tokens"),
        ({"pooling": "mean", "document_type": 2}, r"document_type=2: .* has 2 token types"),
    ],
)
def test_bad_settings_are_named(plain: Path, given: dict[str, Any], message: str) -> None:
    with refusal(message):
        Encoder.load(str(plain), **given)


def test_folders_without_a_whole_model_are_named(tmp_path: Path) -> None:
    for file in ("README", "config.json"):
        (tmp_path / file).write_text("{}")
        with refusal("no model in this folder"):
            Encoder.load(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with refusal("cannot be loaded as an encoder") as caught:
        Encoder.load(str(tmp_path), pooling="cls")
    assert "\n" not in str(caught.value)


def test_bad_texts_are_named(plain: Path) -> None:
    encoder = Encoder.load(str(plain), pooling="mean")
    assert encoder.encode([]).shape == (0, 8)
    with refusal("text 1 is a NoneType; expected a string"):
        encoder.encode(["a", None])  # type: ignore[list-item]
    with refusal("what=passages: expected queries or documents"):
        encoder.encode(["a"], what="passages")  # type: ignore[arg-type]


def test_weights_that_are_not_the_official_minilm_are_refused(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sentence_transformers_folder(tmp_path, plain)
    monkeypatch.setattr(model_folder, "_in_package", lambda known: folder)
    with refusal(r"expected 53aa51172d14\.\.\."):
        Encoder.load("minilm")


def test_small_sets_of_queries_are_encoded_once(plain: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, encoded = ["wing", "flow of air"], list[list[str]]()
    encode = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, own, **how: encoded.append(own) or encode(self, own, **how))
    encoder, other = (Encoder.load(str(plain), pooling=pooling) for pooling in ("mean", "cls"))

    def kept(encoder: Encoder, texts: list[str], times: int) -> np.ndarray:
        vectors = encoder.kept_queries(texts, 1)["vectors"]
        assert len(encoded) == times
        return vectors

    first = kept(encoder, texts, 1)
    np.testing.assert_array_equal(first, kept(Encoder.load(str(plain), pooling="mean"), texts, 1))
    np.testing.assert_array_equal(first, encode(encoder, texts))
    kept(encoder, texts[::-1], 2)
    kept(other, texts, 3)
    for path in (home / "queries").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:-8])  # as a damaged disk leaves it
    np.testing.assert_array_equal(kept(encoder, texts, 4), first)
    monkeypatch.setattr(kinds, "LARGEST", 8)
    kept(encoder, ["wing"], 5)
    kept(encoder, ["wing"], 6)


def test_weights_that_a_file_lacks_are_not_drawn_at_random(tmp_path: Path) -> None:
    """transformers fills them with random numbers, and says so in a warning alone."""
    from safetensors.numpy import load_file, save_file

    make_encoder(tmp_path)
    weights = load_file(str(tmp_path / "model.safetensors"))
    weights["encoder.layer.0.attention.self.query.weighs"] = weights.pop("encoder.layer.0.attention.self.query.weight")
    save_file(weights, str(tmp_path / "model.safetensors"), {"format": "pt"})
    with refusal(r"its weights lack encoder\.layer\.0.attention.self.query.weight .1 missing"):
        Encoder.load(str(tmp_path), pooling="mean")


def test_a_folder_without_a_tokenizer(plain: Path, tmp_path: Path) -> None:
    """As RepBERT's authors hand it out: transformers would read every word as unknown, without a word."""
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((plain / file).read_bytes())
    with refusal("its tokenizer knows no words; expected tokenizer"):
        Encoder.load(str(tmp_path), pooling="mean")
    (tmp_path / "vocab.txt").write_bytes((plain / "vocab.txt").read_bytes())
    assert Encoder.load(str(tmp_path), pooling="mean").encode([WORDS[-1]]).shape == (1, 8)


def test_documents_of_another_token_type(plain: Path) -> None:
    """RepBERT's documents are BERT's second segment: queries stay as they are, and no graph takes the place of both."""
    import transformers

    encoder, usual = (Encoder.open(str(plain), pooling="mean", document_type=kind) for kind in (1, None))
    texts = [" ".join(WORDS[:3])]
    tokens = transformers.BertTokenizer.from_pretrained(plain)(texts, return_tensors="pt")
    tokens["token_type_ids"][:] = 1
    states = transformers.BertModel.from_pretrained(plain).eval()(**tokens).last_hidden_state
    np.testing.assert_allclose(encoder.encode(texts, what="documents"), states.mean(1).detach(), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(texts), usual.encode(texts), atol=1e-5)
    assert not np.allclose(encoder.encode(texts, what="documents"), encoder.encode(texts), atol=1e-2)
    assert (encoder.graph, usual.graph is None) == (None, False)
    assert Encoder.load(str(plain), **encoder.options).fingerprint == encoder.fingerprint != usual.fingerprint


@pytest.mark.parametrize("unit", [True, False])
def test_truncated_vectors_are_those_of_sentence_transformers(plain: Path, tmp_path: Path, unit: bool) -> None:
    """Matryoshka: the folder says how many numbers are kept; where it scales to length 1, those that are kept are."""
    package = pytest.importorskip("sentence_transformers")
    from rnnreranker.encode.coder import load_query_encoder

    (folder := tmp_path / "encoder").mkdir()
    sentence_transformers_folder(folder, plain, config_sentence_transformers={"truncate_dim": 3})
    if not unit:
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(modules[:2]))
    theirs = package.SentenceTransformer(str(folder), device="cpu")
    expected = theirs.encode(TEXTS[:6], normalize_embeddings=unit)
    loaded, opened = Encoder.load(str(folder)), Encoder.open(str(folder))
    assert (loaded.dimension, opened.dimension, opened.graph is not None) == (3, 3, True)
    for encoder in (loaded, opened, Encoder.load(str(folder), **loaded.options)):
        np.testing.assert_allclose(encoder.encode(TEXTS[:6]), expected, atol=2e-6)
        assert encoder.fingerprint == loaded.fingerprint
    assert [Encoder.load(str(folder), truncate_dim=size).dimension for size in (2, 100)] == [2, 8]
    query_encoder, tokens, _ = load_query_encoder(str(folder), 3)
    assert len(query_encoder.whole) == 2 + unit
    vectors = query_encoder.eval()(*tokens.pad(tokens.cut(["the cat runs"]))).detach().numpy()
    np.testing.assert_allclose(vectors, theirs.encode(["the cat runs"], normalize_embeddings=unit), atol=2e-6)

    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": "x"}')
    with refusal(r"truncate_dim='x': expected an integer >= 1"):
        read_settings(folder)
