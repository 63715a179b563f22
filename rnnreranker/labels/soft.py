"""SoftLabels: candidates, scores and target distributions of queries, and their parquet file."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.files.json_files import parse_json
from rnnreranker.base.given import path_of
from rnnreranker.base.process.phases import phase

if TYPE_CHECKING:
    import pandas
    import pyarrow

TOLERANCE = 1e-3  # how far the targets of a query may be from 1 in sum; float32 alone is within 1e-5
KEY = b"rnnreranker"  # of the file's metadata: a JSON object
EXPECTED = "expected a file of python -m rnnreranker.labels"
ROW_GROUP = 4096  # queries
KINDS: dict[str, Any] = {"docids": object, "scores": np.float32, "targets": np.float32, "positive": bool}
LIST = r"(large_)?list<.*: %s( not null)?>"
COLUMNS = {  # of a label file → what it holds, and the types that files of other tools may give it
    "qid": ("strings", "(large_)?string"),
    "docids": ("lists of strings", LIST % "(large_)?string"),
    "scores": ("lists of floats", LIST % "(halffloat|float|double)"),
    "targets": ("lists of floats", LIST % "(halffloat|float|double)"),
    "positive": ("lists of bools", LIST % "bool"),
}


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
        offsets: (Q+1,) int64; query i has the entries offsets[i]:offsets[i+1].
        docids: (L,) objects, distinct within a query, missing positives first.
        scores: (L,) float32 of the method, -inf for none, never NaN or +inf.
        targets: (L,) float32 in [0, 1], sum to 1 over a query, within .001.
        positive: (L,) bool, judged relevant; one per query at least.
        metadata: JSON values: method, parameters, fingerprints, versions.

    Raises:
        InputError: a broken invariant, with the query.

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
        offsets, count = self.offsets, len(self.docids)
        if not isinstance(self.metadata, dict):
            raise InputError(f"metadata is a {type(self.metadata).__name__}; expected an object of names and values")
        ascending = offsets.shape == (len(self.qids) + 1,) and offsets.dtype.kind == "i" and offsets[0] == 0
        if not ascending or offsets[-1] != count or (np.diff(offsets) < 0).any():
            raise InputError(
                f"offsets of shape {offsets.shape} and type {offsets.dtype} for {len(self.qids)} queries and {count} "
                "candidates; expected one more integer than queries, from 0 ascending to the number of candidates"
            )
        for name, kind in zip(KINDS, "Offb", strict=True):
            values = getattr(self, name)
            if values.shape != (count,) or values.dtype.kind != kind:
                raise InputError(f"{name} have shape {values.shape} and type {values.dtype}; expected one a docid")
        _check_ids(self.qids, "query id")
        docids, ends = self.docids.tolist(), offsets.tolist()
        for query, qid in enumerate(self.qids):
            _check_ids(docids[ends[query] : ends[query + 1]], f"query {qid}: docid")
        targets, scores = self.targets, self.scores
        for wrong, says in (
            (~((targets >= 0) & (targets <= 1 + TOLERANCE)), "target {1:g} of {0}; expected a probability in 0..1"),
            (np.isnan(scores) | np.isposinf(scores), "score {2:g} of {0}; expected a finite one, or -inf for none"),
        ):
            if wrong.any():
                at = int(np.argmax(wrong))
                qid = self.qids[np.searchsorted(offsets, at, side="right") - 1]
                raise InputError(f"query {qid}: {says.format(docids[at], targets[at], scores[at])}")
        sums, positives = (self._sums(values.astype(np.float64)) for values in (targets, self.positive))
        for off, said in (
            (np.abs(sums - 1) > TOLERANCE, "targets sum to {:.6g}; expected 1 (within {:g})"),
            (positives == 0, "no positive; expected a candidate that is judged relevant"),
        ):
            if off.any():
                at = int(np.argmax(off))
                raise InputError(f"query {self.qids[at]}: {said.format(sums[at], TOLERANCE)}")

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.diff(np.concatenate([[0.0], np.cumsum(values)])[self.offsets])

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
        """Labels from one list per query in each column. InputError: different lengths, or as the constructor."""
        columns = dict(zip(KINDS, (docids, scores, targets, positive), strict=True))
        for name, column in columns.items():
            if len(column) != len(qids):
                raise InputError(f"{len(qids)} qids for {len(column)} lists of {name}: expected equal numbers")
        lengths = {name: np.array([len(own) for own in column], dtype=np.int64) for name, column in columns.items()}
        _check_lengths(qids, lengths)
        flat: Any = {
            name: np.array(list(chain.from_iterable(column)), dtype=KINDS[name]) for name, column in columns.items()
        }
        return cls(
            tuple(qids), np.cumsum([0, *lengths["docids"]], dtype=np.int64), **flat, metadata=dict(metadata or {})
        )

    @classmethod
    @phase("reading labels")
    def read(cls, path: str | os.PathLike[str]) -> SoftLabels:
        """The labels of a parquet file of `write`.

        Raises:
            InputError: a missing, damaged or other file, or invalid values, with file and query.
        """
        table, metadata = _read(path_of(path, "a label file"))
        lists = {name: table.column(name).combine_chunks() for name in KINDS}
        flat = {
            name: lists[name].flatten().to_numpy(zero_copy_only=False).astype(kind)  # a copy, which may be written to
            for name, kind in KINDS.items()
        }
        lengths = lists["docids"].value_lengths().to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        try:
            return cls(tuple(table.column("qid").to_pylist()), offsets, **flat, metadata=metadata)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a parquet file (zstd), one row a query; equal labels give equal bytes."""
        import pyarrow

        schema = _schema(self.metadata)
        offsets = pyarrow.array(self.offsets, type=pyarrow.int32())
        lists = [
            pyarrow.ListArray.from_arrays(
                offsets, pyarrow.array(getattr(self, name), schema.field(name).type.value_type)
            )
            for name in KINDS
        ]
        table = pyarrow.table([pyarrow.array(self.qids, pyarrow.string()), *lists], schema=schema)
        _write(path, [table], self.metadata)

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

    def _at(self, query: int) -> Labels:
        entries = slice(self.offsets[query], self.offsets[query + 1])
        docids, *others = (getattr(self, name)[entries] for name in KINDS)
        return Labels(self.qids[query], docids.tolist(), *others)


def _check_ids(ids: Sequence[str], what: str) -> None:
    """Check that ids are distinct strings that are not empty."""
    distinct = set(ids)
    if "" in distinct or not set(map(type, ids)) <= {str}:
        bad = next(one for one in ids if not isinstance(one, str) or not one)
        raise InputError(f"{what} {bad!r}; expected a string that is not empty")
    if len(distinct) < len(ids):
        twice = next(one for one, times in Counter(ids).items() if times > 1)
        raise InputError(f"{what} {twice} is there twice; expected it once")


def described(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a label file, without its labels; errors as `SoftLabels.read`."""
    path = path_of(path, "a label file")
    with _opened(path) as file:
        return _metadata(path, file.schema_arrow)


def write_joined(
    output: str | os.PathLike[str], paths: Sequence[str | os.PathLike[str]], metadata: Mapping[str, Any]
) -> None:
    """Write the queries of several label files, with distinct queries, into one.

    The bytes are those of `SoftLabels.write`; memory holds one file and one row group.

    Raises:
        InputError: an output that cannot be written, a damaged file.
    """
    _write(output, (_read(Path(path))[0] for path in paths), metadata)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    """A parquet file; errors of Arrow become one line."""
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
    """The columns of a label file, cast to the types of `write`, and its metadata."""
    with _opened(path) as file:
        names = file.schema_arrow.names
        if wrong := [name for name in COLUMNS if names.count(name) != 1]:
            lacks = "has twice" if wrong[0] in names else "lacks"
            raise InputError(f"{path}: no soft labels, it {lacks} columns {', '.join(wrong)}; {EXPECTED}")
        metadata = _metadata(path, file.schema_arrow)
        table = file.read(columns=list(COLUMNS)).select(list(COLUMNS))
        table.validate(full=True)
        try:
            _check_columns(table)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return table.cast(_schema(metadata)), metadata


def _check_columns(table: pyarrow.Table) -> None:
    """Check types and nulls of the columns, and equal lengths of lists in a row."""
    import pyarrow.compute as compute

    for name, (expected, types) in COLUMNS.items():
        column, kind = table.column(name), " ".join(str(table.schema.field(name).type).split())
        if not re.fullmatch(types, kind):
            raise InputError(f"column {name} has the type {kind[:80]}; expected {expected}")
        if column.null_count or (name != "qid" and compute.list_flatten(column).null_count):
            nulls = (own is None or (name != "qid" and None in own) for own in column.to_pylist())
            raise InputError(f"row {list(nulls).index(True) + 1}: a null in {name}; expected {expected}")
    lengths = {name: compute.list_value_length(table.column(name)).to_numpy() for name in KINDS}
    _check_lengths(table.column("qid"), lengths)


def _check_lengths(qids: Sequence[Any], lengths: Mapping[str, np.ndarray]) -> None:
    for name, own in lengths.items():
        if (other := np.flatnonzero(own != lengths["docids"])).size:
            row = int(other[0])
            raise InputError(
                f"query {qids[row]}: {lengths['docids'][row]} docids but {own[row]} {name}; expected as many"
            )


def _metadata(path: Path, schema: pyarrow.Schema) -> dict[str, Any]:
    described = (schema.metadata or {}).get(KEY)
    if described is None:
        raise InputError(f"{path}: no soft labels, it lacks the metadata that says how they were made; {EXPECTED}")
    try:
        metadata = parse_json(described.decode(), f"{path}: its metadata")
    except UnicodeDecodeError:
        raise InputError(f"{path}: its metadata is no UTF-8; {EXPECTED}") from None
    except InputError as error:
        raise InputError(f"{error}; {EXPECTED}") from None
    if not isinstance(metadata, dict):
        raise InputError(f"{path}: its metadata is no JSON object; {EXPECTED}")
    return metadata


def _schema(metadata: Mapping[str, Any]) -> pyarrow.Schema:
    import pyarrow

    kinds = (pyarrow.string(), pyarrow.float32(), pyarrow.float32(), pyarrow.bool_())
    lists = [(name, pyarrow.list_(kind)) for name, kind in zip(KINDS, kinds, strict=True)]
    described = json.dumps(dict(metadata), sort_keys=True).encode()
    return pyarrow.schema([("qid", pyarrow.string()), *lists], metadata={KEY: described})


def _write(path: str | os.PathLike[str], tables: Iterable[pyarrow.Table], metadata: Mapping[str, Any]) -> None:
    """Write tables in row groups of ROW_GROUP rows, whatever the length of each table."""
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
