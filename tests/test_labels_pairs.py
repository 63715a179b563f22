"""Published pairs as candidates: of files and of ir_datasets, taken before those of a run."""

import gzip

import pytest
from refusals import refusal

from rnnreranker import make_labels
from rnnreranker.base.errors import UnavailableError
from rnnreranker.data import irds
from rnnreranker.data.pairs import load_pairs
from rnnreranker.runs import Run

PAIRS = "q1\tgood\tb\nq2\tgood2\tx\nq1\tgood\ta\nq1\tgood\tb\nq9\tz\ty\n"
RUN = {"q1": {"good": 3.0, "c": 2.0}, "q2": {"d": 2.0, "x": 1.0}, "q3": {"e": 1.0, "good3": 0.5}}
QRELS = {"q1": {"good": 1}, "q2": {"good2": 1}, "q3": {"good3": 1}}


def test_others_stand_once_in_the_order_of_the_pairs(tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    with gzip.open(tmp_path / "pairs.tsv.gz", "wt") as stream:
        stream.write(PAIRS)
    for name in ("pairs.tsv", "pairs.tsv.gz"):
        pairs = load_pairs(str(tmp_path / name), 1000)
        assert {qid: pairs.ranked(qid) for qid in pairs} == {"q1": ["b", "a"], "q2": ["x"], "q9": ["y"]}
    assert load_pairs(str(tmp_path / "pairs.tsv"), 1).ranked("q1") == ["b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1\ta\tb\nq1\ta\t\n", r"pairs.tsv:2: 2 columns; expected qid docid other between blanks"),
        ("", r"pairs.tsv: no pairs; expected lines"),
    ],
)
def test_what_is_no_file_of_pairs_is_refused(tmp_path, text, said):
    (tmp_path / "pairs.tsv").write_text(text)
    with refusal(said):
        load_pairs(str(tmp_path / "pairs.tsv"), 10)


def test_labels_have_the_candidates_of_the_pairs_and_those_of_the_run_for_other_queries(tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    run = Run.from_dict(RUN)
    made = make_labels(run, QRELS, method="hard", pairs=str(tmp_path / "pairs.tsv"))
    assert {one.qid: list(one.docids) for one in made} == {
        "q1": ["good", "b", "a"],
        "q2": ["good2", "x"],
        "q3": ["good3", "e"],
    }
    assert made.metadata["pairs"] == str(tmp_path / "pairs.tsv")
    assert "pairs" not in make_labels(run, QRELS, method="hard").metadata


def test_pairs_that_are_not_here_are_named(monkeypatch):
    class Absent:
        def docpairs_iter(self):
            raise OSError("no network")

    monkeypatch.setattr(irds, "load", lambda name: Absent())
    for read in (load_pairs, lambda name, depth: make_labels(Run.from_dict(RUN), QRELS, method="hard", pairs=name)):
        with pytest.raises(UnavailableError, match="the docpairs are not in"):
            read("msmarco-passage/train/triples-v2", 10)


def test_a_data_set_without_pairs_is_refused(monkeypatch):
    monkeypatch.setattr(irds, "load", lambda name: object())
    with refusal("cranfield: this data set has no docpairs"):
        load_pairs("cranfield", 10)
