"""Digests of content: of files, of folders, of what an index and its query vectors are made from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base import files
from rnnreranker.base.files import file_digest
from rnnreranker.encode.model_folder import content_of

ONE = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"


def test_digests_are_remembered_until_the_file_changes(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    assert file_digest(path) == ONE
    assert not (home / "digests").exists()  # changed just now: a change within the clock's tick would not be seen
    monkeypatch.setattr(files, "SETTLED", -1)
    assert file_digest(path) == ONE
    (kept,) = (home / "digests").iterdir()
    kept.write_text(kept.read_text().replace(ONE, "remembered"))
    assert file_digest(path) == "remembered"
    time = path.stat().st_mtime_ns
    path.write_bytes(b"two")
    os.utime(path, ns=(time, time))  # the same size and time of change, as `cp -p` leaves them
    assert file_digest(path) not in (ONE, "remembered")
    with refusal("no such file"):
        file_digest(tmp_path / "none")


def test_a_model_is_all_of_its_files_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    for name in ("config.json", "model.safetensors", "1_Pooling/config.json", "README.md"):
        (tmp_path / name).write_text("{}")
    first = content_of(tmp_path)
    (tmp_path / "README.md").write_text("other")
    assert content_of(tmp_path) == first
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert content_of(tmp_path) != first
