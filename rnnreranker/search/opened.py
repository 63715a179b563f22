"""`build_index` and `open_index`: an index in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import InputError, path_of, refuse
from rnnreranker.base.method import Form
from rnnreranker.base.settings import check_names
from rnnreranker.data.documents import GivenDocuments
from rnnreranker.data.fields import asked_fields
from rnnreranker.index import opening
from rnnreranker.index.make import make_index
from rnnreranker.index.request import IndexRequest, forms_of, settings_with_flags, with_settings
from rnnreranker.runs import Run
from rnnreranker.search.defaults import RNN
from rnnreranker.search.searching import request_of, search

ENCODER = "minilm"


class Index(opening.IndexOnDisk):
    """An index with the search of the command.

    >>> Index("my-index").parts
    ()
    """

    def search(
        self,
        topics: str | Path | Mapping[str, str],
        retrieve: Form | Sequence[Form] = "auto",
        rerank: Form | Sequence[Form] | None = RNN,
        hits: int = 1000,
        device: str | None = None,
        **others: Any,
    ) -> Run:
        """Retrieve and rerank, as `python -m rnnreranker.search`; a run with the scores of the command's file.

        Args:
            topics: a name, a file, {qid: text}, or the text of one query, which gets the id `query`.
            retrieve, rerank, hits, device, others: as in `SearchRequest`.

        Raises:
            InputError: all visible faults at once.
            UnavailableError, MissingDependencyError: an encoder or Java is missing here.
        """
        asked = {"retrieve": retrieve, "rerank": rerank, "hits": hits, "device": device, **others}
        return search(request_of(self, topics, **asked)).as_written()

    def rerank(
        self,
        run: str | Path | Run,
        rerank: Form | Sequence[Form] = RNN,
        topics: str | Path | Mapping[str, str] | None = None,
        **others: Any,
    ) -> Run:
        """Rerank the candidates of a Run or a file, as `python -m rnnreranker.search --run`; errors as `search`.

        topics: as in `search`, None if no method reads texts; rerank, others: as in `SearchRequest`.
        """
        if run is None:
            raise InputError("run: got None; expected a Run or its file")
        return search(request_of(self, topics, run=run, rerank=rerank, **others)).as_written()


def open_index(name: str | Path, bm25: str | None = None) -> Index:
    """The index of a name or path.

    Args:
        name: a folder of `build_index` or Pyserini, a `.npy` matrix with its ids, `pydoc`, or a prebuilt index of
            Pyserini.
        bm25: a Lucene index in another folder.

    Raises:
        InputError: unknown name, or no index in the folder.
        UnavailableError: a prebuilt index that cannot be downloaded.
    """
    opened = opening.open_index(name, bm25)
    return Index(opened.name, opened.folders, opened.settings)


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
    """Build an index of documents in a folder, and open it; resumes an interrupted build and keeps existing parts.

    Args:
        documents: a name, a file, pairs (docid, text), triples with a vector, (d,) floats, {docid: text}, or records or
            a data frame with id, text and perhaps title and vector.
        parts: in their written form, as "dense", "neighbours:k=32"; `python -m rnnreranker methods` lists them.
        encoder: of the vectors, `minilm`, a folder or `name:pooling=cls,…`.
        device, compute_dtype: of the encoder, as in `devices_of`.
        threads: None = one per core; the index does not depend on it.
        overwrite: build existing parts again, and replace an index of other documents.
        fields, from_index, backend, cluster: as in `IndexRequest`; settings: of parts: dtype, impact_encoder,
            token_encoder.

    Raises:
        InputError: no documents, a repeated docid, unknown arguments, an index of other documents in the folder.
        UnavailableError: a BM25 part without Java 21 or newer, a missing encoder.
    """
    check_names(settings, [hint.flag for _, hint in settings_with_flags()])
    folder = path_of(output, "the name of a folder to write", "output")
    refuse(
        (not str(output).strip(), f"output: got {output!r}; expected the name of a folder to write"),
        (
            isinstance(documents, str) and not documents,
            "documents: an empty name; expected a file, a folder or the name of a data set",
        ),
    )
    asked = asked_fields("documents", fields)
    if isinstance(documents, str | Path):
        path_of(documents, "a name, a file or documents", "documents")
        given: Any = str(documents)
    else:
        given = GivenDocuments.of(documents, *filter(None, [asked]))
    own = None if encoder == ENCODER else str(encoder) if isinstance(encoder, Path) else encoder
    written = with_settings(forms_of(parts), {"encoder": own, **settings})
    taken: Any = Path(from_index).expanduser() if isinstance(from_index, str | Path) else from_index
    jobs = (backend, cluster, threads, overwrite)
    request = IndexRequest(given, written, asked, taken, *jobs, device=device, compute_dtype=compute_dtype)
    return open_index(make_index(request, folder)[0].path)
