"""One trial: an arm trained on one task with one seed, and what its encoder is worth on the test queries."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint, write_json
from rnnreranker.files.json_files import read_json
from rnnreranker.method import Inputs
from rnnreranker.study.arms import Arm
from rnnreranker.study.tasks import Task

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels import LabelParams
    from rnnreranker.rnn import RnnParams
    from rnnreranker.runs import Run
    from rnnreranker.search.indexes import Index
    from rnnreranker.vectors import QueryVectors

VERSION = 2  # of what a trial computes: raise it when results change


@dataclass(frozen=True, eq=False)
class Setting:
    """What all trials of a study share.

    Attributes:
        index: name or folder.
        encoder: that is fine-tuned: minilm, tas-b, a folder or a Hugging Face id.
        queries: vectors of all topics by that encoder; run: their candidates.
        qrels: judgements of all test queries.
        measures, protocol: of the test, see `evaluate`.
        rnn, labels: parameters of the labels.
        hits: documents retrieved for a test query.
        pooling, normalize: what the index says of its encoder; None = what the model's files say.
        loss_values: parameters of losses; an arm takes those that its loss has.
    """

    index: str
    encoder: str
    queries: QueryVectors
    run: Run
    qrels: pandas.DataFrame
    measures: str
    protocol: str
    rnn: RnnParams
    labels: LabelParams
    hits: int = 100
    pooling: str | None = None
    normalize: bool | None = None
    loss_values: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that name all of it; pooling and normalize show in the query vectors."""
        return fingerprint(
            *(VERSION, version("torch"), version("transformers")),
            *(_open(self.index).vectors.fingerprint, self.encoder, self.measures, self.protocol, self.hits),
            *(self.rnn.to_dict(), self.labels.to_dict(), self.run.to_dict(), self.queries.vectors.tolist()),
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
            *([dict(self.loss_values)] if self.loss_values else []),
        )


def run_trial(setting: Setting, task: Task, arm: Arm | None, folder: Path) -> dict[str, Any]:
    """The record of a trial, from its file where it was taken before.

    Args:
        setting: shared by all trials.
        task: what is trained on and tested on.
        arm: None = the encoder as it is.
        folder: where records are kept.

    Returns:
        arm, task, seed, `values` (measure → test query → value), and of a training: best_step, steps, seconds,
        validation (at the best step), history and positives, see `train_encoder`.
    """
    described = None if arm is None else [arm.method, arm.side.params_of(task).to_dict()]
    positives = task.positives.to_numpy().tolist()
    name = fingerprint(setting.identity, task.topics, positives, sorted(task.validation), task.test, described)
    path = folder / f"{name}.json"
    if path.is_file():
        return read_trial(path) | {"arm": arm and arm.name}
    begun = time.perf_counter()
    found: dict[str, Any] = {"arm": arm and arm.name, "task": task.name, "seed": task.seed}
    if arm is None:
        found["values"] = _measured(setting, task, setting.queries.of(task.test))
    else:
        found |= _trained(setting, task, arm)
    found["seconds"] = round(time.perf_counter() - begun, 2)
    write_json(path, found)
    return found


def read_trial(path: Path) -> dict[str, Any]:
    """The record of a trial that was taken before.

    Raises:
        InputError: a file that is not such a record.
    """
    repair = "delete it, and the trial is taken again"
    record = read_json(path, "record of a trial", repair)
    values = record.get("values") if isinstance(record, dict) else None
    of_topics = list(values.values()) if isinstance(values, dict) else []
    if not of_topics or not all(
        isinstance(found, dict) and all(type(value) is float for value in found.values()) for found in of_topics
    ):
        raise InputError(f"{path}: no record of a trial, with the values of measures by topic; {repair}")
    return record


def _trained(setting: Setting, task: Task, arm: Arm) -> dict[str, Any]:
    from rnnreranker.encode.encoder import load_encoder
    from rnnreranker.labels.methods.base import make_labeler
    from rnnreranker.train.params import loss_params
    from rnnreranker.train.training import train_encoder
    from rnnreranker.vectors import QueryVectors

    index = _open(setting.index)
    source = index.vectors
    inputs = Inputs(vectors=source, query_vectors=setting.queries, topics=task.topics)
    training = make_labeler(arm.method, inputs, setting.rnn, setting.labels, threads=1).infer(
        setting.run, task.part(validation=False)
    )
    checked = make_labeler("hard", inputs).infer(setting.run, task.part(validation=True))
    with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
        out = Path(folder) / "encoder"
        trained = train_encoder(
            training,
            source,
            task.topics,
            setting.encoder,
            out,
            arm.side.params_of(task),
            validation=checked,
            pooling=setting.pooling,
            normalize=setting.normalize,
            loss=loss_params(arm.side.params.loss, setting.loss_values),
            checkpoints=False,
        )
        encoder = load_encoder(str(out))
        vectors = encoder.encode([task.topics[qid] for qid in task.test], threads=1, what="queries")
    record = trained.record
    return {
        "values": _measured(setting, task, QueryVectors(task.test, vectors)),
        "best_step": trained.best_step,
        "steps": trained.steps,
        "validation": trained.measures,
        "history": record["history"],
        "positives": record["positives"],
        "inverse_temperature": record["inverse_temperature"],
    }


def _measured(setting: Setting, task: Task, queries: QueryVectors) -> dict[str, dict[str, float]]:
    from rnnreranker.evaluate import evaluate
    from rnnreranker.retrieve.dense import dense_run

    run = dense_run(_open(setting.index).vectors, queries, setting.hits, threads=1, batch_size=256)
    scores = evaluate(run.as_written(), setting.qrels, setting.measures, setting.protocol, topics=task.test)
    return {
        measure: dict(zip(scores.topics, scores.values[0, :, column].tolist(), strict=True))
        for column, measure in enumerate(scores.measures)
    }


@functools.cache
def _open(name: str) -> Index:
    from rnnreranker.search.indexes import open_index

    return open_index(name)
