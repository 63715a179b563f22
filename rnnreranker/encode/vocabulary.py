"""The words of a sparse encoder, and the tokenizer of any encoder, found and loaded without the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.model_folder import find_tokenizer

KIND = "sparse-encoder"  # of method
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")


def load_tokenizer(name: str) -> tuple[Any, Path]:
    """The tokenizer of transformers of a sparse encoder, and the folder of the model; no weights are looked at.

    Args:
        name: as `SparseEncoder.load` takes it; of a model with one way for queries and another for documents, the
            tokenizer of queries.

    Raises:
        InputError: no such model, a tokenizer that cannot be loaded.
        UnavailableError: a model that is not here and not to be had.
    """
    folder = find_tokenizer(name, KIND)
    return tokenizer_in(folder), folder


def tokenizer_in(folder: Path) -> Any:
    """The tokenizer of transformers in the folder of a model; InputError: one that cannot be loaded."""
    transformers = require("transformers", "the words of an encoder", "transformers")
    try:
        return transformers.AutoTokenizer.from_pretrained(_transformer_path(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({reason}); get the model again") from None


def words_of(tokenizer: Any, vocabulary: int, folder: Path) -> str:
    """The fingerprint of a tokenizer's words in their order.

    Args:
        tokenizer: of transformers; vocabulary: words that the model gives weights; folder: for the error.

    Raises:
        InputError: more words than the model gives weights.
    """
    words = tokenizer.get_vocab()
    if (count := max(words.values()) + 1) > vocabulary:
        raise InputError(
            f"{folder}: its tokenizer has {count} words, its model weights of {vocabulary}; "
            "expected a tokenizer of the same vocabulary: get the model again"
        )
    return fingerprint("words", vocabulary, sorted(words, key=words.__getitem__))


def _transformer_path(folder: Path) -> Path:
    """The folder with the tokenizer's files: of sentence-transformers' modules, which have their own, the queries'."""
    below = sorted({path.parent for name in TOKENIZER_FILES for path in folder.glob(f"*/{name}")})
    below.sort(key=lambda path: not path.name.startswith("query"))
    return next((one for one in [folder, *below] if any((one / name).is_file() for name in TOKENIZER_FILES)), folder)
