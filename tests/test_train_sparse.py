"""Sparse encoders trained on groups: the weights, SpladeLoss around our losses, resuming, the folder, the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refusal
from tiny_encoder import (
    make_documents,
    make_encoder,
    make_group,
    make_group_inputs,
    make_masked,
    make_topics,
    train_words,
)

from rnnreranker.encode.kinds import SparseEncoder
from rnnreranker.encode.model_folder import term_counts
from rnnreranker.train.__main__ import main
from rnnreranker.train.params import SparseParams
from rnnreranker.train.request import Start
from rnnreranker.train.text import SparseLearner, largest_logits


@pytest.fixture(scope="module")
def tiny(module_path: Path) -> Path:
    return make_masked(module_path)


def learner(tiny: Path, params: SparseParams) -> SparseLearner:
    torch.manual_seed(0)
    return SparseLearner(Start(str(tiny)), params, make_group_inputs(), "cpu")


@pytest.mark.parametrize("architecture", ["max", "doc"])
def test_the_loss_is_that_of_a_plain_computation(tiny: Path, architecture: str) -> None:
    """InfoNCE over all documents of the batch but other positives of the query, and the FLOPS of both sides."""
    found = learner(tiny, SparseParams(architecture=architecture, lambda_q=0.3, lambda_d=0.2))
    found.model.eval()
    groups = [make_group("q1", ("d1", "d2"), [1, 0], {"d1", "d4"}), make_group("q2", ("d3", "d4"), [1, 0], {"d3"})]
    batch = found.batch(groups)
    topics, documents = make_topics(), make_documents()
    docs = ["d1", "d2", "d3", "d4"]
    encoder = SparseEncoder.load(str(tiny))
    texts = [topics["q1"], topics["q2"]]
    queries = encoder.encode(texts, "query").weights.toarray()
    if architecture == "doc":
        queries = term_counts(str(tiny), texts, encoder.vocabulary, binary=True)[0].toarray()
    weights = encoder.encode([documents[docid] for docid in docs], "document").weights.toarray()
    scores = queries @ weights.T
    first = np.log(np.exp(scores[0, [0, 1, 2]]).sum()) - scores[0, 0]  # d4 is positive, too
    second = np.log(np.exp(scores[1]).sum()) - scores[1, 2]
    found.step = 10**6
    of_batch, of_documents, of_queries = found.losses(batch)
    assert of_batch.item() == pytest.approx((first + second) / 2, rel=1e-5)
    assert of_documents.item() == pytest.approx(0.2 * (weights.mean(0) ** 2).sum(), rel=1e-5)
    expected = 0.3 * (queries.mean(0) ** 2).sum() if architecture == "max" else 0.0
    assert of_queries.item() == pytest.approx(expected, rel=1e-5)


def test_the_largest_logits_have_the_gradients_of_a_plain_computation() -> None:
    rng = torch.Generator().manual_seed(3)
    given = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in ((3, 5, 4), (200, 4), (200,))]
    attention = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0]])
    upstream = torch.randn((3, 200), generator=rng, dtype=torch.float64)
    gradients = []
    for plain in (True, False):
        hidden, weight, bias = (one.clone().requires_grad_() for one in given)
        if plain:
            logits = torch.nn.functional.linear(hidden, weight, bias)
            found = logits.masked_fill(attention.unsqueeze(2) == 0, -torch.inf).max(dim=1).values
        else:
            found = largest_logits(hidden, attention, weight, bias)
        (torch.log1p(torch.relu(found)) * upstream).sum().backward()
        gradients.append([found.detach().relu(), *(one.grad for one in (hidden, weight, bias))])
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-12)
    assert (gradients[0][1][1, 2:] == 0).all()


def test_margin_mse_of_a_group(tiny: Path) -> None:
    found = learner(tiny, SparseParams(loss="margin-mse"))
    found.model.eval()
    groups = [make_group("q1", ("d1", "d2"), [0.8, 0.2], {"d1"}), make_group("q2", ("d2", "d3"), [0.5, 0.5], {"d2"})]
    batch = found.batch(groups)
    encoder, topics, documents = SparseEncoder.load(str(tiny)), make_topics(), make_documents()
    queries = encoder.encode([topics["q1"], topics["q2"]], "query").weights.toarray()
    weights = encoder.encode([documents[docid] for docid in ("d1", "d2", "d3")], "document").weights.toarray()
    scores = queries @ weights.T
    errors = [scores[0, 0] - scores[0, 1] - np.log(4), scores[1, 1] - scores[1, 2]]
    assert found.losses(batch)[0].item() == pytest.approx(np.square(errors).mean(), rel=1e-4)


def test_models_that_are_no_masked_language_models(world: Path, tmp_path: Path) -> None:
    labels, dense = ("--labels", str(world / "labels.parquet")), make_encoder(tmp_path / "dense")
    with refusal(r"its weights lack cls.* expected a whole AutoModelForMaskedLM"):
        main(train_words("sparse", world, dense, *labels))
    other = make_masked(tmp_path / "other")
    from transformers import BertTokenizer

    (other / "vocab.txt").write_text((other / "vocab.txt").read_text() + "".join(f"more{n}\n" for n in range(9)))
    BertTokenizer(str(other / "vocab.txt"), model_max_length=64).save_pretrained(other)
    with refusal("its tokenizer has token 53, its model 45 embeddings"):
        main(train_words("sparse", world, other, *labels))
