"""Texts to weights of the words of a vocabulary: learned sparse encoders, run by sentence-transformers' SparseEncoder.

A SPLADE model gives word t of its vocabulary the weight max over a text's tokens of log(1 + relu(logit of t)), where
the logits are those of its masked-language model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.graphs.store import KeptGraph, Refused, kept_graph
from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.model_folder import ModelFolder, content_of, find_model
from rnnreranker.encode.model_settings import TextKind, read_settings
from rnnreranker.encode.params import SparseEncoderParams
from rnnreranker.encode.sparse.graph import SparseGraph, make_sparse_graph, sparse_key
from rnnreranker.encode.vocabulary import KIND

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.sparse.modules import SparseModules

LOGITS = 2**23  # numbers of a batch, its padded tokens times the words: 32 MiB, more of which glibc maps anew each time
AT_ONCE = 6  # batches computed at the same time, so that memory stays bounded on any number of cores
SPARSE_MODULES = ("SpladePooling", "SparseStaticEmbedding", "SparseAutoEncoder", "Router")


class SparseModel(Protocol):
    """What gives texts the weights of words: the protocol of everything that makes or searches impacts."""

    name: str
    fingerprint: str
    vocabulary: int  # number of words
    words: str  # fingerprint of the words in their order

    def encode_documents(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix: ...
    def encode_queries(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix: ...


class Encoded(NamedTuple):
    """The weights of some texts, (n, V) float32 CSR with ascending columns, and how many of the texts were cut."""

    weights: csr_matrix
    cut: int


class SparseEncoder:
    """A sparse encoder of texts; made by `load_sparse_encoder`, or by its graph by `open_sparse_encoder`.

    Attributes:
        model: what computes.
        graph: the files of what computes, where that is a graph.

    Args:
        folder: the model's files.
        params: what the caller says of it.
        model: as above, `graph` too.
    """

    def __init__(
        self,
        folder: ModelFolder,
        params: SparseEncoderParams,
        model: SparseModules | SparseGraph,
        graph: KeptGraph | None = None,
    ) -> None:
        own = read_settings(folder.path)
        self.model: Any = model
        self.graph = graph
        self._prompts = {"query": own.query_prompt, "document": own.document_prompt}
        limit = model.limit
        if params.max_length is not None and limit and params.max_length > limit:
            raise InputError(f"max_length={params.max_length}: {folder.path} takes at most {limit} tokens")
        self.max_length = int(params.max_length or limit or 512)
        self.name = folder.name
        self.params = params
        self.vocabulary, self.words = model.vocabulary, model.words
        self.fingerprint = fingerprint("sparse encoder", folder.digest, self.max_length, self._prompts)

    def encode_documents(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix:
        """The weights of `encode`, of documents."""
        return self.encode(texts, "document", threads=threads).weights

    def encode_queries(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix:
        """The weights of `encode`, of queries."""
        return self.encode(texts, "query", threads=threads).weights

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> Encoded:
        """The weights of texts, in their order.

        Texts are put into batches by length and content, and every batch is computed by one thread: neither the order
        of the texts nor the number of threads changes a bit. (Other texts in the list may change the last bits.) A text
        without anything but white space has no words.

        Args:
            texts: any strings.
            what: which prompt is put before each text, and which way it takes in a model that has two.
            threads: None = one per core.

        Raises:
            InputError: a text that is not a string, weights that are not finite numbers from 0.
        """
        from scipy.sparse import csr_matrix, vstack

        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"text {number} is a {type(text).__name__}; expected a string")
        distinct = sorted({text for text in texts if text.strip()})
        tokens = self.model.tokens([self._prompts[what] + text for text in distinct], self.max_length)
        parts: list[tuple[list[int], csr_matrix]] = []

        def compute(batch: list[int]) -> None:
            weights = _nonzero(self.model.forward([tokens[number] for number in batch], what))
            if not np.isfinite(weights.data).all() or (weights.data < 0).any():
                raise InputError(f"{self.name}: weights that are no finite numbers from 0; expected a sparse encoder")
            parts.append((batch, weights))

        lengths = [one.length for one in tokens]
        compute_batches(compute, lengths, max(1, LOGITS // self.vocabulary), min(threads or cores(), AT_ONCE))
        parts.sort(key=lambda part: part[0])
        stacked = vstack(
            [*(weights for _, weights in parts), csr_matrix((1, self.vocabulary), dtype=np.float32)], "csr"
        )
        rows = {distinct[number]: row for row, number in enumerate(number for batch, _ in parts for number in batch)}
        longer = {text for text, one in zip(distinct, tokens, strict=True) if one.cut}
        taken = stacked[[rows.get(text, len(rows)) for text in texts]]
        taken.sort_indices()
        return Encoded(csr_matrix(taken, dtype=np.float32), sum(text in longer for text in texts))

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts are longer than the model reads, as `encode` counts them."""
        tokens = self.model.tokens([self._prompts[what] + text for text in texts if text.strip()], self.max_length)
        return sum(one.cut for one in tokens)


def _nonzero(weights: np.ndarray) -> csr_matrix:
    """(b, V) CSR of (b, V) weights, in a third of the time that scipy takes."""
    from scipy.sparse import csr_matrix

    flat, (rows, words) = weights.reshape(-1), weights.shape
    nonzero = np.flatnonzero(flat)
    offsets = np.searchsorted(nonzero, np.arange(rows + 1) * words)
    return csr_matrix((flat[nonzero], nonzero % words, offsets), weights.shape)


def load_sparse_encoder(name: str, **given: Any) -> SparseEncoder:
    """The sparse encoder of a name, hub id or folder.

    Args:
        name: "splade-tiny", a hub id `org/model`, a folder: of a masked-language model, whose weights are pooled as
            SPLADE's by maximum, or as sentence-transformers saves a SparseEncoder.
        given: fields of `SparseEncoderParams`.

    Raises:
        InputError: no such model, a model that is no masked-language model, a tokenizer of another vocabulary.
        UnavailableError: a model that is not installed, or neither in the cache of the hub nor reachable.
    """
    params = SparseEncoderParams(**given)
    folder = find_model(name, KIND)
    check_kind(folder.path)
    from rnnreranker.encode.sparse.modules import SparseModules

    try:
        return SparseEncoder(folder, params, SparseModules(folder.path))
    except (OSError, ValueError, KeyError, RuntimeError, IndexError, AttributeError) as error:
        if isinstance(error, (InputError, UnavailableError)):
            raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{folder.path}: cannot be loaded as a sparse encoder ({reason}); get it again") from None


def open_sparse_encoder(name: str, **given: Any) -> SparseEncoder:
    """The encoder of `load_sparse_encoder`, by its graph in the home folder, which is made on first use.

    Neither torch nor sentence-transformers is imported then; weights are those of the model but for the last bits. An
    encoder that has no graph is that of `load_sparse_encoder`.

    Args and Raises: as `load_sparse_encoder`.
    """
    folder = find_model(name, KIND)
    if (graph := sparse_graph(name)) is None:
        loaded = load_sparse_encoder(name, **given)
        try:
            graph = make_sparse_graph(loaded.model, content_of(folder.path))
        except Refused:
            return loaded
    return SparseEncoder(folder, SparseEncoderParams(**given), SparseGraph(graph), graph)


def sparse_graph(name: str) -> KeptGraph | None:
    """The graph of an encoder, None where it is not in the home folder; nothing is loaded.

    Raises:
        InputError, UnavailableError: as `load_sparse_encoder`.
    """
    return kept_graph(sparse_key(sparse_digest_of(name)))


def sparse_digest_of(name: str) -> str:
    """What tells the model of a name from others, whatever the settings.

    Raises:
        InputError, UnavailableError: as `load_sparse_encoder`.
    """
    return content_of(find_model(name, KIND).path)


def check_kind(folder: Path) -> None:
    """Look that a folder holds a masked-language model or a saved SparseEncoder; others would get random weights."""
    path = folder / ("modules.json" if (folder / "modules.json").is_file() else "config.json")
    said = read_json(path, "settings file of the model", "get the model again")
    if isinstance(said, list):
        kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in said]
        if not set(kinds) & set(SPARSE_MODULES):
            raise InputError(
                f"{folder}: its modules are {', '.join(kinds)}; expected a sparse encoder, with one of "
                f"{', '.join(SPARSE_MODULES)}; a dense model is for --encoder"
            )
    elif not any(str(name).endswith("ForMaskedLM") for name in said.get("architectures") or []):
        raise InputError(
            f"{folder}: a {' or '.join(said.get('architectures') or ['model without architectures'])}; expected a "
            "masked-language model (...ForMaskedLM) as SPLADE is; a dense model is for --encoder"
        )
