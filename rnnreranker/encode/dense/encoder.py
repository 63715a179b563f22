"""Texts to vectors with any encoder of the Hugging Face world; on the CPU the same bytes whatever the threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import Params, hints_of
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.dense.graph import GraphModel, check_about, dense_key, make_dense_graph
from rnnreranker.encode.graphs.store import KeptGraph, Refused
from rnnreranker.encode.in_batches import encode_texts
from rnnreranker.encode.model_folder import ModelFolder, content_of
from rnnreranker.encode.model_settings import ModelSettings, length_of, read_settings
from rnnreranker.encode.named import KnownModel, TextModel
from rnnreranker.encode.params import WHERE_GIVEN, EncoderParams


class DenseModel(Protocol):
    """What turns token lists into vectors; see `transformer.py`."""

    dimension: int

    def tokenize(self, texts: Sequence[str]) -> list[Any]: ...
    def length(self, tokens: Any) -> int: ...
    def forward(self, batch: list[Any]) -> np.ndarray: ...


class Encoder(TextEncoder):
    """An encoder of texts to vectors: "minilm", "e5", … (the files of `encode/dense/models`), a hub id, a folder.

    Args:
        name: hub id or path.
        model: what computes.
        settings: everything besides the weights that the vectors depend on.
        digest: of the weights and the tokenizer.
        documents: what computes the vectors of documents, where that is another model.
        path: the folder of the model that torch computes.
        graph: the files of what computes, where that is a graph.

    Attributes:
        refused: why it has no graph, once `make_graph` has tried.
    """

    KIND: ClassVar[str] = "encoder"
    Params: ClassVar[type[Params]] = EncoderParams
    what: ClassVar[str] = "an encoder"
    arrays: ClassVar[frozenset[str]] = frozenset({"vectors"})

    def __init__(
        self,
        name: str,
        model: DenseModel,
        settings: dict[str, Any],
        digest: str,
        documents: DenseModel | None = None,
        path: Path | None = None,
        graph: KeptGraph | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.digest = digest
        self.dimension = model.dimension
        self.path, self.graph, self.refused = path, graph, ""
        self.fingerprint = fingerprint_of(digest, settings)
        self.model, self._documents = model, documents or model

    @classmethod
    def load(cls, name: str, *, devices: Devices | None = None, **given: Any) -> Self:
        """See `TextEncoder`; a model of its own code has no files, and computes on the processor."""
        if (of := _own_code(name)) is None:
            return super().load(name, devices=devices, **given)
        if devices is not None:
            raise InputError(f"{name}: code of its own, which computes on the processor; not on {devices}")
        params = EncoderParams(**given)
        settings = _without_none({"model": name, **params.to_dict()})
        for prompt in ("query_prompt", "document_prompt"):
            settings[prompt] = getattr(of, prompt) if settings[prompt] is None else settings[prompt]
        return cls(name, of(params), settings, of.digest())

    @classmethod
    def graph_of(cls, name: str, **given: Any) -> KeptGraph | None:
        return None if _own_code(name) is not None else super().graph_of(name, **given)

    @classmethod
    def digest_of(cls, name: str) -> str:
        """See `TextEncoder`; of a model of its own code its name and version."""
        of = _own_code(name)
        return super().digest_of(name) if of is None else of.digest()

    @classmethod
    def in_graph(cls, given: dict[str, Any]) -> dict[str, Any]:
        """All: pooling is in the graph."""
        return given

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any) -> str | None:
        settings, own = _settings(folder, params)
        if own.beyond or settings["dtype"] != "float32" or settings["pooling"] is None or _has_type(settings):
            return None
        return dense_key(content_of(folder.path), settings)

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str = "cpu", dtype: str = EXACT) -> Self:
        settings, own = _settings(folder, params)
        from rnnreranker.encode.transformer import SentenceTransformerModel, TransformerModel

        model: Any
        documents: DenseModel | None = None
        if own.beyond:
            if params.pooling is not None:
                raise InputError(f"{folder.path}: has a module {own.beyond}, so pooling is fixed; leave it out")
            model = of_modules = SentenceTransformerModel(folder.path, settings, own.beyond, device, dtype)
            documents = of_modules.documents
        elif settings["pooling"] is None:
            raise InputError(
                f"{folder.path}: its files do not say how token vectors become one; give pooling=mean or cls"
            )
        else:
            model = TransformerModel(folder.path / own.transformer, settings, device, dtype)
            documents = model.of_type(settings["document_type"]) if _has_type(settings) else None
        model.forward(model.tokenize(["a"]))  # settings that fit one another until then may not fit the weights
        return cls(folder.name, model, settings, folder.digest, documents, path=folder.path)

    @classmethod
    def by_graph_of(cls, folder: ModelFolder, params: Any, graph: KeptGraph) -> Self:
        settings, own = _settings(folder, params)
        limit = check_about(graph)["limit"]
        settings["max_length"] = length_of(settings["max_length"], limit, folder.path / own.transformer)
        return cls(folder.name, GraphModel(graph, settings), settings, folder.digest, graph=graph)

    def by_graph(self) -> Encoder:
        """This encoder by its graph in the home folder, which is made where it is not there; Refused: it has none."""
        if self.graph is not None:
            return self
        graph = self.make_graph()
        return Encoder(self.name, GraphModel(graph, self.settings), self.settings, self.digest, graph=graph)

    def make_graph(self) -> KeptGraph:
        if self.path is None or self.refused:
            raise Refused(self.refused or "it is code of its own")
        if _has_type(self.settings):
            raise Refused("its documents have a token type of their own")
        try:
            key = dense_key(content_of(self.path), self.settings)
            return make_dense_graph(self.model, self.settings, self.digest, key)
        except Refused as refused:
            self.refused = str(refused)
            raise

    @property
    def options(self) -> dict[str, Any]:
        """What to call `Encoder.load(name, **options)` with for the same encoder, whatever its files say then."""
        return {key: self.settings[key] for key in hints_of(EncoderParams) if key in self.settings}

    @property
    def transformer(self) -> Any:
        """The model of transformers that is run, where it is run directly; else what runs it."""
        return getattr(self.model, "transformer", self.model)

    def encode(
        self,
        texts: Sequence[str],
        *,
        threads: int | None = None,
        what: Literal["queries", "documents"] = "queries",
        progress: bool = False,
    ) -> np.ndarray:
        """(n, d) float32: the vectors of n texts, in their order.

        Args:
            texts: may be empty strings; `encode_texts` says what they do to each other.
            threads: None = one per core.
            what: which prompt is put before each text, where the model has prompts, and whose tower computes, where it
                has two.
            progress: show a bar on stderr.

        Raises:
            InputError: a text that is not a string, an unknown `what`, vectors that are not finite.
        """
        if what not in ("queries", "documents"):
            raise InputError(f"what={what}: expected queries or documents")
        prompt = self.settings["query_prompt" if what == "queries" else "document_prompt"]
        models = [one.model if what == "queries" else one._documents for one in self.on_devices]

        def read(distinct: list[str]) -> list[Any]:
            return models[0].tokenize([prompt + text for text in distinct])

        options: dict[str, Any] = {"threads": threads, "length": models[0].length, "progress": progress}
        computed = encode_texts(texts, read, [one.forward for one in models], devices=self.devices, **options)
        parts = [np.empty((0, self.dimension), dtype=np.float32), *computed.parts]
        vectors: np.ndarray = np.concatenate(parts, dtype=np.float32)[computed.rows]
        if not np.isfinite(vectors).all():
            text = texts[int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])]
            raise InputError(f"{self.name}: the vector of {text[:60]!r} has NaN or infinite values; try dtype float32")
        return vectors

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors."""
        return self.encode(texts, what="documents")

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        return {"vectors": self.encode(texts, threads=threads, what="queries")}


def fingerprint_of(digest: str, settings: dict[str, Any]) -> str:
    """What tells an encoder of weights and settings from others, whatever it is called."""
    own = {key: value for key, value in settings.items() if key != "model"}
    return fingerprint("encoder", digest, _without_none(own))


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without those of `WHERE_GIVEN` that are not given."""
    return {key: value for key, value in settings.items() if value is not None or key not in WHERE_GIVEN}


def _has_type(settings: dict[str, Any]) -> bool:
    """Whether documents have another token type than queries."""
    return bool(settings.get("document_type"))


def _settings(folder: ModelFolder, params: EncoderParams) -> tuple[dict[str, Any], ModelSettings]:
    """The settings of a model of files, max_length None where only the model itself says it; and what its files say."""
    own, known = read_settings(folder.path), folder.known
    dtype = ("bfloat16" if has_bfloat16() else "float32") if params.dtype == "auto" else params.dtype
    settings: dict[str, Any] = {
        "model": folder.name,
        "pooling": None if own.beyond else params.pooling or own.pooling or known.get("pooling"),
        "normalize": next(
            (v for v in (params.normalize, own.normalize, known.get("normalize")) if v is not None), False
        ),
        "max_length": params.max_length or own.max_length or known.get("max_length"),
        "dtype": dtype,
        "lowercase": own.lowercase,
        **{prompt: _prompt(prompt, params, own, known) for prompt in ("query_prompt", "document_prompt")},
        "document_type": params.document_type,
        "truncate_dim": params.truncate_dim or own.truncate_dim,
    }
    if own.beyond and _has_type(settings):
        raise InputError(f"{folder.path}: has a module {own.beyond}, so token types are fixed; leave document_type out")
    return _without_none(settings), own


def _prompt(name: str, params: EncoderParams, own: ModelSettings, known: dict[str, Any]) -> str:
    given = getattr(params, name)
    return given if given is not None else getattr(own, name) or known.get(name, "")


def _own_code(name: str) -> type[TextModel] | None:
    """The model of its own code of that name, or None: files of a folder or of the hub."""
    model: Any = find("encoder", name) if name in names("encoder") else KnownModel
    return None if issubclass(model, KnownModel) else model


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 in hardware (Linux only; elsewhere the answer is no)."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
