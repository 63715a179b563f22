"""Late-interaction encoders trained on groups: scores, losses over group and batch, resuming, folder and command."""

from __future__ import annotations

import json
import string
from pathlib import Path

import numpy as np
import pytest
import torch

from rnnreranker.encode.kinds import LateEncoder
from rnnreranker.encode.late import make_late_base
from rnnreranker.labels.soft import Labels
from rnnreranker.train.groups import GroupInputs
from rnnreranker.train.params import LateParams
from rnnreranker.train.request import Start
from rnnreranker.train.text import LateLearner, late_scores
from tests.tiny_encoder import (
    WORDS,
    make_encoder,
    make_group,
)

pytest.importorskip("sentence_transformers")

TOPICS = {"q1": "w1 , w2", "q2": "w3 w4 w5 w6 w7 w8 w9 w10 w11 w12", "q3": "w5", "q4": "  "}
TEXTS = {
    "d1": "w1 w2 , w3 .",
    "d2": "w4 " * 30,  # cut
    "d3": "w5 w6 ! w7",
    "d4": "",
    "d5": ", .",  # [CLS] and [SEP] alone are left
    "d6": "w9 w10 w11 w12 w13 w14",
}


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("bert"), [*WORDS, *string.punctuation])


@pytest.fixture(scope="module")
def tiny(transformer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A late-interaction encoder of 16 numbers a token, its queries expanded to 9, its documents cut at 20."""
    folder = tmp_path_factory.mktemp("late")
    make_late_base(str(transformer), folder / "base", 16)
    settings = folder / "base" / "sentence_bert_config.json"
    config = json.loads(settings.read_text())
    config["document_length"], config["query_expansion"]["length"] = 20, 9
    settings.write_text(json.dumps(config))
    return folder / "base"


def learner(tiny: Path, params: LateParams) -> LateLearner:
    made = LateLearner(Start(str(tiny)), params, GroupInputs([], [], TOPICS, TEXTS, {}), "cpu")
    made.model.eval()
    return made


GROUPS = [
    make_group("q1", ("d1", "d2"), [1, 0], {"d1"}),
    make_group("q2", ("d6", "d4"), [1, 0], {"d6", "d3"}),
    make_group("q3", ("d3", "d5"), [1, 0], {"d3"}),
    make_group("q4", ("d1", "d6"), [1, 0], {"d1"}),
]
DOCIDS = ["d1", "d2", "d6", "d4", "d3", "d5"]  # in the order of the groups


def plain(tiny: Path, similarity: str, **lengths: int) -> np.ndarray:
    """(4, 6): topics and DOCIDS, token by token, of what the encoder of the product gives."""
    encoder = LateEncoder.load(str(tiny), **lengths)
    queries = encoder.encode(list(TOPICS.values()), "query")
    documents = encoder.encode([TEXTS[docid] for docid in DOCIDS], "document")
    found = np.zeros((len(TOPICS), len(DOCIDS)))
    for row in range(len(TOPICS)):
        for column in range(len(DOCIDS)):
            tokens = documents.vectors[documents.offsets[column] : documents.offsets[column + 1]]
            for query in queries.vectors[queries.offsets[row] : queries.offsets[row + 1]]:
                near = [float(query @ token) for token in tokens]
                if similarity == "l2":
                    near = [*(-float(((query - token) ** 2).sum()) for token in tokens), -1.0]
                found[row, column] += max(near, default=0.0)
    return found


@pytest.mark.parametrize("similarity", ["maxsim", "l2"])
@pytest.mark.parametrize("lengths", [{}, {"query_length": 6, "document_length": 8}])
def test_training_scores_are_those_of_the_product_token_by_token(
    tiny: Path, similarity: str, lengths: dict[str, int]
) -> None:
    """Padding, punctuation, [MASK] of queries, cut texts, and texts without tokens on either side."""
    found = learner(tiny, LateParams(similarity=similarity, **lengths))  # type: ignore[arg-type]
    with torch.no_grad():
        batch = found.batch(GROUPS)
        scores = found.scores(**batch["features"])
    expected = plain(tiny, similarity, **lengths)
    np.testing.assert_allclose(scores.numpy(), expected, atol=1e-5)
    assert expected[:, 3].tolist() == (
        [0, 0, 0, 0] if similarity == "maxsim" else [-lengths.get("query_length", 9)] * 3 + [0]
    )


def test_scores_of_validation_are_those_of_training(tiny: Path) -> None:
    rows = [("q1", DOCIDS), ("q3", DOCIDS[::-1]), ("q2", DOCIDS[:3]), ("q4", DOCIDS)]
    lists = [Labels(qid, own, np.zeros(len(own)), np.zeros(len(own)), np.zeros(len(own), bool)) for qid, own in rows]
    found, expected = learner(tiny, LateParams(similarity="l2")), plain(tiny, "l2")
    with torch.no_grad():
        scored = [one for start in range(0, len(lists), 2) for one in found.scored(lists[start : start + 2])]
    for (qid, own), one in zip(rows, scored, strict=True):
        wanted = [expected[list(TOPICS).index(qid), DOCIDS.index(docid)] for docid in own]
        np.testing.assert_allclose(one, wanted, atol=1e-5)


def test_what_is_not_real_changes_neither_scores_nor_gradients() -> None:
    rng = torch.Generator().manual_seed(3)
    queries, documents = torch.randn(2, 3, 4, generator=rng), torch.randn(3, 5, 4, generator=rng)
    asked = torch.tensor([[True, True, True], [True, False, False]])
    real = torch.tensor([[True] * 5, [True, False, True, False, False], [False] * 5])
    for similarity in ("maxsim", "l2"):
        found = []
        for filling in (0.0, 7.5, float("nan")):
            given = documents.clone()
            given[~real] = filling
            given.requires_grad_()
            scores = late_scores(queries, asked, given, real, similarity)  # type: ignore[arg-type]
            scores.sum().backward()
            found.append((scores.detach(), given.grad))
        for scores, gradient in found:
            assert torch.equal(scores, found[0][0])
            assert torch.equal(gradient, found[0][1])
        assert (found[0][1][~real] == 0).all()
        assert (found[0][1][real] != 0).any()


def log_share(scores: np.ndarray, place: int) -> float:
    return float(scores[place] - np.log(np.exp(scores).sum()))


TEACHER = [[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]


def divergence(targets: list[float], scores: np.ndarray) -> float:
    shares = np.exp(scores) / np.exp(scores).sum()
    return sum(y * np.log(y / share) for y, share in zip(targets, shares, strict=True) if y > 0)


def test_divergence_from_a_teacher_over_pairs_and_the_loss_over_the_batch(tiny: Path) -> None:
    pairs_of = zip(GROUPS[:3], TEACHER, strict=True)
    groups = [make_group(one.qid, tuple(one.docids), own, set(one.known)) for one, own in pairs_of]
    scores = plain(tiny, "maxsim")[:3]
    pairs = [scores[0, [0, 1]], scores[1, [2, 3]], scores[2, [4, 5]]]
    of_pairs = np.mean([divergence(y, own) for y, own in zip(TEACHER, pairs, strict=True)])
    of_batch = -np.mean([log_share(scores[0], 0), log_share(np.delete(scores[1], 4), 2), log_share(scores[2], 4)])
    for loss, expected in (("kl", of_pairs), ("info-nce", of_batch)):
        found = learner(tiny, LateParams(loss=loss))
        assert found.loss(found.batch(groups)).item() == pytest.approx(expected, rel=1e-5)
