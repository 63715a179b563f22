"""BERT-Scorer (paper 004): a trained model of the weights of words in their context."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_json
from rnnreranker.base.jobs import one_torch_thread
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.model_folder import config_of, content_of, loading
from rnnreranker.encode.transformer import load_rest, load_whole, save_rest
from rnnreranker.encode.words.analysis import NO_TAG, Analyser, PieceReader, Pieces, TermParams

TYPE = "rnnreranker-term-scorer"  # in config.json
WEIGHTS = "scorer.safetensors"  # of the linear layer and the tags
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
INNER = "transformer."  # names of the weights that are there
ARGUMENTS = ("tokens", "attention", "tags")  # of `TermScorerNetwork.forward`


class TermScorerNetwork(torch.nn.Module):
    """Weights of tokens in their context: W h + b of the transformer's last states h (paper 004, eq. 2 and 3).

    Args:
        transformer: an encoder of transformers.
        bmes: add an embedding of every token's BMES tag (section 3.2.1), which begins as zeros.
    """

    def __init__(self, transformer: Any, bmes: bool) -> None:
        super().__init__()
        size = int(transformer.config.hidden_size)
        self.transformer = transformer
        self.linear = torch.nn.Linear(size, 1)
        torch.nn.init.normal_(self.linear.weight, std=0.02)
        torch.nn.init.zeros_(self.linear.bias)
        self.tags = torch.nn.Embedding(NO_TAG + 1, size, padding_idx=NO_TAG) if bmes else None
        if self.tags is not None:
            torch.nn.init.zeros_(self.tags.weight)

    def forward(self, tokens: torch.Tensor, attention: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """(B, T) weights of (B, T) tokens; attention: 0 at padding; tags: as in `Pieces`."""
        given = {"input_ids": tokens}
        if self.tags is not None:
            given = {"inputs_embeds": self.transformer.get_input_embeddings()(tokens) + self.tags(tags)}
        weights: torch.Tensor = self.linear(self.transformer(**given, attention_mask=attention).last_hidden_state)
        return weights.squeeze(-1)


def padded_pieces(several: Sequence[Pieces], padding: int) -> dict[str, torch.Tensor]:
    tokens, attention = padded([one.tokens for one in several], padding)
    tags, _ = padded([one.tags for one in several], NO_TAG)
    return {name: torch.from_numpy(part) for name, part in zip(ARGUMENTS, (tokens, attention, tags), strict=True)}


class TermScorer:
    """A trained term scorer, loaded on first use; path: a folder of `train --model term-scorer`.

    Raises:
        InputError: no such folder, another kind of model.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = Path(path).expanduser()
        self._config = config_of(self._folder, TYPE, "--model term-scorer")
        self.digest = content_of(self._folder)
        self._known: dict[str, dict[str, float]] = {}

    def words(self, text: str) -> list[tuple[str, float | None]]:
        """The words of a text in order with their weights, None beyond the model's length.

        A text is read alone, so that its weights do not depend on other texts.

        Raises:
            InputError, MissingDependencyError: files that are missing or do not fit together; no jieba or PyStemmer.
        """
        network, reader = self.loaded
        pieces = reader.read(text)
        with torch.inference_mode(), one_torch_thread():
            weights = network(**padded_pieces([pieces], reader.tokenizer.pad_token_id or 0))[0].double().tolist()
        return list(zip(pieces.words, pieces.gather(weights), strict=True))

    def weights(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Word → weight of every text; errors as `words`.

        A repeated word gets the mean of its weights that are not negative, or of all if all are negative.
        """
        for text in {*texts} - {*self._known}:
            several: dict[str, list[float]] = {}
            for word, weight in self.words(text):
                if weight is not None:
                    several.setdefault(word, []).append(weight)
            kept = {word: [one for one in own if one >= 0] or own for word, own in several.items()}
            self._known[text] = {word: sum(own) / len(own) for word, own in kept.items()}
        return [self._known[text] for text in texts]

    @cached_property
    def loaded(self) -> tuple[TermScorerNetwork, PieceReader]:
        folder, config = self._folder, self._config
        with phase("loading the term scorer"), loading(folder, "a term scorer", "train it again"):
            analyser = Analyser(TermParams(**config["terms"]))
            if analyser.fingerprint != config["analysis"]:
                raise InputError(
                    f"{folder}: another version of its analyser cut its words; train it again, or install that one"
                )
            network = TermScorerNetwork(load_whole(folder / ENCODER), bool(config["bmes"]))
            reader = PieceReader(fast_tokenizer(folder / ENCODER), analyser, int(config["max_length"]))
            load_rest(network, folder / WEIGHTS, INNER)
        return network.eval(), reader


def write_term_scorer(folder: Path, network: TermScorerNetwork, reader: PieceReader, params: TermParams) -> None:
    network.transformer.save_pretrained(folder / ENCODER)
    reader.tokenizer.save_pretrained(folder / ENCODER)
    save_rest(network, folder / WEIGHTS, INNER)
    about = {"model_type": TYPE, "terms": params.to_dict(), "analysis": reader.analyser.fingerprint}
    write_json(folder / "config.json", about | {"max_length": reader.max_length, "bmes": network.tags is not None})


def fast_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder, with offsets of tokens; InputError: it has no offsets."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if not tokenizer.is_fast:
        raise InputError(
            f"{folder}: its tokenizer does not say where tokens stand in a text; give a model with tokenizer.json"
        )
    return tokenizer
