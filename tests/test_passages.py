"""Runs of passages as runs of documents: by hand, against a plain loop, and through both commands."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from query_sets import ranking, write_index, write_judged, write_queries
from refusals import refusal, refusal_with

from rnnreranker.data import irds
from rnnreranker.data.document import Document
from rnnreranker.data.passage_documents import documents_by
from rnnreranker.fuse import main as fuse_command
from rnnreranker.parts.texts import CorpusWriter
from rnnreranker.runs import Run
from rnnreranker.runs.fuse import FuseParams, fuse
from rnnreranker.runs.passages import AGGREGATES, to_documents
from rnnreranker.search.__main__ import main as search_command

PASSAGES = {
    "q1": {"b#2": 9.0, "a#1": 8.0, "a#0": 3.5, "b#10": 3.0, "c#d#0": 1.0},
    "q2": {"a#0": -1.0, "c#d#1": -2.0, "a#1": -4.0},
    "q3": {},
}


def entries(run: Run) -> dict[str, list[tuple[str, float]]]:
    return {qid: run[qid] for qid in run}


def documents(run: Run, way: str, passages: str = "#") -> Run:
    names, order = documents_by(passages, run.docids, ordered=True)
    return to_documents(run, names, way, order=order)


@pytest.mark.parametrize("way", AGGREGATES)
def test_documents_of_passages_against_a_plain_loop_in_any_order_of_input(way: str) -> None:
    rng = np.random.default_rng(5)
    made: dict[str, dict[str, float]] = {}
    for number in range(20):
        chosen = rng.permutation(400)[: rng.integers(1, 120)]
        made[f"q{number}"] = {f"D{one // 7}#{one % 7}": float(rng.integers(-3, 4)) / 4 for one in chosen}
    expected: dict[str, dict[str, float]] = {}
    for qid, found in made.items():
        of: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for passage, score in found.items():
            document, place = passage.split("#")
            of[document].append((int(place), score))
        how = {"maxp": lambda its: max(score for _, score in its), "firstp": lambda its: min(its)[1]}
        expected[qid] = {doc: how.get(way, lambda its: sum(score for _, score in its))(its) for doc, its in of.items()}
    found_run = documents(Run.from_dict(made), way)
    in_order = {qid: sorted(of.items(), key=lambda entry: (-entry[1], entry[0])) for qid, of in expected.items()}
    assert entries(found_run) == in_order  # equal scores: by docid
    turned = Run.from_dict({qid: dict(reversed(found.items())) for qid, found in made.items()})
    assert entries(documents(turned, way)) == entries(found_run)


@pytest.mark.parametrize(("way", "second", "reported"), [("sump", -1.0, 1), ("sump", 1.0, 0), ("maxp", -1.0, 0)])
def test_sums_of_scores_below_0_are_reported(
    way: str, second: float, reported: int, recwarn: pytest.WarningsRecorder
) -> None:
    """Not that of b, which is alone: nothing is added to it."""
    documents(Run.from_dict({"q": {"a#0": 2.0, "a#1": second, "b#0": -3.0}}), way)
    said = "sump: 1 of 3 scores are below 0: every such passage lowers"
    assert [str(one.message).split(" its")[0] for one in recwarn] == [said] * reported


def test_a_mapping_file_names_documents_and_their_order(tmp_path: Path) -> None:
    path = tmp_path / "of.tsv.gz"
    path.write_bytes(gzip.compress(b"z\td1\n\nx\td1\nlonely\td9\ny\td2\n"))
    names, order = documents_by(str(path), ["x", "y", "z"], ordered=True)
    assert names.tolist() == ["d1", "d2", "d1"]
    assert order is not None
    assert order.tolist() == [1, 3, 0]
    assert documents_by(str(path), ["x"])[1] is None


class Passages:
    """What ir_datasets gives of MS MARCO v2's passages, without its files."""

    there: ClassVar = {
        "msmarco_passage_00_90": ("msmarco_doc_00_5", ((40, 60),)),
        "msmarco_passage_00_7": ("msmarco_doc_00_5", ((0, 9), (9, 30))),
        "msmarco_passage_01_0": ("msmarco_doc_31_2", ((3, 8),)),
    }

    def has_docs(self) -> bool:
        return True

    def docs_cls(self) -> Any:
        return SimpleNamespace(_fields=("doc_id", "text", "spans", "msmarco_document_id"))

    def docs_store(self) -> Passages:
        return self

    def get_many_iter(self, keys: list[str]) -> Any:
        for key in sorted(set(keys) & set(self.there), reverse=True):
            document, spans = self.there[key]
            yield SimpleNamespace(doc_id=key, spans=spans, msmarco_document_id=document)


def test_passages_of_msmarco_v2_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(irds, "load", lambda name: Passages())
    asked = list(Passages.there)
    names, order = documents_by("msmarco-passage-v2", asked, ordered=True)
    assert names.tolist() == ["msmarco_doc_00_5", "msmarco_doc_00_5", "msmarco_doc_31_2"]
    assert order is not None
    assert order.tolist() == [40, 0, 3]
    with refusal(r"msmarco-passage-v2: 2 of 5 passages have no document \(D1, msmarco_passage_"):
        documents_by("msmarco-passage-v2", [*asked, "D1", "msmarco_passage_09_1"])


@pytest.mark.parametrize(
    ("passages", "ids", "said"),
    [
        ("#", ["a#1", "b", "c", "d", "#5"], r"passages by '#': 4 of 5 passages have no document \(b, c, d\)"),
        ("#", ["a#x", "a#1"], r"1 of 2 passages have no number behind it.* \(a#x\)"),
        ("of.tsv", ["x", "w"], r"of.tsv: 1 of 2 passages have no document \(w\)"),
        ("bad.tsv", ["x"], r"bad.tsv:2: 1 columns; expected passage document"),
        ("blank.tsv", ["x"], r"blank.tsv:1: 3 columns; expected passage document"),
        ("twice.tsv", ["x"], r"twice.tsv:2: passage x is of d2, and of d1 before"),
        ("none.tsv", ["x"], r"none.tsv: no such file"),
        ("msmarco-passage", ["x"], r"msmarco-passage: its passages do not say what document they are of"),
        ("msmarco-pasage-v2", ["x"], r"msmarco-pasage-v2: neither a file nor a data set"),
    ],
)
def test_what_passages_refuses(
    passages: str, ids: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("of.tsv").write_text("x\td1\n")
    Path("bad.tsv").write_text("y\td1\nx\n")
    Path("blank.tsv").write_text("x\td 1\n")
    Path("twice.tsv").write_text("x\td1\nx\td2\n")
    with refusal(said):
        documents_by(passages, ids, ordered=True)


def test_fuse_makes_documents_of_one_run_or_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = Run.from_dict(PASSAGES), Run.from_dict({"q1": {"a#7": 1.0, "b#2": 0.5}})
    one.write("one.txt")
    two.write("two.txt")
    flags = ["--aggregate", "sump", "--output", "out.txt", "--hits", "2"]
    assert fuse_command(["one.txt", *flags]) == 0
    assert Run.read("out.txt").to_dict() == {"q1": {"b": 12.0, "a": 11.5}, "q2": {"c#d": -2.0, "a": -5.0}}
    assert fuse_command(["one.txt", "two.txt", *flags, "--method", "mean"]) == 0
    expected = documents(fuse([one, two], FuseParams(fuse="mean")), "sump").head(2)
    assert ranking(Run.read("out.txt")) | {"q3": []} == ranking(expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one.txt", "--aggregate", "max"], "--aggregate max: no such way; did you mean maxp?"),
        (["one.txt", "--aggregate", "maxp:hits=9"], "--aggregate maxp:hits=9: hits is of search; give --hits"),
        (["one.txt", "--aggregate", "maxp:passage=:"], "no setting passage, did you mean passages?"),
        (
            ["one.txt", "--aggregate", "maxp", "--method", "mean"],
            "--method mean: joins several runs, not one alone",
        ),
    ],
)
def test_what_fuse_refuses_of_passages(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Run.from_dict(PASSAGES).write("one.txt")
    with refusal_with(said):
        fuse_command([*words, "--output", "out.txt"])
    assert not Path("out.txt").exists()


@pytest.fixture
def index(tmp_path: Path) -> list[str]:
    """The flags of a search in an index of 24 passages of 8 documents, with the vectors of its two queries."""
    rng = np.random.default_rng(2)
    ids = [f"D{number // 3}#{number % 3}" for number in rng.permutation(24)]
    folder = write_index(tmp_path / "index", rng.normal(size=(24, 6)), ids)
    queries = write_queries(tmp_path / "queries.npy", ["q1", "q2"], rng.normal(size=(2, 6)))
    with CorpusWriter(folder) as corpus:
        for one in ids:
            corpus.add(Document(one, f"text of {one}"))
    write_judged(tmp_path, {"q1": "river", "q2": "bread"}, [("q1", "D2", 1), ("q2", "D5", 1)])
    return f"--index {folder} --encoded-queries {queries} --retriever dense".split()


def test_search_ends_with_documents(index: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    flags = [*index, *f"--topics {tmp_path}/topics.tsv --output {out}".split()]
    assert search_command([*flags, "--hits", "24"]) == 0
    whole = documents(Run.read(out), "maxp")
    flags += ["--aggregate", "maxp"]
    assert search_command([*flags, "--hits", "5"]) == 0  # 50 passages: all
    assert ranking(Run.read(out)) == ranking(whole.head(5))
    assert out.read_text().split()[5] == "dense.rnn.maxp"
    assert search_command([*flags, "--hits", "1"]) == 0  # rnn reads its whole context all the same
    assert ranking(Run.read(out)) == ranking(whole.head(1))
    Run.from_dict({"q1": {"a#0": 9.0, **{f"b#{n}": 1.0 for n in range(20)}}}).write(tmp_path / "run.txt")
    given = [*index[:4], *f"--run {tmp_path}/run.txt --output {out} --rerank none --hits 1".split()]
    for aggregate, best in {"sump": "b", "sump:hits=5": "a"}.items():  # hits alone cut a given run
        assert search_command([*given, "--aggregate", aggregate]) == 0
        assert Run.read(out).ranked("q1") == [best]
    assert search_command([*flags, "--aggregate", "maxp:hits=2", "--hits", "5", "--rerank", "none"]) == 0
    assert all(len(Run.read(out).ranked(qid)) <= 2 for qid in whole)
    assert out.read_text().split()[5] == "dense.none.maxp"


def test_own_passages_of_a_query_leave_as_many_of_others(index: list[str], tmp_path: Path) -> None:
    ids, vectors = Path(index[1], "docid").read_text().split(), np.load(Path(index[1], "vectors.npy"))
    own, out = np.array([one.startswith("D3#") for one in ids]), tmp_path / "out.txt"
    vectors[own] = 4.0
    np.save(Path(index[1], "vectors.npy"), vectors)
    np.save(tmp_path / "queries.npy", np.ones((1, 6), np.float32))
    (tmp_path / "topics.tsv").write_text("D3\triver\n")
    (tmp_path / "queries.ids").unlink()
    flags = f"--topics {tmp_path}/topics.tsv --rerank none --hits 1 --output {out} --remove-query"
    assert search_command([*index, *flags.split(), "--aggregate", "maxp:hits=2"]) == 0
    other = ids[np.where(own, -np.inf, vectors.sum(axis=1)).argmax()]
    assert Run.read(out).ranked("D3") == [other.split("#")[0]]


def test_search_judges_and_shows_documents(
    index: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = f"--topics {tmp_path}/topics.tsv --aggregate maxp --qrels {tmp_path}/qrels.txt --measures R@8"
    assert search_command([*index, *flags.split()]) == 0
    assert "1.0000" in capsys.readouterr().out  # all 8 documents are there, before and after reranking
    write_queries(tmp_path / "one.npy", ["query"], np.load(tmp_path / "queries.npy")[:1])
    one = [*index[:3], str(tmp_path / "one.npy"), *index[4:], "--query", "river", "--aggregate", "maxp"]
    assert search_command(one) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(rows) == 8
    assert all(row[4].startswith(f"text of {row[2]}#") for row in rows)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--aggregate", "maxp", "--explain", "q1"], "--explain shows passages: not with --aggregate"),
        (["--aggregate", "maxp:passages=::"], "passages by '::': 24 of 24 passages have no document"),
    ],
)
def test_what_search_refuses_of_passages(index: list[str], flags: list[str], said: str, tmp_path: Path) -> None:
    with refusal(said):
        search_command([*index, *f"--topics {tmp_path}/topics.tsv --output {tmp_path}/out.txt".split(), *flags])
    assert not (tmp_path / "out.txt").exists()
