"""`build_index`: documents to an index folder, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rnnreranker.base.chosen import Form
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.data.given import GivenDocuments
from rnnreranker.index.make import Recipe, make_index
from rnnreranker.search.opened import Index, open_index
from rnnreranker.search.queries import encoder_of


def build_index(
    documents: str | Path | Iterable[tuple[str, str]],
    output: str | Path,
    parts: Sequence[str] = ("dense", "bm25"),
    encoder: Form = "minilm",
    device: str | None = None,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    **others: Any,
) -> Index:
    """An index of documents in a folder, opened; an interrupted build goes on, and parts that are there stay.

    Args:
        documents: a name, a file, or pairs (docid, text).
        output: the folder.
        parts: some of dense, bm25, impact, tokens, terms, neighbours.
        encoder: of the vectors, `minilm` or `name:pooling=cls,…`.
        device: None or "cpu": documents are encoded on the processor.
        threads: None = one per core; the index does not depend on it.
        overwrite: make again what is there, and replace an index of other documents.
        others: of `Recipe`: dtype, impact_encoder, token_encoder, fields, graph, …

    Raises:
        InputError: no documents, a docid twice, arguments that there are not, an index of other documents there.
        UnavailableError: a BM25 part without Java 21 or newer, an encoder that cannot be had.
    """

    if device not in (None, "cpu"):
        raise InputError(f"device={device!r}: documents are encoded on the processor; leave it out")
    known = [field.name for field in fields(Recipe) if field.name not in ("documents", "parts", "encoder", "settings")]
    if unknown := [name for name in others if name not in known]:
        raise InputError("; ".join(f"no argument {name}, {nearest(name, known)}" for name in unknown))
    given = str(documents) if isinstance(documents, str | Path) else GivenDocuments.of(documents)
    name, settings = encoder_of(encoder)
    recipe = Recipe(given, list(parts), encoder=name, settings=settings, **others)
    built, _ = make_index(recipe, Path(output).expanduser(), threads=threads, overwrite=overwrite)
    return open_index(built.path)
