"""What the trials of a query encoder share, and one of them: trained on labels, tested by searching the index."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.chosen_method import Form
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.query.arms import QueryArm
from rnnreranker.lab.study.retrieved import inputs_of, opened
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import VERSION, Values, values_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels import LabelParams
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.rnn import RnnParams
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class QuerySetting:
    """What all trials of a query encoder share.

    Attributes:
        index: name or folder.
        encoder: that is fine-tuned: minilm, tas-b, a folder or a Hugging Face id.
        queries: vectors of all topics by that encoder; run: their candidates.
        qrels: judgements of all test queries.
        measures, protocol: of the test, see `evaluate`.
        rnn, labels: parameters of the labels; of methods with settings of their own only the context of `rnn` counts.
        hits: documents retrieved for a test query.
        pooling, normalize: what the index says of its encoder; None = what the model's files say.
        loss_values: parameters of losses; an arm takes those that its loss has.
        taught: the run with the scores of a fusion, which labels by `run` take; None where no arm does.
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
    taught: Run | None = None

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that name all of it; pooling and normalize show in the query vectors."""
        return fingerprint(
            *(VERSION, version("torch"), version("transformers")),
            *(opened(self.index).vectors.fingerprint, self.encoder, self.measures, self.protocol, self.hits),
            *(self.rnn.to_dict(), self.labels.to_dict(), self.run.to_dict(), self.queries.vectors.tolist()),
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
            *([dict(self.loss_values)] if self.loss_values else []),
        )

    def teachers(self, methods: Sequence[Form]) -> dict[str, str]:
        """Method of labels → fingerprint of what it reads beside the vectors, for those that read such a thing.

        methods: in their written form.

        Raises:
            InputError: labels of tokens, and none in the index.
        """
        fingerprints = {}
        for name in {Written.read(form).name for form in methods}:
            if name == "run" and self.taught is not None:
                fingerprints[name] = fingerprint(self.taught.to_dict())
            elif "tokens" in find("labeler", name).needs:
                fingerprints[name] = str(opened(self.index).token_vectors.fingerprint)
        return fingerprints

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the encoder as it is."""
        return {"values": self._measured(task, self.queries.of(task.test))}

    def trained(self, task: Task, arm: QueryArm) -> dict[str, Any]:
        """The values of the encoder that an arm trains, and what its training came to, see `train_encoder`."""
        from rnnreranker.encode.dense.encoder import Encoder
        from rnnreranker.lab.study.query.task_labels import training_labels
        from rnnreranker.labels.methods.base import make_labeler
        from rnnreranker.parts.vectors import QueryVectors
        from rnnreranker.train.params import loss_params
        from rnnreranker.train.query.training import train_encoder

        index = opened(self.index)
        source = index.vectors
        inputs = inputs_of(index, task.topics, self.queries)
        run = self.taught if arm.method == "run" and self.taught is not None else self.run
        training, mass = training_labels(task, arm, inputs, run, self.rnn, self.labels)
        checked = make_labeler("hard", inputs).infer(self.run, task.part(validation=True))
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            out = Path(folder) / "encoder"
            trained = train_encoder(
                training,
                source,
                task.topics,
                self.encoder,
                out,
                arm.hyperparameters.params_of(task),
                validation=checked,
                pooling=self.pooling,
                normalize=self.normalize,
                loss=loss_params(arm.hyperparameters.params.loss, {**self.loss_values, **arm.of_loss}),
                checkpoints=False,
                other_index=bool(arm.taught),  # labels of tokens say which tokens
            )
            encoder = Encoder.load(str(out))
            vectors = encoder.encode([task.topics[qid] for qid in task.test], threads=1, what="queries")
        record = trained.record
        return mass | {
            "values": self._measured(task, QueryVectors(task.test, vectors)),
            "best_step": trained.best_step,
            "steps": trained.steps,
            "validation": trained.measures,
            "history": record["history"],
            "positives": record["positives"],
            "inverse_temperature": record["inverse_temperature"],
        }

    def _measured(self, task: Task, queries: QueryVectors) -> Values:
        from rnnreranker.methods.retrieve.dense import dense_run

        run = dense_run(opened(self.index).vectors, queries, self.hits, threads=1, batch_size=256)
        return values_of(run, self.qrels, self.measures, self.protocol, task)
