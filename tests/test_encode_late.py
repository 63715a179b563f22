"""Late-interaction encoders: their tokens beside a plain implementation, folders of every layout, what is refused."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refusal

from rnnreranker.encode.kinds import LateEncoder
from rnnreranker.encode.late import make_late_base, special_tokens
from tests.tiny_encoder import LATE_WORDS, WORDS, make_encoder

pytest.importorskip("sentence_transformers")

TEXTS = ["w1 w2 , w3", "w4", "", "w5 w6 . w7", "  ", "w9 " * 90, "w4", "w30 ! w2"]
VOCABULARY = LATE_WORDS


@pytest.fixture(scope="module")
def encoder(late: Path) -> LateEncoder:
    return LateEncoder.load(str(late), document_length=20, query_length=12)


def plain_tokens(transformer: Path, weight: torch.Tensor, ids: list[int], attended: int) -> np.ndarray:
    """(t, d): ColBERT's vectors of token numbers, of which so many are attended to."""
    from transformers import AutoModel

    mask = torch.tensor([[int(place < attended) for place in range(len(ids))]])
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(transformer).eval()(torch.tensor([ids]), attention_mask=mask)
    vectors = hidden.last_hidden_state[0] @ weight.T
    return (vectors / vectors.norm(dim=1, keepdim=True)).numpy()


def numbers(text: str, length: int, marker: str) -> list[int]:
    """[CLS], the marker, words, [SEP], of `length` tokens at most."""
    words = [VOCABULARY.index(word) + 5 for word in [marker, *text.split()]]
    return [2, *words[: length - 2], 3]


def projection(folder: Path) -> torch.Tensor:
    from safetensors.torch import load_file

    return load_file(folder / "1_Dense" / "model.safetensors")["linear.weight"]


@pytest.mark.parametrize(("side", "length", "marker"), [("document", 20, "[unused1]"), ("query", 12, "[unused0]")])
def test_tokens_are_those_of_a_plain_implementation(
    encoder: LateEncoder, late: Path, side: Any, length: int, marker: str
) -> None:
    """Documents keep all tokens but punctuation; queries are expanded by [MASK], which is not attended to."""
    found = encoder.encode(TEXTS, side)
    assert (found.vectors.dtype, found.vectors.shape[1], found.cut) == (np.float32, 16, 1)
    skipped = {VOCABULARY.index(sign) + 5 for sign in string.punctuation} if side == "document" else set()
    for row, text in enumerate(TEXTS):
        own = slice(found.offsets[row], found.offsets[row + 1])
        if not text.strip():
            assert own.start == own.stop
            continue
        ids = numbers(text, length, marker)
        expanded = ids + [4] * (length - len(ids) if side == "query" else 0)
        kept = [place for place, number in enumerate(expanded) if number not in skipped]
        assert found.ids[own].tolist() == [expanded[place] for place in kept]
        expected = plain_tokens(late, projection(late), expanded, len(ids))[kept]
        np.testing.assert_allclose(found.vectors[own], expected, atol=1e-5)


def make_stanford(folder: Path, late: Path) -> Path:
    """The same model as Stanford writes its checkpoints: projection among the weights, settings in artifact.metadata,
    and a token before each text that says what it is."""
    from safetensors.torch import load_file, save_file

    make_encoder(folder, VOCABULARY)
    weights = {f"bert.{key}": value for key, value in load_file(late / "model.safetensors").items()}
    save_file({**weights, "linear.weight": projection(late)}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
    said = {"query_maxlen": 12, "doc_maxlen": 20, "mask_punctuation": True, "attend_to_mask_tokens": False}
    tokens = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]"}
    (folder / "artifact.metadata").write_text(json.dumps({**said, **tokens}))
    return folder


def test_a_checkpoint_of_stanford_scores_the_same(late: Path, tmp_path: Path) -> None:
    stanford = LateEncoder.load(str(make_stanford(tmp_path / "stanford", late)))
    assert (stanford.query_length, stanford.document_length, stanford.dimension) == (12, 20, 16)
    base = LateEncoder.load(str(late), query_length=12, document_length=20)  # with the same markers, by other means
    for side in ("query", "document"):
        own, other = (found.encode(TEXTS, side) for found in (stanford, base))  # type: ignore[arg-type]
        assert own.ids.tolist() == other.ids.tolist()
        np.testing.assert_allclose(own.vectors, other.vectors, atol=1e-6)


def test_markers_are_a_setting_of_a_base(late: Path, tmp_path: Path) -> None:
    """Paper 002's program puts [unused0], [unused1] behind [CLS]; a vocabulary without them gets two words."""
    bert, first = make_encoder(tmp_path / "bert"), 5 + len(WORDS)
    make_late_base(str(bert), tmp_path / "plain", 16, marked=False)
    make_late_base(str(bert), tmp_path / "late", 16)
    plain, marked, added = (LateEncoder.load(str(one)) for one in (tmp_path / "plain", late, tmp_path / "late"))
    mark = VOCABULARY.index("[unused1]") + 5
    assert plain.encode(["w1 w2"], "document").ids.tolist() == [2, 5 + 1, 5 + 2, 3]
    assert plain.encode(["w1"], "query").ids.tolist()[:3] == [2, 5 + 1, 3]
    assert marked.encode(["w1 w2", ""], "document").ids.tolist() == [2, mark, 5 + 1, 5 + 2, 3]  # and none of no text
    assert mark in special_tokens(str(late))
    assert added.encode(["w1 [D] w2"], "document").ids.tolist() == [2, first + 1, 5 + 1, first + 1, 5 + 2, 3]
    assert added.encode(["w1"], "query").ids.tolist()[:4] == [2, first, 5 + 1, 3]
    rows = added.model.modules[0].model.get_input_embeddings().weight.detach()
    assert len(rows) == first + 2
    torch.testing.assert_close(rows[first:], rows[:first].mean(dim=0).expand(2, -1))
    assert special_tokens(str(tmp_path / "late")).tolist()[-2:] == [first, first + 1]


def test_what_is_no_late_interaction_encoder_is_refused(late: Path, tmp_path: Path) -> None:
    bert = make_encoder(tmp_path / "bert")
    with refusal(r"bert: no late-interaction encoder .*is for --encoder$"):
        LateEncoder.load(str(bert))
    with refusal(r"late-encoder colbert-v3: no such .* did you mean colbert-v2"):
        LateEncoder.load("colbert-v3")
    with refusal(r"document_length=65: .* takes at most 64 tokens"):
        LateEncoder.load(str(late), document_length=65)
