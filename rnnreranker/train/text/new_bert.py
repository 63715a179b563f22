"""A BERT from nothing: a vocabulary of a collection's own characters and words, and weights at random."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
POSITIONS = 512


def new_tokenizer(texts: Sequence[str], size: int) -> Any:
    """BERT's tokenizer, in small letters, with a vocabulary of these texts; Chinese characters stand alone.

    First all characters, as they begin a word and as they go on with one, then words that stand at least twice, the
    most frequent first, up to `size` tokens in all; what stands equally often in the order of its characters.

    Raises:
        InputError: texts without a word.
    """
    from transformers import BertTokenizer

    counts: Counter[str] = Counter()
    plain = _tokenizer(SPECIAL, BertTokenizer).backend_tokenizer
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
    return _tokenizer(tokens[: max(size, len(SPECIAL) + 1)], BertTokenizer)


def new_model(vocabulary: int, layers: int, hidden_size: int, heads: int) -> Any:
    """A BertForMaskedLM of BERT's proportions (the inner layers four times as wide), its weights drawn as BERT's are.

    Raises:
        InputError: a width that the heads do not divide.
    """
    from transformers import BertConfig, BertForMaskedLM

    if hidden_size % heads:
        raise InputError(f"hidden_size={hidden_size}: expected a multiple of heads={heads}")
    shape: dict[str, Any] = {"num_hidden_layers": layers, "hidden_size": hidden_size, "num_attention_heads": heads}
    return BertForMaskedLM(
        BertConfig(vocab_size=vocabulary, intermediate_size=4 * hidden_size, max_position_embeddings=POSITIONS, **shape)
    )


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda token: (-counts[token], token))


def _tokenizer(tokens: Sequence[str], kind: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vocab.txt"
        file.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        return kind(str(file), do_lower_case=True, model_max_length=POSITIONS)
