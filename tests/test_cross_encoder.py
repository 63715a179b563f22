"""Cross-encoders: scores of pairs beside those of sentence-transformers, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refusal

from rnnreranker.encode.kinds import PairScorer
from tests.tiny_encoder import make_cross_encoder, make_encoder

sentence_transformers = pytest.importorskip("sentence_transformers")

PAIRS = [("w1 w2", "w3 w4 w5"), ("w1 w2", ""), ("", "w7"), ("w8", "w9 " * 90), ("w1 w2", "w3 w4 w5"), ("w5", " w6 ")]


@pytest.fixture(scope="module")
def scorer(cross: Path) -> PairScorer:
    return PairScorer.load(str(cross))


def many_pairs() -> list[tuple[str, str]]:
    """300 pairs of 1 to 60 words, more than a batch holds."""
    rng = np.random.default_rng(3)
    return [
        (f"w{number % 7} w{number % 11}", " ".join(f"w{word}" for word in rng.integers(0, 40, rng.integers(1, 61))))
        for number in range(300)
    ]


def test_scores_are_the_logits_of_sentence_transformers(scorer: PairScorer, cross: Path) -> None:
    model = sentence_transformers.CrossEncoder(str(cross), device="cpu")
    for pairs in (PAIRS, many_pairs()):
        expected = model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        found = scorer.score(pairs)
        assert found.scores.dtype == np.float32
        assert np.ptp(expected) > 0.1
        np.testing.assert_allclose(found.scores, expected, atol=1e-6)
    assert scorer.score(PAIRS).cut.tolist() == [False, False, False, True, False, False]
    assert scorer.max_length == 64


def test_the_length_limit_is_the_callers(scorer: PairScorer, cross: Path, tmp_path: Path) -> None:
    shorter = PairScorer.load(str(cross), max_length=16)
    long, cut = ("w1 w2", "w3 " * 50), ("w1 w2", "w3 " * 11)  # 16 tokens: three of them mark beginning and ends
    found = shorter.score([long, cut])
    assert found.cut.tolist() == [True, False]
    assert found.scores[0] == pytest.approx(found.scores[1], abs=1e-6)
    assert shorter.fingerprint != scorer.fingerprint
    other = PairScorer.load(str(make_cross_encoder(tmp_path / "other", seed=1)))
    assert other.fingerprint != scorer.fingerprint
    with refusal(r"max_length=65: .* takes at most 64 tokens"):
        PairScorer.load(str(cross), max_length=65)
    with refusal("max_length=0: expected an integer >= 1"):
        PairScorer.load(str(cross), max_length=0)


def test_models_for_something_else_are_refused(cross: Path, tmp_path: Path) -> None:
    three = make_cross_encoder(tmp_path / "three", labels=3)
    with refusal(r"three: a classifier of 3 labels; expected .* 1"):
        PairScorer.load(str(three))
    (tmp_path / "dense").mkdir()
    with refusal(r"its weights lack .*expected a whole AutoModelForSequenceClassification"):
        PairScorer.load(str(make_encoder(tmp_path / "dense")))
    with refusal(r"cross-encoder nonsuch: no such folder or model; .*ms-marco-minilm-l6"):
        PairScorer.load("nonsuch")


def test_scores_that_are_no_numbers_are_refused(cross: Path, tmp_path: Path, scorer: PairScorer) -> None:
    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(cross, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights["classifier.bias"] = torch.full_like(weights["classifier.bias"], float("nan"))
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with refusal(r"broken: gives NaN or infinite values"):
        PairScorer.load(str(broken)).score(PAIRS)
    with refusal("text 1 is a tuple; expected a string"):
        scorer.score([("w1", "w2"), ("w1", None)])  # type: ignore[list-item]
