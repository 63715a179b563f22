"""Trainings of every kind that are killed and begun again: all files of their folders are those of no kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from query_sets import files_of
from refusals import refusal
from tiny_encoder import (
    make_masked,
    make_qrels,
    make_run,
    make_source,
    make_text_labels,
    make_topics,
    train_encoder,
    write_text_world,
)

from rnnreranker import build_index, train_model
from rnnreranker.base.jobs import alone
from rnnreranker.base.method import Inputs
from rnnreranker.encode.params import ScorerParams
from rnnreranker.labels.methods.simple import HardLabeler
from rnnreranker.train import trainer
from rnnreranker.train.params import TrainParams, settings_for

BASE = {"batch_size": 4, "epochs": 2, "learning_rate": 1e-3, "evaluate_every": 2, "candidates": 8}
KINDS: dict[str, dict[str, Any]] = {
    "dropout, candidates renewed": {"dropout": 0.3, "epochs": 3, "refresh_every": 3},
    "stopped early": {"patience": 2, "learning_rate": 1e-9, "key_measure": "RR@10", "warmup": 0.5},
    "margins, layers frozen, neutral documents": {
        "loss": "margin",
        "frozen_layers": 1,
        "random_negatives": 2,
        "neutrality_weight": 2.0,
    },
    "a projection": {"dimension": 20},
    "a scorer of candidates alone": {"scorer": "feed-forward"},
    "a scorer of all candidates, renewed": {"scorer": "encoder", "refresh_every": 3},
}


@pytest.mark.parametrize(
    "kind", [*list(KINDS)[:2], *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(KINDS)[2:])]
)
@pytest.mark.long
def test_all_files_are_those_of_no_kill(kind: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = dict(KINDS[kind])
    scorer = ScorerParams(chosen.pop("scorer"), blocks=1, heads=2, width=8) if "scorer" in chosen else None
    source = make_source(tmp_path, chosen.pop("dimension", 32))
    params = settings_for(TrainParams, BASE | chosen)
    labels = HardLabeler(Inputs(vectors=source)).infer(make_run(), make_qrels())

    neutral = {"d1": 0.0, "d2": 0.5} if params.neutrality_weight else None

    def trained(name: str) -> dict[str, bytes]:
        given: dict[str, Any] = {"pooling": "mean", "scorer": scorer, "neutrality": neutral}
        train_encoder(labels, source, make_topics(), str(tiny), tmp_path / name, params, **given)
        return files_of(tmp_path / name)

    step = 5 if params.refresh_every else 3  # so that checkpoint 4 has the candidates that step 3 searched for
    check_resumed(trained, tmp_path, monkeypatch, step)


def check_resumed(trained: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int = 3) -> None:
    """Kill `trained("again")` in a step, resume it from step - 1, and compare all files with `trained("whole")`."""
    compute = trainer.FitTrainer.compute_loss

    def killed(self: trainer.FitTrainer, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == step:
            raise KeyboardInterrupt
        return compute(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(trainer.FitTrainer, "compute_loss", killed)
        with pytest.raises(KeyboardInterrupt):
            trained("again")
    written = sorted(path.name for path in (folder / "again.checkpoints").glob("*/checkpoint-*"))
    assert (len(written), written[-1]) == (2, f"checkpoint-{step - 1}")
    again, whole = trained("again"), trained("whole")
    assert {name for name in whole.keys() | again.keys() if whole.get(name) != again.get(name)} == set()


OF_TEXTS = {
    "dual": "dual:towers=separate",
    "words": "dual:preset=f-ebr",
    "late": "late:dimension=16",
    **{kind: f"{kind}:seed=42" for kind in ("sparse", "cross", "masked", "term-scorer")},
}


@pytest.mark.parametrize("kind", OF_TEXTS)
@pytest.mark.long
def test_models_of_texts_end_in_the_bytes_of_no_kill(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = str(write_text_world(tmp_path) / "documents.jsonl")
    start = "none" if kind == "words" else str(make_masked(tmp_path / "start"))
    labels, topics = (None, None) if kind == "masked" else (make_text_labels(), make_topics())
    index = build_index(texts, tmp_path / "index", parts=("terms",)) if kind == "term-scorer" else None
    form = f"{OF_TEXTS[kind]},batch_size=4,max_steps=6,evaluate_every=2,learning_rate=0.001"

    def trained(name: str) -> dict[str, bytes]:
        given = {"output": tmp_path / name, "encoder": start, "device": "cpu"}
        given |= {} if kind == "term-scorer" else {"documents": texts}
        train_model(labels, index, topics, form, **given)
        return files_of(tmp_path / name)

    check_resumed(trained, tmp_path, monkeypatch)


def test_one_training_at_a_time_for_an_output(tmp_path: Path) -> None:
    with (
        alone(tmp_path / "model", doing="training to it"),
        refusal(r"model: another process is training to it; wait for it, or give another"),
        alone(tmp_path / "model", doing="training to it"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
    killed = "import os; from pathlib import Path; from rnnreranker.base.jobs import alone\n"
    killed += "with alone(Path('model'), doing='training to it'): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", killed], cwd=tmp_path).returncode == 9
    assert [path.name for path in tmp_path.iterdir()] == [".model.lock"]  # the file and no lock
    with alone(tmp_path / "model", doing="training to it"):
        pass
    assert list(tmp_path.iterdir()) == []
