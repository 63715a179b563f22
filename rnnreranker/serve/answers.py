"""What is said of a question that was answered: results with their moves, measures, and why candidates moved."""

from __future__ import annotations

from typing import Any

from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.search.explain import drawing
from rnnreranker.search.explain.page import membership, summands, title
from rnnreranker.serve.collection import Answered, ServedIndex
from rnnreranker.serve.copied import copied
from rnnreranker.serve.question import QID, SearchQuestion


def search_answer(collection: ServedIndex, question: SearchQuestion) -> dict[str, Any]:
    """Both runs of a question, as `SearchAnswer` has them."""
    answered = collection.answer(question)
    before, after = collection.rows(answered)
    return {
        "query": question.query,
        "topic": question.topic,
        "retriever": answered.pipeline.retrieved_by,
        "reranker": "+".join(one.name for one in answered.pipeline.rerankers) or "none",
        "candidates": len(answered.before.ranked(QID)),
        "before": before,
        "after": after,
        "measures": collection.measured(answered),
        "copy_of": copied(collection.request, answered),
    }


def explained_answer(collection: ServedIndex, question: SearchQuestion, size: str | None = "wide") -> dict[str, Any]:
    """Why the candidates of a question moved, as `ExplainAnswer` has it; size: of the picture, None = without one.

    Raises:
        InputError: not reranked by rnn.
    """
    answered = collection.answer(question, explain=True)
    with one_blas_thread():  # others work beside it
        return _explained(collection, answered, size)


def _explained(collection: ServedIndex, answered: Answered, size: str | None) -> dict[str, Any]:
    neighbourhood, useless = collection.explained(answered)
    texts = collection.lines([candidate.docid for candidate in neighbourhood.candidates])
    candidates = [
        {
            "docid": candidate.docid,
            "before": candidate.before,
            "after": candidate.after,
            "moved": candidate.moved,
            "score": candidate.score,
            "summands": summands(candidate),
            "sets": membership(neighbourhood, candidate),
        }
        for candidate in neighbourhood.candidates
    ]
    svg = "" if size is None else drawing(neighbourhood, size, query=answered.question.query, texts=texts)
    return {
        "svg": svg,
        "elements": {candidate.element: candidate.docid for candidate in neighbourhood.candidates},
        "parts": [f"{part.weight:.4g} × {title(neighbourhood, part)}" for part in neighbourhood.parts],
        "candidates": candidates,
        "useless": useless,
    }
