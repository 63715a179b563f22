"""Texts to a vector for every token: late-interaction encoders, run by sentence-transformers' MultiVectorEncoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.graphs.store import KeptGraph, Refused, kept_graph
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.late.folder import KIND, late_folder
from rnnreranker.encode.late.graph import LateGraph, late_key, make_late_graph
from rnnreranker.encode.late.model import LateModel, open_late_model
from rnnreranker.encode.model_folder import ModelFolder, content_of
from rnnreranker.encode.model_settings import TextKind
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.vocabulary import tokenizer_in

BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best


class TokenVectors(NamedTuple):
    """The vectors of the tokens of n texts, one text after the other.

    vectors: (T, d) float32; offsets: (n + 1,) int64, text i has vectors[offsets[i]:offsets[i + 1]]; ids: (T,) int32,
    the tokens' numbers in the vocabulary; cut: how many of the texts were cut.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    cut: int


class LateEncoder:
    """A late-interaction encoder of texts; made by `load_late_encoder`.

    Which tokens have a vector, and which, the model's modules say. With ColBERT's: of a document the tokens of the text
    with the special ones, without punctuation; of a query as many as `query_length`, [MASK] standing for those that it
    lacks, to which the transformer does not attend. A text without anything but white space has none.

    Attributes:
        name: hub id or path; dimension: of a token's vector.
        query_length, document_length: tokens, at which texts are cut.
        digest: of the model's files, as `late_digest_of` has it.
        fingerprint: of everything that the vectors depend on besides the texts.

        model: what computes; graph: its files, where that is a graph.

    Args:
        folder: the model's files.
        params: what the caller says of it.
        model: as above, `graph` too.
    """

    def __init__(
        self,
        folder: ModelFolder,
        params: LateEncoderParams,
        model: LateModel | LateGraph,
        graph: KeptGraph | None = None,
    ) -> None:
        self.model: Any = model
        self.graph = graph
        self.query_length, self.document_length = model.query_length, model.document_length
        self.expands = model.expands
        self.name = folder.name
        self.params = params
        self.dimension = int(model.vectors(model.read(["a"], "document"), "document")[0][0].shape[1])  # type: ignore
        lengths = [self.query_length, self.document_length]
        self.digest = content_of(folder.path)
        self.fingerprint = fingerprint(KIND, self.digest, lengths)

    def encode_documents(self, texts: Sequence[str], *, threads: int | None = None) -> TokenVectors:
        """The tokens of `encode`, of documents."""
        return self.encode(texts, "document", threads=threads)

    def encode_queries(self, texts: Sequence[str], *, threads: int | None = None) -> TokenVectors:
        """The tokens of `encode`, of queries."""
        return self.encode(texts, "query", threads=threads)

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> TokenVectors:
        """The vectors of texts' tokens, in their order.

        Texts are put into batches by length and content, and every batch is computed by one thread: neither the order
        of the texts nor the number of threads changes a bit. (Other texts in the list may change the last bits.)

        Args:
            texts: any strings, empty ones too.
            what: which prompt is put before each text, at which length it is cut and whether it is expanded.
            threads: None = one per core.

        Raises:
            InputError: a text that is not a string, vectors that are NaN or infinite.
        """
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"text {number} is a {type(text).__name__}; expected a string")
        distinct = sorted({text for text in texts if text.strip()})
        read = self.model.read(distinct, what)
        none = np.empty((0, self.dimension), dtype=np.float32), np.empty(0, dtype=np.int32)
        vectors_of = {"": none}

        def compute(batch: list[int]) -> None:
            own = [distinct[number] for number in batch]
            vectors_of.update(zip(own, self.model.vectors([read[number] for number in batch], what), strict=True))

        compute_batches(compute, [one.length for one in read], BATCH_TOKENS, threads)
        for text, (vectors, _) in vectors_of.items():
            if not np.isfinite(vectors).all():
                raise InputError(f"{self.name}: a token's vector of {text[:60]!r} has NaN or infinite values")
        taken = [vectors_of[text if text.strip() else ""] for text in texts]
        offsets = np.cumsum([0, *(len(ids) for _, ids in taken)], dtype=np.int64)
        longer = {text for text, one in zip(distinct, read, strict=True) if one.cut}
        vectors, ids = (np.concatenate(parts) for parts in zip(none, *taken, strict=True))
        return TokenVectors(vectors, offsets, ids, sum(text in longer for text in texts))

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts are longer than the model reads, as `encode` counts them."""
        return sum(one.cut for one in self.model.read([text for text in texts if text.strip()], what))

    def count_tokens(self, texts: Sequence[str], what: TextKind) -> int:
        """How many tokens the texts have at most, those that are skipped too."""
        return sum(one.length for one in self.model.read([text for text in texts if text.strip()], what))


def load_late_encoder(name: str, **given: Any) -> LateEncoder:
    """The late-interaction encoder of a name, hub id or folder.

    Args:
        name: "minilm-tokens", "colbert-v2", … (the files of `encode/late_models`), a hub id `org/model`, a folder: as
            sentence-transformers saves a MultiVectorEncoder, of PyLate, or Stanford's checkpoint of ColBERT.
        given: fields of `LateEncoderParams`.

    Raises:
        InputError: no such model, a model that gives no vectors of tokens, lengths beyond the model's.
        UnavailableError: a model that is not installed, or neither in the cache of the hub nor reachable.
    """
    params = LateEncoderParams(**given)
    folder = late_folder(name)
    try:
        return LateEncoder(folder, params, open_late_model(folder.path, params))
    except (OSError, ValueError, KeyError, RuntimeError, IndexError, AttributeError) as error:
        if isinstance(error, (InputError, UnavailableError)):
            raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(
            f"{folder.path}: cannot be loaded as a late-interaction encoder ({reason}); get it again"
        ) from None


def open_late_encoder(name: str, **given: Any) -> LateEncoder:
    """The encoder of `load_late_encoder`, by its graph in the home folder, which is made on first use.

    Neither torch nor sentence-transformers is imported then; vectors are those of the model but for the last bits. An
    encoder that has no graph is that of `load_late_encoder`.

    Args and Raises: as `load_late_encoder`.
    """
    params = LateEncoderParams(**given)
    if (graph := late_graph(name)) is None:
        own = load_late_encoder(name)  # with its own lengths
        try:
            graph = make_late_graph(own.model, own.digest)
        except Refused:
            return load_late_encoder(name, **given)
    return LateEncoder(late_folder(name), params, LateGraph(graph, params), graph)


def late_graph(name: str) -> KeptGraph | None:
    """The graph of an encoder, None where it is not in the home folder; nothing is loaded.

    Raises:
        InputError, UnavailableError: as `load_late_encoder`.
    """
    return kept_graph(late_key(late_digest_of(name)))


def late_digest_of(name: str) -> str:
    """What tells the model of a name from others, whatever the settings; no weights are loaded.

    Raises:
        InputError, UnavailableError: as `load_late_encoder`.
    """
    return content_of(late_folder(name).path)


def special_tokens(name: str) -> np.ndarray:
    """(S,) int32, ascending: the numbers of the tokens of a late-interaction encoder that stand for no text.

    Special ones, as [CLS], those that are put in beside the vocabulary, as marks of queries and documents are, and
    those that are there to be used so ([unused0], …). No weights are loaded.

    Raises:
        InputError, UnavailableError: as `load_late_encoder`.
    """
    tokenizer = tokenizer_in(late_folder(name).path)
    unused = (number for token, number in tokenizer.get_vocab().items() if "[unused" in token)
    return np.unique([*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder, *unused]).astype(np.int32)
