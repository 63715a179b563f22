"""The learner of late-interaction encoders, and the teacher that scores all documents of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import Inputs, find
from rnnreranker.encode.late import cut_late, late_start
from rnnreranker.encode.model_folder import TextKind
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.transformer import TorchModel, check_vocabulary
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import Labels
from rnnreranker.train.groups import Group, GroupInputs, load_groups
from rnnreranker.train.request import Start
from rnnreranker.train.text import TwoSidedLearner, by_length, in_batch, of_columns
from rnnreranker.train.trainer import loading

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.train.models import LateParams
    from rnnreranker.train.request import TrainRequest

WRITTEN = "written"  # of features: (n, 1) bool, texts with more than white space; others have no tokens
PLAIN = LabelParams(normalization="none", boost=1.0, n_max=None)  # targets are a softmax of the scores


class LateLearner(TwoSidedLearner):
    """A late-interaction encoder, from one or from a transformer.

    Raises:
        InputError: the model cannot be loaded, or its limits or dimension differ from the settings.
    """

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs, device)
        self.folder = late_start(start.name, params.dimension).path
        with loading(self.folder, "a late-interaction encoder"):
            lengths = LateEncoderParams(query_length=params.query_length, document_length=params.document_length)
            self._late = TorchModel("late-encoder", self.folder, device)
            cut_late(self._late, lengths, self.folder)
            self.model, self.prompts = self._late.modules, self._late.about["prompts"]
            check_vocabulary(self.folder, self.model.tokenizer, self.model[0].model)
            own = int(self._late.about["dimension"])
        if params.dimension not in (None, own):
            raise InputError(f"dimension={params.dimension}: expected {own}, which a token of {start.name} has")
        self._contrast = find("loss", "info-nce")()

    def label(self, groups: Sequence[Group], docids: Sequence[str]) -> dict[str, Any]:
        label: dict[str, Any] = super().label(groups, docids)
        return label | ({"contrast": in_batch(groups, docids)} if self.params.contrast else {})

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        features = self._late.features([self.prompts[kind] + text for text in texts], kind)
        tensors = {name: value for name, value in features.items() if torch.is_tensor(value)}
        return tensors | {WRITTEN: torch.tensor([[bool(text.strip())] for text in texts])}

    def tokens(self, features: dict[str, Tensor], kind: TextKind) -> tuple[Tensor, Tensor]:
        """Vectors (n, t, d) float32, and which tokens count (n, t): none in blank texts."""
        features = dict(features)
        written = features.pop(WRITTEN)
        vectors, real = self._late.tokens(features, kind)
        return vectors.float(), real & written

    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        return self._similarities(query, document, self.params.similarity)[0]

    def both(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Sequence[Tensor]:
        return self._similarities(query, document, self.params.similarity, "maxsim")

    def _similarities(
        self, query: dict[str, Tensor], document: dict[str, Tensor], *hows: Similarity
    ) -> Sequence[Tensor]:
        asked = self.tokens(query, "query")

        def compute(part: dict[str, Tensor]) -> Tensor:
            tokens = self.tokens(part, "document")
            return torch.stack([late_scores(*asked, *tokens, how).T for how in hows], dim=1)

        return list(by_length(document, compute).permute(1, 2, 0))

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        scores, label = self.scores(inputs["query"], inputs["document"]), inputs["label"]
        loss = of_columns(self.ranking, scores, label)
        if not self.params.contrast:
            return loss
        return loss + self.params.contrast * of_columns(self._contrast, scores, label["contrast"])


Similarity = Literal["maxsim", "l2"]


def late_scores(
    queries: Tensor, asked: Tensor, documents: Tensor, real: Tensor, similarity: Similarity = "maxsim"
) -> Tensor:
    """(B, U) float32: every query with every document.

    maxsim: sum over query tokens i of max_j q_i . d_j, 0 for a document without tokens. l2: sum of max(max_j -|q_i -
    d_j|^2, -|q_i|^2): the program of paper 002 pads documents with zero vectors.

    Args:
        queries: (B, q, d) float32; asked: (B, q) bool, tokens that count.
        documents: (U, t, d) float32; real: (U, t) bool, tokens that count; others are ignored, NaN included.
    """
    documents = torch.where(real.unsqueeze(2), documents, 0)
    products = torch.einsum("bqd,utd->buqt", queries, documents)
    low = torch.finfo(products.dtype).min
    if similarity == "l2":
        floor = -(queries**2).sum(dim=2).unsqueeze(1)  # (B, 1, q)
        products = 2 * products - (documents**2).sum(dim=2)[None, :, None, :] + floor.unsqueeze(3)
    best = products.masked_fill(~real[None, :, None, :], low).max(dim=3).values
    best = torch.maximum(best, floor) if similarity == "l2" else torch.where(real.any(dim=1)[None, :, None], best, 0)
    return torch.where(asked.unsqueeze(1), best, 0).sum(dim=2)


def load_late(request: TrainRequest, params: LateParams) -> GroupInputs:
    """As `load_groups`, with the teacher of the labels if `batch_teacher` is set."""
    from rnnreranker.index.opening import open_index

    inputs = load_groups(request, params)
    if not params.batch_teacher:
        return inputs
    if request.labels is None or request.index is None:
        labels, index = argument("labels"), argument("index")
        raise InputError(f"batch_teacher: needs {labels}, and {index} with the tokens that they were made from")
    topics = {pool.qid: inputs.queries[pool.qid] for pool in inputs.pools}
    opened = open_index(request.index, needs={"tokens"})
    return replace(inputs, teacher=BatchTeacher(inputs.made["labels"], opened, topics))


class BatchTeacher:
    """The token-based teacher of a label file; it scores any document.

    It expands each query once, by the candidates of its labels: paper 002 (2.3.1) reuses the centroids "for estimating
    R*_q(p) of any p".

    Args:
        metadata: of the labels.
        index: with the tokens that made them; topics: texts of all training queries.

    Raises:
        InputError: labels of another index or with unknown settings, or targets that are no softmax of MaxSim.
    """

    def __init__(self, metadata: Mapping[str, Any], index: IndexOnDisk, topics: Mapping[str, str]) -> None:
        from rnnreranker.labels.methods.base import labeler_of
        from rnnreranker.parts.tokens.source import query_tokens

        source = index.token_vectors
        labeler = labeler_of(metadata, Inputs(tokens=source, query_tokens=lambda: query_tokens(source, topics)))
        made = labeler.label_params
        teacher: Any = getattr(labeler, "teacher", None)
        if not hasattr(teacher, "asked"):
            raise InputError(
                f"batch_teacher: labels of the method {labeler.name} have no teacher over tokens, which can score any "
                "document; expected collective, or teacher late or prf:feedback=colbert"
            )
        if metadata.get("index") != source.fingerprint:
            raise InputError(f"{index.name}: the labels were not made from its tokens; give the index that they were")
        if replace(made, temperature=1.0, mass=None) != PLAIN:
            raise InputError(
                f"batch_teacher: the labels were made with {made}; expected normalization=none, boost=1 and "
                "n_max=none, as the targets of a batch are the softmax of the teacher's scores"
            )
        self._teacher, self._temperature, self._source = teacher, made.temperature, source
        self._positives_first = bool(getattr(labeler.params, "positives", False))
        self._asked: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.fingerprint = fingerprint(source.fingerprint, labeler.describe())

    def logits(self, pools: Sequence[Labels], docids: Sequence[str]) -> np.ndarray:
        """(B, U) float64: scores over the temperature.

        pools: whole labels of the queries.

        Raises:
            InputError: a document or query has no tokens in the index.
        """
        rows = self._source.rows(list(docids))
        if (rows < 0).any():
            raise InputError(
                f"{docids[int(np.argmin(rows))]} is not in {self._source.folder}; use the index of the labels"
            )
        asked = [self._of(pool) for pool in pools]
        offsets = np.cumsum([0, *(len(tokens) for tokens, _ in asked)], dtype=np.int64)
        tokens, weights = (np.concatenate(parts) for parts in zip(*asked, strict=True))
        scores = self._source.scores(tokens, offsets, rows, self._teacher.threads, weights)
        return scores.astype(np.float64) / self._temperature

    def _of(self, pool: Labels) -> tuple[np.ndarray, np.ndarray]:
        if pool.qid not in self._asked:
            taken = np.flatnonzero(np.isfinite(pool.scores))
            docids = [pool.docids[candidate] for candidate in taken.tolist()]
            known = range(int(pool.positive[taken].sum())) if self._positives_first else ()
            self._asked[pool.qid] = self._teacher.asked(*self._teacher.alone(pool.qid, docids), known)
        return self._asked[pool.qid]
