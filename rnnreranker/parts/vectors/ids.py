"""Row numbers and ids: the file with one id a line, and the quick way back from id to row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text
from rnnreranker.base.given import ids_of
from rnnreranker.runs.arrow import as_numpy, strings
from rnnreranker.runs.columns import check_id


class Ids:
    """The ids of rows 0..n-1 and, on first use, the row of every id."""

    def __init__(self, names: list[str], origin: str) -> None:
        self.names = names
        self._origin = origin

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each id, -1 where it is unknown; InputError: no list of ids."""
        row_of = self._row_of.get
        try:
            if isinstance(names, str | bytes | Mapping):
                raise TypeError  # they have elements too
            return np.fromiter((row_of(name, -1) for name in names), dtype=np.int64, count=len(names))
        except TypeError:  # no list, or elements that no id can be
            return self.rows(ids_of(names, "docids"))

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        """(n,) int64: the rank of each row among the ids in their order, for ties."""
        import pyarrow.compute

        ranks = np.empty(len(self.names), dtype=np.int64)
        in_order = pyarrow.compute.sort_indices(strings(self.names))
        ranks[as_numpy(in_order)] = np.arange(len(ranks))
        return ranks

    def check(self) -> None:
        """Look for an id that is empty or has white space or control characters, and for an id on two lines.

        Raises:
            InputError: with the id and its line, or both lines.
        """
        for line, name in enumerate(self.names, 1):
            if not name:
                raise InputError(f"{self._origin}:{line}: empty line; expected one id a line")
            check_id(name, "id", f"{self._origin}:{line}")
        if len(self._row_of) < len(self.names):
            first = dict(zip(reversed(self.names), range(len(self.names), 0, -1), strict=True))
            line, name = next((line, name) for line, name in enumerate(self.names, 1) if first[name] != line)
            raise InputError(
                f"{self._origin}:{line}: {name} is already on line {first[name]}; every row needs its own id"
            )


def read_ids(path: Path, what: str = "file of ids, one a line") -> Ids:
    """The ids in a text file, one a line, in order.

    Raises:
        InputError: no such file, an empty line, an id twice, with white space or a control character.
    """
    text = read_text(path, what)
    names = text.replace("\r\n", "\n").split("\n")
    if names[-1] == "":
        names.pop()
    ids = Ids(names, str(path))
    ids.check()
    return ids
