"""Losses of training against numbers worked out by hand, with and without padding."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from refusals import refusal

from rnnreranker.base.method import find as find_method
from rnnreranker.base.method import make_params, names
from rnnreranker.train.fairness import neutrality_divergence
from rnnreranker.train.params import TrainParams, settings_for

NAN, LN2, LN3 = math.nan, math.log(2), math.log(3)


def ranking_loss(name: str, *batch: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = find_method("loss", name)()(*batch)
    return found


def rows(*values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


# scores ln 3, 0, 0 -> shares 3/5, 1/5, 1/5
SCORES = rows([LN3, 0.0, 0.0])
TARGETS = rows([0.5, 0.5, 0.0])
POSITIVE = rows([1, 0, 0]).bool()
VALID = rows([1, 1, 1]).bool()


def test_kl_by_hand() -> None:
    by_hand = 0.5 * math.log(0.5 / 0.6) + 0.5 * math.log(0.5 / 0.2)
    assert ranking_loss("kl", SCORES, TARGETS, POSITIVE, VALID).item() == pytest.approx(by_hand)


def test_cross_entropy_by_hand_averages_the_positives() -> None:
    assert ranking_loss("cross-entropy", SCORES, TARGETS, POSITIVE, VALID).item() == pytest.approx(-math.log(0.6))
    two = rows([1, 1, 0]).bool()
    by_hand = -(math.log(0.6) + math.log(0.2)) / 2
    assert ranking_loss("cross-entropy", SCORES, TARGETS, two, VALID).item() == pytest.approx(by_hand)


def test_margin_by_hand_and_as_torch_has_it() -> None:
    scores, positive = rows([0.9, 0.2, 0.5]), rows([1, 0, 0]).bool()
    found = ranking_loss("margin", scores, TARGETS, positive, VALID).item()
    assert found == pytest.approx(((1 - 0.9 + 0.2) + (1 - 0.9 + 0.5)) / 3)
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(4, 9, generator=generator, dtype=torch.float64)
    target = torch.full((4, 9), -1)
    positive = torch.zeros(4, 9, dtype=torch.bool)
    for line, places in enumerate([[0], [3, 8], [1, 2, 4], [5]]):
        target[line, : len(places)] = torch.tensor(places)
        positive[line, places] = True
    expected = torch.nn.MultiLabelMarginLoss()(scores, target).item()
    found = ranking_loss("margin", scores, torch.zeros_like(scores), positive, torch.ones_like(positive))
    assert found.item() == pytest.approx(expected)


def test_triplet_by_hand() -> None:
    """D is .1, .3 and .8; with the margin .5 the second document is .3 too near, the third far enough."""
    scores, positive = rows([0.9, 0.7, 0.2]), rows([1, 0, 0]).bool()
    assert ranking_loss("triplet", scores, TARGETS, positive, VALID).item() == pytest.approx((0.1 - 0.3 + 0.5) / 3)
    two = rows([1, 1, 0]).bool()
    assert ranking_loss("triplet", scores, TARGETS, two, VALID).item() == pytest.approx(0)
    wide = find_method("loss", "triplet")(make_params("loss", "triplet", {"margin": 0.9}))(scores, TARGETS, two, VALID)
    assert wide.item() == pytest.approx((0.9 - 0.7 + 0.9 - 0.5) / 3)  # .2 and .4


def test_multi_tier_adds_soft_positives_over_the_rest() -> None:
    scores = rows([2.0, 0.5, 0.0])
    # first tier: 1-2+.5 < 0 and 1-2+0 < 0; second: 1 - .5 + 0
    assert ranking_loss("multi-tier", scores, TARGETS, POSITIVE, VALID).item() == pytest.approx(0.5 / 3)
    hard = rows([1.0, 0.0, 0.0])
    margin = ranking_loss("margin", scores, hard, POSITIVE, VALID)
    assert ranking_loss("multi-tier", scores, hard, POSITIVE, VALID).item() == margin.item()


@pytest.mark.parametrize("name", ["kl", "cross-entropy", "margin", "multi-tier", "triplet"])
@pytest.mark.parametrize("filling", [0.0, 7.5, math.inf, -math.inf, NAN])
def test_padding_changes_neither_loss_nor_gradient(name: str, filling: float) -> None:
    alone = SCORES.clone().requires_grad_()
    ranking_loss(name, alone, TARGETS, POSITIVE, VALID).backward()
    padded = torch.cat([SCORES, rows([filling, filling])], dim=1)
    padded = torch.cat([padded, torch.full((1, 5), filling, dtype=torch.float64)]).requires_grad_()  # an empty row too
    targets = torch.cat([torch.cat([TARGETS, rows([0, 0])], dim=1), torch.zeros(1, 5)])
    valid = rows([1, 1, 1, 0, 0], [0] * 5).bool()
    positive = rows([1, 0, 0, 0, 0], [0] * 5).bool()
    loss = ranking_loss(name, padded, targets, positive, valid)
    assert loss.item() == pytest.approx(ranking_loss(name, SCORES, TARGETS, POSITIVE, VALID).item())
    loss.backward()
    assert alone.grad is not None
    assert padded.grad is not None
    assert torch.allclose(padded.grad[0, :3], alone.grad[0])
    assert (padded.grad[0, 3:] == 0).all()
    assert (padded.grad[1] == 0).all()


def test_a_margin_belongs_to_the_losses_that_have_one(tmp_path: Path) -> None:
    assert set(names("loss")) >= {"kl", "cross-entropy", "margin", "multi-tier"}
    wide = find_method("loss", "margin")(make_params("loss", "margin", {"margin": 3.0}))
    assert wide(SCORES, TARGETS, POSITIVE, VALID).item() == pytest.approx(2 * (3 - LN3) / 3)
    file = tmp_path / "my.yaml"
    file.write_text("train: {loss: {margin: {margin: 0.25}}, epochs: 2}\n")
    assert settings_for(TrainParams, {}, str(file)) == TrainParams(loss="margin:margin=0.25", epochs=2.0)
    assert settings_for(TrainParams, {"loss": "margin:margin=2"}, str(file)).described()["margin"] == 2
    assert settings_for(TrainParams, {"loss": "kl"}, str(file)) == TrainParams(loss="kl", epochs=2.0)
    for form, said in (("kl:margin=0.5", "no setting margin"), ("multi-tier:margin=-1", "margin=-1.0: expected a fin")):
        with refusal(said):
            settings_for(TrainParams, {"loss": form})


def test_neutrality_divergence_by_hand_over_the_highest_scores() -> None:
    neutrality = rows([1.0, 0.0, 1.0])
    # the two highest: scores ln 3 and 0 -> 3/4, 1/4; neutrality 1 and 0 -> e/(e+1), 1/(e+1)
    share = math.e / (math.e + 1)
    by_hand = share * math.log(share / 0.75) + (1 - share) * math.log((1 - share) / 0.25)
    scores = rows([LN3, 0.0, -1.0]).requires_grad_()
    found = neutrality_divergence(scores, neutrality, VALID, 2)
    assert found.item() == pytest.approx(by_hand)
    found.backward()
    assert scores.grad is not None
    assert scores.grad[0, 2] == 0
    padded = torch.cat([SCORES, rows([NAN])], dim=1)
    alone = neutrality_divergence(SCORES, neutrality, VALID, 100)
    wide = neutrality_divergence(padded, rows([1.0, 0.0, 1.0, NAN]), rows([1, 1, 1, 0]).bool(), 100)
    assert wide.item() == pytest.approx(alone.item())
