"""The SoftLabels type: per query the candidates, their scores and the target distribution; a parquet file on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import write_atomically

if TYPE_CHECKING:
    import pyarrow

KEY = b"rnnreranker"  # of the file's metadata: a JSON object
COLUMNS = ("qid", "docids", "scores", "targets", "positive")
ROW_GROUP = 4096  # queries


@dataclass(frozen=True)
class Labels:
    """The labels of one query: n candidates, all arrays (n,)."""

    qid: str
    docids: list[str]
    scores: np.ndarray  # float32, raw scores of the method; -inf where it gave none
    targets: np.ndarray  # float32, probabilities that sum to 1
    positive: np.ndarray  # bool, judged relevant


@dataclass(frozen=True, eq=False, repr=False)
class SoftLabels:
    """For Q queries the target distribution over their L candidates in all.

    Attributes:
        qids: Q distinct query ids.
        offsets: (Q+1,) int64; query i owns the entries offsets[i]:offsets[i+1].
        docids: (L,) object array of docids, positives that were put in first.
        scores: (L,) float32, what the method gave each candidate; -inf where it gave nothing.
        targets: (L,) float32, probabilities in [0, 1] that sum to 1 over a query.
        positive: (L,) bool, whether the candidate is judged relevant.
        metadata: what made them: method, parameters, fingerprints, versions (JSON values).

    >>> labels = SoftLabels.from_lists(["q"], [["b", "a"]], [[0.5, 0.5]], [[0.75, 0.25]], [[True, False]])
    >>> [(one.qid, one.docids, one.targets.tolist()) for one in labels]
    [('q', ['b', 'a'], [0.75, 0.25])]
    """

    qids: tuple[str, ...]
    offsets: np.ndarray
    docids: np.ndarray
    scores: np.ndarray
    targets: np.ndarray
    positive: np.ndarray
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_lists(
        cls,
        qids: Sequence[str],
        docids: Sequence[Sequence[str]],
        scores: Sequence[Sequence[float]],
        targets: Sequence[Sequence[float]],
        positive: Sequence[Sequence[bool]],
        metadata: Mapping[str, Any] | None = None,
    ) -> SoftLabels:
        """Labels from one list a query in each column.

        Raises:
            InputError: columns of different lengths.
        """
        lengths = [len(found) for found in docids]
        for name, column in (("scores", scores), ("targets", targets), ("positive", positive)):
            if [len(found) for found in column] != lengths:
                raise InputError(f"{name}: another number of values than docids in some query; expected as many")
        if len(qids) != len(lengths):
            raise InputError(f"{len(qids)} qids for {len(lengths)} lists of docids: expected equal numbers")
        flat = np.empty(sum(lengths), dtype=object)
        flat[:] = [docid for found in docids for docid in found]
        return cls(
            tuple(qids),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            flat,
            np.array([value for found in scores for value in found], dtype=np.float32),
            np.array([value for found in targets for value in found], dtype=np.float32),
            np.array([value for found in positive for value in found], dtype=bool),
            dict(metadata or {}),
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SoftLabels:
        """The labels of a parquet file written by `write`.

        Raises:
            InputError: no such file, not parquet, or without the columns and metadata of soft labels.
        """
        import pyarrow
        import pyarrow.parquet as parquet

        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: no such label file; make one with python -m rnnreranker.labels")
        try:
            table = parquet.read_table(path, partitioning=None)
        except (pyarrow.ArrowInvalid, OSError) as error:
            with open(path, "rb") as stream:
                whole = stream.read(4) == b"PAR1"  # else it is some other file, and Arrow's reasons are of no use
            reason = f", or a damaged one ({str(error).splitlines()[0][:80]})" if whole else ""
            raise InputError(
                f"{path}: not a parquet file{reason}; expected the output of python -m rnnreranker.labels"
            ) from None
        described = (table.schema.metadata or {}).get(KEY)
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing or described is None:
            what = f"columns {', '.join(missing)}" if missing else "the metadata that says how they were made"
            raise InputError(
                f"{path}: no soft labels, it lacks {what}; expected a file of python -m rnnreranker.labels"
            )
        return cls._from_table(table, json.loads(described))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a parquet file (zstd), one row a query, whole or not at all; equal labels give equal bytes.

        Raises:
            InputError: a path that cannot be written.
        """
        _write(path, [self._to_table()], self.metadata)

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[Labels]:
        for place in range(len(self.qids)):
            yield self._at(place)

    def __getitem__(self, qid: str) -> Labels:
        return self._at(self._places[qid])

    def __contains__(self, qid: object) -> bool:
        return qid in self._places

    def __repr__(self) -> str:
        return f"SoftLabels({len(self.qids)} queries, {len(self.docids)} candidates)"

    @cached_property
    def _places(self) -> dict[str, int]:
        return {qid: place for place, qid in enumerate(self.qids)}

    def _at(self, place: int) -> Labels:
        entries = slice(self.offsets[place], self.offsets[place + 1])
        return Labels(
            self.qids[place],
            self.docids[entries].tolist(),
            self.scores[entries],
            self.targets[entries],
            self.positive[entries],
        )

    def _to_table(self) -> pyarrow.Table:
        import pyarrow

        schema = _schema(self.metadata)
        offsets = pyarrow.array(self.offsets, type=pyarrow.int32())
        lists = [
            pyarrow.ListArray.from_arrays(
                offsets, pyarrow.array(getattr(self, name), schema.field(name).type.value_type)
            )
            for name in COLUMNS[1:]
        ]
        return pyarrow.table([pyarrow.array(self.qids, pyarrow.string()), *lists], schema=schema)

    @classmethod
    def _from_table(cls, table: pyarrow.Table, metadata: dict[str, Any]) -> SoftLabels:
        lists = {name: table.column(name).combine_chunks() for name in COLUMNS[1:]}
        offsets = np.concatenate([[0], np.cumsum(lists["docids"].value_lengths().to_numpy(zero_copy_only=False))])
        return cls(
            tuple(table.column("qid").to_pylist()),
            offsets.astype(np.int64),
            lists["docids"].flatten().to_numpy(zero_copy_only=False).astype(object),
            lists["scores"].flatten().to_numpy(zero_copy_only=False).astype(np.float32),
            lists["targets"].flatten().to_numpy(zero_copy_only=False).astype(np.float32),
            lists["positive"].flatten().to_numpy(zero_copy_only=False).astype(bool),
            metadata,
        )


def described(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a label file, without reading its labels."""
    import pyarrow.parquet as parquet

    found: dict[str, Any] = json.loads(parquet.read_schema(path).metadata[KEY])
    return found


def write_joined(
    output: str | os.PathLike[str], paths: Sequence[str | os.PathLike[str]], metadata: Mapping[str, Any]
) -> None:
    """Write the queries of several label files, one after the other, into one.

    The bytes are those of `SoftLabels.write` on all of them, while memory holds one file and one row group.

    Args:
        output: the file to write.
        paths: label files with distinct queries; one at least.
        metadata: of the file that is written.

    Raises:
        InputError: a path that cannot be written.
    """
    import pyarrow.parquet as parquet

    _write(output, (parquet.read_table(path, partitioning=None) for path in paths), metadata)


def _schema(metadata: Mapping[str, Any]) -> pyarrow.Schema:
    import pyarrow

    kinds = (pyarrow.string(), pyarrow.float32(), pyarrow.float32(), pyarrow.bool_())
    lists = [(name, pyarrow.list_(kind)) for name, kind in zip(COLUMNS[1:], kinds, strict=True)]
    described = json.dumps(dict(metadata), sort_keys=True).encode()
    return pyarrow.schema([(COLUMNS[0], pyarrow.string()), *lists], metadata={KEY: described})


def _write(path: str | os.PathLike[str], tables: Iterable[pyarrow.Table], metadata: Mapping[str, Any]) -> None:
    """Write the rows of tables in row groups of ROW_GROUP, wherever the tables end: the rows alone make the bytes."""
    import pyarrow
    import pyarrow.parquet as parquet

    schema = _schema(metadata)
    waiting = schema.empty_table()
    with write_atomically(path) as stream, parquet.ParquetWriter(stream, schema, compression="zstd") as file:
        for table in tables:
            waiting = pyarrow.concat_tables([waiting, table.cast(schema)])
            while len(waiting) >= ROW_GROUP:
                file.write_table(waiting.slice(0, ROW_GROUP).combine_chunks(), row_group_size=ROW_GROUP)
                waiting = waiting.slice(ROW_GROUP)
        if len(waiting):
            file.write_table(waiting.combine_chunks(), row_group_size=ROW_GROUP)
