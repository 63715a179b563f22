"""`tune_training`: the settings of labels and of a training that suit a data set, and what they are worth."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.lab.tune.check import notice_if_few
from rnnreranker.lab.tune.joint.request import TuneTrainRequest, check
from rnnreranker.train.training import FEW

if TYPE_CHECKING:
    from rnnreranker.lab.tune.heldout import HeldOut
    from rnnreranker.lab.tune.joint.space import Joint
    from rnnreranker.lab.tune.joint.trial import Test, Trainings
    from rnnreranker.lab.tune.sweeps import Rows
    from rnnreranker.lab.tune.trials import Study


@dataclass(frozen=True, eq=False)
class TunedTraining:
    """The settings of labels and of a training that a search found.

    Attributes:
        request: that was asked for.
        trainings: what the trials shared; test: queries that took no part.
        study: the search; held_out: what it is worth on those queries.
    """

    request: TuneTrainRequest
    trainings: Trainings
    test: Test
    study: Study[Joint]
    held_out: HeldOut

    @property
    def params(self) -> Joint:
        """The settings of the best trial."""
        return self.study.params

    @property
    def searched(self) -> str:
        """What trials are judged by."""
        return f"{self.request.searched.fixed.train.key_measure} of validation"

    def ablations(self) -> Rows:
        """Each part of similarity and labels left out in turn, trained and tested."""
        from rnnreranker.lab.tune.joint.trial import joint_ablations

        return joint_ablations(self.trainings, self.params, self.test, _seeds(self.request))

    def write(self, path: str | Path) -> None:
        """Write the settings as a file that `--preset` of labels and train reads, with what they are worth.

        Raises:
            InputError: the file cannot be written.
        """
        from rnnreranker.base.written_form import Written
        from rnnreranker.lab.tune.preset import write_preset

        request, trainings = self.request, self.trainings
        sizes = f"{len(trainings.training)} to train on, {len(trainings.validation)} to validate"
        about = {
            "index": request.shown("index"),
            "topics": f"{request.shown('topics')} ({sizes})",
            "encoder": trainings.encoder,
            "method": str(Written.read(request.method)),
            "searched": f"{self.searched}, over candidates",
            "held out measure": f"{request.measure}, protocol {self.test.protocol}, retrieval over the whole index",
            "seed": request.seed,
        }
        write_preset(path, self.params.sections(), self.study, self.held_out, about)

    def to_dict(self) -> dict[str, Any]:
        """Plain values of JSON."""
        study, held_out = dataclasses.asdict(self.study), dataclasses.asdict(self.held_out)
        return {"measure": self.request.measure, "study": study, "held out": held_out}


def tune_training(request: TuneTrainRequest) -> TunedTraining:
    """Search the settings of labels and of a training together, and say what they are worth on queries not searched.

    Raises:
        InputError: everything that can be seen to be wrong, files that do not belong together, too few queries.
        UnavailableError, MissingDependencyError: an index, an encoder or packages that cannot be had here.
    """
    check(request)
    from rnnreranker.lab.tune.joint.queries import load_trainings
    from rnnreranker.lab.tune.joint.trial import on_test_queries, tune_jointly

    trainings, test, base = load_trainings(request)
    space = request.searched.within(request.hits)
    command.say(
        f"{command.counted(len(trainings.training), 'training query', 'training queries')}, "
        f"{len(trainings.validation)} for validation, {len(test.topics)} for the test"
    )
    notice_if_few(len(trainings.validation), "validation queries", FEW)
    begun = time.perf_counter()
    study = tune_jointly(trainings, space, request.trials, seed=request.seed, storage=request.storage)
    command.say(f"{study.trials} trials, {study.pruned} ended early, {time.perf_counter() - begun:.1f} s")
    held_out = on_test_queries(trainings, study, space.fixed, test, base, _seeds(request))
    return TunedTraining(request, trainings, test, study, held_out)


def _seeds(request: TuneTrainRequest) -> tuple[int, ...]:
    """Of the trainings for the test."""
    return tuple(range(request.final_seeds))
