"""Texts to weights of the words of a vocabulary: learned sparse encoders, run by sentence-transformers' SparseEncoder.

A SPLADE model gives word t of its vocabulary the weight max over a text's tokens of log(1 + relu(logit of t)), where
the logits are those of its masked-language model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import cores
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.graphs.store import KeptGraph, key_of
from rnnreranker.encode.in_batches import encode_texts
from rnnreranker.encode.model_folder import ModelFolder, content_of
from rnnreranker.encode.model_settings import TextKind, length_of, read_settings
from rnnreranker.encode.params import SparseEncoderParams
from rnnreranker.encode.sparse.graph import SparseGraph, make_sparse_graph
from rnnreranker.encode.vocabulary import KIND

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.sparse.modules import SparseModules

LOGITS = 2**23  # numbers of a batch, its padded tokens times the words: 32 MiB, more of which glibc maps anew each time
DEVICE_LOGITS = 2**29  # on a GPU, 2 GiB in float32
AT_ONCE = 6  # batches computed at the same time, so that memory stays bounded on any number of cores
SPARSE_MODULES = ("SpladePooling", "SparseStaticEmbedding", "SparseAutoEncoder", "Router")


class Encoded(NamedTuple):
    """The weights of some texts, (n, V) float32 CSR with ascending columns, and how many of the texts were cut."""

    weights: csr_matrix
    cut: int


class SparseEncoder(TextEncoder):
    """A sparse encoder of texts: a masked-language model pooled as SPLADE's by maximum, or a saved SparseEncoder."""

    KIND: ClassVar[str] = KIND
    Params: ClassVar[type[settings.Params]] = SparseEncoderParams
    what: ClassVar[str] = "a sparse encoder"
    graph_kind: ClassVar[str] = "sparse"
    arrays: ClassVar[frozenset[str]] = frozenset({"weights", "terms", "offsets", "size", "words"})

    def __init__(
        self,
        folder: ModelFolder,
        params: SparseEncoderParams,
        model: SparseModules | SparseGraph,
        graph: KeptGraph | None = None,
    ) -> None:
        own = read_settings(folder.path)
        self.model, self.graph, self._folder, self.params = model, graph, folder, params
        self._prompts = {"query": own.query_prompt, "document": own.document_prompt}
        limit = params.max_length or 512 if model.limit is None else model.limit
        self.max_length = length_of(params.max_length, limit, folder.path)
        self.name = folder.name
        self.vocabulary, self.words = model.vocabulary, model.words
        self.fingerprint = fingerprint("sparse encoder", folder.digest, self.max_length, self._prompts)

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        folder = super().files(name)
        check_kind(folder.path)
        return folder

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str = "cpu", dtype: str = EXACT) -> Self:
        from rnnreranker.encode.sparse.modules import SparseModules

        return cls(folder, params, SparseModules(folder.path, device, dtype))

    @classmethod
    def by_graph_of(cls, folder: ModelFolder, params: Any, graph: KeptGraph) -> Self:
        return cls(folder, params, SparseGraph(graph), graph)

    def make_graph(self) -> KeptGraph:
        return make_sparse_graph(self.model, key_of(self.graph_kind, content_of(self._folder.path)))

    def encode_documents(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix:
        """The weights of `encode`, of documents."""
        return self.encode(texts, "document", threads=threads).weights

    def encode_queries(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix:
        """The weights of `encode`, of queries."""
        return self.encode(texts, "query", threads=threads).weights

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> Encoded:
        """The weights of texts, in their order; a text without anything but white space has no words.

        Args:
            texts: any strings; `encode_texts` says what they do to each other.
            what: which prompt is put before each text, and which way it takes in a model that has two.
            threads: None = one per core.

        Raises:
            InputError: a text that is not a string, weights that are not finite numbers from 0.
        """
        from scipy.sparse import csr_matrix, vstack

        def forward(model: SparseModules | SparseGraph, batch: list[Any]) -> csr_matrix:
            weights = _nonzero(model.forward(batch, what))
            if not np.isfinite(weights.data).all() or (weights.data < 0).any():
                raise InputError(f"{self.name}: weights that are no finite numbers from 0; expected a sparse encoder")
            return weights

        at_once = min(threads or cores(), AT_ONCE)
        elsewhere = self.devices is not None and self.devices.elsewhere
        most = max(1, (DEVICE_LOGITS if elsewhere else LOGITS) // self.vocabulary)
        forwards = [partial(forward, one.model) for one in self.on_devices]
        options: dict[str, Any] = {"devices": self.devices, "tokens": most, "threads": at_once, "blank": False}
        computed = encode_texts(texts, self._read(what), forwards, **options)
        stacked = vstack([*computed.parts, csr_matrix((1, self.vocabulary), dtype=np.float32)], "csr")
        taken = stacked[computed.rows]
        taken.sort_indices()
        return Encoded(csr_matrix(taken, dtype=np.float32), computed.cut)

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts are longer than the model reads, as `encode` counts them."""
        return sum(one.cut for one in self._read(what)([text for text in texts if text.strip()]))

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """The weights of all words."""
        weights: np.ndarray = self.encode_documents(texts).toarray()
        return weights

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """The parts of the weights in CSR, the number of words and their fingerprint."""
        weights = self.encode_queries(texts, threads=threads)
        described = {"size": np.array(weights.shape[1]), "words": np.array(self.words)}
        return {"weights": weights.data, "terms": weights.indices, "offsets": weights.indptr, **described}

    def _read(self, what: TextKind) -> Callable[[list[str]], list[Any]]:
        """What gives the model's tokens of texts, with their prompt."""
        return lambda texts: self.model.tokens([self._prompts[what] + text for text in texts], self.max_length)


def _nonzero(weights: np.ndarray) -> csr_matrix:
    """(b, V) CSR of (b, V) weights, in a third of the time that scipy takes."""
    from scipy.sparse import csr_matrix

    flat, (rows, words) = weights.reshape(-1), weights.shape
    nonzero = np.flatnonzero(flat)
    offsets = np.searchsorted(nonzero, np.arange(rows + 1) * words)
    return csr_matrix((flat[nonzero], nonzero % words, offsets), weights.shape)


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
