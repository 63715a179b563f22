"""BERT-Scorer (paper 004): a trained model of the weights of words in their context."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import cache_home, fingerprint, write_json
from rnnreranker.base.process.phases import phase
from rnnreranker.base.process.threads import one_torch_thread
from rnnreranker.base.strict import read_json
from rnnreranker.encode.kept_queries import LIBRARIES, kept_at
from rnnreranker.encode.model_folder import TERM_SCORER_TYPE, content_of, loading, model_type
from rnnreranker.encode.transformer import load_rest, load_whole, save_rest
from rnnreranker.encode.words.analysis import Analyser, PieceReader, TermParams

if TYPE_CHECKING:
    from rnnreranker.encode.words.network import TermScorerNetwork

WEIGHTS = "scorer.safetensors"  # of the linear layer and the tags
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
INNER = "transformer."  # names of the weights that are there
FOLDER = "words"  # of predicted weights in the cache folder


class WeighedWord(NamedTuple):
    """A word of a text: its (start, end) characters, counted form, and weight, None beyond the model's length."""

    start: int
    end: int
    word: str
    weight: float | None


class TermScorer:
    """A trained term scorer, loaded on first use; path: a folder of `train --model term-scorer`.

    The cache folder keeps weights by the scorer's files, the versions of torch and transformers, and the text.

    Raises:
        InputError: no such folder, another kind of model.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name, self._folder = str(path), Path(path).expanduser()
        if model_type(self._folder) != TERM_SCORER_TYPE:
            no = "another kind of model" if (self._folder / "config.json").is_file() else "no term scorer"
            raise InputError(f"{path}: {no}; expected a folder of python -m rnnreranker.train --model term-scorer")
        self.digest = content_of(self._folder)
        versions = [metadata.version(library) for library in LIBRARIES]
        self._kept = cache_home() / FOLDER / fingerprint(FOLDER, self.digest, versions)
        self._known: dict[str, dict[str, float]] = {}

    def words(self, text: str) -> list[WeighedWord]:
        """The words of a text in order; it is read alone, so that its weights do not depend on other texts.

        Raises:
            InputError, MissingDependencyError: files that are missing or do not fit together; no jieba or PyStemmer.
        """
        import torch

        from rnnreranker.encode.words.network import padded_pieces

        network, reader = self.loaded
        pieces = reader.read(text)
        with torch.inference_mode(), one_torch_thread():
            weights = network(**padded_pieces([pieces], reader.tokenizer.pad_token_id or 0))[0].double().tolist()
        parts = zip(pieces.spans, pieces.words, pieces.gather(weights), strict=True)
        return [WeighedWord(*span, word, weight) for span, word, weight in parts]

    def weights(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Word → weight of every text; errors as `words`.

        A repeated word gets the mean of its weights that are not negative, or of all if all are negative.
        """
        for text in texts:
            if text not in self._known:
                self._known[text] = self._weights(text)
        return [self._known[text] for text in texts]

    def _weights(self, text: str) -> dict[str, float]:
        def compute() -> dict[str, Any]:
            weights = _by_word(self.words(text))
            return {"words": np.array(list(weights), dtype=np.str_), "weights": np.array(list(weights.values()))}

        key = fingerprint(text)
        kept = kept_at(self._kept / key[:2] / f"{key}.npz", {"words", "weights"}, compute)
        return dict(zip(kept["words"].tolist(), kept["weights"].tolist(), strict=True))

    @cached_property
    def loaded(self) -> tuple[TermScorerNetwork, PieceReader]:
        with phase("loading the term scorer"), loading(self._folder, "a term scorer", "train it again"):
            from rnnreranker.encode.words.network import TermScorerNetwork

            folder, config = self._folder, read_json(self._folder / "config.json")
            analyser = Analyser(TermParams(**config["terms"]))
            if analyser.fingerprint != config["analysis"]:
                raise InputError(
                    f"{folder}: another version of its analyser cut its words; train it again, or install that one"
                )
            reader = PieceReader(fast_tokenizer(folder / ENCODER), analyser, int(config["max_length"]))
            network = TermScorerNetwork(load_whole(folder / ENCODER), bool(config["bmes"]))
            load_rest(network, folder / WEIGHTS, INNER)
        return network.eval(), reader


def write_term_scorer(folder: Path, network: TermScorerNetwork, reader: PieceReader, params: TermParams) -> None:
    network.transformer.save_pretrained(folder / ENCODER)
    reader.tokenizer.save_pretrained(folder / ENCODER)
    save_rest(network, folder / WEIGHTS, INNER)
    config: dict[str, Any] = {
        "model_type": TERM_SCORER_TYPE,
        "terms": params.to_dict(),
        "analysis": reader.analyser.fingerprint,
    }
    config |= {"max_length": reader.max_length, "bmes": network.tags is not None}
    write_json(folder / "config.json", config)


def fast_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder, with offsets of tokens; InputError: it has no offsets."""
    transformers = require("transformers", "encoding text", "transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if not tokenizer.is_fast:
        raise InputError(
            f"{folder}: its tokenizer does not say where tokens stand in a text; give a model with tokenizer.json"
        )
    return tokenizer


def _by_word(words: Sequence[WeighedWord]) -> dict[str, float]:
    several: dict[str, list[float]] = {}
    for one in words:
        if one.weight is not None:
            several.setdefault(one.word, []).append(one.weight)
    weight_of = {}
    for word, weights in several.items():
        kept = [weight for weight in weights if weight >= 0] or weights
        weight_of[word] = sum(kept) / len(kept)
    return weight_of
