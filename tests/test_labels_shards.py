"""Label jobs that are killed, spread over workers, or lose one, against undisturbed ones: byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelers import soft_labels
from refusals import refusal
from test_negatives import small

from rnnreranker import SoftLabels, make_labels
from rnnreranker.labels.__main__ import main
from rnnreranker.labels.soft import write_joined


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small job of five queries."""
    folder = tmp_path_factory.mktemp("job")
    small(folder)
    return folder


def made(folder: Path, output: Path, method: str = "evidence:k=4", **how: Any) -> bytes:
    files = {"run": "run.txt", "qrels": "qrels.txt", "index": "v.npy", "encoded_queries": "q.npy"}
    given = {name: folder / file for name, file in files.items()}
    assert len(make_labels(**given, method=method, output=output, **how)) == 5
    return output.read_bytes()


@pytest.mark.parametrize(("backend", "size"), [("threads", 2), ("threads", 1), ("loky", 3)])
def test_shards_and_workers_leave_no_trace(folder: Path, tmp_path: Path, backend: str, size: int) -> None:
    parts = made(folder, tmp_path / "parts.parquet", backend=backend, jobs=2, shard_size=size)
    assert parts == made(folder, tmp_path / "whole.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.parquet", "whole.parquet"]


def test_shares_are_put_together_to_the_bytes_of_one_process(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is made without a lock, and what lacks when they are put together."""
    command = ["--run", "run.txt", "--qrels", "qrels.txt", "--index", "v.npy", "--encoded-queries", "q.npy"]
    command = [str(folder / one) if "." in one else one for one in command]
    command += ["--shard-size", "1", "--jobs", "1", "--output"]
    out = tmp_path / "shares.parquet"
    assert main([*command, str(tmp_path / "whole.parquet")]) == 0
    for number in (2, 0):
        assert main([*command, str(out), "--shard-id", str(number), "--shard-num", "3"]) == 0
    assert (count(tmp_path), out.exists()) == (3, False)  # of five
    capsys.readouterr()
    assert main([*command, str(out), "--shard-id", "0", "--shard-num", "3"]) == 0
    assert "shares.parquet: shard 0 of 3: 0 shard files made, of 2" in capsys.readouterr().err
    assert main([*command, str(out)]) == 0
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert count(tmp_path) == 0
    with refusal("--shard-id and --shard-num go together: give both, or neither"):
        main([*command, str(out), "--shard-num", "3"])


def count(folder: Path) -> int:
    return len(list(folder.glob("*.parts/0*.parquet")))


@pytest.mark.parametrize("sizes", [[9], [1, 3, 1, 4], [4, 4, 1], [5, 4], [1] * 9])
def test_files_put_together_have_the_bytes_of_one(
    tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over row groups, wherever the files are cut; one query has no candidates that took part."""
    monkeypatch.setattr("rnnreranker.labels.soft.ROW_GROUP", 4)
    lengths, ends = [1 + n % 4 for n in range(9)], np.cumsum([0, *sizes]).tolist()
    columns: list[list[Any]] = [
        [f"q{n}" for n in range(9)],
        [[f"d{n}" for n in range(count)] for count in lengths],
        [[-np.inf if count == 3 else n / 7 for n in range(count)] for count in lengths],
        [[1 / count] * count for count in lengths],
        [[n == 0 for n in range(count)] for count in lengths],
    ]
    metadata, paths = {"method": "made up", "queries": 9}, [tmp_path / str(number) for number in range(len(sizes))]
    soft_labels(*columns, metadata).write(tmp_path / "whole")
    for path, first, last in zip(paths, ends, ends[1:], strict=False):
        soft_labels(*(column[first:last] for column in columns)).write(path)
    write_joined(tmp_path / "joined", paths, metadata)
    assert (tmp_path / "joined").read_bytes() == (tmp_path / "whole").read_bytes()


def test_other_settings_do_not_meet_the_shards_of_a_killed_job(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnnreranker.labels.make.write_joined", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            made(folder, out, shard_size=2)
    other = "evidence:boost=3"
    assert made(folder, out, other, shard_size=2) == made(folder, tmp_path / "y.parquet", other)
    assert SoftLabels.read(out).metadata["labels"]["boost"] == 3.0
    assert len(list(tmp_path.glob("*.parts"))) == 1  # the first job's, waiting


def test_files_that_are_no_labels(tmp_path: Path) -> None:
    with refusal("no such label file"):
        SoftLabels.read(tmp_path / "no.parquet")
    said = r"text\.parquet: no soft labels, or damaged ones \(.*\); expected a file of python -m rnnreranker\.labels$"
    for content in ("hello", "PAR1 and no more"):
        (tmp_path / "text.parquet").write_text(content)
        with refusal(said):
            SoftLabels.read(tmp_path / "text.parquet")
