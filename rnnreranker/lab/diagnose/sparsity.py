"""How many words the queries of a run and the documents of an index have in a learned sparse vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rnnreranker.base.method import Inputs
from rnnreranker.methods.retrieve.impact import ImpactRetriever
from rnnreranker.parts.impacts.word_use import word_use

if TYPE_CHECKING:
    from rnnreranker.parts.impacts import ImpactSource


def sparsity(source: ImpactSource, topics: Mapping[str, str], threads: int | None = None) -> dict[str, float]:
    """`query_words`, `document_words` and `flops`, as `WordUse` has them, of the queries' weights by the index's model.

    Args:
        source: the impacts; topics: at least one query, its id to its text.
        threads: of the encoder; None = one per core.

    Raises:
        InputError, UnavailableError: as `ImpactRetriever.query_impacts`.
    """
    retriever = ImpactRetriever(Inputs(topics=topics, impacts=source), threads=threads)
    queries = retriever.query_impacts(source, list(topics.values())).numbers
    use = word_use(queries, source.document_frequencies, len(source.docids))
    return {name: round(value, 4) for name, value in use.to_dict().items()}
