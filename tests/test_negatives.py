"""Hard negatives: what each filter discards, by hand and against sentence-transformers, and the files written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from query_sets import unit, write_judged, write_queries, write_texts
from refusals import refusal

from rnnreranker import InputError, Run
from rnnreranker.labels.negatives import (
    NegativeParams,
    choose_filter,
    mine,
    mine_negatives,
    read_negatives,
    rows_of,
    suspicion,
)
from rnnreranker.labels.request import choose_labeler
from rnnreranker.negatives import main

PAIRS = pandas.DataFrame(
    {
        "query": 0,
        "qid": "q",
        "pair": [0] * 4 + [1] * 4,
        "positive": ["p1"] * 4 + ["p2"] * 4,
        "docid": ["a", "b", "c", "d"] * 2,
        "of_positive": [0.8] * 4 + [0.5] * 4,
        "score": [0.9, 0.7, 0.4, 0.1] * 2,
        "near": [0.3, 0.9, 0.2, 0.6] * 2,
    }
)


def test_suspicions_by_hand() -> None:
    assert suspicion(PAIRS, "rnn").tolist() == suspicion(PAIRS, "joint").tolist() == [0.3, 0.9, 0.2, 0.6] * 2
    assert suspicion(PAIRS, "max-score").tolist() == [0.9, 0.7, 0.4, 0.1] * 2
    np.testing.assert_allclose(suspicion(PAIRS, "margin"), [0.1, -0.1, -0.4, -0.7, 0.4, 0.2, -0.1, -0.4])
    np.testing.assert_allclose(suspicion(PAIRS, "relative-margin")[4:], [0.8, 0.4, -0.2, -0.8])
    assert (suspicion(PAIRS, "none") == -np.inf).all()


def taken(how: str, threshold: float, **params: Any) -> dict[str, list[str]]:
    """Positive → its negatives."""
    mined = mine(PAIRS, suspicion(PAIRS, how) > threshold, NegativeParams(how, negatives=2, **params))  # type: ignore[arg-type]
    return mined.groupby("positive")["docid"].agg(list).to_dict()


@pytest.mark.parametrize(("filter", "method"), [("rnn", "evidence"), ("joint", "joint")])
def test_a_filter_has_the_defaults_of_its_labels(filter: str, method: str) -> None:
    assert choose_filter(filter).similar == choose_labeler(method)


def test_the_first_kept_negatives() -> None:
    assert taken("rnn", 0.5) == {"p1": ["a", "c"], "p2": ["a", "c"]}
    assert taken("margin", 0.0) == {"p1": ["b", "c"], "p2": ["c", "d"]}
    assert taken("margin", 0.0, form="labeled-pair") == {"p1": ["c", "d"]}  # b is discarded beside p2
    assert taken("rnn", -1.0) == {}
    with refusal("negatives=0"):
        NegativeParams(negatives=0)
    with refusal("give one of them, not both"):
        NegativeParams(threshold=0.5, rate=0.5)


def small(folder: Path) -> None:
    """A file collection of 30 documents and 5 queries."""
    rng = np.random.default_rng(5)
    documents, asked = unit(rng, 30, 8), unit(rng, 5, 8)
    write_queries(folder / "v.npy", (f"d{n:02}" for n in range(30)), documents)
    write_queries(folder / "q.npy", (f"q{n}" for n in range(5)), asked)
    write_texts(folder / "docs.tsv", {f"d{n:02}": f"document {n:02}" for n in range(30)})
    scores = asked @ documents.T
    best = np.argsort(-scores, axis=1)[:, :20]
    Run.from_dict({f"q{n}": {f"d{d:02}": float(scores[n, d]) for d in best[n]} for n in range(5)}).write(
        folder / "run.txt"
    )
    judged = [(f"q{n}", f"d{best[n, 4]:02}", 1) for n in range(5)]
    write_judged(folder, {f"q{n}": f"question {n}" for n in range(5)}, judged)


def mined_by_others(documents: np.ndarray, asked: np.ndarray, pairs: list[tuple[str, str]], **how: Any) -> Any:
    """What sentence-transformers mines for pairs of query and document, with a model that has these vectors."""
    st = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    import torch

    corpus = [f"document {n:02}" for n in range(30)]
    vectors = dict(zip([*corpus, *(f"question {n}" for n in range(5))], [*documents, *asked], strict=True))

    class Known(st.SentenceTransformer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(modules=[torch.nn.Identity()], device="cpu")

        def encode(self, sentences: list[str], **_: object) -> np.ndarray:
            return np.stack([vectors[one] for one in sentences])

        encode_query = encode_document = encode

    columns = {
        "anchor": [f"question {qid[1:]}" for qid, _ in pairs],
        "positive": [f"document {docid[1:]}" for _, docid in pairs],
    }
    given = {"corpus": corpus, "verbose": False, **how}
    return st.util.mine_hard_negatives(datasets.Dataset.from_dict(columns), Known(), **given)


FORMS = {
    "triplet": ["anchor", "positive", "negative"],
    "n-tuple": ["anchor", "positive", "negative_1", "negative_2"],
    "labeled-pair": ["anchor", "positive", "label"],
    "labeled-list": ["anchor", "positive", "labels"],
}


def test_rows_of_several_positives() -> None:
    mined = mine(PAIRS, suspicion(PAIRS, "margin") > 0, NegativeParams("margin", negatives=3, form="labeled-pair"))
    positives = PAIRS.drop_duplicates("pair")
    rows = [(*row.values(),) for row in rows_of(positives, mined, "labeled-pair", 3)]
    assert rows == [("q", "p1", 1), ("q", "p2", 1), ("q", "c", 0), ("q", "d", 0)]
    mined = mine(PAIRS, suspicion(PAIRS, "margin") > 0, NegativeParams("margin", negatives=3))
    lists = rows_of(positives, mined, "labeled-list", 3)
    assert [row["positive"] for row in lists] == [["p1", "b", "c", "d"], ["p2", "c", "d"]]
    assert [row["labels"] for row in lists] == [[1, 0, 0, 0], [1, 0, 0]]
    assert [(*row.values(),) for row in rows_of(positives, mined, "n-tuple", 3)] == [("q", "p1", "b", "c", "d")]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_of_every_form_is_what_sentence_transformers_gives(tmp_path: Path, form: str) -> None:
    """The same columns, types and rows as `mine_hard_negatives`, read from a file; training reads them back."""
    small(tmp_path)
    run, documents, asked = Run.read(tmp_path / "run.txt"), np.load(tmp_path / "v.npy"), np.load(tmp_path / "q.npy")
    whole = Run.from_dict(
        {f"q{n}": {f"d{d:02}": float(score) for d, score in enumerate(asked[n] @ documents.T)} for n in range(5)}
    )
    whole.write(tmp_path / "whole.txt")
    judged = {f"q{n}": {run.ranked(f"q{n}")[row]: 1 for row in (4, 7)[: 1 + n % 2]} for n in range(5)}
    pairs = [(qid, docid) for qid, own in judged.items() for docid in own]
    how = {"num_negatives": 2, "range_max": 27, "max_score": 0.45, "output_format": form}
    theirs = mined_by_others(documents, asked, pairs, **how)
    datasets = pytest.importorskip("datasets")
    loaded = {}
    for suffix, reader in (("jsonl", "json"), ("parquet", "parquet")):
        output = tmp_path / f"out.{suffix}"
        mine_negatives(
            tmp_path / "whole.txt", judged, tmp_path / "v.npy",
            f"max-score:threshold=0.45,negatives=2,form={form},context=30",
            topics=tmp_path / "topics.tsv", encoded_queries=tmp_path / "q.npy", documents=str(tmp_path / "docs.tsv"),
            output=output,
        )  # fmt: skip
        found = datasets.load_dataset(reader, data_files=str(output), split="train", cache_dir=str(tmp_path / "cache"))
        assert found.column_names == theirs.column_names == FORMS[form]
        assert [list(row.values()) for row in found] == [list(row.values()) for row in theirs]
        assert [str(one) for one in found.features.values()] == [str(one) for one in theirs.features.values()]
        loaded[suffix] = read_negatives(output)
    assert loaded["jsonl"] == loaded["parquet"]
    expected = {(row["anchor"], row["positive"]): row["negative"] for row in theirs} if form == "triplet" else {}
    for pair, negatives in loaded["jsonl"].items():
        assert len(negatives) == 2
        assert not expected or expected[pair] in negatives
    assert len(loaded["jsonl"]) == len(pairs)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("margin:threshold=-0.1", {"absolute_margin": 0.1}),
        ("relative-margin:threshold=-0.2", {"relative_margin": 0.2}),
        ("max-score:threshold=0.3", {"max_score": 0.3}),
    ],
)
def test_margins_discard_what_sentence_transformers_discards(tmp_path: Path, ours: str, theirs: Any) -> None:
    small(tmp_path)
    documents, asked, run = np.load(tmp_path / "v.npy"), np.load(tmp_path / "q.npy"), Run.read(tmp_path / "run.txt")
    scores = {f"q{n}": {f"d{d:02}": float(score) for d, score in enumerate(asked[n] @ documents.T)} for n in range(5)}
    positive = {qid: run.ranked(qid)[4] for qid in run}
    found = mine_negatives(
        Run.from_dict(scores), {qid: {docid: 1} for qid, docid in positive.items()}, tmp_path / "v.npy",
        f"{ours},negatives=4,context=30", encoded_queries=tmp_path / "q.npy",
    )  # fmt: skip
    how = {"num_negatives": 4, "range_max": 29, "output_format": "triplet", **theirs}
    expected = mined_by_others(documents, asked, [*positive.items()], **how)
    rows = found.mined[["qid", "docid"]].itertuples(index=False)
    assert {(f"question {qid[1:]}", f"document {docid[1:]}") for qid, docid in rows} == {
        (row["anchor"], row["negative"]) for row in expected
    }
    assert len(expected)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small(tmp_path)
    out = tmp_path / "out.jsonl"
    common = f"--run {tmp_path}/run.txt --qrels {tmp_path}/qrels.txt --output {out} --index {tmp_path}/v.npy".split()
    texts = f"--topics {tmp_path}/topics.tsv --documents {tmp_path}/docs.tsv"
    common += f"--encoded-queries {tmp_path}/q.npy {texts}".split()
    assert main([*common, "--rate", "0.2", "--k", "4"]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 15
    assert {tuple(line) for line in lines} == {("anchor", "positive", "negative")}
    first = out.read_bytes()
    assert main([*common, "--rate", "0.2", "--k", "4", "--threads", "1"]) == 0
    assert out.read_bytes() == first
    assert main([*common, "--filter", "joint:positive_weight=0.3,rate=0.2"]) == 0
    assert "15 rows, 5 queries; filter joint, discarded above" in capsys.readouterr().err
    assert out.read_bytes() != first
    files = [tmp_path / name for name in ("run.txt", "qrels.txt", "v.npy")]
    more = {"encoded_queries": tmp_path / "q.npy", "topics": tmp_path / "topics.tsv"}
    found = mine_negatives(*files, "rnn:k=4,rate=0.2", documents=str(tmp_path / "docs.tsv"), output=out, **more)
    assert out.read_bytes() == first
    assert found.mined.groupby("qid").size().tolist() == [3] * 5
    assert (found.suspicion > found.threshold).mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "q1\td1\n", ":1: {0: 'q1', 1: 'd1'}; expected"),
        ("a.tsv", "", "holds no negatives"),
        (
            "a.jsonl",
            '{"anchor": "a", "positive": "b", "negative": 3}\n',
            ":1: {'anchor': 'a', 'positive': 'b', 'negative': 3}; expected",
        ),
        ("a.parquet", "PAR1", ": cannot be read as parquet ("),
        (
            "a.jsonl",
            '{"anchor": "a", "positive": "b", "label": 2}\n',
            "or labels 0 and 1 beside documents",
        ),
        ("a.jsonl", '{"anchor": "a", "positive": ["b", "c"], "labels": [1]}\n', "or labels 0 and 1 beside documents"),
        ("a.txt", "", "a name that ends in .parquet, .jsonl, .tsv"),
    ],
)
def test_files_that_are_no_negatives(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as caught:
        read_negatives(tmp_path / name)
    assert said in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("form", ["triplet", "labeled-pair"])
def test_neither_the_query_nor_the_text_of_a_positive_is_a_negative(tmp_path: Path, form: str) -> None:
    """With filter none the negatives are the first of the run: those that are left, the next ones move up."""
    small(tmp_path)
    run = Run.read(tmp_path / "run.txt")
    positive = {qid: docid for qid, _, docid, _ in map(str.split, (tmp_path / "qrels.txt").read_text().splitlines())}
    texts = {f"d{n:02}": f"document {n:02}" for n in range(30)} | {qid: f"question {qid}" for qid in positive}
    for qid in ("q1", "q2"):  # two layers of the same text: what moves up is looked at, too
        copies = [docid for docid in run.ranked(qid) if docid != positive[qid]][:3]
        texts |= {copy: f" {texts[positive[qid]]}  " for copy in copies if copy not in positive.values()}
    own = Run.from_dict({qid: {qid: 99.0, **dict(run[qid])} for qid in run})
    write_texts(tmp_path / "docs.tsv", texts)
    filter = f"none:form={form},negatives=3,context=12"
    mined = mine_negatives(own, tmp_path / "qrels.txt", filter=filter, documents=str(tmp_path / "docs.tsv")).mined
    for qid, negatives in mined.groupby("qid")["docid"]:
        relevant = texts[positive[qid]].split()
        kept = [docid for docid in run.ranked(qid) if texts[docid].split() != relevant]
        assert negatives.tolist() == kept[:3]
    assert mined["qid"].nunique() == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {},
            r"^filter=rnn needs index \(where vectors come from\); filter=rnn needs topics or encoded_queries",
        ),
        ({"filter": "rnm"}, "^filter=rnm: rnm: no such filter; did you mean rnn"),
        ({"filter": "rnn:rat=0.1"}, "no setting rat, did you mean rate"),
        ({"filter": "none:rate=0.9"}, "threshold or rate: has no effect with the filter none"),
        (
            {"filter": "none:form=labeled-list", "output": "x.tsv"},
            r"^output=x\.tsv: expected a name that ends in \.parquet, \.jsonl, for form=labeled-list",
        ),
        ({"treshold": 1}, "^no argument treshold"),
    ],
)
def test_messages_from_python_name_arguments(given: dict[str, object], said: str, tmp_path: Path) -> None:
    small(tmp_path)
    with refusal(said):
        mine_negatives(tmp_path / "run.txt", tmp_path / "qrels.txt", **given)  # type: ignore[arg-type]
