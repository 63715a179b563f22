"""The learner of late-interaction encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.base.settings import hints_of
from rnnreranker.encode.kinds import cut_texts
from rnnreranker.encode.late import late_start
from rnnreranker.encode.model_folder import TextKind
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.transformer import TorchModel, check_vocabulary
from rnnreranker.train.groups import Group, GroupInputs
from rnnreranker.train.request import Start
from rnnreranker.train.text import TwoSidedLearner, by_length, documents_of, label
from rnnreranker.train.trainer import loading

Similarity = Literal["maxsim", "l2"]
WRITTEN = "written"  # of features: (n, 1) bool, texts with more than white space; others have no tokens


class LateLearner(TwoSidedLearner):
    """A late-interaction encoder, from one or from a transformer.

    Raises:
        InputError: the model cannot be loaded, or its limits or dimension differ from the settings.
    """

    def __init__(self, start: Start, params: Any, inputs: GroupInputs, device: str) -> None:
        super().__init__(start, params, inputs)
        self.folder = late_start(start.name, params.dimension).path
        with loading(self.folder, "a late-interaction encoder"):
            late = TorchModel("late-encoder", self.folder, device)
            lengths = {name: getattr(params, name) for name in hints_of(LateEncoderParams)}
            cut_texts([late], self.folder, **lengths)
            self.model, self.prompts, own = late.modules, late.about["prompts"], late.about["dimension"]
            check_vocabulary(self.folder, self.model[0].model)
        if params.dimension not in (None, own):
            raise InputError(f"dimension={params.dimension}: expected {own}, which a token of {start.name} has")
        self._contrast = find("loss", "info-nce")()

    def batch(self, rows: Sequence[Group]) -> dict[str, Any]:
        contrast = label(rows, [documents_of(rows)] * len(rows)) if self.params.contrast else {}
        return super().batch(rows) | {"contrast": contrast}

    def features(self, texts: list[str], kind: TextKind) -> dict[str, Tensor]:
        features = self.model.preprocess([self.prompts[kind] + text for text in texts], task=kind)
        tensors = {name: value for name, value in features.items() if torch.is_tensor(value)}
        return tensors | {WRITTEN: torch.tensor([[bool(text.strip())] for text in texts])}

    def tokens(self, features: dict[str, Tensor], kind: TextKind) -> tuple[Tensor, Tensor]:
        """Vectors (n, t, d) float32, and which tokens count (n, t): none in blank texts."""
        given = {name: value for name, value in features.items() if name != WRITTEN}
        outputs = self.model(given, task=kind)
        return outputs["token_embeddings"].float(), outputs["attention_mask"].bool() & features[WRITTEN]

    def scores(self, query: dict[str, Tensor], document: dict[str, Tensor]) -> Tensor:
        return self.both(query, document, (self.params.similarity,))[0]

    def both(
        self, query: dict[str, Tensor], document: dict[str, Tensor], hows: Sequence[Similarity] = ()
    ) -> Sequence[Tensor]:
        """Scores by each similarity; by default that of the loss, and that of a search."""
        asked, hows = self.tokens(query, "query"), hows or (self.params.similarity, "maxsim")

        def compute(part: dict[str, Tensor]) -> Tensor:
            tokens = self.tokens(part, "document")
            return torch.stack([late_scores(*asked, *tokens, how).T for how in hows], dim=1)

        return list(by_length(document, compute).permute(1, 2, 0))

    def ranked(self, scores: Tensor, inputs: Any) -> Tensor:
        loss = super().ranked(scores, inputs)
        return (
            loss + self.params.contrast * self._contrast(scores, **inputs["contrast"]) if inputs["contrast"] else loss
        )


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
