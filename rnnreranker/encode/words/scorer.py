"""BERT-Scorer (paper 004): the weights of words in their context, by a trained model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.process.phases import phase
from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.encode.base import loading
from rnnreranker.encode.model_folder import TERM_SCORER_TYPE, content_of
from rnnreranker.encode.transformer import load_whole
from rnnreranker.encode.words.analysis import Analyser
from rnnreranker.encode.words.params import TermParams
from rnnreranker.encode.words.pieces import PieceReader

if TYPE_CHECKING:
    from rnnreranker.encode.words.network import TermScorerNetwork

WEIGHTS = "scorer.safetensors"  # of the linear layer and the tags
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
OURS = ("linear.", "tags.")


class WeighedWord(NamedTuple):
    """A word of a text: its (start, end) characters, how it is counted, its weight, None beyond the model's length."""

    start: int
    end: int
    word: str
    weight: float | None


class TermScorer:
    """A trained term scorer; made by `load_term_scorer`.

    Args:
        name: where it came from.
        network: the model.
        reader: what cuts texts.
        digest: of the folder.

    Attributes:
        name, digest: as given; terms: what counts as a word.
    """

    def __init__(self, name: str, network: TermScorerNetwork, reader: PieceReader, digest: str) -> None:
        self.name, self.digest = name, digest
        self.terms = reader.analyser.params
        self._network, self._reader = network.eval(), reader
        self._known: dict[str, dict[str, float]] = {}

    def words(self, text: str) -> list[WeighedWord]:
        """The words of a text in their order; it is read alone, so that no other text changes a bit."""
        import torch

        from rnnreranker.encode.words.network import padded

        pieces = self._reader.read(text)
        with torch.inference_mode(), one_torch_thread():
            weights = self._network(**padded([pieces], self._reader.tokenizer.pad_token_id or 0))[0].double().tolist()
        parts = zip(pieces.spans, pieces.words, pieces.gather(weights), strict=True)
        return [WeighedWord(*span, word, weight) for span, word, weight in parts]

    def weights(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Word -> weight of every text, {} of one without a word.

        A word that stands several times has the mean of its weights that are not below 0, as the others are discarded;
        where all are below 0, their mean.
        """
        for text in texts:
            if text not in self._known:
                self._known[text] = _by_word(self.words(text))
        return [self._known[text] for text in texts]


def load_term_scorer(path: str | os.PathLike[str]) -> TermScorer:
    """The term scorer of a folder that `train --model term-scorer` wrote.

    Raises:
        InputError: no such folder, another kind of model, files missing or that do not fit each other.
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """
    folder, config = described(path)
    with phase("loading the term scorer"), loading(folder, "a term scorer", "train it again"):
        network, reader = _load(folder, config)
    return TermScorer(str(path), network, reader, content_of(folder))


def described(path: str | os.PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """The folder of a term scorer, and its config.json; nothing is loaded.

    Raises:
        InputError: no such folder, another kind of model.
    """
    folder = Path(path).expanduser()
    if not (folder / "config.json").is_file():
        raise InputError(
            f"{path}: no term scorer; expected a folder of python -m rnnreranker.train --model term-scorer"
        )
    config = read_json(folder / "config.json")
    if not isinstance(config, dict) or config.get("model_type") != TERM_SCORER_TYPE:
        raise InputError(
            f"{path}: another kind of model; expected a folder of python -m rnnreranker.train --model term-scorer"
        )
    return folder, config


def write_term_scorer(folder: Path, network: TermScorerNetwork, reader: PieceReader, params: TermParams) -> None:
    """Write config.json, the weights and encoder/ into a folder that is there."""
    from safetensors.torch import save_file

    network.transformer.save_pretrained(folder / ENCODER)
    reader.tokenizer.save_pretrained(folder / ENCODER)
    state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    save_file({name: value for name, value in state.items() if name.startswith(OURS)}, str(folder / WEIGHTS))
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


def _load(folder: Path, config: dict[str, Any]) -> tuple[TermScorerNetwork, PieceReader]:
    from safetensors.torch import load_file

    from rnnreranker.encode.words.network import TermScorerNetwork

    analyser = Analyser(TermParams(**config["terms"]))
    if analyser.fingerprint != config["analysis"]:
        raise InputError(
            f"{folder}: its words were cut by another version of what reads them; train it again, or install that one"
        )
    reader = PieceReader(fast_tokenizer(folder / ENCODER), analyser, int(config["max_length"]))
    network = TermScorerNetwork(load_whole(folder / ENCODER), bool(config["bmes"]))
    keys = network.load_state_dict(load_file(str(folder / WEIGHTS)), strict=False)
    lost = [name for name in keys.missing_keys if name.startswith(OURS)]
    if lost or keys.unexpected_keys:
        raise InputError(f"{folder / WEIGHTS}: does not fit config.json ({(lost + keys.unexpected_keys)[0]})")
    return network, reader


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
