"""`train_model` and the command: a request is checked and its model trained, into a folder with a record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.apart import check_apart
from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.command import counted, notice
from rnnreranker.base.device import trained_on
from rnnreranker.base.errors import InputError
from rnnreranker.base.locks import sole
from rnnreranker.base.method import methods
from rnnreranker.base.process.phases import phase
from rnnreranker.base.request import asked
from rnnreranker.data.fields import asked_fields
from rnnreranker.train.request import KIND, TrainRequest

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels import SoftLabels

FEW = 100  # validation queries below which the best of the steps, or of trials, is mostly chance
RECORD = "training.json"  # beside the trained model


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    Attributes:
        path: the folder of the model; record: what its `training.json` holds.
        best_step: the step whose weights were written, 0 where no step was better than the start; steps: taken.
        measures: of validation at `best_step`; history: step and measures of every validation.
        queries_per_second: trained queries, or texts (`unit`), a second; seconds: of training alone.
    """

    path: Path
    best_step: int
    steps: int
    measures: dict[str, float]
    history: tuple[dict[str, float], ...]
    queries_per_second: float
    seconds: float
    record: dict[str, Any]
    unit: str = "queries"


def train_model(
    labels: str | Path | SoftLabels | None,
    index: str | Path | IndexOnDisk | None,
    topics: str | Path | Mapping[str, str] | None,
    kind: Form = "query",
    *,
    output: str | Path,
    **others: Any,
) -> Trained:
    """Train a model and write it to a folder, as `python -m rnnreranker.train`.

    Args:
        labels: `SoftLabels` or a file; None with `negatives`, and for models that read texts alone.
        index: what the labels were made from; topics: a name, a file, or qid → text.
        kind: query, dual, sparse, late, cross, term-scorer or masked, in its written form `late:epochs=3`.
        output: the folder; a training that was killed goes on when it is asked for again.
        others: as of `TrainRequest`: encoder, loss, negatives, documents, scorer, validation_run, device, …

    Raises:
        InputError: bad arguments, files that do not belong together.
        UnavailableError, MissingDependencyError: an encoder, or packages of training, that cannot be had here.
    """
    given = {"output": output, "model": kind, "labels": labels, "index": index, "topics": topics}
    return train(asked(TrainRequest, given | others))


def train(request: TrainRequest) -> Trained:
    """The model of a request, trained and written; errors as `train_model`."""
    check(request)
    model, params, _ = request.training
    with phase("training"), sole(Path(request.output), "training to it"):
        trained: Trained = model.train(request, params, trained_on(request.device))
    as_it_was = "" if trained.best_step else f"no step was better than the start, so {request.output} is the start"
    notice_doubts(trained.record.get("validation_queries"), as_it_was)
    return trained


def notice_doubts(validated: int | None, *others: str) -> None:
    """Report, in one line, that few queries validated a training, and other doubts about it that are not empty."""
    doubts = [doubt for doubt in others if doubt]
    if validated is not None and validated < FEW:
        queries = counted(validated, "validation query", "validation queries")
        doubts.insert(0, f"{queries}, fewer than {FEW}: which step is best is mostly chance")
    if doubts:
        notice("; ".join(doubts))


def check(request: TrainRequest) -> None:
    """Refuse what can be seen to fail, before any work.

    Raises:
        InputError: unknown methods or settings, arguments that mean nothing to the model, an output that cannot be
            written, or that is or holds something that is read.
    """
    model, kinds, output = request.training.model, methods(KIND), Path(request.output)
    for read in {read: None for kind in kinds.values() for read in sorted(kind.reads)}:
        if read not in model.reads and getattr(request, read) not in (None, False):
            own = [name for name, kind in kinds.items() if read in kind.reads]
            raise InputError(f"{argument(read)}: is for {argument('model')} {' or '.join(own)}, not for {model.name}")
    for read in ("scoring", *(["start"] if request.encoder is not None else [])):
        getattr(request, read)  # read now: each says what is wrong with its written form
    trained_on(request.device)
    asked_fields(request.documents, request.fields)
    shown, parent = argument("output"), output.absolute().parent
    if output.is_dir() and any(output.iterdir()) and not (output / RECORD).is_file():
        raise InputError(f"{output}: has files that this command did not write; give another {shown}")
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file, expected a folder to write")
    if parent.is_dir() and not os.access(parent, os.W_OK):
        raise InputError(f"{parent}: cannot be written; choose another {shown}")
    check_apart(vars(request), replaces=request.output)
