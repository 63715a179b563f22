"""The base of retrievers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import settings_of

if TYPE_CHECKING:
    from rnnreranker.base.method import Inputs
    from rnnreranker.methods.feedback import Feedback
    from rnnreranker.runs import Run


class Retriever(ABC):
    """Retrieves the best documents of every topic.

    Args:
        inputs: what `needs` names.
        params: of the class `Params`; None = the defaults.
        threads: None = one per core; batch_size: queries at a time. Results depend on neither.
        devices: of the model that encodes queries; None = the processor.
        feedback: makes the queries of a second search; None = one search.

    Raises:
        InputError: parameters of another method, unusable feedback.

    A subclass in its own file is a method: it sets `name`, `needs`, `Params` and implements `retrieve`; one that can
    search again sets `over`.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    over: ClassVar[str] = ""  # of rnnreranker.methods.feedback.base.OVER; "" = no second search
    Params: ClassVar[type[settings.Params]] = settings.Params

    def __init__(
        self,
        inputs: Inputs,
        params: Any = None,
        *,
        threads: int | None = None,
        batch_size: int = 256,
        devices: Devices | None = None,
        feedback: Feedback | None = None,
    ) -> None:
        if feedback is not None and self.over not in feedback.over:
            raise InputError(f"retrieve {self.name}: cannot search again by {feedback.name}")
        self.inputs = inputs
        self.params: Any = settings_of(self, "retrieve", params)
        self.threads = threads
        self.batch_size = batch_size
        self.devices = devices
        self.feedback = feedback

    def check(self) -> None:  # noqa: B027  not every method can tell
        """Raise InputError or UnavailableError if the inputs cannot be used."""

    @abstractmethod
    def retrieve(self, hits: int) -> Run:
        """The run of all topics, in their order, with at most `hits` documents each."""


def run_of_rows(
    qids: tuple[str, ...], docids: Sequence[str], scores: Sequence[np.ndarray], rows: Sequence[np.ndarray]
) -> Run:
    """A run of Q queries; docids: row -> docid; scores, rows: of each query, best first, ties by docid."""
    from rnnreranker.runs import Run

    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    used, numbers = np.unique(np.concatenate(rows), return_inverse=True)
    names = np.array([docids[row] for row in used.tolist()], dtype=object)
    return Run.from_parts(qids, offsets, names, numbers, np.concatenate(scores))
