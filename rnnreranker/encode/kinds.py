"""The four kinds of encoders: texts to vectors, word weights or token vectors, and pairs of texts to scores.

Each is loaded by name, computed by torch or by its graph, and identified by a digest. On the processor the same texts
give the same bytes for any number of threads.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from rnnreranker.base.command import cores, phase
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import cache_home, fingerprint, write_atomically
from rnnreranker.base.settings import hints_of
from rnnreranker.encode.graph import FORM, GraphModel, kept_graph, make_graph, rows_of
from rnnreranker.encode.in_batches import Computed, encode_texts
from rnnreranker.encode.model_folder import (
    KINDS,
    PROMPTS,
    ModelFolder,
    TextKind,
    find_model,
    loading,
    modules_of,
    read_settings,
    settings_file,
)
from rnnreranker.encode.named import PARAMS, TextModel
from rnnreranker.encode.params import INSIDE, WHERE_GIVEN, EncoderParams

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LIBRARIES = {True: ("onnxruntime", "tokenizers"), False: ("torch", "transformers", "sentence_transformers")}
LARGEST = 16 * 2**20  # bytes of encoded queries that are kept
LOGITS = 2**23  # numbers of a batch, its padded tokens times the words: 32 MiB, more of which glibc maps anew each time
DEVICE_LOGITS = 2**29  # on a GPU, 2 GiB in float32
AT_ONCE = 6  # sparse batches computed at the same time, so that memory stays bounded on any number of cores


class TextEncoder(ABC):
    """An encoder of texts or pairs; `load` makes it by torch, `open` by its graph.

    Args:
        folder: of the model; params: the settings of the caller.
        models: a `TorchModel` for each device, or one `GraphModel`.

    Attributes:
        name, digest: of the folder; options: arguments of `load` for the same encoder.
        model: the first of `models`; graph: its files, if it is one.
        dimension: numbers of a row; prompts: text before texts, by `TextKind`; lengths: tokens at which texts are cut.
        fingerprint: of all that its numbers depend on besides texts and `devices`.
    """

    KIND: ClassVar[str]  # a key of KINDS and PARAMS, and of method, whose names are known
    fingerprint: str
    devices: Devices | None = None

    def __init__(self, folder: ModelFolder, params: Any, *models: Any) -> None:
        self.folder, self.name, self.params, self.models = folder, folder.name, params, models
        self.model, self.digest, about = models[0], folder.digest or folder.content, models[0].about
        self.graph: GraphModel | None = self.model.graph
        self.dimension = int(about["dimension"])
        own = self.options = params.to_dict()
        self.settings = {**about.get("settings", {}), **{key: value for key, value in own.items() if value is not None}}
        self.prompts = {side: self.settings.get(f"{side}_prompt", about["prompts"][side]) for side in PROMPTS}
        lengths = {name: self.settings.get(name) for name in own if name.endswith("_length")}
        self.lengths = [0, 0] if folder.code else cut_texts(models, folder.path, **lengths)
        self.max_length = self.lengths[1]
        self._describe()

    @abstractmethod
    def _describe(self) -> None:
        """Set `fingerprint`, and what encoders of the kind have besides."""

    @classmethod
    def load(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """The encoder of a name, computed by torch.

        Args:
            name: of a model of this or another package, a hub id `org/model`, a folder.
            devices: devices and arithmetic; None = the processor, float32.
            given: settings of the kind; the model's own files say the rest.

        Raises:
            InputError: no such model, one of another kind, settings out of range.
            UnavailableError: a model that is not here and cannot be downloaded.
        """
        params, folder = PARAMS[cls.KIND](**given), cls.files(name)
        kind, where = KINDS[cls.KIND], devices or Devices()
        if folder.code is not None and where != Devices():
            raise InputError(f"{folder.name}: code of its own, which computes on the processor; not on {where}")
        with loading(folder.path, kind.what):
            if folder.code is not None:
                models: list[Any] = [folder.code(params)]
            else:
                with phase("importing torch and transformers", "imports"):
                    require("sentence_transformers", f"the {cls.KIND} {folder.path}", kind.extra)
                    from rnnreranker.encode.transformer import TorchModel
                dense = settings_of(folder, params) if isinstance(params, EncoderParams) else None
                models = [TorchModel(cls.KIND, folder.path, device, where.dtype, dense) for device in where.names]
            made = cls(folder, params, *models)
        made.devices = devices
        return made

    @classmethod
    def open(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """The encoder of `load`; on the processor computed by its graph in the home folder, made on first use.

        A graph takes half to nine tenths of the model's time, without torch; its numbers differ in the last bits.
        Float32 models with a known pooling and one type of tokens have graphs.
        """
        params, folder = PARAMS[cls.KIND](**given), cls.files(name)
        if devices is not None or folder.code is not None:
            return cls.load(name, devices=devices, **given)
        settings = settings_of(folder, params) if isinstance(params, EncoderParams) else {}
        inside = [settings.get(setting) for setting in INSIDE]  # given or read: the same graph
        key = f"{cls.KIND}-{fingerprint(FORM, folder.content, folder.known, inside)}"
        if (graph := kept_graph(key)) is None:
            made = cls.load(name, **given)
            if (graph := make_graph(key, made.model)) is None:
                return made
        return cls(folder, params, graph)

    @classmethod
    def digest_of(cls, name: str) -> str:
        """A digest of all files of a model; loads nothing; errors as `load`."""
        return cls.files(name).content

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        return find_model(name, cls.KIND)

    def kept_queries(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """The `query_arrays` of n queries, in order, from the cache folder if it has them.

        The key is the model or graph, the settings, all texts in order and the versions of the libraries.
        """
        by = [self.graph.content if self.graph else self.folder.content, *(self.devices.marks if self.devices else [])]
        key = fingerprint("queries", *by, self.fingerprint, list(texts), versions(self.graph))
        return kept_at(cache_home() / "queries" / f"{key}.npz", lambda: self.query_arrays(texts, threads))

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d): the output for documents that are not blank, shortest first; of late interaction all tokens."""
        parts = self._compute(texts, "document", blank=False).parts
        return np.concatenate([rows_of(part) for part in parts])

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """Encoded queries, by name."""
        raise NotImplementedError

    def count_cut(self, texts: Sequence[str], what: TextKind) -> int:
        """How many of the texts that are not blank exceed the model's length."""
        return sum(one.cut for one in self._read(what, [text for text in texts if text.strip()]))

    def _read(self, what: TextKind, texts: list[Any]) -> list[Any]:
        prompt = self.prompts[what]
        prompted = [prompt + one if isinstance(one, str) else (prompt + one[0], *one[1:]) for one in texts]
        return self.model.read(prompted, what)

    def _compute(self, texts: Sequence[Any], what: TextKind, made: Any = None, **options: Any) -> Computed:
        """The model's output for texts or pairs; made: applied to each batch; options: of `encode_texts`.

        Raises:
            InputError: a text that is not a string; output that is NaN or infinite.
        """

        def forward(model: Any, batch: list[Any]) -> Any:
            if isinstance(model, TextModel):
                output: Any = model.forward([one.text for one in batch])
            else:
                output = model.forward(batch, what)
            if not np.isfinite(rows_of(output)).all():
                raise InputError(f"{self.name}: gives NaN or infinite values; try float32, or get the model again")
            return made(output) if made else output

        forwards = [partial(forward, model) for model in self.models]
        return encode_texts(texts, partial(self._read, what), forwards, devices=self.devices, **options)


def cut_texts(models: Sequence[Any], path: Path, **given: int | None) -> list[int]:
    """Cut texts at settings of lengths, one for both kinds or two; returns the lengths of queries and documents.

    None = the model's own, 0 without a limit. InputError: a length beyond the limit of the models.
    """
    limit, own = models[0].about["limit"], models[0].about["lengths"]
    for name, length in given.items():
        if length is not None and length > (limit or 0):
            raise InputError(f"{name}={length}: {path} takes at most {limit or 'no number of'} tokens")
    lengths = [length or own[side] for side, length in zip(PROMPTS, [*given.values()] * 2, strict=False)]
    for model in models:
        model.cut_at(*lengths)
    return lengths if limit else [0, 0]


class Encoder(TextEncoder):
    """An encoder of texts to vectors: "minilm", "e5", … (see `encode/named.py`), a hub id, a folder.

    settings: all that the vectors depend on besides weights.
    """

    KIND = "encoder"

    def _describe(self) -> None:
        if not self.folder.code:
            self.settings["max_length"] = self.max_length or None
        own = {key: value for key, value in self.settings.items() if value is not None or key not in WHERE_GIVEN}
        self.options = {key: value for key, value in own.items() if key in hints_of(EncoderParams)}
        self.fingerprint = fingerprint("encoder", self.digest, {"dtype": "float32", **own})

    def encode(
        self,
        texts: Sequence[str],
        *,
        threads: int | None = None,
        what: Literal["queries", "documents"] = "queries",
        progress: bool = False,
    ) -> np.ndarray:
        """(n, d) float32: the vectors of n texts, in order.

        Args:
            texts: any strings; threads: None = one per core.
            what: selects the prompt, and the tower of a model with two; progress: show a bar on stderr.

        Raises:
            InputError: a text that is not a string, an unknown `what`, vectors that are not finite.
        """
        sides: dict[str, TextKind] = {"queries": "query", "documents": "document"}
        if what not in sides:
            raise InputError(f"what={what}: expected queries or documents")
        computed = self._compute(texts, sides[what], threads=threads, progress=progress)
        parts = [np.empty((0, self.dimension), dtype=np.float32), *computed.parts]
        return np.concatenate(parts, dtype=np.float32)[computed.rows]

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        return {"vectors": self.encode(texts, threads=threads, what="queries")}


def settings_of(folder: ModelFolder, params: EncoderParams) -> dict[str, Any]:
    """The settings of a dense encoder without the caller's prompts and length; pooling is None for modules of its own.

    Raises:
        InputError: files that `read_settings` refuses; settings that modules beyond the pooling fix; no pooling, or one
            that leaves prompts out.
    """
    given = {name: value for name, value in params.given().items() if name in INSIDE}
    settings = {**read_settings(folder.path, folder.known).to_dict(), **given}
    del settings["transformer"]
    pooling = settings_file(folder.path / modules_of(folder.path).get("Pooling", "1_Pooling") / "config.json")
    prompts = [{**settings, **params.given()}[f"{side}_prompt"] for side in PROMPTS]
    if any(prompts) and pooling.get("include_prompt", True) is not True:
        raise InputError(
            f"{folder.path}: its pooling leaves prompts out (include_prompt), which this package cannot do, but has "
            f"the prompts {' and '.join(map(repr, prompts))}; give query_prompt=,document_prompt= to have none"
        )
    if beyond := settings.pop("beyond"):
        if fixed := [name for name in ("pooling", "document_type") if given.get(name)]:
            raise InputError(f"{folder.path}: has a module {beyond}, so {fixed[0]} is fixed; leave it out")
        settings["pooling"] = None
    elif settings["pooling"] is None:
        raise InputError(f"{folder.path}: its files do not say how token vectors become one; give pooling=mean or cls")
    return {**settings, "normalize": bool(settings["normalize"])}


class Encoded(NamedTuple):
    """The weights of texts, (n, V) float32 CSR with ascending columns, and how many texts were cut."""

    weights: csr_matrix
    cut: int


class SparseEncoder(TextEncoder):
    """A sparse encoder: a masked-language model with SPLADE's max pooling, or a saved SparseEncoder.

    SPLADE's weight of a word is the maximum over tokens of log(1 + relu(logit of the word)).

    Attributes:
        max_length: tokens at which texts are cut; vocabulary: the number of words; words: their fingerprint.
    """

    KIND = "sparse-encoder"

    def _describe(self) -> None:
        self.vocabulary, self.words = self.dimension, str(self.model.about["words"])
        self.fingerprint = fingerprint("sparse encoder", self.digest, self.max_length, self.prompts)

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> Encoded:
        """The weights of texts, in order; a blank text has no words.

        Args:
            texts: any strings; threads: None = one per core; what: selects the prompt and the way through the model.

        Raises:
            InputError: a text that is not a string, weights that are not finite.
        """
        from scipy.sparse import csr_matrix, vstack

        def made(weights: np.ndarray) -> csr_matrix:
            flat, (rows, words) = weights.reshape(-1), weights.shape
            nonzero = np.flatnonzero(flat)  # in a third of the time that scipy takes
            offsets = np.searchsorted(nonzero, np.arange(rows + 1) * words)
            return csr_matrix((flat[nonzero], nonzero % words, offsets), weights.shape)

        elsewhere = self.devices is not None and self.devices.elsewhere
        most = max(1, (DEVICE_LOGITS if elsewhere else LOGITS) // self.vocabulary)
        at_once = min(threads or cores(), AT_ONCE)
        computed = self._compute(texts, what, made, tokens=most, threads=at_once, blank=False)
        none = csr_matrix((1, self.vocabulary), dtype=np.float32)
        taken = vstack([*computed.parts, none], "csr")[computed.rows]
        taken.sort_indices()
        return Encoded(csr_matrix(taken, dtype=np.float32), computed.cut)

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        weights = self.encode(texts, "query", threads=threads).weights
        described = {"size": np.array(weights.shape[1]), "words": np.array(self.words)}
        return {"weights": weights.data, "terms": weights.indices, "offsets": weights.indptr, **described}


class TokenVectors(NamedTuple):
    """The token vectors of n texts, one text after the other.

    vectors: (T, d) float32; offsets: (n + 1,) int64, the start of each text; ids: (T,) int32, token numbers; cut: how
    many texts were cut.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    cut: int


class LateEncoder(TextEncoder):
    """A late-interaction encoder: of sentence-transformers (MultiVectorEncoder), of PyLate, or Stanford's ColBERT.

    ColBERT's modules give a vector to each token of a document but punctuation, and `query_length` to a query, padded
    by [MASK]. Blank texts have none.

    Attributes:
        query_length, document_length: tokens at which texts are cut.
    """

    KIND = "late-encoder"

    def _describe(self) -> None:
        self.query_length, self.document_length = self.lengths
        self.digest = self.folder.content
        self.fingerprint = fingerprint(self.KIND, self.digest, self.lengths)

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        from rnnreranker.encode.late import late_folder

        return late_folder(name)

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> TokenVectors:
        """The token vectors of texts, in order.

        Args:
            texts: any strings; threads: None = one per core.
            what: selects the prompt, the length limit, and whether texts are expanded.

        Raises:
            InputError: a text that is not a string, vectors that are NaN or infinite.
        """
        computed = self._compute(texts, what, threads=threads, blank=False)
        none = np.empty((0, self.dimension), dtype=np.float32), np.empty(0, dtype=np.int32)
        rows = [*itertools.chain.from_iterable(computed.parts), none]
        taken = [rows[row] for row in computed.rows]
        offsets = np.cumsum([0, *(len(ids) for _, ids in taken)], dtype=np.int64)
        vectors, ids = (np.concatenate(parts) for parts in zip(none, *taken, strict=True))
        return TokenVectors(vectors, offsets, ids, computed.cut)

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        encoded = self.encode(texts, "query", threads=threads)
        return {"vectors": encoded.vectors, "offsets": encoded.offsets}


class ScoredPairs(NamedTuple):
    """The scores of n pairs, (n,) float32, and which of them exceed the length limit, (n,) bool."""

    scores: np.ndarray
    cut: np.ndarray


class PairScorer(TextEncoder):
    """A cross-encoder with one label: its logit is the score of a pair of texts, larger = more relevant.

    Attributes:
        max_length: tokens at which a pair is cut, its longer text first.
    """

    KIND = "cross-encoder"

    def _describe(self) -> None:
        if self.dimension != 1:
            raise InputError(
                f"{self.folder.path}: a classifier of {self.dimension} labels; expected a cross-encoder with 1"
            )
        by = (self.prompts["document"], self.model.computed_on, versions(self.graph))
        self.fingerprint = fingerprint(self.KIND, self.folder.content, self.max_length, *by)

    def score(self, pairs: Sequence[tuple[str, str]], *, threads: int | None = None) -> ScoredPairs:
        """The scores of pairs (query, document), in order.

        Args:
            pairs: any strings, also empty ones; threads: None = one per core.

        Raises:
            InputError: a text that is not a string, a score that is NaN or infinite.
        """
        computed = self._compute(pairs, "document", threads=threads)
        scores = np.concatenate([np.empty((0, 1), dtype=np.float32), *computed.parts])[computed.rows, 0]
        return ScoredPairs(scores, np.array([one.cut for one in computed.read], dtype=bool))

    def scores_of(self, query: str, texts: Sequence[str], threads: int | None = None) -> ScoredPairs:
        """The scores of a query with n texts, in order; errors as `score`.

        The cache folder keeps them, so that a killed rerank resumes.
        """
        distinct, numbers = np.unique(np.array(texts, dtype=object), return_inverse=True)
        key = fingerprint("pairs", query, distinct.tolist())
        path = cache_home() / "pairs" / self.fingerprint / key[:2] / f"{key}.npz"
        pairs = [(query, text) for text in distinct]
        kept = kept_at(path, lambda: self.score(pairs, threads=threads)._asdict())
        return ScoredPairs(kept["scores"][numbers], kept["cut"][numbers])


def versions(graph: GraphModel | None) -> list[str]:
    """The versions of the libraries that compute: another one may give other last bits."""
    return [metadata.version(library) for library in LIBRARIES[graph is not None]]


def kept_at(path: Path, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The arrays in a cache file, which `compute` fills on first use; arrays beyond `LARGEST` are not kept."""
    with contextlib.suppress(Exception):  # numpy and zipfile raise whatever their parsers do on a damaged file
        return dict(np.load(path, allow_pickle=False))
    arrays = compute()
    with contextlib.suppress(OSError, InputError):  # a cache folder that cannot be written costs time alone
        path.parent.mkdir(parents=True, exist_ok=True)
        if sum(np.asarray(array).nbytes for array in arrays.values()) <= LARGEST:
            with write_atomically(path) as stream:
                np.savez(stream, **arrays)
    return arrays
