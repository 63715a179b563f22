"""Predicted weights of words, in the cache folder: labels that were killed go on, and others take them over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.files import cache_home, fingerprint
from rnnreranker.encode.kept_queries import LIBRARIES, keep, read_kept
from rnnreranker.encode.model_folder import content_of
from rnnreranker.encode.words.scorer import described, load_term_scorer

if TYPE_CHECKING:
    from rnnreranker.encode.words.scorer import TermScorer

FOLDER = "words"


class KeptWeights:
    """What a term scorer predicts, text by text; the scorer is loaded when a text is asked for that it has not read.

    Weights are found again by all files of the scorer, the versions of torch and transformers, and the text: the bytes
    are those of `TermScorer.weights`, whatever was read before, by whom and in which order.

    Args:
        path: a folder of `train --model term-scorer`.

    Attributes:
        digest: of the folder.

    Raises:
        InputError: as `described`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self.digest = content_of(described(path)[0])
        versions = [metadata.version(library) for library in LIBRARIES]
        self._folder = cache_home() / FOLDER / fingerprint(FOLDER, self.digest, versions)
        self._known: dict[str, dict[str, float]] = {}

    def weights(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """As `TermScorer.weights`; errors as `load_term_scorer`."""
        for text in texts:
            if text not in self._known:
                self._known[text] = self._read(text)
        return [self._known[text] for text in texts]

    def _read(self, text: str) -> dict[str, float]:
        """The weights of a text that is not in memory."""
        path = self._file(text)
        kept = read_kept(path, {"words", "weights"})
        if kept is None or kept["words"].shape != kept["weights"].shape:
            [weights] = self._scorer.weights([text])
            keep(path, words=np.array(list(weights), dtype=np.str_), weights=np.array(list(weights.values())))
            return weights
        return dict(zip(kept["words"].tolist(), kept["weights"].tolist(), strict=True))

    def _file(self, text: str) -> Path:
        key = fingerprint(text)
        return self._folder / key[:2] / f"{key}.npz"

    @cached_property
    def _scorer(self) -> TermScorer:
        return load_term_scorer(self._path)
