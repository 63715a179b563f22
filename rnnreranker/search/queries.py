"""Query vectors: from a file, by the encoder of the index, or by a named one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import notice, phase
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, RnnrerankerError, argument
from rnnreranker.base.files import read_json
from rnnreranker.base.method import Form
from rnnreranker.base.settings import Written
from rnnreranker.encode.params import DOCUMENTS_BY, RECORD, EncoderParams

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.encode.kinds import Encoder
    from rnnreranker.index.opening import Index
    from rnnreranker.parts.vectors import QueryVectors


@dataclass(frozen=True)
class QueryEncoding:
    """The source of query vectors.

    Args:
        encoder: in its written form, `minilm:pooling=cls`, or `:pooling=cls` for that of the index; None = that.
        encoded: a .npy file of query vectors, or `QueryVectors`, or their matrix.
        topics: the source of the texts, for messages.
        devices: of the encoder; None = the processor.

    Raises:
        InputError: unknown settings, values out of range, an encoder beside vectors that are given.
    """

    encoder: Form | None = None
    encoded: str | Path | QueryVectors | np.ndarray | None = None
    topics: Any = None
    devices: Devices | None = None

    def __post_init__(self) -> None:
        if self.encoder is not None and self.encoded is not None:
            raise InputError(f"give one of {argument('encoder')} and {argument('encoded_queries')}")
        _ = self.settings

    @cached_property
    def written(self) -> Written:
        return Written("") if self.encoder is None else Written.read(self.encoder)

    @cached_property
    def settings(self) -> EncoderParams:
        return EncoderParams.of(self.written.params, argument("encoder", str(self.written)))


def has_ids(encoded: Any) -> bool:
    """Whether given query vectors, a file or values, have the ids of their queries."""
    if isinstance(encoded, str | Path):
        return Path(encoded).expanduser().with_suffix(".ids").is_file()
    return hasattr(encoded, "qids")


@phase("query vectors")
def query_vectors(
    how: QueryEncoding,
    index: Index,
    topics: Mapping[str, str],
    wanted: Iterable[str] | None = None,
    *,
    threads: int | None = None,
) -> QueryVectors:
    """The vectors of queries.

    Args:
        topics: query id to text, in the order of the rows of `how.encoded`; empty if its file has ids beside it.
        wanted: the queries; None = all topics.
        threads: None = one per core; the vectors do not depend on it.

    Raises:
        InputError: queries without text or vector, an unknown encoder of the index, another dimension than the index's.
        UnavailableError: an encoder that is not here and cannot be downloaded.
    """
    from rnnreranker.parts.vectors.of_run import check_dimension
    from rnnreranker.parts.vectors.source import QueryVectors, load_encoded_queries

    if how.encoded is not None:
        vectors: Any = how.encoded
        if isinstance(vectors, str | Path):
            vectors = load_encoded_queries(str(vectors), tuple(topics) or None)
        elif not isinstance(vectors, QueryVectors):
            if len(topics) != len(vectors):
                raise InputError(
                    f"encoded_queries: {len(vectors)} rows for {len(topics)} topics; expected one for each, in their "
                    "order, or QueryVectors with the query ids"
                )
            vectors = QueryVectors(tuple(topics), vectors)
        chosen = tuple(topics if wanted is None else wanted)
        vectors = vectors.of(chosen) if chosen not in ((), vectors.qids) else vectors
    else:
        qids = tuple(topics if wanted is None else wanted)
        if lost := [qid for qid in qids if qid not in topics]:
            shown = str(how.topics) if isinstance(how.topics, str | Path) else argument("topics")
            raise InputError(
                f"{shown}: {len(lost)} of the {len(qids)} queries are not in it (first: {', '.join(lost[:3])}); "
                "give the topics that the run was made from"
            )
        texts = [topics[qid] for qid in qids]
        matrix = open_query_encoder(how, index).kept_queries(texts, threads)["vectors"]
        vectors = QueryVectors(qids, matrix)
    source = f"{how.encoded}: " if isinstance(how.encoded, str | Path) else ""
    check_dimension(vectors, index.vectors.dimension, source, f"the index {index.name}")
    return vectors


def without_query_vectors(how: QueryEncoding, index: Index) -> str:
    """The reason why queries cannot become vectors here, or ""; raises it for a given encoder. Loads no encoder."""
    from rnnreranker.encode.kinds import Encoder

    try:
        if how.encoded is None:
            Encoder.digest_of(_encoder(how, index)[0])
    except RnnrerankerError as error:
        if how.written.name:
            raise
        return str(error)
    return ""


def open_query_encoder(how: QueryEncoding, index: Index) -> Encoder:
    """The encoder of queries.

    Raises:
        InputError: the files of the index's encoder have changed; a trained dual encoder that did not make the index.
    """
    from rnnreranker.encode.kinds import Encoder

    name, settings, expected = _encoder(how, index)
    encoder = Encoder.open(name, devices=how.devices, **settings)
    if expected not in (None, encoder.fingerprint):
        raise InputError(
            f"{index.name}: the files of its encoder {name} have changed since; make the index again, or give "
            f"{argument('encoder')}"
        )
    of_index, record = index.encoder, _record(name)
    if record.get("model") == "dual" and of_index.get("fingerprint", encoder.fingerprint) != encoder.fingerprint:
        raise InputError(
            f"{argument('encoder', name)}: was trained as a dual encoder, so its document vectors are not those of "
            f"{index.name}; make an index with it"
        )
    wanted = record.get(DOCUMENTS_BY, {})
    if record.get("model") != "query" and _record(str(of_index.get("name", ""))).get("model") == "dual":
        wanted = {"name": encoder.name, "fingerprint": encoder.fingerprint}
    if all(wanted.get(key) and of_index.get(key, wanted[key]) != wanted[key] for key in ("name", "fingerprint")):
        notice(
            f"{argument('encoder', name)}: is for document vectors of {wanted['name']}, those of {index.name} are "
            f"by {of_index['name']}; give the encoder of the index, or one trained for it"
        )
    return encoder


def _record(name: str) -> dict[str, Any]:
    """The record of a trained encoder; empty without one."""
    path = Path(name).expanduser() / RECORD
    record: dict[str, Any] = read_json(path, repair="train it again") if name and path.is_file() else {}
    return record


def _encoder(how: QueryEncoding, index: Index) -> tuple[str, dict[str, Any], str | None]:
    """Name and settings of the queries' encoder, and its fingerprint if it is the one of the documents."""
    described = {} if how.written.name else index.encoder
    name = how.written.name or described.get("name")
    if not name:
        raise InputError(
            f"{index.name}: this index does not say which encoder made it; "
            f"give {argument('encoder')} NAME|FOLDER, or {argument('encoded_queries')} FILE.npy"
        )
    own = how.settings.given()
    expected = None if own else described.get("fingerprint")
    return str(name), {**described.get("settings", {}), **own}, expected
