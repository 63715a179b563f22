"""BERT-Scorer (paper 004): the weights of words in their context, by a trained model."""

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
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.process.phases import phase
from rnnreranker.base.process.threads import one_torch_thread
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
    """A word of a text: its (start, end) characters, how it is counted, its weight, None beyond the model's length."""

    start: int
    end: int
    word: str
    weight: float | None


class TermScorer:
    """A trained term scorer, which is loaded when it reads its first text.

    Weights are kept in the cache folder, by the scorer's files, the versions of torch and transformers, and the text.

    Args:
        path: a folder of `train --model term-scorer`.

    Attributes:
        name: the path; digest: of the folder.

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
        """The words of a text in their order; it is read alone, so that no other text changes a bit.

        Raises:
            InputError: files missing or that do not fit each other.
            MissingDependencyError: jieba or PyStemmer is needed and not installed.
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
        """Word -> weight of every text, {} of one without a word; errors as `words`.

        A word that stands several times has the mean of its weights that are not below 0, as the others are discarded;
        where all are below 0, their mean.
        """
        for text in texts:
            if text not in self._known:
                self._known[text] = self._weights(text)
        return [self._known[text] for text in texts]

    def _weights(self, text: str) -> dict[str, float]:
        """The weights of a text that is not in memory."""

        def compute() -> dict[str, Any]:
            weights = _by_word(self.words(text))
            return {"words": np.array(list(weights), dtype=np.str_), "weights": np.array(list(weights.values()))}

        key = fingerprint(text)
        kept = kept_at(self._kept / key[:2] / f"{key}.npz", {"words", "weights"}, compute)
        return dict(zip(kept["words"].tolist(), kept["weights"].tolist(), strict=True))

    @cached_property
    def loaded(self) -> tuple[TermScorerNetwork, PieceReader]:
        """The network and what cuts texts; errors as `words`."""
        with phase("loading the term scorer"), loading(self._folder, "a term scorer", "train it again"):
            from rnnreranker.encode.words.network import TermScorerNetwork

            folder, config = self._folder, read_json(self._folder / "config.json")
            analyser = Analyser(TermParams(**config["terms"]))
            if analyser.fingerprint != config["analysis"]:
                raise InputError(
                    f"{folder}: its words were cut by another version of what reads them; train it again, or install "
                    "that one"
                )
            reader = PieceReader(fast_tokenizer(folder / ENCODER), analyser, int(config["max_length"]))
            network = TermScorerNetwork(load_whole(folder / ENCODER), bool(config["bmes"]))
            load_rest(network, folder / WEIGHTS, INNER)
        return network.eval(), reader


def load_term_scorer(path: str | os.PathLike[str]) -> TermScorer:
    """The term scorer of a folder that `train --model term-scorer` wrote, loaded at once; see `TermScorer`.

    Raises:
        InputError: no such folder, another kind of model, files missing or that do not fit each other.
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """
    scorer = TermScorer(path)
    _ = scorer.loaded
    return scorer


def write_term_scorer(folder: Path, network: TermScorerNetwork, reader: PieceReader, params: TermParams) -> None:
    """Write config.json, the weights and encoder/ into a folder that is there."""
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
    """The tokenizer of a folder, which must say where in a text its tokens stand; InputError: it does not."""
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
