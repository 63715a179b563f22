"""Searches of Lucene indexes by Anserini's classes, as Pyserini's searchers call them, without importing Pyserini.

`pyserini.search` imports torch, transformers and openai, which takes twenty times as long as a question. The classes
are the same in Pyserini 1.6 and 2.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from rnnreranker.base.errors import UnavailableError
from rnnreranker.base.java import start_java

Ranked = list[tuple[str, float]]  # docids with scores, the best first


class LuceneSearcher:
    """A Lucene index, searched as Pyserini's LuceneSearcher does.

    Args:
        folder: with `segments_*`.

    Raises:
        UnavailableError: a folder that Lucene cannot open; as `start_java`.
    """

    def __init__(self, folder: Path) -> None:
        start_java()
        import jnius

        self.folder = folder
        self._class, self._failure = jnius.autoclass, jnius.JavaException
        self._class("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(2**31 - 1)  # words of a query
        with self._work("opened"):
            self._searcher = self._class("io.anserini.search.SimpleSearcher")(str(folder.absolute()))

    def set_bm25(self, k1: float, b: float) -> None:
        self._searcher.set_bm25(float(k1), float(b))

    def set_language(self, language: str) -> None:
        """Set the language of queries, as Anserini names it; default `en`."""
        self._searcher.set_language(language)

    @property
    def keeps_documents(self) -> bool:
        """Whether the index has document vectors, which feedback reads."""
        with self._work("searched"):
            return self._searcher.reader.termVectors().get(0) is not None

    def set_rm3(self, *, fb_terms: int, fb_docs: int, original_query_weight: float, filter_terms: bool) -> None:
        """Use RM3 feedback, with Pyserini's arguments."""
        self._searcher.set_rm3(None, fb_terms, fb_docs, float(original_query_weight), False, filter_terms)

    def set_rocchio(
        self,
        *,
        top_fb_terms: int,
        top_fb_docs: int,
        bottom_fb_terms: int,
        bottom_fb_docs: int,
        alpha: float,
        beta: float,
        gamma: float,
        use_negative: bool,
    ) -> None:
        """Use Rocchio feedback, with Pyserini's arguments."""
        counts = (top_fb_terms, top_fb_docs, bottom_fb_terms, bottom_fb_docs)
        self._searcher.set_rocchio(None, *counts, float(alpha), float(beta), float(gamma), False, use_negative)

    def search(self, queries: Mapping[str, str], hits: int, threads: int) -> Iterator[Ranked]:
        """The best documents of every query in order, ties by docid.

        Args:
            queries: texts by query id; hits: of each, at most; threads: of Java, do not change results.

        Raises:
            UnavailableError: files that Lucene cannot read.
        """
        listed, names = self._class("java.util.ArrayList")(), self._class("java.util.ArrayList")()
        for name, query in queries.items():
            listed.add(query)
            names.add(name)
        with self._work("searched"):
            ranked = self._searcher.batch_search(listed, names, int(hits), int(threads))
        for name in queries:
            own = ranked.remove(name)  # one query's at a time are here and there
            if own is None:  # Anserini writes what went wrong to stderr, and goes on
                raise UnavailableError(f"{self.folder}: cannot be searched as a Lucene index (no answer to {name})")
            yield [(hit.docid, float(hit.score)) for hit in own]

    def close(self) -> None:
        self._searcher.close()

    @contextlib.contextmanager
    def _work(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._failure as error:
            reason = str(error).splitlines()[0]
            raise UnavailableError(f"{self.folder}: cannot be {what} as a Lucene index ({reason})") from None
