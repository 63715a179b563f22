"""The words of a sparse encoder, how often texts have them, and the tokenizer of any encoder, without the weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.model_folder import find_tokenizer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KIND = "sparse-encoder"  # of method
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")


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


def term_counts(name: str, texts: Sequence[str], vocabulary: int, *, binary: bool = False) -> tuple[csr_matrix, str]:
    """(n, vocabulary) float32: how often each text has each word, and the fingerprint of the words.

    Only the tokenizer is loaded, and needed; its special tokens, as [CLS], do not count.

    Args:
        name: of a sparse encoder, as `SparseEncoder.load` takes it.
        texts: any strings; vocabulary: number of words.
        binary: 1 for every word that a text has, however often.

    Raises:
        InputError: no such model, a tokenizer that cannot be loaded or has more words.
        UnavailableError: as `SparseEncoder.load`.
    """
    from scipy.sparse import csr_matrix

    folder = find_tokenizer(name, KIND)
    tokenizer = tokenizer_in(folder)
    words = words_of(tokenizer, vocabulary, folder)
    ids_of_texts = tokenizer(list(texts), add_special_tokens=False, truncation=False)["input_ids"] if texts else []
    rows = np.repeat(np.arange(len(texts)), [len(own) for own in ids_of_texts])
    terms = np.concatenate([np.empty(0, dtype=np.int32), *ids_of_texts]).astype(np.int32)
    counts = csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, terms)), (len(texts), vocabulary))
    if binary:
        counts.data[:] = 1
    return counts, words


def _transformer_path(folder: Path) -> Path:
    """The folder with the tokenizer's files: of sentence-transformers' modules, which have their own, the queries'."""
    below = sorted({path.parent for name in TOKENIZER_FILES for path in folder.glob(f"*/{name}")})
    below.sort(key=lambda path: not path.name.startswith("query"))
    return next((one for one in [folder, *below] if any((one / name).is_file() for name in TOKENIZER_FILES)), folder)
