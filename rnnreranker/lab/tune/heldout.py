"""What tuning is worth on topics it has not seen: cross-validated, or on a second query set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.evaluate.comparison import bootstrap_intervals, paired_t_test
from rnnreranker.lab.tune.objective import Objective
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.trials import Report, Study, search
from rnnreranker.rnn import RnnParams


@dataclass(frozen=True)
class HeldOut:
    """Values on topics that took no part in the choice of the parameters; every topic once.

    Attributes:
        how: "5-fold cross-validation", "2-fold …", or "test set".
        topics: T, how many.
        base, default, tuned: means of the retrieved run, of the untuned default, of the tuned parameters.
        gain, low, high: tuned minus default, with its 95% bootstrap interval over the topics.
        p: paired t-test of that difference, two-sided.
        folds: parameters and value of each fold's study; one for a test set.
    """

    how: str
    topics: int
    base: float
    default: float
    tuned: float
    gain: float
    low: float
    high: float
    p: float
    folds: tuple[dict[str, Any], ...]


def cross_validate(
    objective: Objective, space: Space, trials: int, folds: int, *, seed: int = 0, storage: str | Path | None = None
) -> HeldOut:
    """Tune on all folds but one and measure on that one, in turn.

    Raises:
        InputError: as `Objective.folds` and `search`.
    """
    tuned, default, base = [], [], []
    of_folds = []
    for fold, (train, test) in enumerate(objective.folds(folds)):
        study = tune(objective, space, trials, topics=train, seed=seed, storage=storage, name=f"fold {fold}")
        tuned.append(objective.values(study.params, test))
        default.append(objective.values(space.fixed, test))
        base.append(objective.base(test))
        of_folds.append(fold_of(study, len(train), tuned[-1], default[-1]))
    how = f"{folds}-fold cross-validation"
    return held_out_of(how, np.concatenate(base), np.concatenate(default), np.concatenate(tuned), of_folds)


def on_test_set(study: Study, space: Space, test: Objective, trained_on: int) -> HeldOut:
    """The parameters of a study on another query set."""
    tuned, default = test.values(study.params), test.values(space.fixed)
    return held_out_of("test set", test.base(), default, tuned, [fold_of(study, trained_on, tuned, default)])


def tune(
    objective: Objective,
    space: Space,
    trials: int,
    *,
    topics: tuple[str, ...] | None = None,
    seed: int = 0,
    storage: str | Path | None = None,
    name: str = "all topics",
) -> Study:
    """`search` for the parameters that rank some topics best (None = all)."""
    chosen = objective.topics if topics is None else topics

    def mean(params: RnnParams, report: Report) -> float:
        return objective.mean(params, chosen, report)

    about = objective.about(chosen) if storage is not None else None
    return search(mean, space, trials, seed=seed, storage=storage, name=name, about=about)


def fold_of(study: Study[Any], train: int, tuned: np.ndarray, default: np.ndarray) -> dict[str, Any]:
    """What a study was worth on (T,) topics of the test, tuned and with the default; `train` is how many it saw."""
    return {
        "params": study.params.to_dict(),
        "train topics": train,
        "train": study.value,
        "test topics": len(tuned),
        "test": float(tuned.mean()),
        "test default": float(default.mean()),
    }


def held_out_of(
    how: str, base: np.ndarray, default: np.ndarray, tuned: np.ndarray, folds: list[dict[str, Any]]
) -> HeldOut:
    """The summary of (T,) values of each topic: as retrieved, with the default, with what was tuned."""
    low, high = bootstrap_intervals((tuned - default)[None])[0]
    return HeldOut(
        how=how,
        topics=len(tuned),
        base=float(base.mean()),
        default=float(default.mean()),
        tuned=float(tuned.mean()),
        gain=float((tuned - default).mean()),
        low=float(low),
        high=float(high),
        p=paired_t_test(tuned, default),
        folds=tuple(folds),
    )
