"""Optuna studies over a space: the same trials from the same seed, in one go or after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import progress, say
from rnnreranker.base.errors import InputError, ParameterError, require
from rnnreranker.lab.tune.journal import journal

if TYPE_CHECKING:
    import optuna

P = TypeVar("P")
Report = Callable[[int, float], None]
RANDOM_TRIALS = 20


class SearchSpace(Protocol[P]):
    """What a study draws from: `Space`, or several of them at once."""

    @property
    def ranges(self) -> Any:
        """What varies, by name."""
        ...

    @property
    def fixed(self) -> P:
        """The default: the first trial, where the space has it."""
        ...

    def suggest(self, trial: optuna.trial.BaseTrial) -> P:
        """The parameters of a trial."""
        ...

    def as_trial(self, params: P) -> dict[str, Any] | None:
        """The parameters as values of a trial; None where one lies outside the space."""
        ...


@dataclass(frozen=True)
class Study(Generic[P]):
    """What a search found.

    Attributes:
        params: of the best trial; among equals the first.
        value: its objective.
        trials: how many finished, pruned ones included.
        pruned: how many were ended early.
        history: objective of every trial in order, None where it was pruned.
    """

    params: P
    value: float
    trials: int
    pruned: int
    history: tuple[float | None, ...]


def search(
    objective: Callable[[P, Report], float],
    space: SearchSpace[P],
    trials: int,
    *,
    seed: int = 0,
    storage: str | Path | None = None,
    name: str = "tune",
    random_trials: int = RANDOM_TRIALS,
    about: Mapping[str, str] | None = None,
) -> Study[P]:
    """Maximise an objective by the tree-structured Parzen estimator, with median pruning.

    The first trial is the default (where the space has it), so that the result is no worse on the same topics. Every
    trial draws from a generator of its own, seeded by its number: a study that was killed goes on to the same trials.

    Args:
        objective: params, report -> value; report(step, value) ends a hopeless trial by raising. A `ParameterError`
            leaves the trial out; any other error ends the search, and the trial is taken again by the next.
        space: what is searched.
        trials: how many in all, those in the storage counted.
        seed: of the sampler.
        storage: a journal file to keep trials in, and to go on from; None = memory.
        name: of the study in the storage.
        random_trials: drawn at random before the sampler begins to learn, and before anything is pruned.
        about: what the objective depends on, name -> fingerprint or value: the storage must have been made with these.

    Raises:
        InputError: trials below 1, a storage that cannot be read or holds another space or objective under this name.
            Also when no trial could be computed.
        MissingDependencyError: without optuna.
    """
    if trials < 1:
        raise InputError(f"trials={trials}: expected an integer >= 1")
    optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
    with journal(storage) as kept:
        study = _study(optuna, kept, name, random_trials)
        described = {"space": repr(dict(space.ranges)), "fixed": repr(space.fixed), "seed": seed, **(about or {})}
        _check_same(study, described, storage)
        _end_killed(optuna, study)
        done = len(_finished(optuna, study))
        if start := space.as_trial(space.fixed):
            _enqueue_default(optuna, study, start)

        def evaluated(trial: Any) -> float:
            def report(step: int, value: float) -> None:
                trial.report(value, step)
                if trial.should_prune():
                    raise optuna.TrialPruned

            try:
                params = space.suggest(trial)
            except InputError as error:  # values that exclude one another
                say(f"trial {trial.number} left out: {error}")
                raise optuna.TrialPruned from None
            try:
                return objective(params, report)
            except ParameterError as error:  # an exponential weight that overflows on these scores
                say(f"trial {trial.number} left out: {error}")
                raise optuna.TrialPruned from None

        for number in progress(range(done, trials), unit="trials", what=name):
            study.sampler = optuna.samplers.TPESampler(seed=seed + number, n_startup_trials=random_trials)
            study.optimize(evaluated, n_trials=1)
        finished = _finished(optuna, study)[:trials]
        history = tuple(trial.value if trial.state.name == "COMPLETE" else None for trial in finished)
        complete = [trial for trial in finished if trial.state.name == "COMPLETE"]
        if not complete:
            raise InputError(f"none of {len(finished)} trials could be computed; search other parameters")
        best = max(complete, key=lambda trial: (trial.value, -trial.number))
        best_params = space.suggest(optuna.trial.FixedTrial(best.params))
        return Study(best_params, float(best.value), len(finished), len(finished) - len(complete), history)


def each_kept(
    value: Callable[[int], float],
    count: int,
    *,
    storage: str | Path | None = None,
    name: str,
    about: Mapping[str, str],
) -> list[float]:
    """The values of numbers 0 to `count` - 1, in order; those in the storage are not computed again; see `search`.

    Raises:
        InputError: a storage that cannot be read or holds other values under this name.
        MissingDependencyError: without optuna.
    """
    optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
    with journal(storage) as kept:
        study = _study(optuna, kept, name, RANDOM_TRIALS)
        _check_same(study, about, storage)
        _end_killed(optuna, study)
        for number in progress(range(len(_finished(optuna, study)), count), unit="settings", what=name):
            trial = study.ask()
            study.tell(trial, value(number))
        return [float(trial.value) for trial in _finished(optuna, study)[:count]]


def _study(optuna: Any, kept: Any, name: str, random_trials: int) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it warns of every trial that an error or a signal ends
    pruner = optuna.pruners.MedianPruner(n_startup_trials=random_trials, n_warmup_steps=1)
    return optuna.create_study(storage=kept, study_name=name, direction="maximize", pruner=pruner, load_if_exists=True)


def _check_same(study: optuna.Study, described: Mapping[str, Any], storage: str | Path | None) -> None:
    """A journal remembers what it was made for; going on with anything else would mix two searches."""
    kept = study.user_attrs
    for key, value in described.items():
        if key in kept and kept[key] != value:
            raise InputError(
                f"{storage}: holds trials of another {key} ({kept[key]}); give another {argument('storage')}"
            )
    for key in described.keys() - kept.keys():
        study.set_user_attr(key, described[key])


def _end_killed(optuna: Any, study: optuna.Study) -> None:
    """Trials that a process left running when it was killed count as failed."""
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)


def _enqueue_default(optuna: Any, study: optuna.Study, start: dict[str, Any]) -> None:
    """Take the default next, unless it was taken or waits: a trial that failed or was killed does not count."""
    states = (*_over(optuna), optuna.trial.TrialState.WAITING)
    tried = study.get_trials(deepcopy=False, states=states)
    if not any(trial.system_attrs.get("fixed_params") == start for trial in tried):
        study.enqueue_trial(start)


def _finished(optuna: Any, study: optuna.Study) -> list[Any]:
    return study.get_trials(deepcopy=False, states=_over(optuna))


def _over(optuna: Any) -> tuple[Any, ...]:
    """States of a trial that counts."""
    return optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED
