"""Dense encoders: texts to vectors, on the processor the same bytes for any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params, hints_of
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.model_folder import ModelFolder, read_settings
from rnnreranker.encode.params import WHERE_GIVEN, EncoderParams


class Encoder(TextEncoder):
    """An encoder of texts to vectors: "minilm", "e5", … (see `encode/named.py`), a hub id, a folder.

    settings: all that the vectors depend on besides weights; None = those of files and params.
    """

    KIND: ClassVar[str] = "encoder"
    Params: ClassVar[type[Params]] = EncoderParams
    arrays: ClassVar[frozenset[str]] = frozenset({"vectors"})

    def __init__(self, folder: ModelFolder, params: Any, *models: Any, settings: dict[str, Any] | None = None) -> None:
        super().__init__(folder, params, *models)
        self.settings = settings or settings_of(folder, params)
        self.prompts = {side: self.settings[f"{side}_prompt"] for side in ("query", "document")}
        if folder.code is None:
            self.settings["max_length"] = self._cut_at(self.settings["max_length"])
        self.fingerprint = fingerprint_of(self.digest, self.settings)

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any, *parts: Any) -> str | None:
        own = settings_of(folder, params)
        if folder.code or own["dtype"] != "float32" or own["pooling"] is None or own.get("document_type"):
            return None
        return super().graph_key(folder, params, own["pooling"], own["normalize"], own.get("truncate_dim"))

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str, dtype: str) -> Any:
        if folder.code is not None:
            if (where := Devices((device,), dtype)) != Devices():
                raise InputError(f"{folder.name}: code of its own, which computes on the processor; not on {where}")
            return folder.code(params)
        from rnnreranker.encode.transformer import TorchModel

        settings = settings_of(folder, params)
        beyond = read_settings(folder.path, folder.known).beyond
        if beyond and params.pooling is not None:
            raise InputError(f"{folder.path}: has a module {beyond}, so pooling is fixed; leave it out")
        if not beyond and settings["pooling"] is None:
            raise InputError(
                f"{folder.path}: its files do not say how token vectors become one; give pooling=mean or cls"
            )
        return TorchModel(cls.KIND, folder.path, device, dtype, settings)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `Encoder.load(name, **options)` for the same encoder."""
        return {key: self.settings[key] for key in hints_of(EncoderParams) if key in self.settings}

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
        if what not in ("queries", "documents"):
            raise InputError(f"what={what}: expected queries or documents")
        kind: Any = "query" if what == "queries" else "document"
        own = {"length": self.model.length} if self.folder.code else {}
        computed = self._compute(texts, kind, threads=threads, progress=progress, **own)
        parts = [np.empty((0, self.dimension), dtype=np.float32), *computed.parts]
        vectors: np.ndarray = np.concatenate(parts, dtype=np.float32)[computed.rows]
        if not np.isfinite(vectors).all():
            text = texts[int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])]
            raise InputError(f"{self.name}: the vector of {text[:60]!r} has NaN or infinite values; try dtype float32")
        return vectors

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        return self.encode(texts, what="documents")

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        return {"vectors": self.encode(texts, threads=threads, what="queries")}


def fingerprint_of(digest: str, settings: dict[str, Any]) -> str:
    own = {key: value for key, value in settings.items() if key != "model"}
    return fingerprint("encoder", digest, _without_none(own))


def settings_of(folder: ModelFolder, params: EncoderParams) -> dict[str, Any]:
    """The settings of a dense encoder; pooling is None if it has modules of its own.

    Raises:
        InputError: files that `read_settings` refuses; token types of a model with modules of its own.
    """
    if folder.code is not None:
        prompts = {name: getattr(folder.code, name) for name in ("query_prompt", "document_prompt")}
        return _without_none({"model": folder.name, **params.to_dict(), **prompts, **params.given()})
    own = read_settings(folder.path, folder.known)
    dtype = ("bfloat16" if has_bfloat16() else "float32") if params.dtype == "auto" else params.dtype
    if own.beyond and params.document_type:
        raise InputError(f"{folder.path}: has a module {own.beyond}, so token types are fixed; leave document_type out")
    return _without_none(
        {
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
    )


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None or key not in WHERE_GIVEN}


def has_bfloat16() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
