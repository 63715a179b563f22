"""Masked language models: a new one of a collection, its vocabulary, masks, kills, what begins with it, bad input."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from query_sets import write_texts
from refusals import refusal
from tiny_encoder import record_of
from transformers import AutoModelForMaskedLM, AutoTokenizer

from rnnreranker.encode.kinds import Encoder
from rnnreranker.train.__main__ import main as train
from rnnreranker.train.params import MaskedParams
from rnnreranker.train.request import Start
from rnnreranker.train.single_text import SPECIAL, MaskedLearner, new_tokenizer

SMALL = "masked:layers=1,hidden_size=16,heads=2"
HOW = "--epochs 12 --batch-size 8 --learning-rate 0.01 --device cpu"
TEXTS = {f"d{n:02d}": f"北京 大学 w{n % 5} 在北京。" for n in range(40)} | {"empty": " "}


@pytest.fixture(scope="module")
def made(module_path: Path) -> Path:
    """Documents, and a model that was trained from nothing on them."""
    write_texts(module_path / "docs.tsv", TEXTS)
    assert trained(module_path, module_path / "model") == 0
    return module_path


def trained(made: Path, output: Path, *more: str, encoder: str = "none") -> int:
    words = f"--documents {made}/docs.tsv --encoder {encoder} --output {output} {HOW}".split()
    return train(["--model", SMALL if encoder == "none" else "masked", *words, *more])


def test_it_learns_and_is_an_encoder(made: Path) -> None:
    record = record_of(made / "model")
    words = len(AutoTokenizer.from_pretrained(made / "model"))
    assert record["history"][0]["loss"] == pytest.approx(math.log(words), rel=0.05)
    assert record["measures"]["loss"] < record["history"][0]["loss"] / 1.5
    assert record["measures"]["accuracy"] > 0.3 > record["history"][0]["accuracy"]
    assert (record["validation_texts"], record["training_texts"], record["encoder"]) == (4, 36, None)
    config = AutoModelForMaskedLM.from_pretrained(made / "model").config
    assert (config.vocab_size, config.num_hidden_layers, config.hidden_size) == (words, 1, 16)
    assert config.intermediate_size == 64
    assert Encoder.load(str(made / "model"), pooling="mean").encode(["北京"]).shape == (1, 16)


def test_the_vocabulary_of_a_collection() -> None:
    tokenizer = new_tokenizer(["Rain, rain! 北京", "rain Sun été", "北"], 100)
    words = [*SPECIAL, "##i", "##n", "##a", "r", "北", "!", "##e", "##t", "##u", ",", "e", "s", "京", "rain"]
    assert sorted(tokenizer.get_vocab()) == sorted(words)
    assert tokenizer.tokenize("RAIN 北京 Sunny") == ["rain", "北", "京", "[UNK]"]
    assert tokenizer.tokenize("sun") == ["s", "##u", "##n"]
    assert tokenizer.convert_ids_to_tokens([5, 6]) == ["##n", "##a"]  # four times and three times
    assert len(new_tokenizer(["Rain, rain! 北京"], 8)) == 8
    with refusal("no text has a word"):
        new_tokenizer([" "], 8)


def test_masks_depend_on_what_draws_them_alone() -> None:
    params = MaskedParams(layers=1, hidden_size=8, heads=2, mask_share=0.5)
    learner = MaskedLearner(Start("none"), params, (list(TEXTS.values())[:20], ["北京在北京"]), "cpu")
    batch = learner.batch(learner.training)
    learner.model.eval()
    losses = []
    for seed in (1, 1, 2):
        learner.rng = np.random.default_rng(seed)
        losses.append(learner.loss(batch).item())
    one, same, other = losses
    assert one == same != other
    with torch.no_grad():
        assert learner.validation() == learner.validation()
    _, guessed = learner.guesses(learner.training, np.random.default_rng(5))
    tokens = sum(map(len, learner.training)) - 40
    assert not torch.isin(guessed, torch.tensor([0, 2, 3])).any()  # padding, [CLS] and [SEP]
    assert 0.3 < len(guessed) / tokens < 0.7


@pytest.mark.long
def test_a_model_is_trained_on(made: Path, tmp_path: Path) -> None:
    before = record_of(made / "model")["measures"]
    assert trained(made, tmp_path / "on", "--max-steps", "2", encoder=str(made / "model")) == 0
    record = record_of(tmp_path / "on")
    assert record["history"][0]["loss"] == pytest.approx(before["loss"], rel=1e-5)
