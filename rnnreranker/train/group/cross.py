"""A cross-encoder while it learns: sentence-transformers' CrossEncoder, its batches, its loss, its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from torch import Tensor

from rnnreranker.encode.transformer import load_whole
from rnnreranker.labels.soft import Labels
from rnnreranker.train.group.groups import Group
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.learner import GroupLearner
from rnnreranker.train.losses import Loss
from rnnreranker.train.model_files import limit_of, loading, start_folder
from rnnreranker.train.params import OneLengthParams
from rnnreranker.train.validation import Scored

AT_ONCE = {"cpu": 16, "cuda": 512}  # pairs of about the same length that go through the model together


class CrossLearner(GroupLearner):
    """See `Learner`.

    Args:
        encoder: a name, folder or hub id; a classification head is put on it, where it has none, by the seed.
        params: of the training; loss: what it lowers.
        inputs: the texts.
        device: cpu or cuda.

    Raises:
        InputError: a model that is no encoder, a tokenizer with other words than its model.
    """

    trainer = CrossEncoderTrainer
    arguments = CrossEncoderTrainingArguments

    def __init__(self, encoder: str, params: OneLengthParams, loss: Loss, inputs: GroupInputs, device: str) -> None:
        super().__init__(encoder, params, loss, inputs)
        self.folder, path = start_folder(encoder, ("encoder", "sparse-encoder", "cross-encoder"))
        with loading(path, "a cross-encoder"):
            base = load_whole(path)
            limit = limit_of(path, base, params.max_length)
            del base
            self.model = CrossEncoder(
                str(path), num_labels=1, max_length=limit, device=device, local_files_only=True,
                activation_fn=torch.nn.Identity(),
            )  # fmt: skip
            if self.model.tokenizer.pad_token is None:
                raise ValueError("its tokenizer has no padding")
        self.loss = PairLoss(self.model, loss)

    def batch(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Queries and lists of documents, as texts."""
        return {
            "label": {
                "targets": torch.from_numpy(np.stack([group.targets for group in groups])),
                "positive": torch.from_numpy(np.stack([group.positive for group in groups])),
            },
            "query": [self.inputs.queries[group.qid] for group in groups],
            "documents": [[self.inputs.documents[docid] for docid in group.docids] for group in groups],
        }

    def scores(self, lists: Sequence[Labels]) -> Scored:
        """The scores of all pairs; nothing else is measured."""
        pairs = [(self.inputs.queries[one.qid], self.inputs.documents[docid]) for one in lists for docid in one.docids]
        scores = pair_scores(self.model, pairs).cpu().numpy()
        ends = np.cumsum([len(one.docids) for one in lists])[:-1]
        own = np.split(scores, ends)
        return Scored(own, own, {})


class PairLoss(torch.nn.Module):
    """A loss over the scores of groups, in the form that CrossEncoderTrainer calls."""

    def __init__(self, model: CrossEncoder, loss: Loss) -> None:
        super().__init__()
        self.model, self._loss = model, loss

    def forward(self, inputs: list[Any], labels: dict[str, Tensor], **_: Any) -> Tensor:
        """The mean over the groups: inputs are queries and lists of documents, labels what `batch` gives."""
        queries, lists = inputs
        pairs = [(query, document) for query, own in zip(queries, lists, strict=True) for document in own]
        scores = pair_scores(self.model, pairs).view(len(queries), -1)
        positive = labels["positive"]
        return self._loss(scores, labels["targets"], positive, torch.ones_like(positive))


def pair_scores(model: CrossEncoder, pairs: Sequence[tuple[str, str]]) -> Tensor:
    """(n,): the scores of pairs of texts, in their order; pairs of about the same length are computed together."""
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]) + len(pairs[i][1]), i))
    size = AT_ONCE[model.device.type]
    parts = []
    for start in range(0, len(order), size):
        features = model.preprocess([pairs[i] for i in order[start : start + size]])
        features = {
            name: value.to(model.device) if torch.is_tensor(value) else value for name, value in features.items()
        }
        parts.append(model(features)["scores"].view(-1).float())
    return torch.cat(parts)[torch.argsort(torch.tensor(order, device=parts[0].device))]
