"""Term scorers: what they learn from, eq. 4 by hand, kills, the weights they predict, labels of them, bad input."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refusal

from rnnreranker import SoftLabels, label_distribution
from rnnreranker.encode.kinds import Encoder, LateEncoder, PairScorer, SparseEncoder
from rnnreranker.encode.words.analysis import words
from rnnreranker.encode.words.scorer import TermScorer
from rnnreranker.index.__main__ import main as index
from rnnreranker.index.opening import open_index
from rnnreranker.labels.__main__ import main as labels
from rnnreranker.parts.postings.word_weights import CollectionWeights
from rnnreranker.train.__main__ import main as train
from rnnreranker.train.params import TextParams
from rnnreranker.train.request import Start
from rnnreranker.train.single_text import TermInputs, TermLearner, WeighedText
from tests.query_sets import write_judged, write_lines, write_texts
from tests.tiny_encoder import make_encoder

DOCUMENTS = {f"d{n}": " ".join(f"w{(n * k) % 23}" for k in range(1, 6)) + " w39, w39." for n in range(30)}
TOPICS = {f"q{n}": f"w{n % 23} w38 w{2 * n % 23}?" for n in range(20)} | {"q20": "..."}
HOW = "--epochs 4 --learning-rate 0.01 --batch-size 8 --device cpu"


@pytest.fixture(scope="module")
def made(module_path: Path) -> Path:
    """Documents, an index with counted words, labels with one positive a query, an encoder, a trained scorer."""
    write_texts(module_path / "docs.tsv", DOCUMENTS)
    assert index(f"--documents {module_path}/docs.tsv --output {module_path}/index --parts terms".split()) == 0
    write_judged(module_path, TOPICS, ((f"q{n}", f"d{n}", 1) for n in range(21)))
    ranked = [(qid, f"d{(number + place) % 30}", place) for number, qid in enumerate(TOPICS) for place in range(1, 6)]
    write_lines(module_path / "run.txt", (f"{qid} Q0 {docid} {at} {9 - at} x" for qid, docid, at in ranked))
    make_encoder(module_path / "encoder")
    assert labelled(module_path, module_path / "labels.parquet") == 0
    assert trained(module_path, module_path / "scorer") == 0
    return module_path


def labelled(made: Path, output: Path, *more: str) -> int:
    files = f"--run {made}/run.txt --qrels {made}/qrels.txt --topics {made}/topics.tsv --index {made}/index"
    return labels([*f"{files} --method term-weight --output {output}".split(), *more])


def trained(made: Path, output: Path, *more: str) -> int:
    files = f"--labels {made}/labels.parquet --topics {made}/topics.tsv --index {made}/index --encoder {made}/encoder"
    return train([*f"--model term-scorer {files} --output {output} {HOW}".split(), *more])


@pytest.mark.long
def test_what_it_learns_from(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Paper 004, 3.2, eq. 4: "J = sum over <x, y> in D, sum over w in x of (t_w^{x,y} - t̂_w^x)^2": words of queries.

    They weigh as in their positive, 0 where it lacks them.
    """
    seen: list[TermInputs] = []
    usual = TermLearner.__init__

    def watched(self: TermLearner, start: Start, params: Any, inputs: TermInputs, device: str) -> None:
        seen.append(inputs)
        usual(self, start, params, inputs, device)

    monkeypatch.setattr(TermLearner, "__init__", watched)
    assert trained(made, tmp_path / "paper", "--max-steps", "1") == 0
    learnt = {one.text: one.weights for inputs in seen for one in (*inputs.training, *inputs.checked)}
    weights = CollectionWeights(open_index(str(made / "index")).term_source)
    own = dict(zip(DOCUMENTS, weights.of_documents(range(30)), strict=True))
    positive = {text: own[f"d{number}"] for number, text in enumerate(TOPICS.values()) if text != "..."}
    queries = {text: {word: of.get(word, 0.0) for word in words(text, "en")} for text, of in positive.items()}
    assert learnt == queries | {"...": {}}
    assert queries[TOPICS["q3"]]["w38"] == 0


def test_the_loss_is_equation_4_over_tokens(made: Path) -> None:
    from rnnreranker.encode.words.analysis import TermParams

    texts = [WeighedText("w1 w2, w3", {"w1": 0.5, "w2": -0.25, "w3": 0.0}), WeighedText("w7", {"w7": 1.0})]
    inputs = TermInputs(texts, texts, TermParams(), {}, "")
    learner = TermLearner(Start(str(made / "encoder")), TextParams(), inputs, "cpu")
    learner.model.eval()
    total, count = 0.0, 0
    for pieces, own in learner.training:
        tokens = torch.tensor([pieces.tokens])
        with torch.no_grad():
            found = learner.model(tokens, torch.ones_like(tokens), torch.zeros_like(tokens))[0].tolist()
        for token, weight in own.items():
            total, count = total + (weight - found[token]) ** 2, count + 1
    assert count == 4
    loss = learner.loss(learner.batch(learner.training))
    assert loss.item() == pytest.approx(total / count, rel=1e-5)
    with torch.no_grad():
        assert learner.validation().measures["loss"] == pytest.approx(total / count, rel=1e-5)


def test_predicted_weights(made: Path) -> None:
    scorer = TermScorer(made / "scorer")
    text = "w3 w39, w39"
    found = scorer.words(text)
    assert [word for word, _ in found] == ["w3", "w39", "w39"]
    twice = [weight for _, weight in found[1:] if weight is not None]
    kept = [weight for weight in twice if weight >= 0] or twice
    [weights] = scorer.weights([text])
    assert weights["w39"] == pytest.approx(sum(kept) / len(kept))
    assert scorer.weights(["?!", "", text]) == [{}, {}, weights]
    long = " ".join(["w1"] * 100)
    assert [weight is None for _, weight in scorer.words(long)] == [False] * 62 + [True] * 38


def test_labels_of_a_scorer(made: Path, tmp_path: Path) -> None:
    how = ["--method", f"term-weight:weights=scorer,scorer={made / 'scorer'}"]
    assert labelled(made, tmp_path / "whole.parquet", *how) == 0
    assert labelled(made, tmp_path / "parts.parquet", *how, "--shard-size", "4", "--jobs", "2") == 0
    assert (tmp_path / "parts.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    scorer = TermScorer(made / "scorer")
    found = SoftLabels.read(tmp_path / "whole.parquet")
    for one in found:
        [query] = scorer.weights([TOPICS[one.qid]])
        documents = scorer.weights([DOCUMENTS[docid] for docid in one.docids])
        expected = [label_distribution(query, weights) for weights in documents]
        np.testing.assert_allclose(one.scores, expected, rtol=1e-6)
    assert found.metadata["scorer"] == scorer.digest
    assert "index" not in found.metadata


def test_labels_are_of_a_scorer_that_was_trained_again(made: Path, tmp_path: Path) -> None:
    how = ["--method", f"term-weight:weights=scorer,scorer={tmp_path / 'scorer'}"]
    for rate in ("0.01", "0.02"):
        assert trained(made, tmp_path / "scorer", "--learning-rate", rate, "--epochs", "1") == 0
        assert labelled(made, tmp_path / "labels.parquet", *how) == 0
        labels = SoftLabels.read(tmp_path / "labels.parquet")
        assert labels.metadata["scorer"] == TermScorer(tmp_path / "scorer").digest


def test_scorers_that_are_none(made: Path, tmp_path: Path) -> None:
    with refusal(r"no rnnreranker-term-scorer; expected a folder of"):
        _ = TermScorer(tmp_path).loaded
    with refusal(r"no rnnreranker-term-scorer; expected a folder of"):
        _ = TermScorer(made / "encoder").loaded
    shutil.copytree(made / "scorer", tmp_path / "damaged")
    (tmp_path / "damaged" / "scorer.safetensors").write_bytes(b"nothing")
    with refusal(r"cannot be loaded as a term scorer \("):
        _ = TermScorer(tmp_path / "damaged").loaded
    with refusal(r"weights=scorer: needs a scorer"):
        labelled(made, tmp_path / "l.parquet", "--method", "term-weight:weights=scorer")
    with refusal("goes with"):
        labelled(made, tmp_path / "l.parquet", "--method", f"term-weight:scorer={made / 'scorer'}")


def test_a_term_scorer_is_no_encoder(made: Path) -> None:
    kinds: list[Any] = [partial(Encoder.load, pooling="mean"), SparseEncoder.load, LateEncoder.load, PairScorer.load]
    for load in kinds:
        with refusal(r"scorer: (cannot be loaded as|no late-interaction encoder)"):
            load(str(made / "scorer"))


def test_the_embedding_of_tags_begins_as_nothing_and_is_learnt(made: Path) -> None:
    pytest.importorskip("jieba")
    from rnnreranker.encode.words.analysis import TermParams

    texts = [WeighedText("w1 w2", {"w1": 0.5, "w2": 0.1})]
    found = []
    for language in ("en", "zh"):
        torch.manual_seed(1)
        terms = TermParams(language=language)  # type: ignore[arg-type]
        given = TermInputs(texts, texts, terms, {}, "")
        learner = TermLearner(Start(str(made / "encoder")), TextParams(), given, "cpu")
        learner.model.eval()
        found.append(learner.loss(learner.batch(learner.training)))
    assert found[0].item() == pytest.approx(found[1].item(), rel=1e-6)
    found[1].backward()
    tags = learner.model.tags.weight.grad.abs().sum(dim=1)
    assert learner.training[0][0].tags == [4, 0, 0, 4]  # both begin words of two characters
    assert (tags > 0).tolist() == [True, False, False, False, False]
