"""`build_index`: documents to an index folder, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.chosen_method import Form
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.given import path_of
from rnnreranker.base.settings import typed_name
from rnnreranker.data.documents import GivenDocuments
from rnnreranker.data.fields import asked_fields
from rnnreranker.index.make import make_index
from rnnreranker.index.request import IndexRequest, forms_of, settings_with_flags, with_settings
from rnnreranker.search.opened import Index, open_index

ENCODER = "minilm"


def build_index(
    documents: str | Path | Iterable[tuple[str, str]] | Iterable[tuple[str, str, Any]] | Mapping[str, Any],
    output: str | Path,
    parts: Form | Sequence[Form] = ("dense", "bm25"),
    encoder: Form | Path = ENCODER,
    device: str | None = None,
    *,
    compute_dtype: str = EXACT,
    threads: int | None = None,
    overwrite: bool = False,
    fields: str | Sequence[str] | None = None,
    from_index: str | Path | None = None,
    backend: str = "threads",
    cluster: str | None = None,
    **settings: Any,
) -> Index:
    """An index of documents in a folder, opened; an interrupted build goes on, and parts that are there stay.

    Args:
        documents: a name, a file, pairs (docid, text), triples with a vector, (d,) floats, that no encoder makes,
            {docid: text}, or records or a data frame with id, text and perhaps title and vector.
        output: the folder.
        parts: in their written form, as "dense", "neighbours:k=32"; `python -m rnnreranker methods` lists them.
        encoder: of the vectors, `minilm`, a folder or `name:pooling=cls,…`.
        device, compute_dtype: where documents are encoded ("cuda", "cuda:0,cuda:1", "mps", "auto"; None = the
            processor), and in which type: "float32", "bfloat16", "float16".
        threads: None = one per core; the index does not depend on it, nor on backend and cluster.
        overwrite: make again what is there, and replace an index of other documents.
        fields, from_index, backend, cluster: as of `IndexRequest`.
        settings: of parts that are flags of `index`: dtype, impact_encoder, token_encoder.

    Raises:
        InputError: no documents, a docid twice, arguments that there are not, an index of other documents there.
        UnavailableError: a BM25 part without Java 21 or newer, an encoder that cannot be had.
    """
    known = [typed_name(field) for _, field in settings_with_flags()]
    if unknown := [name for name in settings if name not in known]:
        raise InputError("; ".join(f"no argument {name}, {nearest(name, known)}" for name in unknown))
    folder = path_of(output, "the name of a folder to write", "output")
    if not str(output).strip():
        raise InputError(f"output: got {output!r}; expected the name of a folder to write")
    asked = asked_fields("documents", fields)
    if isinstance(documents, str | Path):
        path_of(documents, "a name, a file or documents", "documents")
    given = (
        str(documents) if isinstance(documents, str | Path) else GivenDocuments.of(documents, *filter(None, [asked]))
    )
    encoder = str(encoder) if isinstance(encoder, Path) else encoder
    written = with_settings(forms_of(parts), {"encoder": None if encoder == ENCODER else encoder, **settings})
    taken: Any = Path(from_index).expanduser() if isinstance(from_index, str | Path) else from_index
    jobs = (backend, cluster, threads, overwrite)
    request = IndexRequest(given, written, asked, taken, *jobs, device=device, compute_dtype=compute_dtype)
    built, _ = make_index(request, folder)
    return open_index(built.path)
