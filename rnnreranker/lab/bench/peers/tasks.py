"""What a task of the benchmark `peers` is: the same work by us and by others, and whether they come to the same."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rnnreranker.lab.bench.sizes import PeerSizes

Work = Callable[[], Any]
ROOMS = ("peer_vectors", "peer_runs", "peer_texts", "peer_orders")  # the modules of tasks, in the order of the table


@dataclass(frozen=True)
class Peer:
    """A package that does the same: how pip calls it, and what is imported of it."""

    package: str
    module: str

    @property
    def version(self) -> str:
        """The one that is installed; empty where it is not."""
        if importlib.util.find_spec(self.module.partition(".")[0]) is None:
            return ""
        return importlib.metadata.version(self.package)


PEERS = {
    "bm25s": Peer("bm25s", "bm25s"),
    "faiss": Peer("faiss-cpu", "faiss"),
    "ir_measures": Peer("ir-measures", "ir_measures"),
    "numpy": Peer("numpy", "numpy"),
    "pandas": Peer("pandas", "pandas"),
    "pyserini": Peer("pyserini", "pyserini"),
    "pyterrier": Peer("pyterrier", "pyterrier"),
    "pyterrier_dr": Peer("pyterrier-dr", "pyterrier_dr"),
    "pytrec_eval": Peer("pytrec-eval-terrier", "pytrec_eval"),
    "ranx": Peer("ranx", "ranx"),
    "sentence_transformers": Peer("sentence-transformers", "sentence_transformers"),
    "sklearn": Peer("scikit-learn", "sklearn"),
    "torch": Peer("torch", "torch"),
}


class PeerTask(ABC):
    """A task: `ours` and one method `by_PEER` for each of the peers make what is timed, inputs being there before.

    folder: where `write` has put files and where results may go. of_process: whether the memory of a fresh process that
    does nothing else is measured too.
    """

    name: ClassVar[str]
    peers: ClassVar[tuple[str, ...]]
    of_process: ClassVar[bool] = False

    def __init__(self, folder: Path, sizes: PeerSizes) -> None:
        self.folder, self.sizes = folder, sizes

    @property
    @abstractmethod
    def size(self) -> str:
        """How large it is, in words."""

    @property
    def each(self) -> int:
        """Queries, where seconds are of one."""
        return 1

    def write(self) -> None:
        """Put the files of the task into its folder, once."""
        return

    @abstractmethod
    def ours(self) -> Work:
        """What we do, everything that it needs being loaded."""

    def by(self, peer: str) -> Work:
        """What a peer does, likewise."""
        made: Work = getattr(self, f"by_{peer}")()
        return made

    @abstractmethod
    def agreement(self, peer: str, ours: Any, theirs: Any) -> str:
        """In words, how far what both returned is the same."""


def tasks() -> Iterator[type[PeerTask]]:
    """All tasks, in the order of the table."""
    for room in ROOMS:
        made: Iterable[type[PeerTask]] = importlib.import_module(
            f"rnnreranker.lab.bench.peers.{room.removeprefix('peer_')}"
        ).TASKS
        yield from made


def same_share(ours: Iterable[Any], theirs: Iterable[Any], what: str) -> str:
    """The share of things that are the same, one by one.

    >>> same_share([1, 2, 3, 4], [1, 2, 3, 5], "edges")
    '0.7500 of edges'
    """
    pairs = list(zip(ours, theirs, strict=True))
    return f"{sum(bool(one == other) for one, other in pairs) / max(len(pairs), 1):.4f} of {what}"


def largest_difference(ours: Any, theirs: Any) -> str:
    """The largest difference of two arrays.

    >>> largest_difference([1.0, 2.0], [1.0, 2.5])
    'largest difference 0.5'
    """
    apart = np.abs(np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64))
    return f"largest difference {apart.max(initial=0.0):.2g}"
