"""Run: reading, the order of entries, and what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest
from refusals import refusal, refusal_with

from rnnreranker.runs import Run, reading


def file(folder: Path, text: str, name: str = "run.txt") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


TREC = "q2 Q0 d1 1 2.5 tag\nq1 Q0 d3 1 1.0 tag\nq2 Q0 d2 2 3.5 tag\n"


@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz"])
@pytest.mark.parametrize("separator", [" ", "\t", "  ", " \t"])
def test_trec_lines_in_any_order(tmp_path: Path, name: str, separator: str) -> None:
    run = Run.read(file(tmp_path, TREC.replace(" ", separator), name))
    assert run.qids == ("q2", "q1")  # order of first appearance
    assert run["q2"] == [("d2", 3.5), ("d1", 2.5)]
    assert run["q1"] == [("d3", 1.0)]
    assert run.offsets.tolist() == [0, 2, 3]
    assert (run.rows.dtype, run.scores.dtype, run.docids.dtype) == (np.int32, np.float64, object)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 a 1 2 t\nq Q0 b 2 t\n", "run.txt:2: 5 columns; expected TREC `qid Q0 docid rank score tag`"),
        ("\nq Q0  1 2 t\n", "run.txt:2: 5 columns; expected TREC"),
        ("q Q0 a 1 2 t\nq Q0 b 1 1 \n", "run.txt:2: 5 columns"),
        ("q\tQ0\ta b\t1\t2\tt\n", "run.txt:1: 7 columns"),
        *(
            (
                f"q Q0 a 1 2 t\n\nq Q0 b 2 {score} t\n",
                f"run.txt:3: score '{score}'; expected a finite number within float32",
            )
            for score in ("x", "1_0", "0x1", "NaN", "-inf", "1e39", "1e999")
        ),
        (
            "q Q0 a 1 2 t\nq1 Q0 a 1 2 t\nq Q0 a 2 1 t\n",
            "run.txt:3: query q has docid a a second time (first on line 1); expected every docid once a query",
        ),
        ("q\ta\t1\nq\tb\t0\n", "run.txt:2: rank '0'; expected a whole number from 1 in column 3"),
        ("q\ta\t1\nq\tb\n", "run.txt:2: 2 columns; expected MS MARCO `qid docid rank`"),
        ("q Q0 a\u00a0b 1 2 t\n", r"run.txt:1: docid 'a\xa0b'; expected one that is not empty and has no white space"),
        ("q Q0 a 1 2 t\nq\x1b[2J\tQ0\tb\t2\t1\tt\n", r"run.txt:2: query id 'q\x1b[2J'; expected one that"),
        ("q Q0 a 1 2 t\n\ufeffq Q0 b 2 1 t\n", r"run.txt:2: query id '\ufeffq'; expected one that"),
        ("q\ta\t1\nq\tb\u2028c\t2\n", r"run.txt:2: docid 'b\u2028c'; expected one that"),
        ("", "run.txt: no run lines; expected TREC `qid Q0 docid rank score tag` or MS MARCO `qid docid rank`"),
        ("\nq a\n", "run.txt:2: 2 columns; expected TREC `qid Q0 docid rank score tag` or MS MARCO `qid docid rank`"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with refusal_with(message):
        Run.read(file(tmp_path, text))


def test_other_errors_of_reading(tmp_path: Path) -> None:
    with refusal("no such run file"):
        Run.read(tmp_path / "none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"q Q0 a 1 2 t\nq Q0 \xff 2 1 t\n")
    with refusal(r"bytes.txt:2: not UTF-8"):
        Run.read(tmp_path / "bytes.txt")
    with refusal("format 'tre'; did you mean trec"):
        Run.read(file(tmp_path, TREC), format="tre")
    with refusal(r"run.txt:1: 6 columns; expected MS MARCO"):
        Run.read(file(tmp_path, TREC), format="msmarco")


@pytest.mark.parametrize(
    "docids",
    [
        [f"d{number}" for number in range(2000)],
        [str(7 * number % 6899) for number in range(2000)],  # counted off in a table
        [f"{number:05d}" for number in range(2000)],
        [str(number) for number in range(1000)] + [f"0{number}" for number in range(1000)],
        [f"{number - 1000:+d}" for number in range(2000)],
        [str(number * 10**15) for number in range(1999)] + ["9" * 30],
    ],
)
def test_clean_and_line_by_line_reading_agree(
    tmp_path: Path, docids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK", 512)
    rng = np.random.default_rng(5)
    lines = [f"q{rng.integers(9)} Q0 {docids[i]} 1 {rng.integers(-9, 9) / 4} t" for i in rng.permutation(2000)]
    lines += [f"r{line[1:]}" for line in lines[:100]]
    clean = Run.read(file(tmp_path, "\n".join(lines) + "\n"))
    slow = Run.read(file(tmp_path, lines[0].replace(" ", "  ") + "\n" + "\n".join(lines[1:]) + "\n"))
    assert clean.qids == slow.qids
    of_lines = [line.split()[2] for line in lines]
    assert clean.docids.tolist() == slow.docids.tolist() == list(dict.fromkeys(of_lines))
    assert [list(clean[qid]) for qid in clean] == [list(slow[qid]) for qid in slow]
    for qid in clean:
        keys = [(score, docid) for docid, score in clean[qid]]
        assert keys == sorted(keys, reverse=True)  # as trec_eval


def ranked(form: str) -> str:
    return "\n".join(
        form.format(d=f"d{n}", rank=n + 1, score=-n * 0.5, back=n * 0.5, tied=-max(n // 2, n - 3)) for n in range(10)
    )


CONTRADICTED = "on 9 of 9 lines the score does not fall where the rank rises"
NO_RANKS = "in 2 of 2 queries no rank is 1, or one stands twice"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ranked("q Q0 {d} {rank} {score} t"), None),
        (ranked("q Q0 {d} {rank} {tied} t"), None),  # a few ties
        (ranked("q Q0 {d} x 1 t"), None),
        (ranked("q Q0 {d} {rank} 1 t"), CONTRADICTED),
        (ranked("q Q0 {d} {rank} {back} t"), CONTRADICTED),  # distances
        (ranked("q  Q0 {d} {rank} {back} t"), CONTRADICTED),  # not read in one go
        (ranked("q {d} {rank}"), None),
        ("q\ta\t1\nq\tb\t3\nr\ta\t2\n", None),
        ("q\ta\t1\nq\tb\t1\nr\ta\t2\n", NO_RANKS),
        ("q\t a\t17\nq\tb\t12\nr\ta\t9\n", NO_RANKS),
    ],
)
def test_ranks_that_are_none_or_that_scores_contradict_are_reported(
    tmp_path: Path, text: str, said: str | None, recwarn: pytest.WarningsRecorder
) -> None:
    path = file(tmp_path, text)
    Run.read(path)
    assert [str(one.message).split(";")[0] for one in recwarn] == ([f"{path}: {said}"] if said else [])


def test_from_columns_and_from_dict() -> None:
    run = Run.from_columns(["b", "a", "b"], ["x", "x", "y"], [1, 2, 3])
    assert run.qids == ("b", "a")
    assert run["b"] == [("y", 3.0), ("x", 1.0)]
    assert run.docids.tolist() == ["x", "y"]
    assert repr(run) == "Run(2 queries, 3 entries)"
    again = Run.from_dict(run.to_dict())
    assert again.to_dict() == run.to_dict()
    empty = Run.from_dict({"a": {}, "b": {"x": 1.0}, "c": {}})
    assert (len(empty), list(empty), empty["a"], empty["c"]) == (3, ["a", "b", "c"], [], [])
    assert "a" in empty
    assert "x" not in empty
    assert len(Run.from_dict({})) == 0


def test_head_keeps_the_best() -> None:
    run = Run.from_dict({"a": {"x": 1.0, "y": 2.0, "z": 3.0}, "b": {}, "c": {"x": 5.0}})
    assert run.head(2).to_dict() == {"a": {"z": 3.0, "y": 2.0}, "b": {}, "c": {"x": 5.0}}
    assert run.head(9).to_dict() == run.to_dict()
    assert run.head(1).ranks.tolist() == [1, 1]
    with refusal("depth=0: expected an integer >= 1"):
        run.head(0)


def test_runs_of_data_frames_and_arrays() -> None:
    expected = {"7": {"11": 2.0, "9": 1.0}, "8": {"11": 0.5}}
    frame = pandas.DataFrame({"qid": [7, 7, 8], "docno": [9, 11, 11], "score": [1.0, 2.0, 0.5]}, index=[5, 5, 9])
    for made in (frame, frame.astype({"qid": str, "docno": object}), frame.astype({"score": "Float64"})):
        assert Run.from_columns(made["qid"], made["docno"], made["score"]).to_dict() == expected
    arrays = [frame[name].to_numpy() for name in frame]
    assert Run.from_columns(*arrays).to_dict() == expected
    assert Run.from_columns(*(array.tolist() for array in arrays)).to_dict() == expected
    assert Run.from_dict({7: {np.int64(9): 1, 11: np.float32(2)}, "8": {"11": 0.5}}).to_dict() == expected  # type: ignore[dict-item]


def test_some_queries_by_number_or_mask() -> None:
    run = Run.from_dict({"a": {"x": 1.0}, "b": {}, "c": {"y": 2.0, "x": 1.0}})
    for numbers in ([2, 0], np.array([2, 0], dtype=np.uint8)):
        assert list(run.of_queries(numbers).to_dict().items()) == [("c", {"y": 2.0, "x": 1.0}), ("a", {"x": 1.0})]
    for mask in ([True, False, True], np.array([True, False, True])):
        assert list(run.of_queries(mask)) == ["a", "c"]
    assert len(run.of_queries([])) == len(run.of_queries(np.zeros(3, dtype=bool))) == 0
    for wrong in ([True, False], [0, 0], [3], [-1], [0.5], ["a"]):
        with refusal(r"^queries: .*; expected (numbers below 3|distinct ones)"):
            run.of_queries(wrong)  # type: ignore[arg-type]


FRAME = pandas.DataFrame({"a": ["x"]})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Run.from_columns(["a", "b"], ["x"], [1.0]), "2 qids, 1 docids, 1 scores: expected equal numbers"),
        (lambda: Run.from_columns("a", ["x"], [1.0]), "qids: got 'a'; expected one column of strings"),
        (lambda: Run.from_columns(["a"], FRAME, [1.0]), r"docids: got \(1, 1\); expected one column of strings"),
        (lambda: Run.from_columns(["a"], [7.0], [1.0]), "docids: 7.0 is of type float; expected strings"),
        (lambda: Run.from_columns(["a"], ["x"], ["high"]), "scores: expected numbers"),
        (lambda: Run.from_columns(["a", "a"], ["x", "x"], [1, 2]), "query a: docid x stands there twice"),
        (lambda: Run.from_dict({7: {}, "7": {}}), "qids: a number and a string are the same id"),
        (lambda: Run.from_dict({"a": {"x": float("nan")}}), "query a, docid x: score nan"),
        (lambda: Run.from_dict({"a": ["x", "y"]}), "query a: got list; expected {docid: score}"),
        (lambda: Run.from_dict({}).head(2.5), "depth=2.5: expected an integer >= 1"),
    ],
)
def test_what_python_callers_get_wrong(make: Callable[[], object], message: str) -> None:
    with refusal(message):
        make()


def test_ties_of_float32_are_by_descending_docid_in_files_and_dicts(tmp_path: Path) -> None:
    entries = {"a": 0.9 + 2e-9, "b": 0.9 + 1e-9, "c": 0.9, "d": 0.8, "e": 0.8, "f": 1e-9}
    (tmp_path / "run.txt").write_text("".join(f"q Q0 {docid} 1 {score!r} t\n" for docid, score in entries.items()))
    read, made = Run.read(tmp_path / "run.txt"), Run.from_dict({"q": entries})
    columns = Run.from_columns(["q"] * 6, list(entries), list(entries.values()))
    for run in (read, made, columns, read.as_written()):
        assert run.ranked("q") == ["c", "b", "a", "e", "d", "f"]
    assert read.to_dict() == made.to_dict() == columns.to_dict()
    assert {score for _, score in read["q"][:3]} == {float(np.float32(0.9))}


def test_a_gap_in_one_query_of_a_run_without_scores_changes_nothing(tmp_path: Path) -> None:
    lines = [f"q{query}\td{rank}\t{rank}" for query in (1, 2) for rank in (1, 2, 3, 4)]
    whole = Run.read(file(tmp_path, "\n".join(lines), "whole.tsv"))
    gap = Run.read(file(tmp_path, "\n".join(lines[:1] + lines[2:]), "gap.tsv"))
    assert gap["q2"] == whole["q2"]
    assert gap["q1"] == [("d1", 1.0), ("d3", 1 / 2), ("d4", 1 / 3)]


def test_scores_beyond_float32_keep_their_order() -> None:
    assert Run.from_dict({"q": {"a": 2e39, "b": 1e39}})["q"] == [("a", 2e39), ("b", 1e39)]
