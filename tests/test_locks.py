"""Locks between processes: who holds one may begin again what it holds it for, another thread waits."""

from __future__ import annotations

import threading
from pathlib import Path

from rnnreranker.base.jobs import alone


def test_a_thread_begins_again_what_it_is_at_and_another_waits(tmp_path: Path, capfd: object) -> None:
    order: list[str] = []

    def other() -> None:
        with alone(tmp_path / "out", "waiting") as waited:
            order.append(f"other, waited: {waited}")

    with alone(tmp_path / "out", "waiting") as first, alone(tmp_path / "out", "waiting") as second:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        order.append(f"first: {first}, {second}")
    thread.join()
    assert order == ["first: False, False", "other, waited: True"]
    assert list(tmp_path.iterdir()) == []
