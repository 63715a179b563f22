"""SoftLabels: candidates, scores and target distributions of queries, and their parquet file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, brief, path_of
from rnnreranker.base.files import parse_record, write_atomically

if TYPE_CHECKING:
    import pandas
    import pyarrow

TOLERANCE = 1e-3  # how far the targets of a query may be from 1 in sum; float32 alone is within 1e-5
KEY = b"rnnreranker"  # of the file's metadata: a JSON object
ROW_GROUP = 4096  # queries
KINDS: dict[str, Any] = {"docids": object, "scores": np.float32, "targets": np.float32, "positive": np.bool_}


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
    """Target distributions of Q queries over their L candidates in all; the constructor checks every invariant.

    Attributes:
        qids: Q distinct query ids.
        offsets: (Q+1,) int64; query i has the entries offsets[i]:offsets[i+1], one at least.
        docids: (L,) objects, distinct within a query, missing positives first.
        scores: (L,) float32 of the method, -inf for none, never NaN or +inf.
        targets: (L,) float32 in [0, 1], sum to 1 over a query, within .001.
        positive: (L,) bool, judged relevant; one per query at least.
        metadata: JSON values: method, parameters, fingerprints, versions.

    Raises:
        InputError: a broken invariant, with the query.

    >>> offsets, docids = np.array([0, 2]), np.array(["b", "a"], dtype=object)
    >>> half, positive = np.array([0.75, 0.25], dtype=np.float32), np.array([True, False])
    >>> labels = SoftLabels(("q",), offsets, docids, half, half, positive)
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
        lengths, scores, targets = np.diff(self.offsets), self.scores, self.targets
        whole = self.offsets[0] == 0 and self.offsets[-1] == len(self.docids)
        if len(lengths) != len(self.qids) or (lengths < 1).any() or not whole:
            raise InputError(
                f"offsets {brief(self.offsets)} for {len(self.qids)} queries and {len(self.docids)} candidates; "
                "expected one more integer than queries, from 0 rising to the number of candidates"
            )
        for name, kind in KINDS.items():
            values = getattr(self, name)
            if values.shape != self.docids.shape or values.dtype != kind:
                raise InputError(f"{name}: {brief(values)}; expected one {np.dtype(kind)} a docid")
        _check_ids(self.qids, "query id")
        for number, qid in enumerate(self.qids):
            _check_ids(self.docids[self._entries(number)].tolist(), f"query {qid}: docid")
        query = np.repeat(np.arange(len(lengths)), lengths)
        sums, positives = (np.bincount(query, one, len(lengths))[query] for one in (targets, self.positive))
        for good, said in (
            ((targets >= 0) & (targets <= 1 + TOLERANCE), "target {1:g} of {0}; expected a probability in 0..1"),
            (scores < np.inf, "score {2:g} of {0}; expected a finite one, or -inf for none"),
            (np.abs(sums - 1) <= TOLERANCE, f"targets sum to {{3:.6g}}; expected 1 (within {TOLERANCE:g})"),
            (positives > 0, "no positive; expected a candidate that is judged relevant"),
        ):
            for at in np.flatnonzero(~good)[:1]:
                shown = said.format(self.docids[at], targets[at], scores[at], sums[at])
                raise InputError(f"query {self.qids[query[at]]}: {shown}")

    @classmethod
    @phase("reading labels")
    def read(cls, path: str | os.PathLike[str]) -> SoftLabels:
        """The labels of a parquet file of `write`.

        Raises:
            InputError: a missing, damaged or other file, or invalid values, with file and query.
        """
        with _opened(path) as (file, metadata):
            table, flat, lengths = _table(file), dict[str, np.ndarray](), dict[str, np.ndarray]()
            qids = tuple(table.column("qid").to_pylist())
            for name, kind in KINDS.items():
                column = table.column(name).combine_chunks()
                values = column.flatten()
                if column.null_count or values.null_count:
                    raise InputError(f"a null in {name}; expected lists without")
                flat[name] = values.to_numpy(zero_copy_only=False).astype(kind)  # a copy, which may be written to
                lengths[name] = column.value_lengths().to_numpy()
                if (other := lengths[name] != lengths["docids"]).any():
                    raise InputError(f"query {qids[other.argmax()]}: docids and {name} differ in length")
            return cls(qids, np.cumsum([0, *lengths["docids"]], dtype=np.int64), **flat, metadata=metadata)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a parquet file (zstd), one row a query; equal labels give equal bytes."""
        import pyarrow

        schema, offsets = _schema(self.metadata), pyarrow.array(self.offsets, pyarrow.int32())
        lists = [
            pyarrow.ListArray.from_arrays(
                offsets, pyarrow.array(getattr(self, name), schema.field(name).type.value_type)
            )
            for name in KINDS
        ]
        _write(path, pyarrow.table([pyarrow.array(self.qids, pyarrow.string()), *lists], schema=schema))

    def frame(self) -> pandas.DataFrame:
        """A row a candidate: qid, docid, score, target, positive."""
        import pandas

        qids = np.repeat(np.array(self.qids, dtype=object), np.diff(self.offsets))
        columns = {name.removesuffix("s"): getattr(self, name) for name in KINDS}
        return pandas.DataFrame({"qid": qids, **columns})

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[Labels]:
        return map(self._at, range(len(self.qids)))

    def __getitem__(self, qid: str) -> Labels:
        return self._at(self._numbers[qid])

    def __contains__(self, qid: object) -> bool:
        return qid in self._numbers

    def __repr__(self) -> str:
        return f"SoftLabels({len(self.qids)} queries, {len(self.docids)} candidates)"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {qid: number for number, qid in enumerate(self.qids)}

    def _entries(self, query: int) -> slice:
        return slice(self.offsets[query], self.offsets[query + 1])

    def _at(self, query: int) -> Labels:
        docids, *others = (getattr(self, name)[self._entries(query)] for name in KINDS)
        return Labels(self.qids[query], docids.tolist(), *others)


def _check_ids(ids: Sequence[Any], what: str) -> None:
    if len({one for one in ids if isinstance(one, str) and one}) < len(ids):
        wrong = next(one for at, one in enumerate(ids) if not isinstance(one, str) or not one or one in ids[:at])
        raise InputError(f"{what} {wrong!r}; expected distinct strings that are not empty")


def described(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a label file, without its labels; errors as `SoftLabels.read`."""
    with _opened(path) as (_, metadata):
        return metadata


def write_joined(
    output: str | os.PathLike[str], paths: Sequence[str | os.PathLike[str]], metadata: Mapping[str, Any]
) -> None:
    """Write the queries of several label files, with distinct queries, into one.

    The bytes are those of `SoftLabels.write`.

    Raises:
        InputError: an output that cannot be written, a damaged file.
    """

    import pyarrow

    tables = []
    for path in paths:
        with _opened(path) as (file, _):
            tables.append(_table(file))
    _write(output, pyarrow.concat_tables(tables).cast(_schema(metadata)))


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[pyarrow.parquet.ParquetFile, dict[str, Any]]]:
    """A label file with its metadata; errors in the block name the file."""
    import pyarrow
    import pyarrow.parquet as parquet

    path = path_of(path, "a label file")
    if not path.is_file():
        raise InputError(f"{path}: no such label file; make one with python -m rnnreranker.labels")
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            described = (file.schema_arrow.metadata or {}).get(KEY, b"").decode()
            yield file, parse_record(described, "its metadata, key rnnreranker")
    except (pyarrow.ArrowException, OSError, MemoryError, ValueError, KeyError, TypeError) as error:
        reason = str(error) if isinstance(error, InputError) else f"no soft labels, or damaged ones ({brief(error)})"
        raise InputError(f"{path}: {reason}; expected a file of python -m rnnreranker.labels") from None


def _table(file: pyarrow.parquet.ParquetFile) -> pyarrow.Table:
    """The columns of a label file, cast to the types of `write`."""
    schema = _schema({})
    return file.read(columns=schema.names).select(schema.names).cast(schema)


def _schema(metadata: Mapping[str, Any]) -> pyarrow.Schema:
    import pyarrow

    kinds = (pyarrow.string(), pyarrow.float32(), pyarrow.float32(), pyarrow.bool_())
    lists = [(name, pyarrow.list_(kind)) for name, kind in zip(KINDS, kinds, strict=True)]
    described = json.dumps(dict(metadata), sort_keys=True).encode()
    return pyarrow.schema([("qid", pyarrow.string()), *lists], metadata={KEY: described})


def _write(path: str | os.PathLike[str], table: pyarrow.Table) -> None:
    """Write a table in row groups of ROW_GROUP rows, whatever its chunks."""
    import pyarrow.parquet as parquet

    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    with write_atomically(path) as stream, parquet.ParquetWriter(stream, table.schema, **options) as file:
        for first in range(0, len(table), ROW_GROUP):
            file.write_table(table.slice(first, ROW_GROUP).combine_chunks(), row_group_size=ROW_GROUP)
