"""The part `tokens`: a vector for every token of the documents, searched by MaxSim.

`tokens/vectors.npy` holds the vectors, (T, d) float16, `tokens/ids.npy` the numbers of the tokens in the encoder's
vocabulary, (T,) int32, and `tokens/offsets.npy` the start of each document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import cores, progress, say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.settings import setting
from rnnreranker.data.document import Document
from rnnreranker.encode.kinds import LateEncoder
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.parts.base import Block, EncodedPart
from rnnreranker.parts.ragged import Hits, RaggedSource, best_first, positions_of, write_ragged
from rnnreranker.parts.vectors.faiss_folder import write_lists
from rnnreranker.parts.vectors.npy_files import map_array

VECTORS, IDS = "vectors.npy", "ids.npy"
FILE = "neighbours.faiss"  # beside the tokens
LISTS, TRAINED = 32_768, 64  # at most; tokens that a list is trained with
BYTES = 16  # of a quantised token, at most
FEWEST = 39 * 256  # tokens that the quantiser is trained with
QUERIES = 8  # that all documents are compared with at a time
EXACT = 1 << 20  # tokens up to which a search compares a query with all of them


def write_tokens(folder: Path, blocks: Callable[[], Iterable[Mapping[str, Any]]], dimension: int) -> np.ndarray:
    """Write the three files in a new folder; returns (N + 1,) int64 offsets.

    blocks: each call gives all tokens: `vectors`, (t, d) float16, `offsets`, (n + 1,), and `ids`, (t,).
    """
    arrays = {VECTORS: ("<f2", (dimension,)), IDS: ("<i4", ())}
    lengths = (np.diff(block["offsets"]) for block in blocks())
    return write_ragged(folder, lengths, arrays, ((block["vectors"], block["ids"]) for block in blocks()))


class TokenSource(RaggedSource):
    """The token vectors of the documents of an index, searched by MaxSim.

    Attributes:
        dimension: of a vector; vectors: (T, d) float16; ids: (T,) int32; memory-mapped, as offsets.
        encoder: name, settings and digest, for `LateEncoder.load(name, **settings)`.
    """

    files = "tokens"
    arrays = VECTORS, IDS

    def _take(self, described: Mapping[str, Any]) -> None:
        self.vectors, self.ids = self._arrays
        self.dimension = int(self.vectors.shape[1])
        self.encoder: Mapping[str, Any] = {name: described["encoder"][name] for name in ("name", "settings", "digest")}

    def scores(
        self,
        queries: np.ndarray,
        query_offsets: np.ndarray,
        rows: np.ndarray | None = None,
        threads: int | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """(Q, n) float32: MaxSim of queries with documents, by `ragged_maxsim`.

        Args:
            queries: (P, d) float32; query_offsets: (Q + 1,) int64, the start of each query's tokens.
            rows: (n,) int64, None = all; threads: None = one per core; weights: (P,) float64 of the tokens, None = 1.

        Raises:
            InputError: queries of another dimension.
        """
        from rnnreranker.rnn.maxsim import ragged_maxsim

        if queries.shape[1] != self.dimension:
            raise InputError(
                f"the tokens of queries have {queries.shape[1]} dimensions, those of {self.folder / VECTORS} "
                f"{self.dimension}; encode the queries with the encoder that made the index"
            )
        return ragged_maxsim(
            queries, query_offsets, self.vectors, self.offsets, rows=rows, weights=weights, threads=threads
        )

    def search(
        self,
        queries: np.ndarray,
        query_offsets: np.ndarray,
        hits: int,
        threads: int | None = None,
        weights: np.ndarray | None = None,
        propose: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        Documents and queries without tokens have no hits. Arguments and errors as `scores`.

        Args:
            propose: the rows of documents for a query's tokens (q, d); None = all, the search is exact.
        """
        self.scores(queries[:0], np.zeros(1, dtype=np.int64))  # refuses another dimension
        step, workers, inside = (QUERIES, 1, threads) if propose is None else (1, threads or cores(), 1)

        def best(first: int) -> list[Hits]:
            own = query_offsets[first : first + step + 1]
            part = slice(own[0], own[-1])
            rows = self._filled if propose is None else propose(queries[part])
            weighed = None if weights is None else weights[part]
            scores = self.scores(queries[part], own - own[0], rows, inside, weighed)
            filled = np.diff(own) > 0
            return [
                best_first(one[: len(rows) * some], rows[: len(rows) * some], hits, self.docid_ranks)
                for one, some in zip(scores, filled, strict=True)
            ]

        with ThreadPoolExecutor(workers) as pool:
            blocks = pool.map(best, range(0, len(query_offsets) - 1, step))
            best_of = [one for block in progress(blocks, unit="queries", what="search") for one in block]
        return [scores for scores, _ in best_of], [rows for _, rows in best_of]

    @cached_property
    def _filled(self) -> np.ndarray:
        return np.flatnonzero(np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class QueryTokens:
    """The token vectors of queries, one query after the other.

    qids: Q different ids; vectors: (P, d) float32; offsets: (Q + 1,) int64, the start of each query.
    """

    qids: tuple[str, ...]
    vectors: np.ndarray
    offsets: np.ndarray

    def one(self, qid: str) -> np.ndarray:
        """(q, d): the tokens of a query; InputError: no such query."""
        return self.of([qid]).vectors

    def of(self, qids: Sequence[str]) -> QueryTokens:
        """The tokens of these queries, in this order; InputError: an unknown query."""
        if lost := [qid for qid in qids if qid not in self._numbers]:
            raise InputError(
                f"{len(lost)} of {len(qids)} queries have no tokens (first: {', '.join(lost[:3])}); give the topics "
                "that the run was made from"
            )
        rows = np.array([self._numbers[qid] for qid in qids], dtype=np.int64)
        positions, offsets = positions_of(self.offsets, rows)
        return QueryTokens(tuple(qids), self.vectors[positions], offsets)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {qid: number for number, qid in enumerate(self.qids)}


def query_tokens(
    source: TokenSource, topics: Mapping[str, str], threads: int | None = None, devices: Devices | None = None
) -> QueryTokens:
    """The tokens of all topics in order; errors as `check_token_encoder`."""
    check_token_encoder(source)
    name, settings = source.encoder["name"], dict(source.encoder["settings"])
    kept = LateEncoder.open(name, devices=devices, **settings).kept_queries(list(topics.values()), threads)
    return QueryTokens(tuple(topics), kept["vectors"], kept["offsets"])


def check_token_encoder(source: TokenSource) -> None:
    """Check, without loading it, that the encoder is available and unchanged.

    Raises:
        InputError, UnavailableError: no such encoder, or one that has changed; it cannot be downloaded.
    """
    name = source.encoder["name"]
    if LateEncoder.digest_of(name) != source.encoder["digest"]:
        raise InputError(f"{source.folder}: the files of its encoder {name} have changed since; make the index again")


def write_neighbours(vectors: np.ndarray, folder: Path) -> None:
    """Write the Faiss index of (T, d) float16 tokens, IVF-PQ by inner product; the same bytes every time.

    4 √T lists, at most 32,768; 16 parts of 8 bits a token, or the next number that divides a vector.

    Raises:
        InputError: too few tokens for training.
    """
    faiss = require("faiss", "tokens:search=ivf-pq", "faiss-cpu")
    count, dimension = vectors.shape
    if count < FEWEST:
        raise InputError(f"tokens:search=ivf-pq: {count} tokens; expected at least {FEWEST}: leave it out")
    lists = max(1, min(LISTS, int(4 * np.sqrt(count)), count // TRAINED))
    parts = next(parts for parts in range(min(BYTES, dimension), 0, -1) if dimension % parts == 0)
    index: Any = faiss.IndexIVFPQ(faiss.IndexFlatIP(dimension), dimension, lists, parts, 8, faiss.METRIC_INNER_PRODUCT)
    trained = max(TRAINED * lists, 2 * FEWEST)
    write_lists(index, count, trained, lambda rows: vectors[rows].astype(np.float32), folder / FILE)


@dataclass(frozen=True)
class TokenParams(settings.Params):
    """Settings of stored tokens and of their encoder; InputError: values out of range."""

    search: Literal["auto", "exact", "ivf-pq"] = setting(
        "auto",
        f"exact: MaxSim with all documents; ivf-pq: with those of the nearest tokens by a Faiss index, 16 bytes a "
        f"token more; auto: exact up to {EXACT} tokens",
    )

    encoder: str = setting(
        "minilm-tokens", "a name, a folder or a Hugging Face id, NAME:document_length=180", flag="token-encoder"
    )

    @property
    def kept(self) -> dict[str, Any]:
        return {"search": self.search}


class TokensPart(EncodedPart):
    """A vector for every token of the documents."""

    name, gives, gives_queries, rank = "tokens", "tokens", "query tokens", 30
    folder = "tokens"
    Params, OfEncoder, encoder = TokenParams, LateEncoderParams, "late-encoder"
    encoders, source = LateEncoder, TokenSource

    queries = staticmethod(query_tokens)

    def encoded(self, documents: Sequence[Document]) -> Block:
        texts = [document.text for document in documents]
        block = self.of_documents.encode(texts, "document", threads=self._threads)._asdict()
        with np.errstate(over="ignore"):
            block["vectors"] = block["vectors"].astype(np.float16)
        if not np.isfinite(block["vectors"]).all():
            raise InputError(f"{self._encoder.name}: a token's vector is beyond float16, as which tokens are kept")
        return block

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        positions, offsets = positions_of(self._old.offsets, rows)
        vectors, ids = self._old.vectors[positions], self._old.ids[positions]
        return {"vectors": vectors, "offsets": offsets, "ids": ids, "cut": self._encoder.count_cut(texts, "document")}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        made_by, path = self._encoder, folder / self.folder
        tokens = int(write_tokens(path, self.stored, made_by.dimension)[-1])
        search = self.params.search
        if search == "auto":
            search = "exact" if tokens <= EXACT else "ivf-pq"
        if search == "ivf-pq":
            write_neighbours(map_array(path / VECTORS), path)
        cut, said = self.cut()
        say(f"tokens: {tokens / count:.1f} a document, searched by {search}; {said}")
        settings = {"query_length": made_by.query_length, "document_length": made_by.document_length}
        return {
            "encoder": self.made_by({"settings": settings, "digest": made_by.digest}),
            "dimension": made_by.dimension,
            "dtype": "float16",
            "tokens": tokens,
            "search": search,
            "cut": cut,
        }
