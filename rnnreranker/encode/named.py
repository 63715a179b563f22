"""What an encoder with a name is: files of the Hugging Face hub, or a model of its own code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.encode.params import EncoderParams


class KnownModel:
    """Files that a short name stands for."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"texts"})
    Params: ClassVar[type[settings.Params]] = EncoderParams
    hub: ClassVar[str] = ""  # id on the Hugging Face hub
    package: ClassVar[str] = ""  # where a Python package carries the files, which is never imported: a folder in it
    install: ClassVar[str] = ""  # what pip calls it
    sha256: ClassVar[str] = ""  # of model.safetensors; "" = whatever the hub gives
    licence: ClassVar[str] = ""  # of the weights, as the hub names it; "" = not known here
    own_settings: ClassVar[dict[str, Any]] = {}  # what the files do not say


class TextModel(ABC):
    """A model of its own code: a subclass says how many numbers a vector has and how texts become vectors.

    Args:
        params: prompts are put before the texts by the caller; what else counts is the model's affair.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"texts"})
    Params: ClassVar[type[settings.Params]] = EncoderParams
    version: ClassVar[str]  # another one gives other vectors
    query_prompt: ClassVar[str] = ""  # what is put before texts where the caller names nothing else
    document_prompt: ClassVar[str] = ""
    dimension: int

    def __init__(self, params: settings.Params) -> None:
        self.params = params

    @classmethod
    def digest(cls) -> str:
        """What tells this model from others, whatever its settings."""
        return f"{cls.name} {cls.version}"

    def tokenize(self, texts: Sequence[str]) -> list[Any]:
        """One token list, or text, of each text; a batch holds entries of about the same length."""
        return list(texts)

    def length(self, tokens: Any) -> int:
        """The number of tokens of an entry, for batches of about the same length."""
        return len(tokens) // 4 + 2

    @abstractmethod
    def forward(self, batch: list[Any]) -> np.ndarray:
        """(b, d) float32: the vectors of a batch of what `tokenize` gave; called from several threads."""
