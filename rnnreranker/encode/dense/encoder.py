"""Texts to vectors with any encoder of the Hugging Face world; on the CPU the same bytes whatever the threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import Params, hints_of
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.graphs.store import GraphModel, KeptGraph, key_of
from rnnreranker.encode.model_folder import ModelFolder, ModelSettings, content_of, length_of, read_settings
from rnnreranker.encode.named import KnownModel, TextModel
from rnnreranker.encode.params import WHERE_GIVEN, EncoderParams


class Encoder(TextEncoder):
    """An encoder of texts to vectors: "minilm", "e5", … (see `encode/named.py`), a hub id, a folder.

    Args:
        name: hub id or path.
        model: a `TorchModel`, `GraphModel` or `TextModel`.
        settings: everything besides the weights that the vectors depend on.
        digest: of the weights and the tokenizer.
        graph: the files of what computes, where that is a graph.
        folder: of the model that torch computes; params: what it was loaded with.
    """

    KIND: ClassVar[str] = "encoder"
    Params: ClassVar[type[Params]] = EncoderParams
    what: ClassVar[str] = "an encoder"
    graph_kind: ClassVar[str] = "dense"
    arrays: ClassVar[frozenset[str]] = frozenset({"vectors"})

    def __init__(
        self,
        name: str,
        model: Any,
        settings: dict[str, Any],
        digest: str,
        graph: KeptGraph | None = None,
        folder: ModelFolder | None = None,
        params: EncoderParams | None = None,
    ) -> None:
        self.name, self.model, self.settings, self.digest, self.graph = name, model, settings, digest, graph
        self._folder, self.params = folder, params
        self.prompts = {kind: settings[f"{kind}_prompt"] for kind in ("query", "document")}
        self.dimension = model.dimension if isinstance(model, TextModel) else int(model.about["dimension"])
        self.fingerprint = fingerprint_of(digest, settings)
        if graph is not None:
            model.cut_at(settings["max_length"], settings["max_length"])

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
        own = cls(name, of(params), settings, of.digest())
        own.refused = "it is code of its own"
        return own

    @classmethod
    def graph_of(cls, name: str, **given: Any) -> KeptGraph | None:
        return None if _own_code(name) is not None else super().graph_of(name, **given)

    @classmethod
    def digest_of(cls, name: str) -> str:
        """See `TextEncoder`; of a model of its own code its name and version."""
        of = _own_code(name)
        return super().digest_of(name) if of is None else of.digest()

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any) -> str | None:
        """Of all its files, and of those settings that are in the graph."""
        settings, own = _settings(folder, params)
        if own.beyond or settings["dtype"] != "float32" or settings["pooling"] is None or _has_type(settings):
            return None
        truncated = [settings["truncate_dim"]] if settings.get("truncate_dim") else []
        pooled = settings["pooling"], bool(settings["normalize"])
        return key_of(cls.graph_kind, content_of(folder.path), *pooled, *truncated)

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str = "cpu", dtype: str = EXACT) -> Self:
        settings, own = _settings(folder, params)
        from rnnreranker.encode.transformer import NO_LIMIT, TorchModel

        if own.beyond and params.pooling is not None:
            raise InputError(f"{folder.path}: has a module {own.beyond}, so pooling is fixed; leave it out")
        if not own.beyond and settings["pooling"] is None:
            raise InputError(
                f"{folder.path}: its files do not say how token vectors become one; give pooling=mean or cls"
            )
        model = TorchModel(cls.KIND, folder.path, device, dtype, settings)
        path = folder.path / own.transformer
        if (
            own.beyond and not (model.modules.max_seq_length or NO_LIMIT) < NO_LIMIT
        ):  # word embeddings, cut by their tokenizer
            if settings["max_length"] is not None:
                raise InputError(f"{folder.path}: its length of texts is fixed; leave max_length out")
        else:
            settings["max_length"] = length_of(settings["max_length"], model.about["limit"], path)
            model.cut_at(settings["max_length"], settings["max_length"])
        if _has_type(settings):
            types = int(getattr(model.transformer.config, "type_vocab_size", 0))
            if settings["document_type"] >= types:
                raise InputError(f"document_type={settings['document_type']}: {path} has {types} token types")
            model.token_type = settings["document_type"]
        return cls(folder.name, model, settings, folder.digest, folder=folder, params=params)

    @classmethod
    def by_graph_of(cls, folder: ModelFolder, params: Any, graph: KeptGraph) -> Self:
        settings, own = _settings(folder, params)
        limit, path = graph.about["limit"], folder.path / own.transformer
        settings["max_length"] = length_of(settings["max_length"], limit, path)
        return cls(folder.name, GraphModel(graph), settings, folder.digest, graph)

    @property
    def beside_graph(self) -> dict[str, Any]:
        return {"digest": self.digest, "lowercase": bool(self.settings["lowercase"])}

    @property
    def options(self) -> dict[str, Any]:
        """What to call `Encoder.load(name, **options)` with for the same encoder, whatever its files say then."""
        return {key: self.settings[key] for key in hints_of(EncoderParams) if key in self.settings}

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
        kind: Any = "query" if what == "queries" else "document"
        own: dict[str, Any] = {}
        if isinstance(self.model, TextModel):
            own = {"forward": lambda model, batch: model.forward(batch), "length": self.model.length}
        computed = self._compute(texts, kind, threads=threads, progress=progress, **own)
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
    own = read_settings(folder.path, folder.known)
    dtype = ("bfloat16" if has_bfloat16() else "float32") if params.dtype == "auto" else params.dtype
    settings: dict[str, Any] = {
        "model": folder.name,
        "pooling": None if own.beyond else params.pooling or own.pooling,
        "normalize": bool(own.normalize if params.normalize is None else params.normalize),
        "max_length": params.max_length or own.max_length,
        "dtype": dtype,
        "lowercase": own.lowercase,
        "query_prompt": own.query_prompt if params.query_prompt is None else params.query_prompt,
        "document_prompt": own.document_prompt if params.document_prompt is None else params.document_prompt,
        "document_type": params.document_type,
        "truncate_dim": params.truncate_dim or own.truncate_dim,
    }
    if own.beyond and _has_type(settings):
        raise InputError(f"{folder.path}: has a module {own.beyond}, so token types are fixed; leave document_type out")
    return _without_none(settings), own


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
