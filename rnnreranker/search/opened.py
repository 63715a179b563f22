"""`open_index`: an index that is searched from Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import InputError
from rnnreranker.index import opening
from rnnreranker.runs import Run
from rnnreranker.search.defaults import RNN
from rnnreranker.search.searching import request_of, search


@dataclasses.dataclass(frozen=True)
class Index(opening.IndexOnDisk):
    """An index and its parts, with what the command `search` does to it.

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
        """Retrieve and rerank, as `python -m rnnreranker.search`.

        Args:
            topics: a name, a file, {qid: text}, or the text of one query, which is called `query`.
            retrieve, rerank, hits, device, others: as of `SearchRequest`.

        Returns:
            A run, of at most `hits` documents a query, with the scores of its file: what follows from it (a reranked
            run, labels, a model) is the same to the last digit as from the file that the command writes.

        Raises:
            InputError: everything that can be seen to be wrong, at once.
            UnavailableError, MissingDependencyError: an encoder or Java that cannot be had here.
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
        """A run of candidates, a Run or a file, reranked: as `python -m rnnreranker.search --run`.

        topics: as of `search`, None where no query needs its text; rerank, others: as of `SearchRequest`.

        Raises:
            InputError, UnavailableError, MissingDependencyError: as `search`.
        """
        if run is None:
            raise InputError("run: got None; expected a Run or its file")
        return search(request_of(self, topics, run=run, rerank=rerank, **others)).as_written()


def open_index(name: str | Path, bm25: str | None = None) -> Index:
    """The index of a name or path, see `rnnreranker.index.opening.open_index`.

    Args:
        name: a folder that `build_index` or Pyserini wrote, a `.npy` matrix with its ids, `pydoc`, or a prebuilt index
            of Pyserini; bm25: a Lucene index that stands elsewhere.

    Raises:
        InputError: nothing of that name (with the nearest names), or no index in the folder.
        UnavailableError: a prebuilt index that cannot be downloaded.
    """
    opened = opening.open_index(name, bm25)
    return Index(**{field.name: getattr(opened, field.name) for field in dataclasses.fields(opened)})
