"""Queries without a model: the words of the vocabulary that stand in them, counted or not, as SPLADE-doc searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.encode.vocabulary import load_tokenizer, words_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def term_counts(name: str, texts: Sequence[str], vocabulary: int, *, binary: bool = False) -> tuple[csr_matrix, str]:
    """(n, vocabulary) float32: how often each text has each word, and the fingerprint of the words.

    Only the tokenizer is loaded, and needed; its special tokens, as [CLS], do not count.

    Args:
        name: of a sparse encoder, as `SparseEncoder.load` takes it.
        texts: any strings; vocabulary: number of words.
        binary: 1 for every word that a text has, however often.

    Raises:
        InputError: no such model, a tokenizer that cannot be loaded or has more words.
        UnavailableError: as `SparseEncoder.load`.
    """
    from scipy.sparse import csr_matrix

    tokenizer, folder = load_tokenizer(name)
    words = words_of(tokenizer, vocabulary, folder)
    ids_of_texts = tokenizer(list(texts), add_special_tokens=False, truncation=False)["input_ids"] if texts else []
    counts = [sorted(Counter(tokens).items()) for tokens in ids_of_texts]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in counts])]).astype(np.int64)
    terms = np.array([term for own in counts for term, _ in own], dtype=np.int32)
    weights = np.array([1 if binary else count for own in counts for _, count in own], dtype=np.float32)
    return csr_matrix((weights, terms, offsets), (len(texts), vocabulary)), words
