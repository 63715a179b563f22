"""Queries of impacts that are counted words, without a model; how sparse texts are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from rnnreranker.base.record import read_records
from rnnreranker.encode.kinds import SparseEncoder
from rnnreranker.encode.model_folder import term_counts
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import describe
from rnnreranker.runs import Run
from tests.test_impacts import make_masked_model, run_index, run_search
from tests.tiny_encoder import WORDS

pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a masked model, 200 documents, 30 topics, and an index of them with impacts."""
    folder = tmp_path_factory.mktemp("world")
    make_masked_model(folder / "model")
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=int(rng.integers(0, 9)))) for _ in range(230)]
    lines = [f"d{number}\t{text}" for number, text in enumerate(texts[:200])]
    (folder / "docs.tsv").write_text("".join(f"{line}\n" for line in lines))
    topics = [f"q{number}\t{text}" for number, text in enumerate(texts[200:]) if text]
    (folder / "topics.tsv").write_text("".join(f"{line}\n" for line in topics))
    assert run_index(*of_index(folder, folder / "index")) == 0
    return folder


def of_index(world: Path, output: Path, *more: object) -> list[object]:
    named = ["--documents", world / "docs.tsv", "--output", output, "--parts", "impact"]
    return [*named, "--impact-encoder", world / "model", *more]


def of_search(world: Path, index: Path, output: Path, *more: object, how: str = "") -> list[object]:
    named = ["--index", index, "--topics", world / "topics.tsv", "--rerank", "none"]
    named += ["--retriever", f"impact:{how}" if how else "impact"]
    return [*named, "--output", output, *more]


def copied(world: Path, to: Path) -> Path:
    return Path(shutil.copytree(world / "index", to / "index"))


@pytest.mark.long
def test_index_and_diagnose_say_how_sparse_texts_are(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.data.topics import load_topics
    from rnnreranker.diagnose import main as diagnose

    index, run = copied(world, tmp_path), tmp_path / "run.txt"
    assert run_search(*of_search(world, index, run)) == 0
    source, topics = open_index(index).given("impacts"), load_topics(str(world / "topics.tsv"))
    documents = source.fetch(np.arange(200)).toarray() > 0
    described = describe(index)["parts"]["impact"]
    assert described["words_a_document"] == pytest.approx(documents.sum(axis=1).mean(), abs=1e-4)
    shared_by_two = np.mean([(one & other).sum() for one in documents for other in documents])
    assert described["flops"] == pytest.approx(shared_by_two, abs=1e-4)
    rng = np.random.default_rng(3)
    np.save(index / "vectors.npy", rng.normal(size=(200, 8)).astype(np.float32))
    np.save(tmp_path / "queries.npy", rng.normal(size=(len(topics), 8)).astype(np.float32))
    given = ["--run", run, "--index", index, "--topics", world / "topics.tsv", "--output", tmp_path / "found.json"]
    capsys.readouterr()
    assert diagnose([str(one) for one in [*given, "--encoded-queries", tmp_path / "queries.npy"]]) == 0
    found = read_records(tmp_path / "found.json")[0].outcome["impacts"]
    asked = [text for qid, text in topics.items() if qid in Run.read(run).qids]
    weights = SparseEncoder.load(str(world / "model")).encode(asked, "query").weights
    queries = source.as_stored(weights).numbers.toarray() > 0
    assert found["query_words"] == pytest.approx(queries.sum(axis=1).mean(), abs=1e-4)
    assert found["document_words"] == described["words_a_document"]
    products = np.mean([(query & document).sum() for query in queries for document in documents])
    assert found["flops"] == pytest.approx(products, abs=1e-4)
    assert re.search(rf"words in common \(FLOPS\)\s+{found['flops']:.3f}\s", capsys.readouterr().out)


def make_splade_doc(folder: Path) -> Path:
    """A SPLADE-doc as sentence-transformers saves it: words of queries by a table, of documents by a masked model."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sentence_transformer.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

    masked = Transformer(str(make_masked_model(folder / "base")), transformer_task="fill-mask")
    table = SparseStaticEmbedding(tokenizer=masked.tokenizer, frozen=True)
    router = Router.for_query_document([table], [masked, SpladePooling("max")])
    SparseEncoder(modules=[router]).save_pretrained(str(folder / "router"))
    SparseEncoder(modules=[masked, SpladePooling("max")]).save_pretrained(str(folder / "plain"))
    return folder


@pytest.mark.long
def test_counted_queries_need_no_weights(world: Path, tmp_path: Path, home: Path) -> None:
    """Of a plain folder, of one saved by sentence-transformers, and of one with a way of its own for queries."""
    made = make_splade_doc(tmp_path)
    runs = []
    for name in ("base", "plain", "router"):
        index = tmp_path / f"index-{name}"
        documents = ("--documents", world / "docs.tsv", "--output", index, "--parts", "impact")
        assert run_index(*documents, "--impact-encoder", made / name) == 0
        for weights in list((made / name).rglob("*.safetensors")):
            weights.unlink()
        assert term_counts(str(made / name), ["w1 w2 w2"], 45)[0].toarray()[0][6:8].tolist() == [1, 2]
        binary = term_counts(str(made / name), ["w1 w2 w2"], 45, binary=True)[0]  # generate_bow of naver's program: 1
        assert binary.toarray()[0][6:8].tolist() == [1, 1]
        run = tmp_path / f"{name}.txt"
        assert run_search(*of_search(world, index, run, how="query_weights=counts")) == 0
        runs.append(run.read_bytes())
    assert runs[0] == runs[1] == runs[2]
    with refusal("no model in this folder"):
        run_search(*of_search(world, index, run))


def test_queries_of_a_changed_encoder_are_refused(world: Path, tmp_path: Path, home: Path) -> None:
    index = copied(world, tmp_path)
    described = json.loads((index / "rnnreranker.json").read_text())
    described["parts"]["impact"]["encoder"]["fingerprint"] = "another"
    (index / "rnnreranker.json").write_text(json.dumps(described))
    with refusal(r"the files of its encoder .* have changed since; make the index again"):
        run_search(*of_search(world, index, tmp_path / "run.txt"))
    assert run_search(*of_search(world, index, tmp_path / "run.txt", how=f"encoder={world / 'model'}")) == 0
