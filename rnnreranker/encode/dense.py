"""Dense encoders: texts to vectors, on the processor the same bytes for any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params, hints_of
from rnnreranker.encode.base import TextEncoder, cut_texts
from rnnreranker.encode.model_folder import PROMPTS, ModelFolder, read_settings
from rnnreranker.encode.params import WHERE_GIVEN, EncoderParams


class Encoder(TextEncoder):
    """An encoder of texts to vectors: "minilm", "e5", … (see `encode/named.py`), a hub id, a folder.

    settings: all that the vectors depend on besides weights; None = those of files and params.
    """

    KIND: ClassVar[str] = "encoder"
    Params: ClassVar[type[Params]] = EncoderParams

    def __init__(self, folder: ModelFolder, params: Any, *models: Any, settings: dict[str, Any] | None = None) -> None:
        super().__init__(folder, params, *models)
        self.settings = settings or settings_of(folder, params)
        self.prompts = {side: self.settings[f"{side}_prompt"] for side in PROMPTS}
        if folder.code is None:
            length = cut_texts(models, folder.path, max_length=self.settings["max_length"])[0]
            self.settings["max_length"] = length or None
        self.fingerprint = fingerprint_of(self.digest, self.settings)

    @classmethod
    def graph_key(cls, folder: ModelFolder, params: Any, *parts: Any) -> str | None:
        own = settings_of(folder, params)
        if folder.code or own["pooling"] is None or own.get("document_type"):
            return None
        return super().graph_key(folder, params, own["pooling"], own["normalize"], own.get("truncate_dim"))

    @classmethod
    def by_torch(cls, folder: ModelFolder, params: Any, device: str, dtype: str) -> Any:
        if folder.code is not None:
            if (where := Devices((device,), dtype)) != Devices():
                raise InputError(f"{folder.name}: code of its own, which computes on the processor; not on {where}")
            return folder.code(params)
        from rnnreranker.encode.transformer import TorchModel

        return TorchModel(cls.KIND, folder.path, device, dtype, settings_of(folder, params))

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
        computed = self._compute(
            texts, "query" if what == "queries" else "document", threads=threads, progress=progress
        )
        parts = [np.empty((0, self.dimension), dtype=np.float32), *computed.parts]
        vectors: np.ndarray = np.concatenate(parts, dtype=np.float32)[computed.rows]
        return vectors

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        return self.encode(texts, what="documents")

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        return {"vectors": self.encode(texts, threads=threads, what="queries")}


def fingerprint_of(digest: str, settings: dict[str, Any]) -> str:
    own = {key: value for key, value in settings.items() if key != "model"}
    return fingerprint("encoder", digest, _without_none({"dtype": "float32", **own}))


def settings_of(folder: ModelFolder, params: EncoderParams) -> dict[str, Any]:
    """The settings of a dense encoder; pooling is None if it has modules of its own.

    Raises:
        InputError: files that `read_settings` refuses; settings that modules beyond the pooling fix; no pooling.
    """
    given = params.given()
    if folder.code is not None:
        prompts = {name: getattr(folder.code, name) for name in ("query_prompt", "document_prompt")}
        return _without_none({"model": folder.name, **params.to_dict(), **prompts, **given})
    settings = {"model": folder.name, **read_settings(folder.path, folder.known).to_dict(), **given}
    del settings["transformer"]
    if beyond := settings.pop("beyond"):
        if fixed := [name for name in ("pooling", "document_type") if given.get(name)]:
            raise InputError(f"{folder.path}: has a module {beyond}, so {fixed[0]} is fixed; leave it out")
        settings["pooling"] = None
    elif settings["pooling"] is None:
        raise InputError(f"{folder.path}: its files do not say how token vectors become one; give pooling=mean or cls")
    settings["normalize"] = bool(settings["normalize"])
    return _without_none(settings)


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None or key not in WHERE_GIVEN}
