"""How a term scorer learns: regression of the tokens of words, masked where a token is of no word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.command import say
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.analysis import Analyser, PieceReader, Pieces
from rnnreranker.encode.words.network import TermScorerNetwork, padded_pieces
from rnnreranker.encode.words.scorer import fast_tokenizer, write_term_scorer
from rnnreranker.train.model_files import limit_of, loading, start_folder
from rnnreranker.train.text.term_inputs import TermInputs, WeighedText
from rnnreranker.train.trainer import TextLearner

BATCH_TOKENS = 4096  # of validation


class Example(NamedTuple):
    """A text in pieces, and the weights of its tokens that are of words."""

    pieces: Pieces
    targets: dict[int, float]


class TermLearner(TextLearner):
    """A `TextLearner` of weights of words: eq. 4 of paper 004, as a mean over tokens.

    Args:
        encoder: a name, folder or hub id.
        inputs: texts; params: of the training.

    Raises:
        InputError: a model that cannot be trained so.
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """

    def __init__(self, encoder: str, inputs: TermInputs, params: Any) -> None:
        count = inputs.validation_queries
        made = {"labels": inputs.labels, "terms": inputs.terms.to_dict(), "validation_queries": count}
        super().__init__(encoder, params, made, inputs.content)
        self.folder, path = start_folder(encoder, ["encoder"])
        self._terms = inputs.terms
        with loading(path, "a term scorer"):
            transformer = load_whole(path)
            longest = limit_of(path, transformer, params.max_length)
            self._reader = PieceReader(fast_tokenizer(path), Analyser(inputs.terms), longest)
            self.model = TermScorerNetwork(transformer, inputs.terms.language == "zh")
        self._padding = self._reader.tokenizer.pad_token_id or 0
        self.training, self._checked = self._examples(inputs.training), self._examples(inputs.checked)

    def batch(self, several: Sequence[Example]) -> dict[str, Tensor]:
        batch = padded_pieces([one.pieces for one in several], self._padding)
        targets = torch.full(batch["tokens"].shape, torch.nan)
        for row, one in enumerate(several):
            for token, weight in one.targets.items():
                targets[row, token] = weight
        return batch | {"targets": targets}

    def loss(self, inputs: dict[str, Tensor], rng: np.random.Generator, step: int) -> Tensor:
        """The mean squared error over the tokens of words."""
        targets = inputs["targets"]
        weights = self.model(inputs["tokens"], inputs["attention"], inputs["tags"])
        real = ~torch.isnan(targets)
        return torch.nn.functional.mse_loss(weights[real], targets[real])

    def measures(self) -> dict[str, float]:
        """Of the validation texts: the mean squared error and Pearson's correlation, over tokens of words."""
        parts: list[Any] = [None] * len(self._checked)
        device = next(self.model.parameters()).device

        def compute(texts: list[int]) -> None:
            with torch.no_grad():
                batch = self.batch([self._checked[text] for text in texts])
                weights = self.model(*(batch[name].to(device) for name in ("tokens", "attention", "tags"))).cpu()
            for text, own, targets in zip(texts, weights, batch["targets"], strict=True):
                real = ~torch.isnan(targets)
                parts[text] = torch.stack([own[real], targets[real]]).double()

        compute_batches(compute, [len(one.pieces.tokens) for one in self._checked], BATCH_TOKENS)
        weights, targets = torch.cat(parts, dim=1).numpy()
        spread = weights.std() * targets.std()
        covariance = ((weights - weights.mean()) * (targets - targets.mean())).mean()
        return {
            "loss": float(((weights - targets) ** 2).mean()),
            "correlation": float(covariance / spread) if spread > 0 else 0.0,
        }

    def save(self, folder: Any) -> None:
        write_term_scorer(folder, self.model, self._reader, self._terms)

    def _examples(self, texts: Sequence[WeighedText]) -> list[Example]:
        examples = []
        for one in texts:
            pieces = self._reader.read(one.text)
            targets = pieces.spread([one.weights[word] for word in pieces.words])
            examples.append(Example(pieces, targets))
        kept = [one for one in examples if one.targets]
        if lost := len(examples) - len(kept):
            say(f"{lost} of {len(examples)} texts have no word in the tokens that the model reads: left out")
        return kept
