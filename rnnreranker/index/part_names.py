"""The part of an index that a person means who names the method that searches it."""

from __future__ import annotations

from collections.abc import Iterable

from rnnreranker.base.errors import nearest

# what people call a part after the method that searches it, or what is in it
OTHER_NAMES = {
    **{"bm25s": "terms", "tf-idf": "terms", "words": "terms", "lucene": "bm25", "late": "tokens", "colbert": "tokens"},
    **{"splade": "impact", "impacts": "impact", "sparse": "impact", "vectors": "dense", "graph": "neighbours"},
}


def part_for(name: str, parts: Iterable[str]) -> str:
    """The hint for a part that there is not.

    >>> part_for("bm25s", ["dense", "terms"]), part_for("dens", ["dense", "terms"])
    ('the part for it is terms: --parts terms', 'did you mean dense?')
    """
    known = OTHER_NAMES.get(name)
    return f"the part for it is {known}: --parts {known}" if known else nearest(name, parts)
