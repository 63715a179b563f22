"""Graphs of sparse, late-interaction and cross-encoders: what the model gives, without torch, made once a machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker.data.document import Document
from rnnreranker.encode.kinds import LateEncoder, PairScorer, SparseEncoder
from rnnreranker.index.build import write_index
from rnnreranker.parts.base import describe
from rnnreranker.parts.postings.part import ImpactParams, ImpactPart
from rnnreranker.parts.tokens.part import TokenParams, TokensPart
from tests.query_sets import write_documents
from tests.test_cross_encoder import PAIRS, many_pairs
from tests.test_encode_graph import of_kind
from tests.test_encode_late import TEXTS
from tests.tiny_encoder import make_texts

pytest.importorskip("onnx")
pytest.importorskip("sentence_transformers")
DOCUMENTS = [Document(docid, text) for docid, text in make_texts().items()]


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_weights_of_words_are_those_of_the_model(kind: str, tmp_path: Path) -> None:
    folder = str(of_kind(kind, tmp_path / kind, "AutoModelForMaskedLM", initializer_range=0.2))
    model, graph = SparseEncoder.load(folder, max_length=20), SparseEncoder.open(folder, max_length=20)
    assert graph.graph is not None
    texts = [document.text for document in DOCUMENTS]
    for what in ("document", "query"):
        ours, theirs = graph.encode(texts, what), model.encode(texts, what)  # type: ignore[arg-type]
        assert ours.weights.nnz > 100
        assert ours.cut == theirs.cut > 0
        assert graph.count_cut(texts, "document") == ours.cut
        np.testing.assert_allclose(ours.weights.toarray(), theirs.weights.toarray(), atol=1e-4)
    same = ("fingerprint", "words", "vocabulary", "max_length", "name")
    assert [getattr(graph, name) for name in same] == [getattr(model, name) for name in same]
    one, other = graph.encode(texts, "document", threads=1), graph.encode(texts[::-1], "document", threads=3)
    np.testing.assert_array_equal(one.weights.toarray(), other.weights.toarray()[::-1])


def test_tokens_are_those_of_the_model(late: Path) -> None:
    lengths = {"query_length": 12, "document_length": 20}
    model, graph = LateEncoder.load(str(late), **lengths), LateEncoder.open(str(late), **lengths)
    assert graph.graph is not None
    for what in ("document", "query"):
        ours, theirs = graph.encode(TEXTS, what), model.encode(TEXTS, what)  # type: ignore[arg-type]
        np.testing.assert_array_equal(ours.ids, theirs.ids)
        np.testing.assert_array_equal(ours.offsets, theirs.offsets)
        np.testing.assert_allclose(ours.vectors, theirs.vectors, atol=1e-5)
        assert ours.cut == theirs.cut == 1
        assert graph.count_cut(TEXTS, what) == 1  # type: ignore[arg-type]
    assert (graph.fingerprint, graph.dimension) == (model.fingerprint, 16)


def test_scores_of_pairs_are_those_of_the_model(cross: Path) -> None:
    model, graph = PairScorer.load(str(cross), max_length=16), PairScorer.open(str(cross), max_length=16)
    assert graph.graph is not None
    for pairs in (PAIRS, many_pairs()):
        ours, theirs = graph.score(pairs), model.score(pairs)
        np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-5)
        np.testing.assert_array_equal(ours.cut, theirs.cut)
        assert ours.cut.any()
    assert graph.fingerprint != model.fingerprint  # kept scores are the same bytes as computed ones
    pairs = many_pairs()
    np.testing.assert_array_equal(graph.score(pairs, threads=3).scores, graph.score(pairs, threads=1).scores)


@pytest.mark.long
@pytest.mark.parametrize("part", ["impact", "tokens"])
def test_a_part_goes_on_as_it_was_begun(part: str, masked: Path, late: Path, tmp_path: Path) -> None:
    """New documents of a part that the model itself made are encoded by the model."""

    def made(by_graph: bool) -> Any:
        if part == "impact":
            encoder = (SparseEncoder.open if by_graph else SparseEncoder.load)(str(masked))
            return ImpactPart(encoder, ImpactParams())
        return TokensPart((LateEncoder.open if by_graph else LateEncoder.load)(str(late)), TokenParams())

    write_index(DOCUMENTS[:5], tmp_path / "old", [made(False)])
    goes_on = made(True)
    goes_on.extend(tmp_path / "old")
    write_index(DOCUMENTS, tmp_path / "new", [goes_on])
    write_index(DOCUMENTS, tmp_path / "graph", [made(True)])
    said = [describe(tmp_path / name)["parts"][part]["encoder"].get("documents") for name in ("old", "new", "graph")]
    assert said == [None, None, "graph"]
    fingerprints = {describe(tmp_path / name)["fingerprint"] for name in ("new", "graph")}
    assert len(fingerprints) == 1  # values are the same within rounding


CHILD = """
import sys
from rnnreranker.index.__main__ import main as index
from rnnreranker.search.__main__ import main as search
(index if sys.argv[1] == "index" else search)(sys.argv[2:])
print(*sorted({"torch", "transformers", "sentence_transformers"} & set(sys.modules)))
"""


@pytest.mark.long
def test_no_command_needs_torch_once_the_graphs_are_there(
    masked: Path, late: Path, cross: Path, tmp_path: Path
) -> None:
    def in_process(*args: str) -> str:
        done = subprocess.run([sys.executable, "-c", CHILD, *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    for made in (SparseEncoder.open(str(masked)), LateEncoder.open(str(late)), PairScorer.open(str(cross))):
        assert made.graph is not None  # type: ignore[attr-defined]
    documents = write_documents(tmp_path / "documents.jsonl", make_texts())
    (tmp_path / "topics.tsv").write_text("q1\tw1 w2\nq2\tw3\n")
    index, asked = str(tmp_path / "index"), str(tmp_path / "topics.tsv")
    parts = ("--parts", "impact,tokens", "--impact-encoder", str(masked), "--token-encoder", str(late))
    assert in_process("index", "--documents", str(documents), *parts, "--output", index) == ""
    chain = ("--rerank", f"cross-encoder:model={cross}", "--output", str(tmp_path / "run.txt"))
    for retriever in ("impact", "late"):
        assert in_process("search", "--index", index, "--topics", asked, "--retriever", retriever, *chain) == ""
        assert (tmp_path / "run.txt").read_text().startswith("q1 Q0 d")
