"""Dual encoders of word embeddings: the words, a training from nothing, kills, the folder, Chinese, bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnnreranker.encode.kinds import Encoder
from rnnreranker.encode.words.analysis import words
from rnnreranker.labels.soft import Labels
from rnnreranker.train.groups import GroupInputs
from rnnreranker.train.models import Dual
from rnnreranker.train.params import DualParams
from rnnreranker.train.request import Start, Trained

pytest.importorskip("sentence_transformers")
from rnnreranker.train.text import word_tokenizer

PAIRS = 20
QUICK = replace(
    DualParams.preset("f-ebr"), batch_size=5, max_steps=24, evaluate_every=24, learning_rate=0.1, key_measure="loss"
)


def inputs(question: str = "what is asked{}", answer: str = "it says{} here") -> GroupInputs:
    """Questions that share no word with their answers; those of validation are the same under other ids."""
    documents = {f"d{n}": answer.format(n) for n in range(PAIRS)}
    queries = {f"{side}{n}": question.format(n) for side in "qv" for n in range(PAIRS)}
    pools = [_hard(f"q{n}", n) for n in range(PAIRS)]
    return GroupInputs(pools, [replace(one, qid=f"v{one.qid[1:]}") for one in pools], queries, documents, {})


def _hard(qid: str, answer: int) -> Labels:
    positive = np.arange(PAIRS) == answer
    return Labels(qid, [f"d{n}" for n in range(PAIRS)], *(positive.astype(np.float32),) * 2, positive)


def trained(out: Path, given: GroupInputs, params: DualParams = QUICK) -> Trained:
    return Dual().train_on(given, Start("none"), out, params)


def first_right(out: Path, given: GroupInputs) -> float:
    """The share of the questions whose answer is nearest."""
    encoder = Encoder.load(str(out))
    documents = encoder.encode(list(given.documents.values()), what="documents")
    queries = encoder.encode([given.queries[f"v{n}"] for n in range(PAIRS)], what="queries")
    np.testing.assert_allclose(np.linalg.norm(documents, axis=1), 1, atol=1e-5)
    return float((np.argmax(queries @ documents.T, axis=1) == np.arange(PAIRS)).mean())


@pytest.mark.long
def test_it_learns_what_words_answer_and_plain_sentence_transformers_load_it(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    given = inputs()
    trained(tmp_path / "before", given, replace(QUICK, learning_rate=1e-9))
    found = trained(tmp_path / "out", given)
    assert found.history[1]["loss"] < found.history[0]["loss"] * 0.7
    assert first_right(tmp_path / "before", given) < 0.4
    assert first_right(tmp_path / "out", given) > 0.9
    own, theirs = Encoder.load(str(tmp_path / "out")), SentenceTransformer(str(tmp_path / "out"), device="cpu")
    texts = ["It SAYS3, here!", "asked3 says3 and words that no one knows", "nobody knows", ""]
    queries, documents = own.encode(texts), own.encode(texts, what="documents")
    np.testing.assert_allclose(queries, theirs.encode_query(texts), atol=1e-6)
    np.testing.assert_allclose(documents, theirs.encode_document(texts), atol=1e-6)
    assert not np.allclose(queries, documents)
    np.testing.assert_allclose(documents[1], own.encode(["asked3 says3"], what="documents")[0], atol=1e-6)
    assert not queries[2:].any()  # no known word


def test_chinese_words_need_no_jieba_once_they_are_known(tmp_path: Path) -> None:
    pytest.importorskip("jieba")
    text = "他来到了北京大学。北京大学2024年在CT室。"
    tokenizer = word_tokenizer([text, "北京的大学"])
    assert tokenizer.encode(text).tokens == words(text, "zh")
    assert tokenizer.encode("北京大学 鲸").tokens == ["北京大学", "鲸"]
    assert tokenizer.encode("鲸").ids == [0]
    given = inputs("第{}个问题", "这是{}号北京大学的答案")
    trained(tmp_path / "out", given)
    assert first_right(tmp_path / "out", given) > 0.9
