"""Tokens on disk: the files, search by MaxSim beside loops, by nearest tokens beside all, and the commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from rnnreranker.encode.kinds import LateEncoder
from rnnreranker.encode.late import make_late_base
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import describe
from rnnreranker.parts.tokens.part import TokenSource, write_tokens
from rnnreranker.runs import Run
from tests.query_sets import unit, write_lines, write_queries
from tests.test_impacts import run_index, run_search
from tests.tiny_encoder import WORDS, make_encoder

pytest.importorskip("sentence_transformers")
D = 16


def written(folder: Path, lengths: np.ndarray, seed: int = 0) -> TokenSource:
    """Tokens of documents of these lengths, on disk and opened; topics make some alike."""
    rng = np.random.default_rng(seed)
    offsets, count = np.concatenate([[0], np.cumsum(lengths)]), int(lengths.sum())
    vectors = unit(rng, 50, D)[rng.integers(50, size=count)] + 0.3 * unit(rng, count, D)
    folder.mkdir(parents=True, exist_ok=True)
    ids = np.arange(count, dtype=np.int32)
    block = {"vectors": vectors.astype(np.float16), "offsets": offsets, "ids": ids}
    np.testing.assert_array_equal(write_tokens(folder / TokenSource.files, lambda: [block], D), offsets)
    docids = [f"d{(7 * row) % len(lengths)}" for row in range(len(lengths))]
    write_lines(folder / "docid", docids)
    return TokenSource(folder, {"encoder": {"name": "x", "settings": {}, "digest": "y"}})


def test_search_is_that_of_loops(tmp_path: Path) -> None:
    source = written(tmp_path, np.random.default_rng(101).integers(0, 9, size=101))
    queries = unit(np.random.default_rng(1), 30, D)
    queries[4] = 0  # of the query of one token, so that all documents tie
    places = np.array([0, 4, 5, 5, 17, 30])
    scores, rows = source.search(queries, places, 12, threads=1)
    stored = source.vectors.astype(np.float64)
    for number in range(5):
        own = queries[places[number] : places[number + 1]].astype(np.float64)
        expected = []
        for row, docid in enumerate(source.docids):
            tokens = stored[source.offsets[row] : source.offsets[row + 1]]
            if len(tokens) and len(own):
                expected.append((-sum(max(float(q @ d) for d in tokens) for q in own), docid, row))
        best = sorted(expected)[:12]
        assert [source.docids[row] for row in rows[number]] == [docid for _, docid, _ in best]
        np.testing.assert_allclose(scores[number], [-score for score, _, _ in best], atol=1e-5)
    again = source.search(queries[5:17], np.array([0, 12]), 12, threads=3)
    np.testing.assert_array_equal(again[0][0], scores[3])
    assert len(source.search(queries[:4], np.array([0, 4]), 1000)[1][0]) == int((np.diff(source.offsets) > 0).sum())


@pytest.fixture(scope="module")
def world(module_path: Path) -> Path:
    """A folder with an encoder, documents, topics, and an index of them with tokens."""
    make_late_base(str(make_encoder(module_path / "bert", [*WORDS, ",", "."])), module_path / "model", D)
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, size=int(rng.integers(1, 9)))) for _ in range(70)]
    lines = [f"d{number}\t{text}" for number, text in enumerate(texts[:60])]
    write_lines(module_path / "docs.tsv", [*lines, "none\t ", f"long\t{'w9 ' * 90}"])
    write_lines(module_path / "topics.tsv", (f"q{number}\t{text}" for number, text in enumerate(texts[60:])))
    assert run_index(*of_index(module_path, module_path / "index")) == 0
    return module_path


def of_index(world: Path, output: Path, *more: object) -> list[object]:
    named = ["--documents", world / "docs.tsv", "--output", output, "--parts", "tokens"]
    encoder = f"{world / 'model'}:query_length=8,document_length=30"
    return [*named, "--token-encoder", encoder, *more]


def of_search(world: Path, index: Path, output: Path, *more: object) -> list[object]:
    named = ["--index", index, "--topics", world / "topics.tsv", "--retriever", "late", "--rerank", "none"]
    return [*named, "--output", output, *more]


def test_index_and_search_commands(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = tmp_path / "index"
    assert run_index(*of_index(world, index)) == 0
    said = capsys.readouterr().err
    assert "searched by exact; 1 text cut at 30 tokens" in said
    assert run_index(*of_index(world, index)) == 0
    assert "already complete" in capsys.readouterr().err
    with refusal(r"holds an index of other tokens;"):
        run_index(*of_index(world, index, "--token-encoder", f"{world / 'model'}:document_length=20"))
    described = describe(index)["parts"]["tokens"]
    assert (described["dimension"], described["dtype"], described["cut"]) == (D, "float16", 1)
    run = tmp_path / "run.txt"
    assert run_search(*of_search(world, index, run)) == 0
    found = Run.read(run)
    assert len(found) == 10
    assert {len(found[qid]) for qid in found} == {61}  # all but the empty one
    source = TokenSource(index, described)
    encoder = LateEncoder.load(str(world / "model"), query_length=8, document_length=30)
    [text] = [line.split("\t")[1] for line in (world / "topics.tsv").read_text().splitlines() if line[:3] == "q3\t"]
    expected = source.search(encoder.encode([text], "query").vectors, np.array([0, 8]), 61)
    assert found.ranked("q3") == [source.docids[row] for row in expected[1][0]]
    with refusal("nprobe and depth: of search by ivf-pq; here all documents are compared"):
        run_search(*of_search(world, index, run, "--retriever", "late:nprobe=4"))
    assert run_search("--index", index, "--topics", world / "topics.tsv", "--output", run, "--retriever", "auto") == 0


@pytest.mark.long
def test_an_index_is_searched_by_nearest_tokens(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, size=18)) for _ in range(600)]
    write_lines(tmp_path / "docs.tsv", (f"d{number}\t{text}" for number, text in enumerate(texts)))
    index, run = tmp_path / "index", tmp_path / "run.txt"
    more = ("--documents", tmp_path / "docs.tsv", "--parts", "tokens:search=ivf-pq")
    assert run_index(*of_index(world, index, *more)) == 0
    assert "searched by ivf-pq" in capsys.readouterr().err
    assert open_index(str(index)).parts == ("tokens",)
    assert run_search(*of_search(world, index, run, "--hits", 10)) == 0
    assert run_search(*of_search(world, index, run, "--hits", 10, "--retriever", "late:search=exact")) == 0
    with refusal(r"tokens:search=ivf-pq: \d+ tokens; expected at least 9984: leave it out"):
        run_index(*of_index(world, tmp_path / "small", "--parts", "tokens:search=ivf-pq"))


def test_what_does_not_fit_is_refused(world: Path, tmp_path: Path) -> None:
    source = written(tmp_path / "made-up", np.array([2, 0, 3]))
    with refusal(r"the tokens of queries have 8 dimensions, those of .* 16; encode the queries"):
        source.search(np.ones((1, 8), dtype=np.float32), np.array([0, 1]), 3)
    with refusal(r"does not describe tokens as this version does; make the index again"):
        TokenSource(tmp_path / "made-up", {})
    index = Path(shutil.copytree(world / "index", tmp_path / "index"))
    model = Path(shutil.copytree(world / "model", tmp_path / "model"))
    described = (index / "rnnreranker.json").read_text().replace(str(world / "model"), str(model))
    (index / "rnnreranker.json").write_text(described)
    config = model / "2_MultiVectorMask" / "config.json"
    config.write_text(config.read_text().replace('","', '","w1",'))
    config.write_text(config.read_text() + "\n")
    with refusal(r"the files of its encoder .* have changed since; make the index again"):
        run_search(*of_search(world, index, tmp_path / "run.txt"))
    write_queries(tmp_path / "vectors.npy", "abc", np.eye(3))
    with refusal("no tokens in this index; add them with index --parts tokens"):
        run_search(*of_search(world, tmp_path / "vectors.npy", tmp_path / "run.txt"))
