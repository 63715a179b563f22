"""`tune_reranker` and `tune_collections`: the settings of rNN reranking that suit data, and what they are worth."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.lab.tune.check import check, notice_if_few
from rnnreranker.lab.tune.request import LeaveOutRequest, TuneRequest

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.tune.heldout import HeldOut
    from rnnreranker.lab.tune.leave_out import Search
    from rnnreranker.lab.tune.objective import Objective
    from rnnreranker.lab.tune.sweeps import Rows
    from rnnreranker.lab.tune.trials import Study
    from rnnreranker.rnn import RnnParams

FEW = 50  # topics below which the best of many trials is mostly luck


@dataclass(frozen=True, eq=False)
class TunedReranking:
    """The settings of rNN reranking that a search found on a query set.

    Attributes:
        request: that was asked for.
        objective: the query set, with its similarities kept.
        params: of the best trial; without trials those that the request begins with.
        study: the search on all topics, and held_out: what it is worth on topics not searched; None without trials.
    """

    request: TuneRequest
    objective: Objective
    params: RnnParams
    study: Study[RnnParams] | None = None
    held_out: HeldOut | None = None

    def sweep(self, names: Iterable[str]) -> dict[str, Rows]:
        """One or two settings varied around those found, by the names of `sweeps.SWEEPS`.

        Raises:
            InputError: no such sweep.
        """
        from rnnreranker.lab.tune.sweeps import sweep

        return sweep(names, self.objective, self.params)

    def write(self, path: str | Path) -> None:
        """Write the settings as a file that `--preset` reads, with what they are worth in its head.

        Raises:
            InputError: the file cannot be written.
        """
        from rnnreranker.lab.tune.preset import write_preset

        if self.study is None or self.held_out is None:
            raise ValueError("a tuning without trials has nothing to write")
        request = self.request
        about = {
            "index": request.shown("index"),
            "topics": f"{request.shown('topics')} ({len(self.objective.topics)} judged)",
            "candidates": f"dense, {request.hits} hits" if request.run is None else request.shown("run"),
            "measure": f"{request.measure}, protocol {self.objective.protocol}",
            "seed": request.seed,
        }
        write_preset(path, self.params.to_dict(), self.study, self.held_out, about)

    def to_dict(self) -> dict[str, Any]:
        """Plain values of JSON."""
        request = self.request
        said = {"measure": request.measure, "protocol": self.objective.protocol, "topics": len(self.objective.topics)}
        if self.study is None or self.held_out is None:
            return said
        study, held_out = dataclasses.asdict(self.study), dataclasses.asdict(self.held_out)
        return {**said, "study": study, "held out": held_out, "seed": request.seed}


def tune_reranker(request: TuneRequest) -> TunedReranking:
    """Search the settings of rNN reranking on a query set, and say what they are worth on topics not searched.

    Raises:
        InputError: everything that can be seen to be wrong, files that do not belong together, topics that are both
            searched and tested on.
        UnavailableError, MissingDependencyError: an index or an encoder that cannot be had here; no optuna.
    """
    check(request)
    from rnnreranker.data.topics import check_held_out
    from rnnreranker.index.opening import open_index
    from rnnreranker.lab.tune.query_set import judged_topics, load_objective

    if request.test_topics is not None and request.test_qrels is not None:
        tested = judged_topics(request.test_topics, request.test_qrels)
        check_held_out(judged_topics(request.topics, request.qrels), tested)
    index = open_index(request.index)
    objective = load_objective(request, index, request.topics, request.qrels, request.run, request.encoded_queries)
    command.say(f"{command.counted(len(objective.topics), 'topic')} with judgements and candidates")
    if objective.lacking:
        command.say(f"{command.counted(objective.lacking, 'judged topic')} without candidates, left out")
    notice_if_few(len(objective.topics), "topics", FEW)
    if not request.trials:
        space = request.searched.within(objective.contexts.deepest)
        return TunedReranking(request, objective, space.fixed)
    study, held_out = _searched(request, objective, index)
    return TunedReranking(request, objective, study.params, study, held_out)


def _searched(request: TuneRequest, objective: Objective, index: IndexOnDisk) -> tuple[Study[RnnParams], HeldOut]:
    from rnnreranker.lab.tune.heldout import cross_validate, on_test_set, tune
    from rnnreranker.lab.tune.query_set import load_objective

    started = time.perf_counter()
    space, trials = request.searched.within(objective.contexts.deepest), request.trials
    kept: dict[str, Any] = {"seed": request.seed, "storage": request.storage}
    study = tune(objective, space, trials, **kept)
    if request.test_topics is not None and request.test_qrels is not None:
        test = load_objective(request, index, request.test_topics, request.test_qrels, request.test_run)
        held_out = on_test_set(study, space, test, len(objective.topics))
    else:
        held_out = cross_validate(objective, space, trials, request.folds, **kept)
    command.say(f"{study.trials} trials a study, {time.perf_counter() - started:.1f} s")
    return study, held_out


@dataclass(frozen=True, eq=False)
class TunedCollections:
    """What each collection would have been given by the others.

    Attributes:
        request: that was asked for.
        search: all that was tried, and what it gained.
        runs: name of a cell → fingerprint of its candidates.
    """

    request: LeaveOutRequest
    search: Search
    runs: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values of JSON."""
        said = {"measure": self.request.measure, "settings": len(self.search.settings), "seed": self.request.seed}
        return {**said, **self.search.to_dict()}


def tune_collections(request: LeaveOutRequest) -> TunedCollections:
    """Choose settings on all collections but one, and measure them on that one, in turn.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `tune_reranker`.
    """
    check(request)
    from rnnreranker.index.opening import open_index
    from rnnreranker.lab.tune.leave_out import cells_of, leave_one_out
    from rnnreranker.lab.tune.query_set import load_objective

    cells = cells_of(request.collections)
    objectives: dict[str, Objective] = {}
    opened: dict[Any, IndexOnDisk] = {}
    for name, entry in cells.items():
        own = {key: entry[key] for key in ("protocol", "encoder") if key in entry}
        if (asked := _key(entry["index"])) not in opened:
            opened[asked] = open_index(entry["index"])
        objectives[name] = load_objective(
            dataclasses.replace(request, **own), opened[asked], entry["topics"], entry["qrels"], entry.get("run")
        )
    search = leave_one_out(
        objectives,
        request.searched,
        request.trials,
        request.seed,
        collections={name: entry.get("collection", name) for name, entry in cells.items()},
        rule=request.rule,
        storage=request.storage,
    )
    runs = {name: objective.contexts.about["run"] for name, objective in objectives.items()}
    return TunedCollections(request, search, runs)


def _key(index: Any) -> Any:
    """What tells indexes apart: names by what they say, opened ones by which they are."""
    return str(index) if isinstance(index, str | Path) else id(index)
