"""BM25 by Lucene."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.base.java import start_java
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.retrieve.base import Retriever
from rnnreranker.parts.base import described_part
from rnnreranker.parts.bm25.searcher import LuceneSearcher

if TYPE_CHECKING:
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class Bm25Params(Params):
    """The parameters of BM25, with Pyserini's defaults."""

    k1: float = setting(0.9, "k1: saturation of term frequency, higher = later", at_least=0, at_most=1e6)
    b: float = setting(0.4, "b: length normalisation, 0 = none, 1 = full", at_least=0, at_most=1)


@dataclass(frozen=True)
class LuceneParams(Bm25Params):
    """The parameters of BM25 and the language of queries."""

    language: Literal["en", "zh"] | None = setting(
        None,
        "what Lucene takes for words of queries; none: as of the documents, en where an index does not say",
        flag="bm25-language",
    )


class Bm25Retriever(Retriever):
    """BM25 on a Lucene index, as Pyserini's LuceneSearcher."""

    name = "bm25"
    needs = frozenset({"topics", "words"})
    over = "words"
    Params = LuceneParams

    def check(self) -> None:
        """Find the Lucene index and start Java.

        Raises:
            InputError: no BM25 part, feedback that drops Chinese words; UnavailableError: no Java 21 or newer.
        """
        filters = getattr(self.feedback and self.feedback.params, "fb_filter", True)
        if self.feedback is not None and filters and self._language() == "zh":
            raise InputError(
                f"prf {self.feedback.name}: takes words of Latin letters and digits alone from documents, no Chinese "
                "ones; leave it out or give fb_filter=no"
            )
        start_java()

    def retrieve(self, hits: int) -> Run:
        from rnnreranker.runs import Run

        topics, searched = self.inputs.topics, hits
        searcher = LuceneSearcher(self.inputs.words)
        searcher.set_bm25(self.params.k1, self.params.b)
        if (language := self._language()) != "en":
            searcher.set_language(language)
        if self.feedback is not None:
            if not searcher.keeps_documents:
                raise InputError(
                    f"{self.inputs.words}: keeps no document vectors, which prf {self.feedback.name} reads; make the "
                    "index with python -m rnnreranker.index --parts bm25, or by Anserini with -storeDocvectors"
                )
            self.feedback.set_words(searcher)
            searched = max(hits, self.feedback.depth("words"))
        ranked = searcher.search(topics, searched, self.threads or cores())
        run = Run.from_dict({qid: dict(own) for qid, own in zip(topics, ranked, strict=True)})
        searcher.close()
        return run if searched == hits else run.head(hits)

    def _language(self) -> str:
        """The language asked for, else that of the index part."""
        folder: Path = self.inputs.words
        said = described_part(folder.parent, folder.name).get("settings", {})
        return self.params.language or str(said.get("language", "en"))
