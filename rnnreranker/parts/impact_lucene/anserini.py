"""Pyserini's impact index of stored weights: what Anserini reads, and its search, whose run is that of exact search.

Lucene takes a weight for how often its word stands in a document: a score is the inner product of whole numbers, which
32-bit floats hold exactly up to 2**24; what the weights were multiplied by is divided out of it here. Anserini breaks
ties by docid, as the exact search does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files.checksums import check_files
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.java import start_java
from rnnreranker.parts.bm25.searcher import IMPACTS, LuceneSearcher, Ranked
from rnnreranker.parts.impacts.exact import Hits, in_order

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.parts.impacts.queries import QueryImpacts
    from rnnreranker.parts.impacts.source import ImpactSource

PART = "impact-lucene"  # the folder, and the part
ABOUT = "impacts.json"  # beside Lucene's files: {"impacts": fingerprint of the stored weights, "tokens": [word, ...]}
HOW = "make it with index --parts impact,impact-lucene"
WHOLE = "Lucene keeps whole numbers"
EXACT = 2**24  # scores up to here are exact as 32-bit floats
LONGEST = 255  # characters of a token that Lucene does not cut
CLAUSES = 1024  # words of a query that Lucene takes


def tokens_for(words: Sequence[str], vocabulary: int) -> list[str]:
    """What stands for each of the V words in Lucene: the words themselves or, where one is unsafe, their numbers.

    Unsafe are words with white space or control characters, empty ones and those of more than 255 characters: Lucene
    would cut them in two. Numbers beyond the words of the tokenizer, which no text has, stand for themselves.

    >>> tokens_for(["a", "##b"], 3), tokens_for(["a", "b c"], 2)
    (['a', '##b', '2'], ['0', '1'])
    """
    numbers = [str(number) for number in range(vocabulary)]
    safe = all(word and len(word) <= LONGEST and word.isprintable() and not _spaces(word) for word in words)
    named = [*words, *numbers[len(words) :]]
    return named if safe and len(set(named)) == vocabulary else numbers


def _spaces(word: str) -> bool:
    return any(letter.isspace() for letter in word)


def vectors_of(source: ImpactSource, tokens: Sequence[str], block: int = 1024) -> Iterator[str]:
    """Lines of a JsonVectorCollection: {"id", "contents", "vector": {token: weight}}, of documents that have words."""
    for first in range(0, len(source.docids), block):
        rows = np.arange(first, min(first + block, len(source.docids)))
        impacts = source.fetch(rows)
        for line, row in enumerate(rows.tolist()):
            own = slice(impacts.indptr[line], impacts.indptr[line + 1])
            pairs = zip(impacts.indices[own].tolist(), impacts.data[own].tolist(), strict=True)
            if vector := {tokens[term]: int(weight) for term, weight in pairs}:
                yield json.dumps({"id": source.docids[row], "contents": "", "vector": vector}, ensure_ascii=False)


def check_whole(source: ImpactSource) -> None:
    """Look that weights are whole numbers.

    Raises:
        InputError: they are not.
    """
    if source.factor is None:
        raise InputError(
            f"{source.index}: its weights are kept as floats, and {WHOLE}; make the index with impact:weights=whole"
        )


def open_anserini(source: ImpactSource) -> list[str]:
    """The tokens of the impact index beside stored weights, in the order of their words.

    Raises:
        InputError: none there, or one of other weights.
    """
    check_whole(source)
    folder = source.index / PART
    if not any(folder.glob("segments_*")):
        raise InputError(f"{source.index}: no impact index of Lucene in this index; {HOW}")
    check_files(source.index, PART)
    about = read_json(folder / ABOUT, repair=HOW)
    tokens = about.get("tokens") if isinstance(about, dict) else None
    if not isinstance(tokens, list) or len(tokens) != source.vocabulary or not all(map(_is_text, tokens)):
        raise InputError(f"{folder / ABOUT}: expected the {source.vocabulary} tokens of the index; {HOW}")
    if about.get("impacts") != source.fingerprint:
        raise InputError(f"{folder}: is of other impacts than those of {source.index}; {HOW}")
    return tokens


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def search_anserini(source: ImpactSource, queries: QueryImpacts, hits: int, threads: int) -> list[Hits]:
    """Scores and rows of the best documents of every query, as `ImpactSource.search` gives them.

    Args:
        queries: of whole numbers; hits: documents per query; threads: of Java.

    Raises:
        InputError: as `open_anserini`; weights that are no whole numbers, a query of too many words, scores beyond
            what Lucene holds exactly.
        UnavailableError: no Java 21 or newer, a folder that Lucene cannot search.
    """
    tokens, numbers = open_anserini(source), queries.numbers
    if (numbers.data != np.rint(numbers.data)).any():
        raise InputError(f"queries have weights that are no whole numbers, and {WHOLE}; use search=exact")
    if (most := int(np.diff(numbers.indptr).max(initial=0))) > CLAUSES:
        raise InputError(f"a query has {most} words; Lucene takes {CLAUSES}: use search=exact")
    start_java()
    asked = {str(number): _words(numbers[number], tokens) for number in range(numbers.shape[0])}
    try:
        searcher = LuceneSearcher(source.index / PART, IMPACTS)
        ranked = list(searcher.search(asked, hits, threads))
    except UnavailableError as error:
        raise UnavailableError(f"{error}; {HOW}") from None
    searcher.close()
    return [_of_query(source, own, source.unit(queries)) for own in ranked]


def _words(query: csr_matrix, tokens: Sequence[str]) -> dict[str, int]:
    """The weights of a query's tokens."""
    pairs = zip(query.indices.tolist(), query.data.tolist(), strict=True)
    return {tokens[term]: int(weight) for term, weight in pairs if weight}


def _of_query(source: ImpactSource, ranked: Ranked, unit: float) -> Hits:
    """Scores, divided by a unit, and rows in the order of the exact search."""
    scores = np.rint(np.array([score for _, score in ranked]))  # Anserini sets ties apart in the last digits
    if scores.max(initial=0) > EXACT:
        raise InputError(
            f"a score of {scores.max():.0f} is beyond {EXACT}, up to which Lucene's 32-bit floats are exact; "
            "use search=exact, or make the index with a smaller factor, --parts impact:factor=VALUE"
        )
    rows = source.rows([docid for docid, _ in ranked])
    if (rows < 0).any():
        raise InputError(f"{source.index / PART}: has documents that {source.index} does not have; {HOW}")
    return in_order(scores / unit, rows, source.docid_ranks)
