"""What training claims of the papers: presets, schedule, and the queries that validate, each against its section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refusal
from tiny_encoder import make_qrels, make_run, make_topics

from rnnreranker.base.settings import hints_of
from rnnreranker.runs import Run
from rnnreranker.train.coder import Schedule
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import hard_labels

PLATEAU = TrainParams(schedule="plateau", warmup=0.0, final_ratio=0.3)


def test_only_models_of_smoothed_labels_learn_a_temperature() -> None:
    """001, Section 2.4, Eq. 4: the softmax of bare inner products; 000, Algorithm 1: "T a learnable temp. param."."""
    learns = {name: params.learn_temperature for name, params in TrainParams.presets.items()}
    assert learns == {
        "coder-tas-b": False,
        "coder-tas-b-smooth": True,
        "coder-cocondenser": False,
        "coder-cocondenser-smooth": True,
        "coder-tripclick": False,
        "coder-tripclick-smooth": True,
    }
    assert {params.inverse_temperature for params in TrainParams.presets.values()} == {None}


def test_presets_have_the_rates_of_the_tables() -> None:
    """001, Table 1; 000, Section A.5, Table 6: peak learning rate and warm-up steps."""
    for name, rate, warmup in (("tas-b", 1.73e-6, 9000), ("cocondenser", 1.37e-6, 12000)):
        for ending in ("", "-smooth"):
            found = TrainParams.preset(f"coder-{name}{ending}")
            assert (found.learning_rate, found.warmup) == (pytest.approx(rate, rel=1e-3), warmup)
            assert (found.batch_size, found.clip, found.query_tokens) == (32, 1.0, 32 + 2)
            assert found.epsilon == pytest.approx(1.3e-7, rel=0.01)
            assert found.weight_decay == pytest.approx(9.5e-5, rel=0.001)
    for ending in ("", "-smooth"):  # ten epochs of HEAD and TORSO would end soon after a warm-up of 29,000 steps
        assert TrainParams.preset(f"coder-tripclick{ending}").max_steps == 234000


def schedule_of(params: TrainParams, steps: int, every: int, rates: tuple[float, ...] = (1.0,)) -> Schedule:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    return Schedule(torch.optim.SGD(groups), params, steps, every)


def walk(schedule: Schedule, steps: int, losses: Mapping[int, float]) -> list[float]:
    """The learning rate of every step."""
    found = []
    for step in range(1, steps + 1):
        found.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
        if step in losses:
            schedule.observe(losses[step])
    return found


def test_the_patience_of_a_plateau_is_said_in_steps() -> None:
    """The help says what `schedule_of` computes: a patience of 4000 is four validations of 1000 steps."""
    assert schedule_of(replace(PLATEAU, plateau_patience=4000), 400_000, 1000, (1.0,)).plateau["patience"] == 4
    assert "patience in steps" in hints_of(TrainParams)["plateau_patience"].about["help"]


@pytest.mark.parametrize("seed", range(5))
def test_a_plateau_is_that_of_torch(seed: int) -> None:
    """Side by side with ReduceLROnPlateau, which the authors' program uses: every rate of 400 validations is the same.

    Its floor is the final share of the highest rate.
    """
    params = replace(PLATEAU, plateau_patience=4000)
    rates = (1e-3, 1e-4)
    ours = schedule_of(params, 400_000, 1000, rates)
    theirs = torch.optim.SGD([{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates])
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        theirs, factor=0.707, patience=4, cooldown=3, threshold=1e-3, min_lr=[0.3 * rate for rate in rates]
    )
    rng, loss, seen = np.random.default_rng(seed), 5.0, set()
    for validation in range(400):
        ours.optimizer.step()
        ours.step()
        loss *= float(rng.choice([0.99, 1.0, 1.001]))
        ours.observe(loss)
        plateau.step(loss)
        found = [group["lr"] for group in ours.optimizer.param_groups]
        assert found == pytest.approx([group["lr"] for group in theirs.param_groups], rel=1e-12)
        seen.add(found[0])
        if validation == 200:  # as after a kill: the state goes through a file of plain values
            state = torch.utils._pytree.tree_map(lambda value: value, ours.state_dict())
            ours = schedule_of(params, 400_000, 1000, rates)
            for group, rate in zip(ours.optimizer.param_groups, found, strict=True):
                group["lr"] = rate
            ours.load_state_dict(state)
    assert len(seen) > 3
    assert min(seen) == pytest.approx(0.3 * 1e-3)


def test_validation_queries_have_their_original_labels() -> None:
    """000, Section A.2.1, and 001, Section 3.2: "10k samples from MS MARCO dev"; MS MARCO has one relevance level.

    The first of the judged topics are taken; a positive that was not retrieved takes the place of the last candidate
    (001, Section 2.2).
    """
    run, qrels, topics = make_run(), make_qrels(), make_topics()
    found = hard_labels(run, topics, qrels, 5)
    assert found.qids == tuple(topics)[:5]
    for one in found:
        judged = qrels[(qrels["query_id"] == one.qid) & (qrels["relevance"] >= 1)]
        positives = {docid for docid, on in zip(one.docids, one.positive, strict=True) if on}
        assert positives == set(judged["doc_id"])
        assert one.targets[~one.positive].max() == 0
        assert one.targets.sum() == pytest.approx(1)
    few = Run.from_dict({"q1": dict(run["q1"])})
    assert hard_labels(few, topics, qrels, 5).qids == ("q1",)
    with refusal(r"none of 1 validation topic .* and candidates in the run"):
        hard_labels(few, {"q0": topics["q0"]}, qrels, 5)
    with refusal("none of 24 validation topics has a judgement of grade 1"):
        hard_labels(run, topics, qrels.assign(relevance=0), 5)
