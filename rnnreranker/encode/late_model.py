"""A late-interaction model as sentence-transformers loads it: its lengths, its prompts, texts to vectors of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.errors import InputError, require

if TYPE_CHECKING:
    import torch

Side = Literal["query", "document"]


@dataclass(frozen=True)
class LateModel:
    """A model with what it does to either side.

    Attributes:
        modules: sentence-transformers' MultiVectorEncoder.
        query_length, document_length: tokens, at which texts are cut.
        expands: whether queries are filled up to `query_length`.
        prompts: side → what is put before a text.
    """

    modules: Any
    query_length: int
    document_length: int
    expands: bool
    prompts: Mapping[str, str]

    def features(self, texts: Sequence[str], side: Side) -> dict[str, torch.Tensor]:
        """The tensors (n, t) of texts that `tokens` takes, of the longest of them."""
        import torch

        found = self.modules.preprocess(list(texts), prompt=self.prompts[side] or None, task=side)
        return {name: value for name, value in found.items() if torch.is_tensor(value) and value.dim() == 2}

    def tokens(self, features: Mapping[str, torch.Tensor], side: Side) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, t, d): a vector for every token, and (n, t) bool: which of them count."""
        found = self.modules(dict(features), task=side)
        return found["token_embeddings"], found["attention_mask"].bool()


def open_late_model(folder: Path, params: LateEncoderParams, device: str = "cpu") -> LateModel:
    """The model of a folder, in evaluation mode, with its lengths set in its modules: it is saved with them.

    Args:
        folder: of a late-interaction encoder, see `late_folder`.
        params: lengths that are not the model's own.
        device: cpu or cuda.

    Raises:
        InputError: lengths beyond the model's.
        MissingDependencyError: without sentence-transformers. Its own errors of files that it cannot load pass.
    """
    package = require("sentence_transformers", "late interaction", "'rnnreranker[late]'")
    transformers = require("transformers", "late interaction", "transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    modules = package.MultiVectorEncoder(str(folder), device=device, local_files_only=True).eval()
    first = modules[0]
    limit = int(modules.max_seq_length or 512)
    expansion = getattr(first, "query_expansion", None)
    own = (expansion or {}).get("length") or getattr(first, "query_length", None) or limit
    query_length = int(params.query_length or min(own, limit))
    own = getattr(first, "document_length", None) or limit
    document_length = int(params.document_length or min(own, limit))
    for name, length in (("query_length", query_length), ("document_length", document_length)):
        if length > limit:
            raise InputError(f"{name}={length}: expected an integer <= {limit}, as {folder} takes no more tokens")
    first.query_length, first.document_length = None, document_length
    if expansion:
        first.query_expansion = {**expansion, "length": query_length}
    else:
        first.query_length = query_length
    prompts = {
        side: modules._resolve_prompt(None, side if side in modules.prompts else None) or ""
        for side in ("query", "document")
    }
    return LateModel(modules, query_length, document_length, bool(expansion), prompts)
