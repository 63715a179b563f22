"""`tune_reranker`: the settings of rNN reranking that suit a query set, and what they are worth."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker.base import command
from rnnreranker.base.files import write_atomically
from rnnreranker.base.tables import interval
from rnnreranker.lab.tune.request import TuneRequest, check

if TYPE_CHECKING:
    from rnnreranker.lab.tune.objective import HeldOut, Objective
    from rnnreranker.lab.tune.sweeps import Rows
    from rnnreranker.lab.tune.trials import Search
    from rnnreranker.rnn import RnnParams

FEW = 50  # topics below which the best of many trials is mostly luck


@dataclass(frozen=True, eq=False)
class TunedReranking:
    """The settings of rNN reranking that a search came to on a query set.

    Attributes:
        request: that was asked for.
        objective: the query set, with its similarities kept.
        params: of the best trial; without trials those that the request begins with.
        study: the search on all topics, and held_out: what it is worth on topics not searched; None without trials.
    """

    request: TuneRequest
    objective: Objective
    params: RnnParams
    study: Search[RnnParams] | None = None
    held_out: HeldOut | None = None

    def sweep(self, names: Iterable[str]) -> dict[str, Rows]:
        """One or two settings varied around those of `params`, by the names of `sweeps.SWEEPS`.

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
    from rnnreranker.lab.tune.objective import HeldOut, cross_validate, fold_of, judged_topics, load_objective, tune

    if request.test_topics is not None and request.test_qrels is not None:
        tested = judged_topics(request.test_topics, request.test_qrels)
        check_held_out(judged_topics(request.topics, request.qrels), tested)
    index = open_index(request.index)
    objective = load_objective(request, index, request.topics, request.qrels, request.run, request.encoded_queries)
    command.say(f"{command.counted(len(objective.topics), 'topic')} with judgements and candidates")
    if objective.lacking:
        command.say(f"{command.counted(objective.lacking, 'judged topic')} without candidates, left out")
    notice_if_few(len(objective.topics), "topics", FEW)
    space, trials = request.searched.within(objective.contexts.deepest), request.trials
    if not trials:
        return TunedReranking(request, objective, space.fixed)
    started = time.perf_counter()
    kept: dict[str, Any] = {"seed": request.seed, "storage": request.storage}
    study = tune(objective, space, trials, **kept)
    if request.test_topics is not None and request.test_qrels is not None:
        test = load_objective(request, index, request.test_topics, request.test_qrels, request.test_run)
        tuned, default = test.values(study.params), test.values(space.fixed)
        fold = fold_of(study, len(objective.topics), tuned, default)
        held_out = HeldOut.of("test set", test.base(), default, tuned, [fold])
    else:
        held_out = cross_validate(objective, space, trials, request.folds, **kept)
    command.say(f"{study.trials} trials a study, {time.perf_counter() - started:.1f} s")
    return TunedReranking(request, objective, study.params, study, held_out)


def notice_if_few(number: int, what: str, few: int) -> None:
    """Report a search on so few queries that the best trial is mostly chance."""
    if number < few:
        command.notice(
            f"{number} {what}, fewer than {few}: differences between trials are mostly chance; trust the held-out "
            "interval, not the value of the best trial"
        )


def write_preset(
    path: str | Path, settings: dict[str, Any], study: Search[Any], held_out: HeldOut, about: dict[str, Any]
) -> None:
    """Write the settings that a search came to as YAML that `--preset FILE` reads.

    What it is worth, and `about`, name → value, go into the comment at the head.

    Raises:
        InputError: the file cannot be written.
    """
    head = [f"{name}: {value}" for name, value in about.items()]
    head += [
        f"trials: {study.trials}, {study.pruned} of them ended early",
        f"on the topics searched: {study.value:.4f} (best of the trials, so too good)",
        f"held out ({held_out.how}, {held_out.topics} topics): tuned {held_out.tuned:.4f}, "
        f"default {held_out.default:.4f}, as retrieved {held_out.base:.4f}",
        f"tuned minus default: {interval(held_out.gain, held_out.low, held_out.high)}, p = {held_out.p:.3f}",
    ]
    comment = "".join(f"# {' '.join(str(line).split())}\n" for line in ["Tuned by rnnreranker.", *head])
    with write_atomically(path) as stream:
        stream.write((comment + yaml.safe_dump(settings, sort_keys=False)).encode())
