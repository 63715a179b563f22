"""The page that explains one query's reranking: one HTML file that needs nothing else."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.search.explain.neighbourhood import Candidate, Neighbourhood, ScorePart
from rnnreranker.search.explain.picture import move_label, picture, shortened

TEXT = 160  # characters of a document that are shown
LISTED = 8  # neighbours that a moved document shares with a probe; the rest is one line
SIZES: dict[str, Any] = {  # of the picture, in a wide window and on a phone
    "wide": {"size": 1000, "node_radius": 15, "limit": 80, "named": 12, "name_length": 24},
    "narrow": {"size": 380, "node_radius": 10.5, "limit": 20, "named": 0, "name_length": 0},
}
DIGITS = 4  # of scores and of their parts
TITLES = {
    "rank": "rank in the run",
    "run": "score in the run",
    "geo": "similarity to the query",
    "lent": "mean score of the nearest candidates",
}


@dataclass(frozen=True)
class SharedNeighbour:
    """A shared neighbour in words: what it is, its text, both weights, what it adds to J, and as a share of J."""

    name: str
    text: str
    probe_weight: float
    weight: float
    amount: float
    share: float


@dataclass(frozen=True)
class Company:
    """What a moved document shares with a probe, of this kind and name: neighbours, the rest of them in sum."""

    kind: str
    name: str
    jaccard: float
    lines: tuple[SharedNeighbour, ...]
    others: int
    others_amount: float
    others_share: float


@dataclass(frozen=True)
class Account:
    """A moved document: in whose sets it is, its company with each probe, who went past it or was left behind."""

    candidate: Candidate
    membership: str
    companies: tuple[Company, ...]
    passed: tuple[Candidate, ...]
    passed_by: tuple[Candidate, ...]


def write_explanation(
    path: Path,
    neighbourhood: Neighbourhood,
    *,
    qid: str,
    query: str,
    texts: Mapping[str, str],
    source: str = "",
    useless: str = "",
) -> None:
    """Write the page of one query.

    Args:
        path: the HTML file.
        neighbourhood: the query's neighbourhood.
        qid: the query's id.
        query: its text.
        texts: a line of text by docid; docids without one are shown without.
        source: where the candidates come from, for the head of the page.
        useless: why the scores of the run tell nothing beyond its order; empty where they do.
    """
    write_page(path, explanation(neighbourhood, qid=qid, query=query, texts=texts, source=source, useless=useless))


def explanation(
    neighbourhood: Neighbourhood, *, qid: str, query: str, texts: Mapping[str, str], source: str = "", useless: str = ""
) -> str:
    """The HTML of the page; see `write_explanation`."""
    shown = _shown(texts)
    candidates = neighbourhood.candidates
    by_element = {candidate.element: candidate for candidate in candidates}
    moved = [candidate for candidate in candidates if candidate.moved]
    return render(
        "search.explain",
        "page.html.j2",
        qid=qid,
        query=query,
        source=source,
        params=neighbourhood.params.to_dict(),
        parts=neighbourhood.parts,
        probes=neighbourhood.probes,
        title=lambda part: title(neighbourhood, part),
        smoothed=any(part.kind == "lent" for part in neighbourhood.parts),
        lenders=lambda candidate: [by_element[element] for element in candidate.nearest],
        summands={candidate.element: summands(candidate) for candidate in candidates},
        useless=useless,
        first=[neighbourhood.docid(probe) for probe in neighbourhood.probes[1:]],
        near=sorted(set().union(*(neighbourhood.steps.sets[probe] - {0, probe} for probe in neighbourhood.probes[1:]))),
        candidates=candidates,
        texts=shown,
        wide=picture(neighbourhood, "wide", **SIZES["wide"]),
        narrow=picture(neighbourhood, "narrow", **SIZES["narrow"]),
        moved=moved,
        climbed=max(candidates, key=lambda c: (c.moved, -c.after)),
        fallen=min(candidates, key=lambda c: (c.moved, c.after)),
        members=sorted(neighbourhood.reciprocal[0] - {0}),
        extended=sorted(neighbourhood.steps.sets[0] - neighbourhood.reciprocal[0] - {0}),
        widest=max(max(sum(map(abs, c.amounts)) for c in candidates), 1e-12),
        accounts=[account(neighbourhood, candidate, shown) for candidate in moved],
        move_label=move_label,
        known=neighbourhood.known,
        nearest=neighbourhood.docid(1),
        by_similarity=_in_order_of_similarity(neighbourhood),
    )


def drawing(neighbourhood: Neighbourhood, size: str, *, query: str, texts: Mapping[str, str]) -> str:
    """The picture of the page alone, an <svg>; size: of `SIZES`, the others as in `write_explanation`."""
    drawn = picture(neighbourhood, size, **SIZES[size])
    of = {"query": query, "texts": _shown(texts), "probes": neighbourhood.probes}
    return render("search.explain", "drawing.html.j2", picture=drawn, **of)


def _shown(texts: Mapping[str, str]) -> dict[str, str]:
    return {docid: shortened(" ".join(text.split()), TEXT) for docid, text in texts.items()}


def _in_order_of_similarity(neighbourhood: Neighbourhood) -> bool:
    """Whether the candidates came in the order of their similarity to the query, as dense retrieval gives them.

    Where similarities to the query are not known, no order contradicts them.
    """
    came = sorted(neighbourhood.candidates, key=lambda candidate: candidate.before)
    similarities = [candidate.similarity for candidate in came if candidate.similarity is not None]
    if not similarities:
        return True
    spread = max(similarities) - min(similarities)
    return all(later <= one + 1e-4 * spread for one, later in itertools.pairwise(similarities))


def title(neighbourhood: Neighbourhood, part: ScorePart) -> str:
    """What a part of the scores is, in words."""
    return TITLES.get(part.kind) or f"J with {neighbourhood.docid(part.probe) if part.probe else 'the query'}"


def summands(candidate: Candidate) -> list[str]:
    """The amounts of a candidate with as many digits as its score is shown with, rounded so that they sum to it.

    What rounding down leaves goes to the amounts that lost most by it.
    """
    unit = 10**-DIGITS
    lower = [math.floor(amount / unit) for amount in candidate.amounts]
    lost = [amount / unit - down for amount, down in zip(candidate.amounts, lower, strict=True)]
    left = round(candidate.score / unit) - sum(lower)
    for index in sorted(range(len(lower)), key=lambda index: -lost[index])[: max(left, 0)]:
        lower[index] += 1
    return [f"{number * unit:.{DIGITS}f}" for number in lower]


def account(neighbourhood: Neighbourhood, candidate: Candidate, texts: Mapping[str, str]) -> Account:
    """Why a document stands where it stands now."""
    companies = [
        _company(neighbourhood, candidate, part, value, texts)
        for part, value in zip(neighbourhood.parts, candidate.values, strict=True)
        if part.kind in ("jac", "near")
    ]
    others = [other for other in neighbourhood.candidates if other is not candidate]
    return Account(
        candidate,
        membership(neighbourhood, candidate),
        tuple(companies),
        tuple(o for o in others if o.before < candidate.before and o.after > candidate.after),
        tuple(o for o in others if o.before > candidate.before and o.after < candidate.after),
    )


def membership(neighbourhood: Neighbourhood, candidate: Candidate) -> str:
    """In whose sets a candidate is, in a sentence."""
    reasons = []
    for probe in neighbourhood.probes:
        whose = f"the set of {neighbourhood.docid(probe)}" if probe else "the query's set"
        if probe == candidate.element:
            reasons.append("its own, as a probe: J with itself is 1")
        elif probe in candidate.reciprocal:
            reasons.append(f"{whose} as a reciprocal neighbour")
        elif probe in candidate.extended:
            reasons.append(f"{whose} through the extension")
    return f"It is in {' and in '.join(reasons)}." if reasons else "It is in no set that counts."


def _company(
    neighbourhood: Neighbourhood, candidate: Candidate, part: ScorePart, value: float, texts: Mapping[str, str]
) -> Company:
    shared = () if part.probe == candidate.element else candidate.shared[part.probe]  # J(p, p) = 1 without a sum
    lines = []
    for one in shared[:LISTED]:
        name = "the query itself" if one.element == 0 else neighbourhood.docid(one.element)
        text = texts.get(name, "") if one.element else ""
        if one.element == candidate.element:
            name = f"{name} (the document itself)"
        elif one.element == part.probe and part.probe:
            name = f"{name} (itself)"
        lines.append(SharedNeighbour(name, text, one.probe_weight, one.weight, one.amount, one.share))
    rest = shared[LISTED:]
    return Company(
        part.kind,
        neighbourhood.docid(part.probe) if part.probe else "the query",
        value,
        tuple(lines),
        len(rest),
        sum(one.amount for one in rest),
        sum(one.share for one in rest),
    )


def file_name(qid: str) -> str:
    """A name for the page of a query that every file system takes.

    >>> file_name("q 1/../x"), file_name("31_1"), file_name("..")
    ('q_1_.._x.html', '31_1.html', 'query.html')
    """
    safe = re.sub(r"[^\w.-]+", "_", qid, flags=re.ASCII).lstrip("._-")[:100]
    return f"{safe or 'query'}.html"
