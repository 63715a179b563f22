"""Learned sparse encoders (SPLADE): texts to weights of the words of a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params
from rnnreranker.encode.base import TextEncoder, cut_texts
from rnnreranker.encode.model_folder import ModelFolder, TextKind
from rnnreranker.encode.params import SparseEncoderParams

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LOGITS = 2**23  # numbers of a batch, its padded tokens times the words: 32 MiB, more of which glibc maps anew each time
DEVICE_LOGITS = 2**29  # on a GPU, 2 GiB in float32
AT_ONCE = 6  # batches computed at the same time, so that memory stays bounded on any number of cores


class Encoded(NamedTuple):
    """The weights of texts, (n, V) float32 CSR with ascending columns, and how many texts were cut."""

    weights: csr_matrix
    cut: int


class SparseEncoder(TextEncoder):
    """A sparse encoder: a masked-language model with SPLADE's max pooling, or a saved SparseEncoder.

    SPLADE's weight of a word is the maximum over tokens of log(1 + relu(logit of the word)).

    Attributes:
        max_length: tokens at which texts are cut; vocabulary: the number of words; words: their fingerprint.
    """

    KIND: ClassVar[str] = "sparse-encoder"
    Params: ClassVar[type[Params]] = SparseEncoderParams

    def __init__(self, folder: ModelFolder, params: Any, *models: Any) -> None:
        super().__init__(folder, params, *models)
        self.max_length = cut_texts(models, folder.path, max_length=params.max_length)[0]
        self.vocabulary, self.words = self.dimension, str(self.model.about["words"])
        self.fingerprint = fingerprint("sparse encoder", self.digest, self.max_length, self.prompts)

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> Encoded:
        """The weights of texts, in order; a blank text has no words.

        Args:
            texts: any strings; threads: None = one per core; what: selects the prompt and the way through the model.

        Raises:
            InputError: a text that is not a string, weights that are not finite.
        """
        from scipy.sparse import csr_matrix, vstack

        def made(weights: np.ndarray) -> csr_matrix:
            flat, (rows, words) = weights.reshape(-1), weights.shape
            nonzero = np.flatnonzero(flat)  # in a third of the time that scipy takes
            offsets = np.searchsorted(nonzero, np.arange(rows + 1) * words)
            return csr_matrix((flat[nonzero], nonzero % words, offsets), weights.shape)

        elsewhere = self.devices is not None and self.devices.elsewhere
        most = max(1, (DEVICE_LOGITS if elsewhere else LOGITS) // self.vocabulary)
        at_once = min(threads or cores(), AT_ONCE)
        computed = self._compute(texts, what, made, tokens=most, threads=at_once, blank=False)
        none = csr_matrix((1, self.vocabulary), dtype=np.float32)
        taken = vstack([*computed.parts, none], "csr")[computed.rows]
        taken.sort_indices()
        return Encoded(csr_matrix(taken, dtype=np.float32), computed.cut)

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        weights: np.ndarray = self.encode(texts, "document").weights.toarray()
        return weights

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        weights = self.encode(texts, "query", threads=threads).weights
        described = {"size": np.array(weights.shape[1]), "words": np.array(self.words)}
        return {"weights": weights.data, "terms": weights.indices, "offsets": weights.indptr, **described}
