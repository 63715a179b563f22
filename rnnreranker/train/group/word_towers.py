"""Towers from nothing: an embedding of every word of a collection, averaged over a text's words."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from rnnreranker.base.errors import InputError
from rnnreranker.encode.words.segmentation import language_of, words

SIZE = 300  # numbers of an embedding
UNKNOWN = "[UNK]"  # its embedding is 0 and stays so: with vectors of length 1 it takes no part
RUN = r"[\p{L}\p{N}](?:[\p{L}\p{N}]|[\u0300-\u036f])*"  # letters and digits, as of `terms.segmentation`


def word_towers(texts: Sequence[str], longest: int | None, count: int) -> list[list[Any]]:
    """Towers that begin alike: sentence-transformers' StaticEmbedding of random numbers, then Normalize.

    A text without a known word gets the vector 0.

    Args:
        texts: whose words are embedded.
        longest: words at which texts are cut; None = nowhere.
        count: of towers.

    Raises:
        InputError: texts without a word.
        MissingDependencyError: Chinese texts, and jieba is not installed.
    """
    tokenizer = word_tokenizer(texts)
    if longest is not None:
        tokenizer.enable_truncation(longest)
    first = StaticEmbedding(tokenizer, embedding_dim=SIZE)
    unknown = tokenizer.token_to_id(UNKNOWN)
    first.embedding.weight.data[unknown] = 0
    first.embedding.padding_idx = unknown  # no gradient either
    return [[tower, Normalize()] for tower in (first, *(copy.deepcopy(first) for _ in range(count - 1)))]


def word_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Cuts texts into the words of these ones, in small letters and NFKC; punctuation is left out.

    In English every run of letters and digits is a word, known or not. Chinese words are cut off as jieba cuts them to
    make the vocabulary; after that, so that no other program needs jieba, a text has the most probable words by how
    often they stand in `texts` (a unigram model).

    Raises:
        InputError: texts without a word.
        MissingDependencyError: Chinese texts, and jieba is not installed.
    """
    language = language_of("".join(texts))
    counts = Counter(word for text in texts for word in words(text, language))
    if not counts:
        raise InputError("no text has a word: there is nothing to make towers of")
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    model: Any
    if language == "zh":
        logs = [(word, math.log(counts[word] / counts.total())) for word in ordered]
        model = models.Unigram([(UNKNOWN, 0.0), *logs], 0, False)
    else:
        model = models.WordLevel({word: number for number, word in enumerate([UNKNOWN, *ordered])}, UNKNOWN)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(RUN), "removed", invert=True)
    return tokenizer
