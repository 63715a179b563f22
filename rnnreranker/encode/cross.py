"""Cross-encoders: scores of pairs of query and document, kept in the cache folder."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint
from rnnreranker.base.settings import Params
from rnnreranker.encode.base import TextEncoder, cut_texts
from rnnreranker.encode.graph import LIBRARIES as OF_GRAPHS
from rnnreranker.encode.kept_queries import kept_at
from rnnreranker.encode.model_folder import ModelFolder, content_of
from rnnreranker.encode.params import CrossEncoderParams

LIBRARIES = ("torch", "transformers", "sentence_transformers")  # another version may give other last bits


class ScoredPairs(NamedTuple):
    """The scores of n pairs, (n,) float32, and which of them exceed the length limit, (n,) bool."""

    scores: np.ndarray
    cut: np.ndarray


class PairScorer(TextEncoder):
    """A cross-encoder with one label: its logit is the score of a pair of texts, larger = more relevant.

    Attributes:
        max_length: tokens at which a pair is cut, its longer text first.
    """

    KIND: ClassVar[str] = "cross-encoder"
    Params: ClassVar[type[Params]] = CrossEncoderParams

    def __init__(self, folder: ModelFolder, params: Any, *models: Any) -> None:
        super().__init__(folder, params, *models)
        if self.dimension != 1:
            raise InputError(
                f"{folder.path}: a classifier of {self.dimension} labels; expected a cross-encoder with one "
                "(num_labels=1)"
            )
        self.max_length = cut_texts(models, folder.path, max_length=params.max_length)[0]
        self.digest = content_of(folder.path)
        versions = [metadata.version(library) for library in (OF_GRAPHS if self.graph else LIBRARIES)]
        by = (self.prompts["document"], self.model.computed_on, versions)
        self.fingerprint = fingerprint(self.KIND, self.digest, self.max_length, *by)

    def score(self, pairs: Sequence[tuple[str, str]], *, threads: int | None = None) -> ScoredPairs:
        """The scores of pairs (query, document), in order.

        Args:
            pairs: any strings, also empty ones; threads: None = one per core.

        Raises:
            InputError: a text that is not a string, a score that is NaN or infinite.
        """
        computed = self._compute(pairs, "document", threads=threads)
        scores = np.concatenate([np.empty((0, 1), dtype=np.float32), *computed.parts])[computed.rows, 0]
        return ScoredPairs(scores, np.array([one.cut for one in computed.read], dtype=bool))


def scores_of(scorer: PairScorer, query: str, texts: Sequence[str], threads: int | None = None) -> ScoredPairs:
    """The scores of a query with n texts, (n,) float32 in order, and which pairs were cut; errors as
    `PairScorer.score`.

    The cache folder keeps them, so that a killed rerank resumes.
    """
    distinct, numbers = np.unique(np.array(texts, dtype=object), return_inverse=True)
    key = fingerprint("pairs", query, distinct.tolist())
    path = cache_home() / "pairs" / scorer.fingerprint / key[:2] / f"{key}.npz"
    pairs = [(query, text) for text in distinct]
    kept = kept_at(path, lambda: scorer.score(pairs, threads=threads)._asdict())
    return ScoredPairs(kept["scores"][numbers], kept["cut"][numbers])
