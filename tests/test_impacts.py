"""Sparse encoders, impacts on disk, their search, and the commands that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from query_sets import write_lines
from refusals import refusal
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_sparse

from rnnreranker.encode.kinds import SparseEncoder
from rnnreranker.parts.postings import source as postings
from rnnreranker.parts.postings.source import ImpactSource, whole
from rnnreranker.runs import Run
from tests.tiny_encoder import make_masked

TEXTS = ["w1 w2 w3", "w4", "", "w5 w6 w7 w8 w1 w1", "  ", "w9 " * 90, "w4", "w30 w31 w2"]

pytest.importorskip("sentence_transformers")


def make_masked_model(folder: Path, **config: Any) -> Path:
    """A masked-language model whose words have weights of different sizes."""
    return make_masked(folder, initializer_range=0.4, **config)


@pytest.fixture(scope="module")
def encoder(masked: Path) -> SparseEncoder:
    return SparseEncoder.load(str(masked))


def plain_weights(folder: Path, text: str) -> np.ndarray:
    """(V,): SPLADE as its paper has it: the maximum over tokens of log(1 + relu(logit))."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt", truncation=True)
    with torch.no_grad():
        logits = AutoModelForMaskedLM.from_pretrained(folder).eval()(**tokens).logits
    return torch.log1p(torch.relu(logits)).amax(dim=1)[0].numpy()


def test_weights_are_those_of_a_plain_implementation(encoder: SparseEncoder, masked: Path) -> None:
    found, cut = encoder.encode(TEXTS, "document")
    assert (found.shape, cut, encoder.encode([], "query").weights.shape) == ((len(TEXTS), 45), 1, (0, 45))
    assert found.dtype == np.float32
    for row, text in enumerate(TEXTS):
        if text.strip():
            np.testing.assert_allclose(found[row].toarray()[0], plain_weights(masked, text), atol=1e-5)
            assert found[row].nnz > 0
        else:
            assert found[row].nnz == 0


def written(tmp_path: Path, matrix: csr_matrix, docids: list[str], factor: float | None = 100.0) -> ImpactSource:
    """The impacts of a matrix, on disk and opened."""
    tmp_path.mkdir(parents=True, exist_ok=True)
    kept = matrix if factor is None else whole(matrix, factor)
    halves = [kept[: kept.shape[0] // 2], kept[kept.shape[0] // 2 :]]
    postings.write_postings(tmp_path / ImpactSource.files, lambda: halves, kept.shape[1], factor is None)
    write_lines(tmp_path / "docid", docids)
    described = {"encoder": {"name": "x"}, "vocabulary": kept.shape[1], "words": "y", "factor": factor}
    return ImpactSource(tmp_path, described)


def made_up(documents: int, words: int, seed: int) -> csr_matrix:
    found = random_sparse(documents, words, density=0.1, format="csr", random_state=seed, dtype=np.float32)
    found.sort_indices()
    return found


@pytest.mark.parametrize("factor", [None, 100.0, 3.0])  # with 3 nearly all scores are tied
def test_search_is_exact_whatever_blocks_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float | None
) -> None:
    documents, queries = made_up(300, 80, 1), made_up(40, 80, 2)
    docids = [f"d{(7 * row) % 300}" for row in range(300)]
    source = written(tmp_path, documents, docids, factor)
    stored = source.fetch(np.arange(300)).toarray().astype(np.float64)
    asked = source.as_stored(queries)
    scores, rows = source.search(asked, 25, 1)
    for query in range(40):
        dense = asked.numbers[query].toarray().astype(np.float64)[0]
        true = [(-float((stored[row] * dense).sum()) / (factor or 1) ** 2, docids[row]) for row in range(300)]
        best = sorted(entry for entry in true if entry[0] < 0)[:25]
        found = [docids[row] for row in rows[query]]
        if factor is not None:  # whole numbers: no rounding, so that ties are ties
            assert found == [docid for _, docid in best]
        np.testing.assert_allclose(scores[query], [-score for score, _ in best], rtol=1e-12)
    monkeypatch.setattr(postings, "BLOCK", 100)
    monkeypatch.setattr(postings, "KEPT", 0)
    again = written(tmp_path / "again", documents, docids, factor)
    for one, other in zip((scores, rows), again.search(asked, 25, 3), strict=True):
        for mine, its in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_types_are_as_small_as_they_can_be(tmp_path: Path) -> None:
    matrix = made_up(20, 80, 1)
    for name, factor, kind in (("a", 10.0, np.uint8), ("b", 1000.0, np.uint16), ("c", None, np.float32)):
        source = written(tmp_path / name, matrix, [str(row) for row in range(20)], factor)
        assert np.load(tmp_path / name / ImpactSource.files / "weights.npy").dtype == kind
        assert np.load(tmp_path / name / ImpactSource.files / "terms.npy").dtype == np.uint16
        np.testing.assert_allclose(
            source.fetch(np.array([3, 1])).toarray() / (factor or 1), matrix[[3, 1]].toarray(), atol=0.5 / (factor or 1)
        )
        assert source.rows(["3", "x"]).tolist() == [3, -1]
        assert source.document_frequencies.sum() == source.offsets[-1]
    assert np.load(written(tmp_path / "d", made_up(3, 70000, 1), ["a", "b", "c"]).folder / "terms.npy").dtype == "u4"


def test_a_weight_that_overflows_is_refused() -> None:
    with refusal(r"a weight of 700 times the factor 100 is beyond 65535.*factor=94 "):
        whole(csr_matrix(np.float32([[0, 700]])), 100)


def run_index(*arguments: object) -> int:
    from rnnreranker.index.__main__ import main

    return main([str(argument) for argument in arguments])


def run_search(*arguments: object) -> int:
    from rnnreranker.search.__main__ import main

    return main([str(argument) for argument in arguments])


def test_index_and_search_commands(masked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs.tsv").write_text("a\tw1 w2\nb\tw3 w4\nc\tw5\ne\t \n" + "long\t" + "w9 " * 90 + "\n")
    (tmp_path / "topics.tsv").write_text("q1\tw1 w2\nq2\tw5\n")
    index, run = tmp_path / "index", tmp_path / "run.txt"
    of_index = ["--documents", tmp_path / "docs.tsv", "--output", index, "--impact-encoder", masked, "--parts"]
    assert run_index(*of_index, "impact") == 0
    assert "1 text cut at 64 tokens" in capsys.readouterr().err
    with refusal(r"holds an index of other impact;"):
        run_index(*of_index, "impact:factor=10")
    search = ["--index", index, "--topics", tmp_path / "topics.tsv", "--rerank", "none", "--output", run]
    assert run_search(*search, "--retriever", "impact") == 0
    found = Run.read(run)
    assert (found.qids, found["q1"][0][0]) == (("q1", "q2"), "a")
    assert "e" not in {docid for qid in found for docid, _ in found[qid]}
    assert run_search(*search, "--retriever", "impact:query_weights=counts") == 0
    found = Run.read(run)
    in_hundredths = np.array([score * 100 for qid in found for _, score in found[qid]])  # sums of stored weights
    np.testing.assert_allclose(in_hundredths, np.rint(in_hundredths), rtol=1e-5)


def test_a_tokenizer_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    with refusal("its tokenizer has token 44, its model 30 embeddings"):
        SparseEncoder.load(str(make_masked_model(tmp_path / "few", vocab_size=30)))


def test_queries_of_another_vocabulary_are_refused(masked: Path, tmp_path: Path) -> None:
    from rnnreranker.base.method import Inputs
    from rnnreranker.methods.retrieve.impact import ImpactRetriever

    source = written(tmp_path, made_up(5, 45, 1), list("abcde"))
    source.encoder = {"name": str(masked), "fingerprint": SparseEncoder.open(str(masked)).fingerprint}
    retriever = ImpactRetriever(Inputs(topics={"q": "w1"}, impacts=source))
    with refusal("its vocabulary is another than that of the index"):
        retriever.retrieve(10)
