"""Words of English and Chinese sentences and the tags of their characters, against sentences segmented by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusal

from rnnreranker.encode.words.analysis import bmes_tags, language_of, word_spans, words

NEEDS_JIEBA = "jieba is not installed: pip install 'rnnreranker[zh]'"

# words with / between them, and the tags of all characters of the sentence, both by hand
CHINESE = [
    ("他/来到/了/北京大学", "。", "SBESBMMES"),
    ("我们/明天/去/图书馆/看书", "！", "BEBESBMEBES"),
    ("中华人民共和国/成立/于/1949/年", "。", "BMMMMMEBESBMMESS"),
    ("老师/喜欢/听/音乐", "，", "BEBESBES"),
]


@pytest.mark.parametrize(("by_hand", "mark", "tags"), CHINESE)
def test_chinese_words_and_their_tags(by_hand: str, mark: str, tags: str) -> None:
    pytest.importorskip("jieba", reason=NEEDS_JIEBA)
    text = by_hand.replace("/", "") + mark
    found = word_spans(text, "zh")
    assert [text[start:end] for start, end in found] == by_hand.split("/")
    assert bmes_tags(text, found) == tags
    assert len(tags) == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who wrote Ada's notes?", ["who", "wrote", "ada", "s", "notes"]),
        ("Super_Bowl_50 (2016): 24–10", ["super", "bowl", "50", "2016", "24", "10"]),
        ("naïve nai\u0308ve NAÏVE", ["naïve"] * 3),
        (" ".join(map(chr, range(128))), [*"0123456789", *"abcdefghijklmnopqrstuvwxyz" * 2]),
        ("".join(map(chr, range(128))), ["0123456789", *["abcdefghijklmnopqrstuvwxyz"] * 2]),
        ("…! —", []),
        ("", []),
    ],
)
def test_english_words(text: str, expected: list[str]) -> None:
    assert words(text, "en") == expected


def test_language_of_a_text() -> None:
    assert language_of("谁写的？") == language_of("DNA 是 x") == "zh"
    assert language_of("Mao (毛) wrote this line, too") == language_of("") == "en"
    with refusal("language 'fr': expected one of en, zh"):
        word_spans("x", "fr")  # type: ignore[arg-type]


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("他来到了北京大学 ab1。，")), max_size=40)
)
def test_spans_ascend_and_tags_tell_them(text: str) -> None:
    for language in ("en", "zh"):
        if language == "zh":
            pytest.importorskip("jieba", reason=NEEDS_JIEBA)
        found = word_spans(text, language)  # type: ignore[arg-type]
        assert all(any(map(str.isalnum, text[start:end])) for start, end in found)
        assert all(one[1] <= other[0] for one, other in pairwise(found))
        tags = bmes_tags(text, found)
        begun = [place for place, tag in enumerate(tags) if tag == "B"]
        ended = [place + 1 for place, tag in enumerate(tags) if tag == "E"]
        assert list(zip(begun, ended, strict=True)) == [span for span in found if span[1] - span[0] > 1]
