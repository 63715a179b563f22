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
from rnnreranker.base.tables import interval
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.tune.space import Space
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import optuna

    from rnnreranker.lab.tune.objective import Objective
    from rnnreranker.lab.tune.sweeps import Rows

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
    described = {"space": repr(dict(space.ranges)), "fixed": repr(space.fixed), "seed": seed, **(about or {})}
    with study_of(storage, name, described, random_trials) as (optuna, study):
        over = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
        done = len(study.get_trials(deepcopy=False, states=over))
        if not done and (start := space.as_trial()):
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
        finished = study.get_trials(deepcopy=False, states=over)
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


def held_out_of(how: str, base: Any, default: Any, tuned: Any, folds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What (T,) values of topics come to that did not influence the choice of settings.

    how, topics; base, default, tuned: means of the first stage, the default and the tuned settings; gain, low, high, p:
    tuned minus default, its 95% bootstrap interval over the topics, its paired t-test; folds: of `fold_of`.
    """
    [gap] = differences({"tuned": tuned, "default": default}, [("tuned", "default")])
    means = {name: float(of.mean()) for name, of in (("base", base), ("default", default), ("tuned", tuned))}
    gain = {"gain": gap["difference"], "low": gap["low"], "high": gap["high"], "p": gap["p"]}
    return {"how": how, "topics": len(tuned), **means, **gain, "folds": list(folds)}


def fold_of(made: Search, train: int, tuned: np.ndarray, default: np.ndarray) -> dict[str, Any]:
    """The result of a search on (T,) test topics, tuned and default; train: number of topics searched."""
    return {
        "params": made.params.to_dict(),
        "train topics": train,
        "train": made.value,
        "test topics": len(tuned),
        "test": float(tuned.mean()),
        "test default": float(default.mean()),
    }


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of a tuning on a query set.

    Attributes:
        params: of the best trial; without trials the default. settings: the same as in a preset file.
        about: entries of that file's head; said: entries of the record; inputs: fingerprints.
        sweep: names → rows of sweeps around `params`.
        study, held_out: None without trials.
        searched: label of the objective.
    """

    params: Any
    settings: dict[str, Any]
    about: dict[str, Any]
    said: dict[str, Any]
    inputs: dict[str, str]
    sweep: Callable[[Sequence[str]], dict[str, Rows]]
    study: Any = None
    held_out: Any = None
    searched: str | None = None

    def write(self, path: str | Path) -> None:
        """Write the settings as YAML for `--preset FILE`; its head gives the held-out values.

        Raises:
            InputError: the file is not writable.
        """
        study, kept = self.study, self.held_out
        if not study:
            raise ValueError("a tuning without trials has nothing to write")
        head = [f"{name}: {value}" for name, value in self.about.items()]
        head += [
            f"trials: {study.trials}, {study.pruned} of them ended early",
            f"on the topics searched: {study.value:.4f} (best of the trials, so too good)",
            f"held out ({kept['how']}, {kept['topics']} topics): tuned {kept['tuned']:.4f}, "
            f"default {kept['default']:.4f}, as retrieved {kept['base']:.4f}",
            f"tuned minus default: {interval(kept['gain'], kept['low'], kept['high'])}, p = {kept['p']:.3f}",
        ]
        comment = "".join(f"# {' '.join(str(line).split())}\n" for line in ["Tuned by rnnreranker.", *head])
        with write_atomically(path) as stream:
            stream.write((comment + yaml.safe_dump(self.settings, sort_keys=False)).encode())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        if not self.study:
            return self.said
        study = dataclasses.asdict(self.study) | {"params": self.params.to_dict()}
        return {**self.said, "study": study, "held out": self.held_out}


def cross_validate(objective: Objective, space: Space, trials: int, folds: int, **kept: Any) -> dict[str, Any]:
    """Tune on all folds but one and measure on that one, in turn; kept: seed and storage, see `tune`.

    Raises:
        InputError: as `Objective.folds` and `search`.
    """
    columns: list[tuple[np.ndarray, ...]] = []
    of_folds = []
    for fold, (train, test) in enumerate(objective.folds(folds)):
        made = tune(objective, space, trials, topics=train, name=f"fold {fold}", **kept)
        tuned, default = objective.values(made.params, test), objective.values(space.fixed, test)
        columns.append((objective.base(test), default, tuned))
        of_folds.append(fold_of(made, len(train), tuned, default))
    base, default, tuned = (np.concatenate(column) for column in zip(*columns, strict=True))
    return held_out_of(f"{folds}-fold cross-validation", base, default, tuned, of_folds)


def tune(
    objective: Objective,
    space: Space,
    trials: int,
    *,
    topics: tuple[str, ...] | None = None,
    name: str = "all topics",
    **kept: Any,
) -> Search:
    """Search the settings that rank some topics best (None = all); kept: seed and storage."""
    chosen = objective.topics if topics is None else topics

    def mean(params: RnnParams, report: Report) -> float:
        return objective.mean(params, chosen, report)

    return search(mean, space, trials, name=name, about=objective.about(chosen), **kept)


def notice_if_few(number: int, what: str, few: int) -> None:
    """Warn if so few queries make the best trial mostly chance."""
    if number < few:
        notice(
            f"{number} {what}, fewer than {few}: differences between trials are mostly chance; trust the held-out "
            "interval, not the value of the best trial"
        )
