"""Words and subwords: their alignment on hard texts, weights spread and gathered, BMES tags of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import BertTokenizer

from rnnreranker.encode.words.analysis import NO_TAG, Analyser, PieceReader, Pieces, TermParams, aligned

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "un", "##be", "##li", "##ev", "##able", "cost", "$"),
    *("3", ".", "5", ",", "!", "'", "s", "nation", "bert", "北", "京", "大", "学", "在", "。", "b", "##e"),
]


def reader(folder: Path, max_length: int = 32, language: str = "en") -> PieceReader:
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    tokenizer = BertTokenizer(str(folder / "vocab.txt"))
    return PieceReader(tokenizer, Analyser(TermParams(language=language)), max_length)  # type: ignore[arg-type]


def cut(found: Pieces, of: PieceReader) -> dict[str, list[str]]:
    """Word -> its tokens."""
    names = of.tokenizer.convert_ids_to_tokens(found.tokens)
    return {
        word: [names[token] for token, owner in found.pairs if owner == place] for place, word in enumerate(found.words)
    }


def test_words_in_pieces(tmp_path: Path) -> None:
    of = reader(tmp_path)
    found = of.read("Unbelievable, rain costs $3.5!")
    assert cut(found, of) == {
        "unbelievable": ["un", "##be", "##li", "##ev", "##able"],
        "rain": ["rain"],
        "costs": ["[UNK]"],
        "3": ["3"],
        "5": ["5"],
    }
    spread = found.spread([1.0, 0.5, 0.25, 0.0, -0.5])
    assert spread == {1: 0.2, 2: 0.2, 3: 0.2, 4: 0.2, 5: 0.2, 7: 0.5, 8: 0.25, 10: 0.0, 12: -0.5}
    weights = [spread.get(place, 100.0) for place in range(len(found.tokens))]  # punctuation has no say
    assert found.gather(weights) == pytest.approx([1.0, 0.5, 0.25, 0.0, -0.5])


def test_words_without_pieces(tmp_path: Path) -> None:
    found = reader(tmp_path, max_length=5).read("rain unbelievable rain")
    assert found.gather([1.0] * 5) == [1.0, 2.0, None]  # cut inside the second word
    assert found.spread([1.0, 1.0, 1.0]) == {1: 1.0, 2: 0.5, 3: 0.5}
    nothing = reader(tmp_path).read("?! ...")
    assert (nothing.words, nothing.pairs, nothing.gather([0.0] * len(nothing.tokens))) == ([], [], [])
    assert reader(tmp_path).read("").tokens == [2, 3]


def test_a_piece_of_several_words() -> None:
    # one token over two words, as U.S. in some vocabularies, and a word whose end has a token of its own
    pairs = aligned([(0, 0), (0, 4), (4, 5), (6, 9), (0, 0)], [(0, 1), (2, 5), (6, 9)])
    assert pairs == [(1, 0), (1, 1), (2, 1), (3, 2)]
    found = Pieces([2, 9, 9, 9, 3], [NO_TAG] * 5, ["u", "sa", "won"], pairs)
    assert found.spread([1.0, 0.5, 2.0]) == {1: 1.25, 2: 0.25, 3: 2.0}
    assert found.gather([0.0, 1.0, 0.5, 2.0, 0.0]) == [0.5, 1.0, 2.0]


def test_chinese_words_in_characters_with_their_tags(tmp_path: Path) -> None:
    pytest.importorskip("jieba")
    of = reader(tmp_path, language="zh")
    text = "北京大学在BERT。"
    found = of.read(text)
    assert cut(found, of) == {"北京大学": ["北", "京", "大", "学"], "在": ["在"], "bert": ["bert"]}
    assert [("BMES?")[tag] for tag in found.tags] == list("?BMMESBS?")
    assert found.spread([0.8, 0.1, 0.6]) == {1: 0.2, 2: 0.2, 3: 0.2, 4: 0.2, 5: 0.1, 6: 0.6}
    assert found.gather([9.0, 0.2, 0.2, 0.2, 0.2, 0.1, 0.6, 9.0, 9.0]) == pytest.approx([0.8, 0.1, 0.6])
