"""The page that explains one query's reranking: one HTML file that needs nothing else."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rnnreranker.explain.neighbourhood import Candidate, Neighbourhood
from rnnreranker.explain.picture import move_label, picture, shortened
from rnnreranker.pages import render, write_page

TEXT = 160  # characters of a document that are shown
LISTED = 8  # shared neighbours of a moved document; the rest is one line


@dataclass(frozen=True)
class Line:
    """A shared neighbour in words: what it is, its text, both weights, what it adds to J, and as a part of J."""

    name: str
    text: str
    query_weight: float
    weight: float
    amount: float
    share: float


@dataclass(frozen=True)
class Account:
    """A moved document: its shared neighbours, the rest of them in sum, and who went past it or was left behind."""

    candidate: Candidate
    lines: tuple[Line, ...]
    others: int
    others_amount: float
    others_share: float
    passed: tuple[Candidate, ...]
    passed_by: tuple[Candidate, ...]


def write_explanation(
    path: Path, found: Neighbourhood, *, qid: str, query: str, texts: Mapping[str, str], source: str = ""
) -> None:
    """Write the page of one query.

    Args:
        path: the HTML file.
        found: the query's neighbourhood.
        qid: the query's id.
        query: its text.
        texts: a line of text by docid; docids without one are shown without.
        source: where the candidates come from, for the head of the page.
    """
    write_page(path, explanation(found, qid=qid, query=query, texts=texts, source=source))


def explanation(found: Neighbourhood, *, qid: str, query: str, texts: Mapping[str, str], source: str = "") -> str:
    """The HTML of the page; see `write_explanation`."""
    shown = {docid: shortened(" ".join(text.split()), TEXT) for docid, text in texts.items()}
    candidates = found.candidates
    moved = [candidate for candidate in candidates if candidate.moved]
    wide = picture(found, "wide", size=1000, node_radius=15, limit=80, named=12, name_length=24)
    narrow = picture(found, "narrow", size=380, node_radius=10.5, limit=20, named=0, name_length=0)
    return render(
        "explain",
        "page.html.j2",
        qid=qid,
        query=query,
        source=source,
        params=found.params.to_dict(),
        lam=found.params.lam,
        candidates=candidates,
        texts=shown,
        wide=wide,
        narrow=narrow,
        moved=moved,
        climbed=max(candidates, key=lambda c: (c.moved, -c.after)),
        fallen=min(candidates, key=lambda c: (c.moved, c.after)),
        members=sorted(found.reciprocal[0] - {0}),
        extended=sorted(found.steps.sets[0] - found.reciprocal[0] - {0}),
        widest=max(max(abs(c.score) for c in candidates), 1e-12),
        accounts=[account(found, candidate, shown) for candidate in moved],
        move_label=move_label,
        by_similarity=_in_order_of_similarity(found),
    )


def _in_order_of_similarity(found: Neighbourhood) -> bool:
    """Whether the candidates came in the order of their similarity to the query, as dense retrieval gives them."""
    came = sorted(found.candidates, key=lambda candidate: candidate.before)
    similarities = [candidate.similarity for candidate in came]
    spread = max(similarities) - min(similarities)
    return all(later <= one + 1e-4 * spread for one, later in itertools.pairwise(similarities))


def account(found: Neighbourhood, candidate: Candidate, texts: Mapping[str, str]) -> Account:
    """Why a document stands where it stands now."""
    lines = []
    for one in candidate.shared[:LISTED]:
        name = "the query itself" if one.element == 0 else found.docid(one.element)
        text = texts.get(name, "") if one.element else ""
        if one.element == candidate.element:
            name = f"{name} (the document itself)"
        lines.append(Line(name, text, one.query_weight, one.weight, one.amount, one.share))
    rest = candidate.shared[LISTED:]
    others = [other for other in found.candidates if other is not candidate]
    return Account(
        candidate,
        tuple(lines),
        len(rest),
        sum(one.amount for one in rest),
        sum(one.share for one in rest),
        tuple(o for o in others if o.before < candidate.before and o.after > candidate.after),
        tuple(o for o in others if o.before > candidate.before and o.after < candidate.after),
    )


def file_name(qid: str) -> str:
    """A name for the page of a query that every file system takes.

    >>> file_name("q 1/../x"), file_name("31_1"), file_name("..")
    ('q_1_.._x.html', '31_1.html', 'query.html')
    """
    safe = re.sub(r"[^\w.-]+", "_", qid, flags=re.ASCII).lstrip("._-")[:100]
    return f"{safe or 'query'}.html"
