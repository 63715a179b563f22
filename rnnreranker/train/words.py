"""New models of the words of a collection: embeddings of words, and BERT with a vocabulary."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

from rnnreranker.base.errors import InputError
from rnnreranker.encode.words.segmentation import language_of, words

SIZE = 300  # numbers of an embedding
UNKNOWN = "[UNK]"  # its embedding is 0 and stays so: with vectors of length 1 it takes no part
RUN = r"[\p{L}\p{N}](?:[\p{L}\p{N}]|[\u0300-\u036f])*"  # letters and digits, as of `terms.segmentation`


def word_tower(texts: Sequence[str], longest: int | None) -> list[Any]:
    """A tower of random word embeddings: sentence-transformers' StaticEmbedding, then Normalize.

    A text without a known word gets the vector 0.

    Args:
        texts: whose words are embedded.
        longest: words at which texts are cut; None = nowhere.

    Raises:
        InputError: texts without a word.
        MissingDependencyError: Chinese texts, and jieba is not installed.
    """
    tokenizer = word_tokenizer(texts)
    if longest is not None:
        tokenizer.enable_truncation(longest)
    tower = StaticEmbedding(tokenizer, embedding_dim=SIZE)
    unknown = tokenizer.token_to_id(UNKNOWN)
    tower.embedding.weight.data[unknown] = 0
    tower.embedding.padding_idx = unknown  # no gradient either
    return [tower, Normalize()]


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


SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
POSITIONS = 512


def new_tokenizer(texts: Sequence[str], size: int) -> Any:
    """BERT's tokenizer, in small letters, with a vocabulary of these texts; Chinese characters stand alone.

    First all characters, as they begin a word and as they go on with one, then words that stand at least twice, the
    most frequent first, up to `size` tokens in all; what stands equally often in the order of its characters.

    Raises:
        InputError: texts without a word.
    """
    counts: Counter[str] = Counter()
    plain = _tokenizer(SPECIAL).backend_tokenizer
    for text in texts:
        parts = plain.pre_tokenizer.pre_tokenize_str(plain.normalizer.normalize_str(text))
        counts.update(word for word, _ in parts)
    if not counts:
        raise InputError("no text has a word: there is nothing to make a vocabulary of")
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        characters[word[0]] += count
        for character in word[1:]:
            characters[f"##{character}"] += count
    longer = [word for word in _by_count(counts) if len(word) > 1 and counts[word] > 1]
    tokens = [*SPECIAL, *_by_count(characters), *longer]
    return _tokenizer(tokens[: max(size, len(SPECIAL) + 1)])


def new_model(vocabulary: int, layers: int, hidden_size: int, heads: int) -> Any:
    """A BertForMaskedLM of BERT's proportions (the inner layers four times as wide), its weights drawn as BERT's are.

    Raises:
        InputError: a width that the heads do not divide.
    """
    if hidden_size % heads:
        raise InputError(f"hidden_size={hidden_size}: expected a multiple of heads={heads}")
    shape: dict[str, Any] = {"num_hidden_layers": layers, "hidden_size": hidden_size, "num_attention_heads": heads}
    return BertForMaskedLM(
        BertConfig(vocab_size=vocabulary, intermediate_size=4 * hidden_size, max_position_embeddings=POSITIONS, **shape)
    )


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda token: (-counts[token], token))


def _tokenizer(tokens: Sequence[str]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vocab.txt"
        file.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        return BertTokenizer(str(file), do_lower_case=True, model_max_length=POSITIONS)
