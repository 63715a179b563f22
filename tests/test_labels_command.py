"""The labels command from files to files: labels, exports, and how often labels are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from labelers import soft_labels
from refusals import refusal
from test_negatives import small

from rnnreranker import SoftLabels
from rnnreranker.labels import export
from rnnreranker.labels.__main__ import main
from rnnreranker.labels.export import of_labels

TINY = soft_labels(
    ["q1", "q2"],
    [["a", "b", "c"], ["b", "d"]],
    [[1.0, 0.1, -np.inf], [0.5, 0.25]],
    [[0.75, 0.25, 0.0], [1.0, 0.0]],
    [[True, False, False], [True, False]],
    {"method": "evidence"},
)


def flags(folder: Path) -> list[str]:
    small(folder)
    given = {"run": "run.txt", "qrels": "qrels.txt", "index": "v.npy", "encoded-queries": "q.npy"}
    given |= {"topics": "topics.tsv", "documents": "docs.tsv", "output": "labels.parquet"}
    return [*(word for name, file in given.items() for word in (f"--{name}", str(folder / file))), "--k", "4"]


def test_the_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--tsv", str(tmp_path / "x.tsv"), "--listwise", str(tmp_path / "x.parquet")]
    method = ["--method", "evidence:label_preset=coder-tas-b", "--boost", "2", "--n-max", "none"]
    assert main([*flags(tmp_path), *more, *method]) == 0
    labels = SoftLabels.read(tmp_path / "labels.parquet")
    assert len(labels) == 5
    own = labels.metadata["labels"]
    assert (own["compat"], own["boost"], own["n_max"], own["include_level"]) == ("coder", 2.0, None, 0.1)
    assert len((tmp_path / "x.tsv").read_text().splitlines()) == 5 * 20
    assert (tmp_path / "x.parquet").is_file()
    assert "labels.parquet: 5 queries" in capsys.readouterr().err


def test_bad_flags_are_said_at_once(tmp_path: Path) -> None:
    with refusal(r"needs --index.*needs --topics.*--address tcp://x goes"):
        main(["--run", "r", "--qrels", "q", "--output", "o", "--address", "tcp://x"])
    with refusal("n_max='many': expected an integer"):
        main([*flags(tmp_path), "--n-max", "many"])
    with refusal(r"^--method evidence:k=4,boost=0\.5: boost=0\.5: expected a finite number >= 1$"):
        main([*flags(tmp_path), "--boost", "0.5"])
    with refusal(r"qrels\.txt: no judgement has a grade of 9 or more \(the highest is 1\); "):
        main([*flags(tmp_path), "--relevant", "9"])


def test_query_vectors_of_another_length_are_named(tmp_path: Path) -> None:
    given = flags(tmp_path)
    queries = np.load(tmp_path / "q.npy")
    np.save(tmp_path / "q.npy", queries[:, 1:])
    dimension = queries.shape[1]
    said = rf"q\.npy: query vectors have {dimension - 1} dimensions, the index .*v\.npy has {dimension}; encode"
    with refusal(said):
        main(given)


def test_labels_that_cannot_be_made_leave_no_folder(tmp_path: Path) -> None:
    given = flags(tmp_path)
    ids = tmp_path / "v.ids"
    ids.write_text("".join(f"x{number}\n" for number in range(len(ids.read_text().splitlines()))))
    with refusal("not in the index"):
        main(given)
    assert not list(tmp_path.glob("*.parts"))
    assert not (tmp_path / "labels.parquet").exists()


def test_tsv_by_hand(tmp_path: Path) -> None:
    export.write_tsv(TINY, tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv").read_text() == "q1\ta\t1\nq1\tb\t0.100000001\nq2\tb\t0.5\nq2\td\t0.25\n"


def test_listwise_trains_in_sentence_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    monkeypatch.setattr(export, "LISTED", 2)
    topics, texts = {"q1": "one", "q2": "two"}, {docid: f"text {docid}" for docid in "abd"}
    path = tmp_path / "x.parquet"
    export.write_listwise(TINY, path, topics, lambda _: texts)
    found = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert found.column_names == ["query", "docs", "labels"]
    assert found[0] == {"query": "one", "docs": ["text a", "text b"], "labels": [0.75, 0.25]}
    for asked, known, lost in (
        (topics, dict.fromkeys("ab", "x"), r"1 document without a text \(first: d\)"),
        ({"q1": "one"}, texts, r"1 query without a text \(first: q2\)"),
    ):
        with refusal(lost):
            export.write_listwise(TINY, path, asked, lambda _, known=known: known)


def test_the_command_says_how_often_labels_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = soft_labels(
        ["q1", "q2"],
        [["a", "b", "c", "d"], ["e", "f", "g"]],
        [[1.0, 0.5, 0.5, 0.1], [1.0, 0.5, 0.2]],
        [[0.5, 0.25, 0.22, 0.03], [0.72, 0.28, 0.0]],
        [[True, False, False, False], [True, False, False]],
        {},
    )
    truth = {("q1", "a"): 1, ("q1", "b"): 2, ("q1", "c"): 0, ("q2", "f"): 1, ("q2", "g"): 0, ("q3", "b"): 2}
    rows = of_labels(labels, truth, relevant=2)  # d is not judged, a and e are positives
    assert [(row["low"], row["high"], row["candidates"], row["relevant"]) for row in rows] == [
        (0, 0.05, 1, 0),
        (0.2, 0.25, 2, 0.5),
        (0.25, 0.3, 1, 0),
    ]
    assert rows[1]["mean"] == pytest.approx(0.235)
    with refusal("none of the labelled candidates is judged besides the positives"):
        of_labels(labels, {("q1", "a"): 1, ("q2", "d"): 1})
    given = flags(tmp_path)
    (tmp_path / "truth.txt").write_text("".join(f"q0 0 d{number:02} 1\n" for number in range(30)))
    assert main([*given, "--truth", str(tmp_path / "truth.txt")]) == 0
    header, *lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header == ["low", "high", "candidates", "mean", "relevant"]
    assert sum(int(line[2]) for line in lines) == 19  # of 20 candidates one is the positive
    assert {line[4] for line in lines} == {"1"}
