"""Tokenizers of miniatures, of the shapes that the real ones have, with the words of this Python's documentation."""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from rnnreranker.base.files import write_json
from rnnreranker.data.documents import load_documents

TEXTS, WHOLE, PARTS = 2000, 2000, 800  # documents that are read, their most frequent words, and parts of words
LENGTH = 512  # tokens that the models take
BERT_SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
ALBERT_SPECIAL = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")


def write_wordpiece(folder: Path, chinese: bool = False, fast: bool = True) -> int:
    """Write BERT's tokenizer, uncased: `vocab.txt`, its settings, and `tokenizer.json` where it has one.

    Args:
        chinese: every character of GB 2312 and of Big5's frequent ones is a word, as in bert-base-chinese.
        fast: with `tokenizer.json`, which older models lack.

    Returns:
        How many words it has: `[PAD]`, 99 unused ones (which ColBERT takes for its markers), the others.
    """
    words = ["[PAD]", *(f"[unused{n}]" for n in range(99)), *BERT_SPECIAL, *_pieces(chinese)]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"do_lower_case": not chinese, "model_max_length": LENGTH})
    if not fast:
        return len(words)
    number_of = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(number_of, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not chinese)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    _finish(tokenizer, ("[PAD]", *BERT_SPECIAL), "[CLS]", "[SEP]")
    tokenizer.save(str(folder / "tokenizer.json"))
    return len(words)


def write_byte_pairs(folder: Path) -> int:
    """Write RoBERTa's tokenizer, `vocab.json`, `merges.txt` and `tokenizer.json`; how many words it has."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = [*ROBERTA_SPECIAL[:4]]
    trainer = trainers.BpeTrainer(
        vocab_size=WHOLE + PARTS, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    saved = json.loads(tokenizer.to_str())["model"]
    write_json(folder / "vocab.json", dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])))
    pairs = (" ".join(pair) for pair in saved["merges"])
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *pairs]) + "\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"model_max_length": LENGTH})
    return tokenizer.get_vocab_size()


def write_unigrams(folder: Path) -> int:
    """Write ALBERT's tokenizer, `tokenizer.json` of pieces with logarithms of frequencies; how many pieces it has."""
    pieces: list[tuple[str, float]] = [(word, 0.0) for word in ALBERT_SPECIAL]
    begun = [f"▁{word}" if not word.startswith("##") else word[2:] for word in _pieces(False)]
    inner = [word for word in _pieces(False) if len(word) == 1]
    for rank, word in enumerate(dict.fromkeys([*begun, "▁", *inner])):
        pieces.append((word, -math.log(rank + 2)))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1, byte_fallback=False))
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    plain = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence([*quotes, *plain, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    _finish(tokenizer, ALBERT_SPECIAL, "[CLS]", "[SEP]")
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "model_max_length": LENGTH})
    return len(pieces)


def _finish(tokenizer: Any, special: tuple[str, ...], first: str, last: str) -> None:
    """What stands around a text and between two, and which tokens no text has."""
    numbers = [(word, tokenizer.token_to_id(word)) for word in (first, last)]
    one, two = f"{first}:0 $A:0 {last}:0", f"{first}:0 $A:0 {last}:0 $B:1 {last}:1"
    tokenizer.post_processor = processors.TemplateProcessing(single=one, pair=two, special_tokens=numbers)
    tokenizer.add_special_tokens(list(special))


@functools.cache
def _texts() -> list[str]:
    return [document.text for _, document in zip(range(TEXTS), load_documents("pydoc"), strict=False)]


@functools.cache
def _pieces(chinese: bool) -> list[str]:
    """Words and parts of words, the most frequent first; every character of them by itself and inside a word."""
    counts = Counter(word for text in _texts() for word in re.findall(r"[a-z]+|\d|[^\w\s]", text.lower()))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    whole = ordered[: WHOLE // 10 if chinese else WHOLE]
    ends: Counter[str] = Counter()
    for word in ordered:
        for size in range(2, min(5, len(word))):
            ends[word[-size:]] += 1
    parts = sorted(ends, key=lambda end: (-ends[end], end))[: PARTS // 10 if chinese else PARTS]
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    inside = [f"##{letter}" for letter in letters if letter.isalnum()]
    own = _chinese() if chinese else []
    return list(dict.fromkeys([*letters, *own, *inside, *whole, *(f"##{part}" for part in parts)]))


def _chinese() -> list[str]:
    """The characters of GB 2312, the frequent ones of Big5, and their punctuation."""
    trails = {"gb2312": [*range(0xA1, 0xFF)], "big5": [*range(0x40, 0x7F), *range(0xA1, 0xFF)]}
    rows = [(lead, "gb2312") for lead in (*range(0xB0, 0xF8), 0xA1, 0xA3)]
    rows += [(lead, "big5") for lead in range(0xA4, 0xC7)]
    read = (bytes([lead, trail]).decode(code, "ignore") for lead, code in rows for trail in trails[code])
    return sorted({letter for letter in read if len(letter) == 1 and not letter.isspace()})
