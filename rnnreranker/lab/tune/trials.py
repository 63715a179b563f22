"""Optuna searches over a space: the same seed gives the same trials, also after a kill."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import notice, progress, say
from rnnreranker.base.errors import InputError, ParameterError, require
from rnnreranker.base.files import write_atomically
from rnnreranker.base.locks import alone
from rnnreranker.base.pages import render
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.tune.space import Space

if TYPE_CHECKING:
    import optuna

Rows = list[dict[str, Any]]  # of a sweep
Report = Callable[[int, float], None]
RANDOM_TRIALS = 20


@dataclass(frozen=True)
class Search:
    """The result of a search.

    Attributes:
        params, value: of the best trial; of equal trials the first.
        trials, pruned: number of finished trials, and of those that stopped early.
        history: objective of each trial, None for a pruned one.
    """

    params: Any
    value: float
    trials: int
    pruned: int
    history: tuple[float | None, ...]


def search(
    objective: Callable[[Any, Report], float],
    space: Space,
    trials: int,
    *,
    seed: int = 0,
    storage: str | Path | None = None,
    name: str = "tune",
    random_trials: int = RANDOM_TRIALS,
    about: Mapping[str, str] | None = None,
) -> Search:
    """Maximise an objective by the tree-structured Parzen estimator with median pruning.

    The first trial is the default if the space contains it. Each trial seeds its own generator, so a killed search
    resumes with the same trials.

    Args:
        objective: (params, report) → value; report(step, value) may raise to stop. A `ParameterError` skips the trial;
            other errors end the search.
        trials: number in all, those in the storage included.
        storage: an SQLite file of Optuna; None = memory. name: of the study in it.
        random_trials: number of random trials before the sampler learns and prunes.
        about: name → fingerprint of what the objective depends on; the storage must agree.

    Raises:
        InputError: an unreadable storage or one of another search; no trial can be computed.
        MissingDependencyError: optuna is missing.
    """
    distributions = space.distributions
    described = {"space": repr(space.ranges), "fixed": repr(space.fixed), "seed": seed, **(about or {})}
    with study_of(storage, name, described, random_trials) as (optuna, study):
        state = optuna.trial.TrialState

        def finished(*states: Any) -> list[Any]:
            of = states or (state.COMPLETE, state.PRUNED)
            trials: list[Any] = study.get_trials(deepcopy=False, states=of)
            return trials

        done = len(finished())
        if not done and (start := space.as_trial()):
            study.enqueue_trial(start)
        for number in progress(range(done, trials), unit="trials", what=name):
            study.sampler = optuna.samplers.TPESampler(seed=seed + number, n_startup_trials=random_trials)
            trial = study.ask(distributions)

            def report(step: int, value: float, trial: Any = trial) -> None:
                trial.report(value, step)
                if trial.should_prune():
                    raise optuna.TrialPruned

            params = None
            try:
                params = space.drawn(trial.params)
                study.tell(trial, objective(params, report))
            except optuna.TrialPruned:
                study.tell(trial, state=state.PRUNED)
            except InputError as error:  # values that exclude one another, or an exponential weight that overflows
                if params is not None and not isinstance(error, ParameterError):
                    raise
                say(f"trial {trial.number} left out: {error}")
                study.tell(trial, state=state.PRUNED)
        complete = finished(state.COMPLETE)
        if not complete:
            raise InputError(f"none of {len(finished())} trials could be computed; search other parameters")
        best = max(complete, key=lambda trial: (trial.value, -trial.number))
        history = tuple(trial.value if trial.state == state.COMPLETE else None for trial in finished())
        pruned = len(history) - len(complete)
        return Search(space.drawn(best.params), float(best.value), len(history), pruned, history)


@contextmanager
def study_of(
    storage: str | Path | None, name: str, described: Mapping[str, Any], random_trials: int = RANDOM_TRIALS
) -> Iterator[tuple[Any, optuna.Study]]:
    """Optuna, and its study of a name in a storage; waits for another process that uses the storage.

    Raises:
        InputError: a file that is no storage, is not writable, or has trials of another description.
        MissingDependencyError: optuna is missing.
    """
    optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it warns of every trial that an error or a signal ends
    pruner = optuna.pruners.MedianPruner(n_startup_trials=random_trials, n_warmup_steps=1)
    given: dict[str, Any] = {"study_name": name, "direction": "maximize", "pruner": pruner, "load_if_exists": True}
    if storage is None:
        yield optuna, optuna.create_study(**given)
        return
    path = Path(storage)
    with alone(path, f"{path}: another process is searching with this storage; waiting for it"):
        import sqlalchemy

        try:
            study = optuna.create_study(storage=f"sqlite:///{path.absolute()}", **given)
            for key, value in described.items():
                if (kept := study.user_attrs.get(key, value)) != value:
                    shown = argument("storage")
                    raise InputError(f"{path}: holds trials of another {key} ({kept}); give another {shown}")
                study.set_user_attr(key, value)
            for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            yield optuna, study
        except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
            said = " ".join(str(error.__cause__ or error).split())[:80]
            shown = f"{path}: cannot be used as a storage of trials ({said})"
            raise InputError(f"{shown}; give another {argument('storage')}") from None


def held_out_of(how: str, base: Any, parts: Sequence[tuple[Search, int, np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """What values of topics come to that did not influence the choice of settings.

    Args:
        base: (T,) values of the first stage.
        parts: of each search its result, the number of topics searched, and the values of its test topics with the
            tuned and the default settings, T in all.

    Returns:
        how, topics; base, default, tuned: means of the first stage, the default and the tuned settings; gain, low,
        high, p: tuned minus default, its 95% bootstrap interval over the topics, its paired t-test; folds: params,
        train topics, train (value), test topics, test, test default.
    """
    tuned, default = (np.concatenate([part[column] for part in parts]) for column in (2, 3))
    [gap] = differences({"tuned": tuned, "default": default}, [("tuned", "default")])
    means = {name: float(of.mean()) for name, of in (("base", base), ("default", default), ("tuned", tuned))}
    folds = [
        {
            "params": made.params.to_dict(),
            "train topics": searched,
            "train": made.value,
            "test topics": len(own),
            "test": float(own.mean()),
            "test default": float(other.mean()),
        }
        for made, searched, own, other in parts
    ]
    return {
        "how": how,
        "topics": len(tuned),
        **means,
        "gain": gap["difference"],
        **{name: gap[name] for name in ("low", "high", "p")},
        "folds": folds,
    }


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of a tuning on a query set.

    Attributes:
        params: of the best trial; without trials the default.
        about: entries of the head of a preset file; said: entries of the record; inputs: fingerprints.
        sweep: names → rows of sweeps around `params`.
        study, held_out: None without trials.
        searched: label of the objective.
    """

    params: Any
    about: dict[str, Any]
    said: dict[str, Any]
    inputs: dict[str, str]
    sweep: Callable[[Sequence[str]], dict[str, Rows]]
    study: Any = None
    held_out: Any = None
    searched: str = "all topics"

    def write(self, path: str | Path) -> None:
        """Write the settings as YAML for `--preset FILE`; its head gives the held-out values.

        Raises:
            InputError: the file is not writable.
        """
        if not self.study:
            raise ValueError("a tuning without trials has nothing to write")
        head = render("lab", "preset.yaml.j2", about=self.about, study=self.study, kept=self.held_out)
        with write_atomically(path) as stream:
            stream.write((head + yaml.safe_dump(self.params.to_dict(), sort_keys=False)).encode())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        if not self.study:
            return self.said
        study = dataclasses.asdict(self.study) | {"params": self.params.to_dict()}
        return {**self.said, "study": study, "held out": self.held_out}


def notice_if_few(number: int, what: str, few: int) -> None:
    """Warn if so few queries make the best trial mostly chance."""
    if number < few:
        notice(
            f"{number} {what}, fewer than {few}: differences between trials are mostly chance; trust the held-out "
            "interval, not the value of the best trial"
        )
