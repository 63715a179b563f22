"""Pools for judgement: sheets out, judgements back, agreement."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.data.qrels import load_qrels
from rnnreranker.evaluate.pool import make_sheets, read_judgements
from rnnreranker.evaluate.pool.__main__ import main
from rnnreranker.evaluate.pool.pooling import SheetRow, agreement, pool
from rnnreranker.runs import Run

ONE = Run.from_dict({"q2": {"a": 3.0, "b": 2.0, "c": 1.0}, "q1": {"d": 1.0}})
TWO = Run.from_dict({"q2": {"c": 3.0, "x": 2.0, "a": 1.0}})


def test_pool_is_the_union_of_the_first_ranks_in_the_order_of_the_topics() -> None:
    pooled = pool([ONE, TWO], 2, ["q1", "q2", "q3"])
    assert list(pooled) == ["q1", "q2"]
    assert sorted(pooled["q2"]) == ["a", "b", "c", "x"]
    assert pooled["q1"] == ["d"]


def test_shuffle_hides_runs_and_ranks() -> None:
    runs = [Run.from_dict({"q": {f"d{i:02d}": float(sign * i) for i in range(40)}}) for sign in (1, -1)]
    pooled = pool(runs, 15, ["q"])["q"]
    assert pool(runs[::-1], 15, ["q"])["q"] == pooled
    assert sorted(pooled) != pooled
    assert pool(runs, 15, ["q"], seed=1)["q"] != pooled
    with_more_topics = pool([*runs, Run.from_dict({"p": {"z": 1.0}})], 15, ["p", "q"])
    assert with_more_topics["q"] == pooled


def test_what_cannot_be_pooled() -> None:
    with pytest.raises(InputError, match=r"run 1: 1 of its queries are no topics \(first: q1\)"):
        pool([ONE], 2, ["q2"])
    with pytest.raises(InputError, match="depth=0"):
        pool([ONE], 0, ["q1", "q2"])
    with pytest.raises(InputError, match="no runs"):
        pool([], 1, ["q1"])


def rows(*grades: int | None) -> list[SheetRow]:
    return [SheetRow("q", f"d{i}", grade, f"s:{i}") for i, grade in enumerate(grades)]


def test_agreement_by_hand() -> None:
    # differences 0, 0, 1, 3; the fifth pair is not judged by both
    found = agreement(rows(0, 1, 2, 3, 1), rows(0, 1, 3, 0, None))
    assert (found.pairs, found.equal, found.within_one) == (4, 0.5, 0.75)
    # expected: first judge 0 1 2 3 a quarter each; second 0 twice, 1, 3: mean |a - b| over all 16 combinations
    expected = sum(abs(a - b) for a in (0, 1, 2, 3) for b in (0, 0, 1, 3)) / 16
    assert found.kappa == pytest.approx(1 - (4 / 4) / expected)
    assert agreement(rows(0, 3, 2), rows(0, 3, 2)).kappa == 1.0
    assert agreement(rows(1, 1), rows(1, 1)).kappa == 1.0
    assert agreement(rows(0, 0, 3, 3), rows(0, 3, 0, 3)).kappa == pytest.approx(0.0)
    with pytest.raises(InputError, match="no document was judged by both"):
        agreement(rows(1, None), rows(None, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ONE.write(tmp_path / "one.txt")
    TWO.write(tmp_path / "two.txt")
    (tmp_path / "topics.tsv").write_text("q1\tfirst query\tis good when first\nq2\tsecond query\n")
    documents = "".join(f'{{"_id": "{name}", "text": "text\\tof\\n{name}"}}\n' for name in "abcdxyz")
    (tmp_path / "docs.jsonl").write_text(documents)
    return tmp_path


def make(folder: Path, *more: str) -> int:
    runs = [str(folder / "one.txt"), str(folder / "two.txt")]
    sources = ["--topics", str(folder / "topics.tsv"), "--documents", str(folder / "docs.jsonl")]
    return main([*runs, *sources, "--output", str(folder / "sheet.tsv"), *more])


def test_sheet_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(folder, "--depth", "2") == 0
    lines = (folder / "sheet.tsv").read_text().splitlines()
    assert lines[0] == "qid\tquery\tnarrative\tdocid\ttext\tgrade"
    assert lines[1] == "q1\tfirst query\tis good when first\td\ttext of d\t"
    assert len(lines) == 6
    assert all(line.startswith("q2\tsecond query\t\t") for line in lines[2:])

    read = ["--read", str(folder / "sheet.tsv"), "--output", str(folder / "qrels.txt")]
    with pytest.raises(InputError, match=r"5 of 5 rows have no grade \(first: .*sheet.tsv:2\)"):
        main(read)
    with pytest.raises(InputError, match="no row has a grade"):
        main([*read, "--allow-missing"])
    filled = [lines[0], *(f"{line}{i % 4}\r" for i, line in enumerate(lines[1:4])), lines[4].rstrip("\t"), lines[5]]
    (folder / "sheet.tsv").write_text("\ufeff" + "\n".join(filled) + "\n\n")
    assert main([*read, "--allow-missing"]) == 0
    qrels = load_qrels(folder / "qrels.txt")
    assert qrels["relevance"].tolist() == [0, 1, 2]
    assert qrels["query_id"].tolist() == ["q1", "q2", "q2"]
    capsys.readouterr()

    second = [*filled[:3], filled[3][:-2] + "3"]
    (folder / "second.tsv").write_text("\n".join(second))
    assert main([*read, "--allow-missing", "--second", str(folder / "second.tsv")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[:3] == ["3", "0.6667", "1.0000"]


def test_python_makes_and_reads_the_sheets_of_the_command(folder: Path) -> None:
    assert make(folder, "--depth", "2", "--seed", "3") == 0
    sources = [folder / "topics.tsv", str(folder / "docs.jsonl"), folder / "same.tsv"]
    made = make_sheets([ONE, folder / "two.txt"], *sources, depth=2, seed=3)  # type: ignore[arg-type]
    assert made.paths == [folder / "same.tsv"]
    assert (folder / "same.tsv").read_bytes() == (folder / "sheet.tsv").read_bytes()
    with pytest.raises(InputError, match=r"judge them, or leave them out with allow_missing$"):
        read_judgements([folder / "same.tsv"])
    header, *lines = (folder / "same.tsv").read_text().splitlines()
    (folder / "same.tsv").write_text("\n".join([header, *(f"{line}2" for line in lines[:-1]), lines[-1]]))
    judged = read_judgements([folder / "same.tsv"], [folder / "same.tsv"], allow_missing=True)
    assert (judged.ungraded, judged.write(folder / "qrels.txt")) == (1, len(lines) - 1)
    assert judged.agreement is not None
    assert judged.agreement.equal == 1
    with pytest.raises(InputError, match=r"^no runs.*; depth=0: expected at least 1$"):
        make_sheets([], *sources, depth=0)  # type: ignore[arg-type]


def test_sheets_by_topics(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(folder, "--per-sheet", "1") == 0
    paths = capsys.readouterr().out.split()
    assert [Path(path).name for path in paths] == ["sheet-1.tsv", "sheet-2.tsv"]
    for path, count in zip(paths, (1, 4), strict=True):
        header, *lines = Path(path).read_text().splitlines()
        assert len(lines) == count
        Path(path).write_text("\n".join([header, *(line + "1" for line in lines)]))
    assert main(["--read", *paths, "--output", str(folder / "qrels.txt")]) == 0
    assert len(load_qrels(folder / "qrels.txt")) == 5
    with pytest.raises(InputError, match=r"sheet-1.tsv:2: query q1, docid d a second time \(first: .*sheet-1.tsv:2\)"):
        main(["--read", paths[0], paths[0], "--output", str(folder / "qrels.txt")])


def test_wrong_sheets(folder: Path) -> None:
    sheet = folder / "bad.tsv"
    read = ["--read", str(sheet), "--output", str(folder / "qrels.txt")]
    sheet.write_text("qid\tdocid\tgrade\nq\ta\t4\nq\tb\t1\tx\nq\tc\t1.5\nq\td\t1\n")
    with pytest.raises(InputError) as caught:
        main(read)
    assert "bad.tsv:2: grade '4'; expected 0, 1, 2 or 3" in str(caught.value)
    assert "bad.tsv:3: 4 columns; expected 3" in str(caught.value)
    assert "bad.tsv:4: grade '1.5'" in str(caught.value)
    sheet.write_text("q\ta\t1\n")
    with pytest.raises(InputError, match=r"bad.tsv:1: no column qid, docid, grade"):
        main(read)
    assert not (folder / "qrels.txt").exists()


def test_documents_that_lack_a_pooled_one(folder: Path) -> None:
    (folder / "docs.jsonl").write_text('{"_id": "a", "text": "t"}\n')
    with pytest.raises(InputError, match=r"4 pooled documents have no text \(first: b, c, d\)"):
        make(folder)


def test_wrong_usage_is_refused_before_any_work() -> None:
    with pytest.raises(InputError) as caught:
        main(["--output", "x.tsv", "--depth", "0", "--second", "y.tsv"])
    for part in ("--topics is needed", "--documents is needed", "no runs", "--second and --allow", "--depth 0"):
        assert part in str(caught.value)
    with pytest.raises(InputError, match="--read takes no runs"):
        main(["run.txt", "--read", "x.tsv", "--output", "y.txt"])
