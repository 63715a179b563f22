"""How a term scorer learns: regression of the tokens of words, masked where a token is of no word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from rnnreranker.base.command import say
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.analysis import Analyser
from rnnreranker.encode.words.network import ScorerNetwork, padded
from rnnreranker.encode.words.pieces import PieceReader, Pieces
from rnnreranker.encode.words.scorer import fast_tokenizer, write_term_scorer
from rnnreranker.train.model_files import limit_of, loading, start_folder
from rnnreranker.train.term.inputs import TermInputs, WeighedText

BATCH_TOKENS = 4096  # of validation


class Example(NamedTuple):
    """A text in pieces, and the weights of its tokens that are of words."""

    pieces: Pieces
    targets: dict[int, float]


class TermLearner:
    """A `TextLearner` of weights of words: eq. 4 of paper 004, as a mean over tokens.

    Args:
        encoder: a name, folder or hub id.
        inputs: texts; params: of the training.

    Raises:
        InputError: a model that cannot be trained so.
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """

    measured = ("loss", "correlation")

    def __init__(self, encoder: str, inputs: TermInputs, params: Any) -> None:
        self.folder, place = start_folder(encoder, ["encoder"])
        self._terms = inputs.terms
        with loading(place, "a term scorer"):
            transformer = load_whole(place)
            longest = limit_of(place, transformer, params.max_length)
            self._reader = PieceReader(fast_tokenizer(place), Analyser(inputs.terms), longest)
            self.model = ScorerNetwork(transformer, inputs.terms.language == "zh")
        self._padding = self._reader.tokenizer.pad_token_id or 0
        self.training, self._checked = self._examples(inputs.training), self._examples(inputs.checked)

    def batch(self, several: Sequence[Example]) -> dict[str, torch.Tensor]:
        """The arguments of the network, and targets (B, T), NaN where a token is of no word."""
        found = padded([one.pieces for one in several], self._padding)
        targets = torch.full(found["tokens"].shape, torch.nan)
        for row, one in enumerate(several):
            for token, weight in one.targets.items():
                targets[row, token] = weight
        return found | {"targets": targets}

    def loss(self, inputs: dict[str, torch.Tensor], rng: np.random.Generator) -> torch.Tensor:
        """The mean squared error over the tokens of words."""
        targets = inputs["targets"]
        found = self.model(inputs["tokens"], inputs["attention"], inputs["tags"])
        real = ~torch.isnan(targets)
        return torch.nn.functional.mse_loss(found[real], targets[real])

    def measures(self) -> dict[str, float]:
        """Of the validation texts: the mean squared error and Pearson's correlation, over tokens of words."""
        parts: list[Any] = [None] * len(self._checked)
        device = next(self.model.parameters()).device

        def compute(places: list[int]) -> None:
            with torch.no_grad():
                batch = self.batch([self._checked[place] for place in places])
                found = self.model(*(batch[name].to(device) for name in ("tokens", "attention", "tags"))).cpu()
            for place, own, targets in zip(places, found, batch["targets"], strict=True):
                real = ~torch.isnan(targets)
                parts[place] = torch.stack([own[real], targets[real]]).double()

        compute_batches(compute, [len(one.pieces.tokens) for one in self._checked], BATCH_TOKENS)
        found, targets = torch.cat(parts, dim=1).numpy()
        spread = found.std() * targets.std()
        covariance = ((found - found.mean()) * (targets - targets.mean())).mean()
        return {
            "loss": float(((found - targets) ** 2).mean()),
            "correlation": float(covariance / spread) if spread > 0 else 0.0,
        }

    def save(self, folder: Any) -> None:
        """See `write_term_scorer`."""
        write_term_scorer(folder, self.model, self._reader, self._terms)

    def _examples(self, texts: Sequence[WeighedText]) -> list[Example]:
        found = []
        for one in texts:
            pieces = self._reader.read(one.text)
            targets = pieces.spread([one.weights[word] for word in pieces.words])
            found.append(Example(pieces, targets))
        kept = [one for one in found if one.targets]
        if lost := len(found) - len(kept):
            say(f"{lost} of {len(found)} texts have no word in the tokens that the model reads: left out")
        return kept
