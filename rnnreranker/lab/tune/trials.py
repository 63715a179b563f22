"""Optuna studies over a space: the same trials from the same seed, in one go or after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import progress, say
from rnnreranker.base.errors import InputError, ParameterError, require
from rnnreranker.base.locks import alone
from rnnreranker.lab.tune.space import Space

if TYPE_CHECKING:
    import optuna

P = TypeVar("P")
Report = Callable[[int, float], None]
RANDOM_TRIALS = 20


@dataclass(frozen=True)
class Search(Generic[P]):
    """What a search came to.

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
    space: Space[P],
    trials: int,
    *,
    seed: int = 0,
    storage: str | Path | None = None,
    name: str = "tune",
    random_trials: int = RANDOM_TRIALS,
    about: Mapping[str, str] | None = None,
) -> Search[P]:
    """Maximise an objective by the tree-structured Parzen estimator, with median pruning.

    The first trial is the default (where the space has it), so that the result is no worse on the same topics. Every
    trial draws from a generator of its own, seeded by its number: a study that was killed goes on to the same trials.

    Args:
        objective: params, report → value; report(step, value) ends a hopeless trial by raising. A `ParameterError`
            leaves the trial out; any other error ends the search, and the next search takes the trial again.
        space: what is searched.
        trials: how many in all, those in the storage counted.
        seed: of the sampler.
        storage: an SQLite file of Optuna to keep trials in, and to go on from; None = memory.
        name: of the study in the storage.
        random_trials: drawn at random before the sampler begins to learn, and before anything is pruned.
        about: what the objective depends on, name → fingerprint or value: the storage must have been made with these.

    Raises:
        InputError: trials below 1, a storage that cannot be read or holds another space or objective under this name.
            Also when no trial could be computed.
        MissingDependencyError: without optuna.
    """
    if trials < 1:
        raise InputError(f"trials={trials}: expected an integer >= 1")
    described = {"space": repr(dict(space.ranges)), "fixed": repr(space.fixed), "seed": seed, **(about or {})}
    with study_of(storage, name, described, random_trials) as (optuna, study):
        over = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
        done = len(study.get_trials(deepcopy=False, states=over))
        if start := space.as_trial(space.fixed):  # next, unless it was taken or waits
            tried = study.get_trials(deepcopy=False, states=(*over, optuna.trial.TrialState.WAITING))
            if not any(trial.system_attrs.get("fixed_params") == start for trial in tried):
                study.enqueue_trial(start)

        def evaluated(trial: Any) -> float:
            def report(step: int, value: float) -> None:
                trial.report(value, step)
                if trial.should_prune():
                    raise optuna.TrialPruned

            params = None
            try:
                params = space.suggest(trial)
                return objective(params, report)
            except InputError as error:  # values that exclude one another, or an exponential weight that overflows
                if params is not None and not isinstance(error, ParameterError):
                    raise
                say(f"trial {trial.number} left out: {error}")
                raise optuna.TrialPruned from None

        for number in progress(range(done, trials), unit="trials", what=name):
            study.sampler = optuna.samplers.TPESampler(seed=seed + number, n_startup_trials=random_trials)
            study.optimize(evaluated, n_trials=1)
        finished = study.get_trials(deepcopy=False, states=over)[:trials]
        complete = [trial for trial in finished if trial.state == over[0]]
        if not complete:
            raise InputError(f"none of {len(finished)} trials could be computed; search other parameters")
        best: Any = max(complete, key=lambda trial: (trial.value, -trial.number))
        history = tuple(trial.value if trial.state == over[0] else None for trial in finished)
        best_params = space.suggest(optuna.trial.FixedTrial(best.params))
        return Search(best_params, float(best.value), len(finished), len(finished) - len(complete), history)


@contextmanager
def study_of(
    storage: str | Path | None, name: str, described: Mapping[str, Any], random_trials: int = RANDOM_TRIALS
) -> Iterator[tuple[Any, optuna.Study]]:
    """Optuna, and its study of a name in a storage; another process that wants the storage waits.

    It goes on from trials of the same description alone; trials that a killed process left running count as failed.

    Raises:
        InputError: a file that is no storage, that cannot be written, or that has trials of another description.
        MissingDependencyError: without optuna.
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
        try:
            study = optuna.create_study(storage=f"sqlite:///{path.absolute()}", **given)
            kept = study.user_attrs
            for key, value in described.items():
                if kept.get(key, value) != value:
                    shown = argument("storage")
                    raise InputError(f"{path}: holds trials of another {key} ({kept[key]}); give another {shown}")
            for key in described.keys() - kept.keys():
                study.set_user_attr(key, described[key])
            for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        except InputError:
            raise
        except Exception as error:  # optuna lets through what SQLAlchemy and SQLite raise
            raise _unusable(path, error) from None
        try:
            yield optuna, study
        except optuna.exceptions.StorageInternalError as error:
            raise _unusable(path, error) from None


def _unusable(path: Path, error: Exception) -> InputError:
    said = " ".join(str(error.__cause__ or error).split())[:80]
    return InputError(f"{path}: cannot be used as a storage of trials ({said}); give another {argument('storage')}")
