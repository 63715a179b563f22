"""The SoftLabels type: per query the candidates, their scores and the target distribution; a parquet file on disk."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.files.json_files import parse_json
from rnnreranker.base.given import path_of
from rnnreranker.base.process.phases import phase
from rnnreranker.labels.invariants import check_columns, check_labels

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
    """For Q queries the target distribution over their L candidates in all; every invariant below is checked.

    Attributes:
        qids: Q distinct query ids.
        offsets: (Q+1,) int64; query i owns the entries offsets[i]:offsets[i+1].
        docids: (L,) object array of docids, distinct within a query, positives that were put in first.
        scores: (L,) float32, what the method gave each candidate; -inf where it gave nothing, never NaN or +inf.
        targets: (L,) float32, probabilities in [0, 1] that sum to 1 over a query, within .001.
        positive: (L,) bool, whether the candidate is judged relevant; one of a query at least.
        metadata: what made them: method, parameters, fingerprints, versions (JSON values).

    Raises:
        InputError: arrays that break one of these, with the query.

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

    def __post_init__(self) -> None:
        check_labels(self)

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
            InputError: columns of different lengths, and as the constructor.
        """
        lengths = [len(own) for own in docids]
        for name, column in (("docids", docids), ("scores", scores), ("targets", targets), ("positive", positive)):
            if len(column) != len(qids):
                raise InputError(f"{len(qids)} qids for {len(column)} lists of {name}: expected equal numbers")
            for qid, values, expected in zip(qids, column, lengths, strict=True):
                if len(values) != expected:
                    raise InputError(f"query {qid}: {expected} docids but {len(values)} {name}; expected as many")
        flat = np.empty(sum(lengths), dtype=object)
        flat[:] = [docid for own in docids for docid in own]
        return cls(
            tuple(qids),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            flat,
            np.array([value for own in scores for value in own], dtype=np.float32),
            np.array([value for own in targets for value in own], dtype=np.float32),
            np.array([value for own in positive for value in own], dtype=bool),
            dict(metadata or {}),
        )

    @classmethod
    @phase("reading labels")
    def read(cls, path: str | os.PathLike[str]) -> SoftLabels:
        """The labels of a parquet file written by `write`.

        Raises:
            InputError: no such file, not parquet, damaged, without the columns and metadata of soft labels, or with
                columns, values or metadata that break what they must be, with the file and the query.
        """
        table, metadata = _read(path_of(path, "a label file"))
        try:
            return cls._from_table(table, metadata)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a parquet file (zstd), one row a query, whole or not at all; equal labels give equal bytes.

        Raises:
            InputError: a path that cannot be written.
        """
        _write(path, [self._to_table()], self.metadata)

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[Labels]:
        for query in range(len(self.qids)):
            yield self._at(query)

    def __getitem__(self, qid: str) -> Labels:
        return self._at(self._numbers[qid])

    def __contains__(self, qid: object) -> bool:
        return qid in self._numbers

    def __repr__(self) -> str:
        return f"SoftLabels({len(self.qids)} queries, {len(self.docids)} candidates)"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {qid: number for number, qid in enumerate(self.qids)}

    def _at(self, query: int) -> Labels:
        entries = slice(self.offsets[query], self.offsets[query + 1])
        return Labels(
            self.qids[query],
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
        """Labels of the columns that `_read` has looked at."""
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
    """The metadata of a label file, without reading its labels.

    Raises:
        InputError: as `SoftLabels.read`, of what is no label file.
    """
    path = path_of(path, "a label file")
    with _opened(path) as file:
        return _metadata(path, file.schema_arrow)


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
        InputError: a path that cannot be written, a label file that is damaged.
    """
    _write(output, (_read(Path(path))[0] for path in paths), metadata)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    """A parquet file; what Arrow says of it, while it is open too, becomes one line."""
    import pyarrow
    import pyarrow.parquet as parquet

    if not path.is_file():
        raise InputError(f"{path}: no such label file; make one with python -m rnnreranker.labels")
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, MemoryError, ValueError, KeyError) as error:
        with open(path, "rb") as stream:
            whole = stream.read(4) == b"PAR1"  # else it is some other file, and Arrow's reasons are of no use
        said = " ".join("".join(str(error).splitlines()[:1]).split())[:80]
        reason = f", or a damaged one ({said or type(error).__name__})" if whole else ""
        raise InputError(
            f"{path}: not a parquet file{reason}; expected the output of python -m rnnreranker.labels"
        ) from None


def _read(path: Path) -> tuple[pyarrow.Table, dict[str, Any]]:
    """The columns of a label file, in the types that `write` gives them and of equal lengths, and its metadata."""
    with _opened(path) as file:
        schema = file.schema_arrow
        if missing := [name for name in COLUMNS if name not in schema.names]:
            raise InputError(
                f"{path}: no soft labels, it lacks columns {', '.join(missing)}; expected a file of python -m "
                "rnnreranker.labels"
            )
        if twice := [name for name in COLUMNS if schema.names.count(name) > 1]:
            raise InputError(f"{path}: has column {twice[0]} twice; expected a file of python -m rnnreranker.labels")
        metadata = _metadata(path, schema)
        table = file.read(columns=list(COLUMNS)).select(COLUMNS)
        table.validate(full=True)
        try:
            check_columns(table)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return table.cast(_schema(metadata)), metadata


def _metadata(path: Path, schema: pyarrow.Schema) -> dict[str, Any]:
    """What a label file says of how its labels were made."""
    expected = "expected a file of python -m rnnreranker.labels"
    described = (schema.metadata or {}).get(KEY)
    if described is None:
        raise InputError(f"{path}: no soft labels, it lacks the metadata that says how they were made; {expected}")
    try:
        metadata = parse_json(described.decode(), f"{path}: its metadata")
    except UnicodeDecodeError:
        raise InputError(f"{path}: its metadata is no UTF-8; {expected}") from None
    except InputError as error:
        raise InputError(f"{error}; {expected}") from None
    if not isinstance(metadata, dict):
        kind = {list: "a list", type(None): "null", str: "a string"}.get(type(metadata), "a number")
        raise InputError(f"{path}: its metadata is {kind}, not a JSON object; {expected}")
    return metadata


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
    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    with write_atomically(path) as stream, parquet.ParquetWriter(stream, schema, **options) as file:
        for table in tables:
            waiting = pyarrow.concat_tables([waiting, table.cast(schema)])
            while len(waiting) >= ROW_GROUP:
                file.write_table(waiting.slice(0, ROW_GROUP).combine_chunks(), row_group_size=ROW_GROUP)
                waiting = waiting.slice(ROW_GROUP)
        if len(waiting):
            file.write_table(waiting.combine_chunks(), row_group_size=ROW_GROUP)
