"""The graph of a collection: exactly the nearest, in files that other tools read, resumed to the same bytes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from query_sets import files_of
from query_sets import write_index as make_index
from refusals import refusal

from rnnreranker.data.document import Document
from rnnreranker.index.__main__ import main as index
from rnnreranker.index.build import add_parts, write_index
from rnnreranker.index.opening import open_index
from rnnreranker.parts.base import Part, describe
from rnnreranker.parts.neighbours import nearest, open_neighbours, pairs
from rnnreranker.parts.neighbours import part as graph_files
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import GraphParams, NeighboursPart, write_graph
from rnnreranker.parts.vectors import open_vectors

VECTORS = np.array([[1, 0], [3, 4], [0.6, 0.8], [3, 4], [0, 1]], dtype=np.float32)


def random_vectors(count: int = 300, seed: int = 0) -> np.ndarray:
    """Every tenth document stands there twice, so that there are ties."""
    vectors = np.random.default_rng(seed).standard_normal((count, 12)).astype(np.float32)
    vectors[1::10] = vectors[::10]
    return vectors


def graph_in(folder: Path, vectors: np.ndarray = VECTORS, k: int = 3) -> Path:
    write_graph(DenseNeighbours(open_vectors(make_index(folder, vectors))), folder / "neighbours", k)
    return folder / "neighbours"


@pytest.mark.parametrize(("threads", "rows"), [(1, 512), (3, 37), (4, 7)])
def test_bytes_depend_neither_on_threads_nor_on_blocks(
    threads: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor on who multiplies: NumPy for few documents, with all of them at a time, or each pair once."""
    source = open_vectors(make_index(tmp_path, random_vectors(150)))
    write_graph(DenseNeighbours(source), tmp_path / "plain", 5)
    monkeypatch.setattr(graph_files, "ROWS", rows)
    monkeypatch.setattr(nearest, "FEW", 10)
    monkeypatch.setattr(pairs, "COLUMNS", 2 * rows - 1)
    write_graph(DenseNeighbours(source), tmp_path / "blocks", 5, threads=threads)
    assert files_of(tmp_path / "blocks") == files_of(tmp_path / "plain")


def test_a_build_that_is_killed_loses_the_blocks_that_are_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_vectors(make_index(tmp_path, random_vectors()))
    write_graph(DenseNeighbours(source), tmp_path / "plain", 5)
    monkeypatch.setattr(graph_files, "ROWS", 50)
    made, put = [], graph_files.put_array

    def failing(file: Path, array: np.ndarray) -> None:
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(file.name)
        put(file, array)

    monkeypatch.setattr(graph_files, "put_array", failing)
    with pytest.raises(KeyboardInterrupt):
        write_graph(DenseNeighbours(source), tmp_path / "graph", 5, threads=1)
    assert sorted(path.name for path in (tmp_path / "graph.partial").iterdir()) == sorted(made)
    made.insert(0, "")  # two of six are left
    monkeypatch.setattr(nearest, "FEW", 10)
    monkeypatch.setattr(graph_files, "put_array", lambda file, array: (made.append(file.name), put(file, array)))
    write_graph(DenseNeighbours(source), tmp_path / "graph", 5, threads=2)
    assert len(made) == len({*made}) == 7
    assert files_of(tmp_path / "graph") == files_of(tmp_path / "plain")


def test_the_files_are_those_of_a_corpus_graph(tmp_path: Path) -> None:
    """pyterrier_adaptive's NpTopKCorpusGraph reads raw values and `docnos.npids`."""
    folder = graph_in(tmp_path, k=2)
    assert np.fromfile(folder / "edges.u32.np", "<u4").tolist() == [1, 3, 3, 2, 1, 3, 1, 2, 1, 3]
    meta = json.loads((folder / "pt_meta.json").read_text())
    assert (meta["type"], meta["format"], meta["doc_count"], meta["k"]) == ("corpus_graph", "np_topk", 5, 2)
    with pytest.importorskip("npids").Lookup(folder / "docnos.npids") as lookup:
        assert [*lookup.fwd] == [f"d{row}" for row in range(5)]
        assert lookup.inv[["d3", "d0", "x"]] == [3, 0, -1]


def test_a_graph_of_another_tool_is_read(tmp_path: Path) -> None:
    """Without what this package writes besides; a document in its own row stands for no neighbour there."""
    folder = graph_in(tmp_path, k=2)
    np.array([[1, 3], [3, 1], [2, 2], [1, 3], [1, 3]], dtype="<u4").tofile(folder / "edges.u32.np")
    plain = {"type": "corpus_graph", "format": "np_topk", "package_hint": "pyterrier-adaptive", "doc_count": 5, "k": 2}
    (folder / "pt_meta.json").write_text(json.dumps(plain))
    graph = open_neighbours(folder, open_vectors(tmp_path).fingerprint)
    assert graph.reciprocal(np.arange(5)).tolist()[1:4] == [[True, False], [False, False], [True, False]]
    with refusal("row -1; leave it out, it stands for an unknown docid"):
        graph.neighbours(graph.rows(["d1", "x"]))
    (tmp_path / "docid").write_text("".join(f"d{row}\n" for row in reversed(range(5))))
    pytest.importorskip("npids")
    assert [*open_neighbours(folder).docids] == [f"d{row}" for row in range(5)]  # its own, not those around it


def _change(name: str, dtype: str, place: int, value: float) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        values = np.fromfile(folder / name, dtype)
        values[place] = value
        values.tofile(folder / name)

    return change


def _meta(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        meta = json.loads((folder / "pt_meta.json").read_text())
        own = meta["rnnreranker"] | {name: values.pop(name) for name in list(values) if name in meta["rnnreranker"]}
        (folder / "pt_meta.json").write_text(json.dumps(meta | values | {"rnnreranker": own}))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "edges.u32.np").write_bytes(b"1234"), r"edges\.u32\.np: has 4 bytes but 2 neighbour"),
        (
            lambda folder: (folder / "weights.f16.np").unlink(),
            r"weights\.f16\.np: has 0 bytes but 2 neighbours of 5 documents take 20",
        ),
        (
            _meta(version=9),
            r"pt_meta\.json: expected a corpus_graph in the format np_topk, .* and version 2 of rnnreranker",
        ),
        (_meta(k=0), r"pt_meta\.json: expected a corpus_graph in the format np_topk, doc_count and k >= 1"),
        (_meta(source="0123"), r"made from dense vectors 0123, but those of the index are [0-9a-f]{16}; make it again"),
        (_meta(docids="0123"), r"a graph of other documents than those of .*docid; make it again with index --parts"),
        (lambda folder: make_index(folder.parent, VECTORS[:4]), r"a graph of 5 documents, but .*docid has 4 docids"),
        (
            lambda folder: shutil.rmtree(folder),
            r"no graph of neighbours in it \(no pt_meta\.json\); make one with index",
        ),
    ],
)
def test_a_graph_that_cannot_be_used_is_refused_in_one_line(
    change: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    folder = graph_in(tmp_path, k=2)
    change(folder)
    with refusal(said) as refused:
        open_neighbours(tmp_path, open_vectors(tmp_path).fingerprint)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "row"),
    [
        (_change("edges.u32.np", "<u4", 3, 5), 1),
        (_change("weights.f16.np", "<f2", 4, np.nan), 2),
    ],
)
def test_rows_are_looked_at_where_they_are_fetched(change: Callable[[Path], None], row: int, tmp_path: Path) -> None:
    """Opening reads none of them, and rows beside a damaged one can be used."""
    change(graph_in(tmp_path, k=2))
    graph = open_neighbours(tmp_path)
    others = np.setdiff1d(np.arange(5), [row])
    edges, weights = graph.fetch(others)
    assert (edges.dtype, weights.dtype, edges.shape) == (np.uint32, np.float16, (4, 2))
    for look in (lambda: graph.fetch(np.arange(5)[::-1]), lambda: graph.neighbours([0, row])):
        with refusal(f"document {row} has a neighbour beyond 4, or a weight that is N") as refused:
            look()
        assert "\n" not in str(refused.value)


class LetterPart(Part):
    """Writes the vectors of this file as the dense part of an index."""

    name = "dense"

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, object]:
        np.save(folder / "vectors.npy", random_vectors(count))
        return {"dimension": 12}


def test_an_index_gets_a_graph_without_its_vectors_being_made_again(tmp_path: Path) -> None:
    documents = [Document(f"d{row}", f"text {row}") for row in range(40)]
    write_index(documents, tmp_path / "index", [LetterPart()], name="letters")
    before = describe(tmp_path / "index")
    vectors = (tmp_path / "index" / "vectors.npy").stat()
    assert not NeighboursPart.stands(tmp_path / "index", GraphParams())
    assert add_parts(tmp_path / "index", [NeighboursPart(GraphParams(4))]).documents == 40
    assert os.path.samestat((tmp_path / "index" / "vectors.npy").stat(), vectors)
    after = describe(tmp_path / "index")
    source = open_vectors(tmp_path / "index")
    graph = open_neighbours(tmp_path / "index", source.fingerprint)
    assert after["parts"]["neighbours"] == {
        "k": 4,
        "settings": {"k": 4, "by": None, "search": None},
        "of": "dense",
        "similarity": "inner product",
        "source": source.fingerprint,
        "docids": graph.origin.docids,
        "search": "exact",
        "recall": 1.0,
        "sampled": 0,
    }
    assert after["fingerprint"] == before["fingerprint"]
    assert after["inputs"] == before["inputs"]
    assert graph.k == 4
    assert NeighboursPart.stands(tmp_path / "index", GraphParams())
    assert NeighboursPart.stands(tmp_path / "index", GraphParams(4))
    assert not NeighboursPart.stands(tmp_path / "index", GraphParams(5))
    np.save(tmp_path / "index" / "vectors.npy", random_vectors(40, seed=1))
    assert not NeighboursPart.stands(tmp_path / "index", GraphParams(4))


def test_a_folder_that_this_package_did_not_make_gets_a_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faiss = pytest.importorskip("faiss")
    whole, folder = graph_in(tmp_path / "whole", random_vectors(), 16), tmp_path / "faiss"
    folder.mkdir()
    flat = faiss.IndexFlatIP(12)
    flat.add(random_vectors())
    faiss.write_index(flat, str(folder / "index"))
    shutil.copy(tmp_path / "whole" / "docid", folder / "docid")
    words = ["--output", str(folder), "--parts", "neighbours"]
    assert index([*words, "--threads", "2"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["docid", "index", "neighbours"]
    for name in ("edges.u32.np", "weights.f16.np"):
        assert (folder / "neighbours" / name).read_bytes() == (whole / name).read_bytes()
    assert open_index(str(folder)).graph.k == 16
    capsys.readouterr()
    assert index(words) == 0
    assert "already complete, 300 documents" in capsys.readouterr().err
    assert index([*words[:-1], "neighbours:k=5"]) == 0
    assert open_index(str(folder)).graph.k == 5


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "nowhere: neighbours is made of dense or impact or terms, which this index does not have"),
        (["--parts", "neighbours:by=terms"], "nowhere: neighbours is made of terms, which"),
        (["--encoder", "e5"], "--encoder without --documents, where only parts of others are made"),
    ],
)
def test_no_graph_of_what_is_not_there(tmp_path: Path, flags: list[str], said: str) -> None:
    with refusal(said):
        index(["--output", str(tmp_path / "nowhere"), "--parts", "neighbours", *flags])
    assert not (tmp_path / "nowhere").exists()
