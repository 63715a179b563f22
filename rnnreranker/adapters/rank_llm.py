"""rank_llm's requests and results as JSON: reranked candidates, other keys unchanged."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.data.records import of_json
from rnnreranker.runs import Run

if TYPE_CHECKING:
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.parts.vectors import QueryVectors

Request = dict[str, Any]
"""`query`: {"text", "qid"}; `candidates`: [{"docid", "score", "doc"}]; a Result has more keys, which are kept."""


def read_requests(path: str | os.PathLike[str]) -> list[Request]:
    """The requests or results of a file: a JSON list, or one JSON object a line.

    Raises:
        InputError: no such file, not JSON, an object that is no request, a repeated query id: with file and line.
    """
    numbered = list(of_json(Path(path).expanduser()))
    seen: dict[str, str] = {}
    for where, request in numbered:
        try:
            qid = str(request["query"]["qid"])
            for candidate in request["candidates"]:
                candidate["docid"], candidate["score"] + 0
        except (KeyError, TypeError):
            raise InputError(
                f'{where}: expected {{"query": {{"text", "qid"}}, "candidates": [{{"docid", "score": a number, …}}]}} '
                "as rank_llm writes it"
            ) from None
        if qid in seen:
            raise InputError(f"{where}: query {qid} is there already ({seen[qid]}); expected each once")
        seen[qid] = where
    return [request for _, request in numbered]


def rerank_requests(
    requests: Sequence[Request], reranker: Reranker, queries: QueryVectors | None = None
) -> list[Request]:
    """Copies of the requests with their candidates in the new order and with the new scores.

    Of a repeated docid, as of segments, the highest score counts, and the candidate is returned once.

    queries: a vector for every query, by qid; None if the reranker needs none, or has them.
    """
    candidates = {str(request["query"]["qid"]): _best(request) for request in requests}
    scores = {qid: {docid: one["score"] for docid, one in of.items()} for qid, of in candidates.items()}
    new = reranker.rerank(Run.from_dict(scores), queries)
    return [
        {**request, "candidates": [{**of[docid], "score": float(score)} for docid, score in new[qid]]}
        for request, (qid, of) in zip(requests, candidates.items(), strict=True)
    ]


def write_requests(path: str | os.PathLike[str], requests: Sequence[Request]) -> None:
    """Write requests: one JSON object a line to `.jsonl`, else a JSON list."""
    lines = [json.dumps(request, ensure_ascii=False) for request in requests]
    text = "\n".join([*lines, ""]) if str(path).endswith(".jsonl") else f"[{', '.join(lines)}]\n"
    with write_atomically(path) as stream:
        stream.write(text.encode())


def _best(request: Request) -> dict[str, dict[str, Any]]:
    """The candidates by docid, of a repeated one the first with the highest score."""
    ranked = sorted(request["candidates"], key=lambda candidate: -candidate["score"])
    return {str(candidate["docid"]): candidate for candidate in reversed(ranked)}
