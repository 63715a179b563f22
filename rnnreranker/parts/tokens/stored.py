"""Tokens on disk, found by docid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.files.checksums import check_files
from rnnreranker.parts.tokens.files import FOLDER, OFFSETS, map_tokens
from rnnreranker.parts.vectors.ids import ids_of_documents


class StoredTokens:
    """The vectors of the tokens of an index's documents.

    Args:
        index: the folder of the index, with `docid` and a folder `tokens`.
        described: what rnnreranker.json says of this part.

    Attributes:
        folder: of the files; docids: row -> docid; dimension: of a vector.
        vectors: (T, d) float16; offsets: (N + 1,) int64; ids: (T,) int32; all memory-mapped, see `token_files`.
        encoder: its name, settings and digest, for `LateEncoder.load(name, **settings)`.

    Raises:
        InputError: files that are missing, cut short or do not fit together, a description that is not one.
    """

    def __init__(self, index: Path, described: Mapping[str, Any]) -> None:
        check_files(index, "tokens")
        self.folder = index / FOLDER
        self.vectors, self.offsets, self.ids = map_tokens(self.folder)
        self.dimension = int(self.vectors.shape[1])
        self._ids = ids_of_documents(index, self.offsets, self.folder / OFFSETS)
        self.docids: Sequence[str] = self._ids.names
        encoder = described.get("encoder")
        if not isinstance(encoder, dict) or not {"name", "settings", "digest"} <= set(encoder):
            raise InputError(
                f"{index / 'rnnreranker.json'}: does not describe tokens as this version does; make the index again"
            )
        self.encoder: Mapping[str, Any] = encoder

    @cached_property
    def fingerprint(self) -> str:
        """What tells these tokens from others."""
        return fingerprint("tokens", *(file_digest(path) for path in sorted(self.folder.glob("*.npy"))))

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 where the docid is unknown."""
        return self._ids.rows(docids)
