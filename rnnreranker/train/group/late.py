"""A late-interaction encoder while it learns: sentence-transformers' MultiVectorEncoder, its batches, loss, scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.encode.late import cut_late, late_start
from rnnreranker.encode.model_folder import TextKind
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.transformer import TorchModel, check_vocabulary
from rnnreranker.labels.soft import Labels
from rnnreranker.rnn.maxsim import ragged_maxsim
from rnnreranker.train.group.groups import Group
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.two_sided import TwoSidedLearner, in_batch, of_columns, padded_parts
from rnnreranker.train.losses import Loss
from rnnreranker.train.model_files import loading
from rnnreranker.train.validation import Scored

KEPT = 4096  # documents of validation whose tokens are kept at the same time
WRITTEN = "written"  # of features: (n,) bool, texts with more than white space; others have no tokens
CONTRAST = "contrast_"  # before the names of what info-nce over the batch takes


class LateLearner(TwoSidedLearner):
    """See `Learner`.

    Args:
        encoder: a name, folder or hub id of a late-interaction encoder, or of a transformer, of which one is made.
        params: of the training; loss: what it lowers.
        inputs: the texts.
        device: cpu or cuda.

    Raises:
        InputError: a model that cannot be loaded so, lengths beyond its own, another dimension than its own, a
            tokenizer with other words than its model.
    """

    trainer = MultiVectorEncoderTrainer
    arguments = MultiVectorEncoderTrainingArguments

    def __init__(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> None:
        super().__init__(encoder, params, loss, inputs)
        self._similarity: Similarity = params.similarity
        self._contrast = bool(params.contrast)
        self.folder = late_start(encoder, params.dimension).path
        with loading(self.folder, "a late-interaction encoder"):
            lengths = LateEncoderParams(query_length=params.query_length, document_length=params.document_length)
            self._late = TorchModel("late-encoder", self.folder, device)
            cut_late(self._late, lengths, self.folder)
            self.model = self._late.modules
            check_vocabulary(self.folder, self.model.tokenizer, self.model[0].model)
            own = int(self._late.about["dimension"])
        if params.dimension not in (None, own):
            raise InputError(f"dimension={params.dimension}: expected {own}, which a token of {encoder} has")
        self.loss = TokenLoss(self._late, loss, params.similarity, params.contrast)

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Tensor]:
        """As of every model, with the targets of the teacher where it is asked, and what info-nce beside it is told."""
        label = in_batch(groups, docids, self.inputs.teacher) if self.wide else super().label(groups, docids)
        if not self._contrast:
            return label
        return label | {f"{CONTRAST}{name}": value for name, value in in_batch(groups, docids).items()}

    def scores(self, lists: Sequence[Labels]) -> Scored:
        """MaxSim of all queries and candidates, and the similarity that the loss has; nothing else is measured."""
        scored = Scored([], [], {})
        for block in _blocks(lists):
            queries, documents, candidates = self.encoded(block)
            for row, own in enumerate(candidates):
                scored.searched.append(documents.maxsim(queries.of(row), own))
                if self._similarity == "maxsim":
                    scored.trained.append(scored.searched[-1])
                else:
                    scored.trained.append(documents.trained(queries.of(row), own, self._similarity))
        return scored

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        prompt = self._late.about["prompts"][kind]
        features = self._late.features([prompt + text for text in texts], kind)
        features = {name: value for name, value in features.items() if torch.is_tensor(value)}
        return features | {WRITTEN: torch.tensor([bool(text.strip()) for text in texts])}

    def parts(self, features: dict[str, Tensor], kind: TextKind) -> list[np.ndarray]:
        """The tokens of each, (t, d) float32."""
        vectors: dict[int, np.ndarray] = {}
        for rows, tokens, real in tokens_of(self._late, features, kind):
            for row, its, own in zip(rows.tolist(), tokens.float(), real, strict=True):
                vectors[row] = its[own].cpu().numpy()
        return [vectors[row] for row in sorted(vectors)]

    def joined(self, parts: list[np.ndarray], rows: np.ndarray) -> Tokens:
        ordered = [parts[row] for row in rows.tolist()]
        return Tokens(np.concatenate(ordered), np.cumsum([0, *map(len, ordered)], dtype=np.int64))


class Tokens(NamedTuple):
    """The tokens of n texts, one text after the other: vectors (T, d) float32, offsets (n + 1,) int64."""

    vectors: np.ndarray
    offsets: np.ndarray

    def of(self, row: int) -> np.ndarray:
        """(t, d): the tokens of a text."""
        return self.vectors[self.offsets[row] : self.offsets[row + 1]]

    def maxsim(self, query: np.ndarray, rows: Sequence[int]) -> np.ndarray:
        """(m,) float32: as a search scores these documents."""
        return ragged_maxsim(query, np.array([0, len(query)]), self.vectors, self.offsets, rows=rows)[0]

    def trained(self, query: np.ndarray, rows: Sequence[int], similarity: Similarity) -> np.ndarray:
        """(m,) float32: as the loss has it."""
        documents = [torch.from_numpy(self.of(row)) for row in rows]
        real = pad_sequence([torch.ones(len(own), dtype=torch.bool) for own in documents], batch_first=True)
        asked = torch.from_numpy(query).unsqueeze(0)
        mask = torch.ones(asked.shape[:2], dtype=torch.bool)
        scores: np.ndarray = late_scores(asked, mask, pad_sequence(documents, batch_first=True), real, similarity)[
            0
        ].numpy()
        return scores


class TokenLoss(torch.nn.Module):
    """A loss over similarities of tokens, in the form that MultiVectorEncoderTrainer calls."""

    def __init__(self, late: TorchModel, loss: Loss, similarity: Similarity, contrast: float) -> None:
        super().__init__()
        self.trained = late.modules  # the trainer's optimiser asks the loss for what is trained
        self._late, self._loss, self._similarity, self._contrast = late, loss, similarity, contrast
        self._beside = find("loss", "info-nce")()

    def forward(self, inputs: list[dict[str, Tensor]], labels: dict[str, Tensor]) -> Tensor:
        """The mean over the queries of a batch; inputs: features of queries and of documents."""
        scores = self.scores(*inputs)
        total = of_columns(self._loss, scores, labels)
        if self._contrast:
            total = total + self._contrast * of_columns(self._beside, scores, labels, CONTRAST)
        return total

    def scores(self, queries: dict[str, Tensor], documents: dict[str, Tensor]) -> Tensor:
        """(B, U): every query with every document."""
        asked, mask = _counted(self._late, queries, "query")
        rows, parts = [], []
        for own, tokens, real in tokens_of(self._late, documents, "document"):
            rows.append(own)
            parts.append(late_scores(asked.float(), mask, tokens.float(), real, self._similarity))
        return torch.cat(parts, dim=1)[:, torch.argsort(torch.cat(rows))]


def tokens_of(late: TorchModel, features: dict[str, Tensor], kind: TextKind) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Rows (c,), vectors (c, t, d) and which of them count (c, t), part by part: texts of about the same length
    together, but queries all at once, which are mostly expanded to one length."""
    if kind == "query":
        yield torch.arange(len(features[WRITTEN]), device=features[WRITTEN].device), *_counted(late, features, kind)
        return
    order = torch.argsort(features["attention_mask"].sum(dim=1), stable=True)
    written = features[WRITTEN][order]
    start = 0
    for part in padded_parts({name: value[order] for name, value in features.items() if name != WRITTEN}):
        stop = start + len(part["input_ids"])
        yield order[start:stop], *_counted(late, part | {WRITTEN: written[start:stop]}, kind)
        start = stop


def _counted(late: TorchModel, features: dict[str, Tensor], kind: TextKind) -> tuple[Tensor, Tensor]:
    """Vectors (n, t, d) and which of them count (n, t): none of a text without anything but white space."""
    vectors, real = late.tokens({name: value for name, value in features.items() if name != WRITTEN}, kind)
    return vectors, real & features[WRITTEN].unsqueeze(1)


def _blocks(lists: Sequence[Labels]) -> Iterator[list[Labels]]:
    """The lists in their order, as many together as have at most KEPT documents."""
    block: list[Labels] = []
    seen: set[str] = set()
    for one in lists:
        if block and len(seen.union(one.docids)) > KEPT:
            yield block
            block, seen = [], set()
        block.append(one)
        seen.update(one.docids)
    if block:
        yield block


Similarity = Literal["maxsim", "l2"]


def late_scores(
    queries: Tensor,
    asked: Tensor,
    documents: Tensor,
    real: Tensor,
    similarity: Similarity = "maxsim",
) -> Tensor:
    """(B, U) float32: every query with every document.

    maxsim: sum over a query's tokens of max_j q_i . d_j, as `rnn.maxsim.maxsim`; 0 for a document without
    tokens. l2: sum of max(max_j -|q_i - d_j|^2, -|q_i|^2), where a document has a vector of zeros besides its tokens,
    as padding is in the program of paper 002: with vectors of length 1, 2 q_i . d_j - 2, and never below -1.

    Args:
        queries: (B, q, d) float32; asked: (B, q) bool, their tokens that count.
        documents: (U, t, d) float32; real: (U, t) bool, their tokens. What is not real has no part, NaN included.
        similarity: which of the two.
    """
    documents = torch.where(real.unsqueeze(2), documents, 0)
    products = torch.einsum("bqd,utd->buqt", queries, documents)
    low = torch.finfo(products.dtype).min
    if similarity == "l2":
        squares = (documents**2).sum(dim=2)
        floor = -(queries**2).sum(dim=2).unsqueeze(1)  # (B, 1, q)
        products = 2 * products - squares[None, :, None, :] + floor.unsqueeze(3)
        best = products.masked_fill(~real[None, :, None, :], low).max(dim=3).values
        best = torch.maximum(best, floor)
    else:
        best = products.masked_fill(~real[None, :, None, :], low).max(dim=3).values
        best = torch.where(real.any(dim=1)[None, :, None], best, 0)
    return torch.where(asked.unsqueeze(1), best, 0).sum(dim=2)
