"""Ours beside peers: the same work, the rows of the table, what is not installed; nothing here asserts a time."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.record import read_records
from rnnreranker.lab.bench import benchmark
from rnnreranker.lab.bench.__main__ import main
from rnnreranker.lab.bench.peers import measure as peers
from rnnreranker.lab.bench.peers import tasks as peer_tasks
from rnnreranker.lab.bench.peers.runs import Measuring, Reading
from rnnreranker.lab.bench.peers.tasks import PEERS, Peer, PeerTask, tasks
from rnnreranker.lab.bench.sizes import FULL, PeerSizes
from tests.test_bench import TINY

CELLS = [
    *("task", "size", "peer", "version", "peer_s", "ours_s", "ratio", "low", "high", "pairs", "agreement"),
    *("peer_MB", "ours_MB", "bound", "aim", "verdict"),
]
COMPILED = ("ranx",)  # by numba, half a minute
SAME = {
    "exact graph of 16 nearest": "1.0000 of edges",
    "read a run": "same docids, largest difference 0",
    "write a run": "same docids, largest difference 0",
    "nDCG@10, RR@10, R@100": "largest difference 0",
    "fuse, RRF": "1.0000 of first documents",
    "GAR": "1.0000 of queries' first ten",
    "LADR, proactive": "1.0000 of queries' first ten",
    "LADR, adaptive": "1.0000 of queries' first ten",
    "LADR, adaptive, few": "1.0000 of queries' first ten",
    "vector PRF of 60 candidates": "1.0000 of queries' first ten",
}


def here(module: str, function: str, environment: dict[str, str] | None = None, **values: Any) -> Any:
    """In this process, which is quicker."""
    return getattr(importlib.import_module(module), function)(**values)


@pytest.mark.parametrize("made", list(tasks()), ids=lambda made: made.name)
@pytest.mark.long
def test_ours_and_every_installed_peer_do_the_same(
    made: type[PeerTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "in_fresh_process", here)
    monkeypatch.setattr(made, "peers", tuple(peer for peer in made.peers if peer not in COMPILED))
    task = made(tmp_path, TINY.peers)
    task.write()
    rows = list(peers._rows(task, 1))
    assert [row["peer"] for row in rows] == list(made.peers)
    for row in rows:
        assert list(row) == CELLS
        assert (row["bound"], row["verdict"]) == (None, "")  # of tiny sizes
        if row["version"] == "not installed":
            assert (row["ratio"], row["agreement"]) == (None, "")
            continue
        assert min(row["peer_s"], row["ours_s"]) > 0
        assert (row["ours_MB"] is not None) == made.of_process
        assert row["agreement"].startswith(SAME.get(made.name, "")), row


def test_a_peer_that_is_not_installed_is_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "pandas", Peer("none-such", "none_such_package"))
    monkeypatch.setattr(Reading, "peers", ("pandas",))
    task = Reading(tmp_path, TINY.peers)
    task.write()
    (row,) = peers._rows(task, 1)
    told = {"task": "read a run", "size": "5 x 30", "peer": "pandas", "version": "not installed"}
    assert row == dict.fromkeys(CELLS) | told | {"agreement": "", "verdict": ""}


def test_the_part_is_measured_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "QUICK", TINY)
    monkeypatch.setattr(peers, "tasks", lambda: [Reading])
    monkeypatch.setattr(Reading, "peers", ("pandas",))
    path = tmp_path / "record.json"
    assert main(["--quick", "--only", "peers", "--output", str(path)]) == 0
    (made,) = read_records(path)
    assert made.name == "performance-quick-peers"
    (row,) = made.outcome["parts"]["peers"]["rows"]
    assert (row["task"], row["peer"], row["pairs"], row["agreement"]) == (
        *("read a run", "pandas", TINY.pairs),
        "same docids, largest difference 0",
    )
    assert row["peer_MB"] > 10 < row["ours_MB"]  # of fresh processes


def test_a_bound_belongs_to_the_full_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "FULL", TINY)
    monkeypatch.setattr(Reading, "peers", ("pandas",))
    monkeypatch.setattr(Reading, "of_process", False)
    task = Reading(tmp_path, TINY.peers)
    task.write()
    (row,) = peers._rows(task, 1)
    assert row["bound"] == 1.0
    assert row["verdict"] == ("over" if row["ratio"] > 1 else "ok")
    assert FULL.peers == PeerSizes(10_000, 384, 1000, 50, 7000, 1000, 1000, 10_000, 1000, 200, 1000)


def test_judgements_are_of_documents_of_the_run(tmp_path: Path) -> None:
    task = Measuring(tmp_path, TINY.peers)
    task.write()
    assert {len(own) for own in task.grades.values()} == {10}
    assert all(set(own) <= set(task.as_dict[qid]) for qid, own in task.grades.items())
    assert {sum(own.values()) for own in task.grades.values()} == {6}


def test_shares_and_differences_in_words() -> None:
    assert peer_tasks.same_share([[1], [2]], [[1], [3]], "queries") == "0.5000 of queries"
    assert peer_tasks.same_share([], [], "edges") == "0.0000 of edges"
    assert peer_tasks.largest_difference([], []) == "largest difference 0"
    with pytest.raises(ValueError, match="shorter"):
        peer_tasks.same_share([1], [], "edges")
