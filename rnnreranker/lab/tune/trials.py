"""Optuna searches over a space: the same seed gives the same trials, also after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from rnnreranker.base.command import notice, progress, say
from rnnreranker.base.errors import InputError, ParameterError, argument, require
from rnnreranker.base.files import fingerprint, write_atomically
from rnnreranker.base.jobs import alone
from rnnreranker.base.pages import render
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.tune.request import Space

if TYPE_CHECKING:
    import optuna

Rows = list[dict[str, Any]]  # of a sweep
Values = Mapping[str, np.ndarray]  # "base", "default", "tuned" → (T,) float64, of test topics
RANDOM_TRIALS = 20


@dataclass(frozen=True)
class Search:
    """The result of a search.

    Attributes:
        params, value: of the best trial; of equal trials the first.
        history, tried: objective and settings of each trial, None if it could not be computed.
    """

    params: Any
    value: float
    history: tuple[float | None, ...]
    tried: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        trials, pruned = len(self.history), self.history.count(None)
        values = {"value": self.value, "trials": trials, "pruned": pruned, "history": self.history}
        return {"params": self.params.to_dict(), **values}


def search(
    objective: Callable[[Any], float],
    space: Space,
    trials: int,
    *,
    seed: int = 0,
    storage: str | Path | None = None,
    name: str = "tune",
    random_trials: int = RANDOM_TRIALS,
    about: Any = None,
) -> Search:
    """Maximise an objective by the tree-structured Parzen estimator.

    The first trial is the default if the space contains it; a space of fewer settings than trials is tried whole. Each
    trial seeds its own generator, so a killed search resumes with the same trials.

    Args:
        objective: params → value. A `ParameterError` skips the trial; other errors end the search.
        trials: number in all, those in the storage included.
        storage: an SQLite file of Optuna; None = memory. name: of the study in it, shown as progress.
        random_trials: number of random trials before the sampler learns.
        about: what the objective depends on; a search resumes from trials of the same space, seed and `about` alone.

    Raises:
        InputError: an unreadable storage; no trial can be computed.
        MissingDependencyError: optuna is missing.
    """
    identity = fingerprint(name, repr(space.ranges), repr(space.fixed), seed, about)
    with study_of(storage, f"{name} {identity}") as (optuna, study):
        _, pruned = states = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
        done, first = [trial.params for trial in study.get_trials(states=states)], space.firsts(trials)
        if first[1:]:  # a search of fewer trials may have drawn the first ones
            first = [*done, *(values for values in first if values not in done)]
        for number in progress(range(len(done), len(first) if first[1:] else trials), unit="trials", what=name):
            waiting = study.get_trials(states=(optuna.trial.TrialState.WAITING,))  # of a killed search
            for values in () if waiting else first[number:][:1]:
                study.enqueue_trial(values)
            study.sampler = optuna.samplers.TPESampler(seed=seed + number, n_startup_trials=random_trials)
            trial, params = study.ask(space.distributions), None
            try:
                params = space.drawn(trial.params)
                study.tell(trial, objective(params))
            except InputError as error:  # values that exclude one another, or an exponential weight that overflows
                if params is not None and not isinstance(error, ParameterError):
                    raise
                say(f"trial {trial.number} left out: {error}")
                study.tell(trial, state=pruned)
        history = [(trial.value, trial.params) for trial in study.get_trials(states=states)]
    tried = [(value, None if value is None else space.drawn(params)) for value, params in history]
    good = [one for one in tried if one[0] is not None]
    if not good:
        raise InputError(f"none of {len(tried)} trials could be computed; search other parameters")
    value, best = max(good, key=lambda one: one[0])  # of equal ones the first
    return Search(best, value, *map(tuple, zip(*tried, strict=True)))


@contextmanager
def study_of(storage: str | Path | None, name: str) -> Iterator[tuple[Any, optuna.Study]]:
    """Optuna, and its study of a name in a storage; waits for another process that uses the storage.

    Raises:
        InputError: a file that is no storage, or is not writable.
        MissingDependencyError: optuna is missing.
    """
    optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it warns of every trial that an error or a signal ends
    given: Any = {"study_name": name, "direction": "maximize", "load_if_exists": True}
    if storage is None:
        yield optuna, optuna.create_study(**given)
        return
    path = Path(storage)
    with alone(path, f"{path}: another process is searching with this storage; waiting for it"):
        import sqlalchemy

        try:
            study = optuna.create_study(storage=f"sqlite:///{path.absolute()}", **given)
            for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            yield optuna, study
        except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
            said = " ".join(str(error.__cause__ or error).split())[:80]
            shown = f"{path}: cannot be used as a storage of trials ({said})"
            raise InputError(f"{shown}; give another {argument('storage')}") from None


def held_out_of(how: str, parts: Sequence[tuple[Search, int, Values]]) -> dict[str, Any]:
    """What values of topics come to that did not influence the choice of settings.

    parts: of each search its result, the number of topics searched, and the values of its test topics, T in all.

    Returns:
        how, topics; base, default, tuned: means of the first stage, the default and the tuned settings; gain, low,
        high, p: tuned minus default, its 95% bootstrap interval over the topics, its paired t-test; folds: params,
        train topics, train (value), test topics.
    """
    values = {name: np.concatenate([own[name] for *_, own in parts]) for name in ("base", "default", "tuned")}
    [gap] = differences(values, [("tuned", "default")])
    folds = [
        {
            "params": made.params.to_dict(),
            "train topics": searched,
            "train": made.value,
            "test topics": len(own["tuned"]),
        }
        for made, searched, own in parts
    ]
    means = {name: float(own.mean()) for name, own in values.items()}
    gain = {"gain": gap["difference"], **{name: gap[name] for name in ("low", "high", "p")}}
    return {"how": how, "topics": len(values["base"]), **means, **gain, "folds": folds}


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of a tuning on a query set.

    Attributes:
        request: the checked arguments; params: of the best trial; without trials the default.
        said: entries of the record; inputs: fingerprints.
        study, held_out: None without trials.
        sweeps: name → rows of sweeps around `params`.
    """

    request: Any
    params: Any
    said: dict[str, Any]
    inputs: dict[str, str]
    study: Search | None = None
    held_out: Any = None
    sweeps: Mapping[str, Rows] = field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the settings as YAML for `--preset FILE`; its head gives the held-out values.

        Raises:
            InputError: the file is not writable.
        """
        head = render("lab", "preset.yaml.j2", **vars(self))
        with write_atomically(path) as stream:
            stream.write((head + yaml.safe_dump(self.params.to_dict(), sort_keys=False)).encode())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        study = self.study and {"study": self.study.to_dict(), "held out": self.held_out}
        return self.said | (study or {}) | ({"sweeps": self.sweeps} if self.sweeps else {})


def notice_if_few(number: int, what: str, few: int) -> None:
    """Warn if so few queries make the best trial mostly chance."""
    if number < few:
        notice(
            f"{number} {what}, fewer than {few}: differences between trials are mostly chance; trust the held-out "
            "interval, not the value of the best trial"
        )
