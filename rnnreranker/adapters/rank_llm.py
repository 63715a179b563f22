"""rank_llm's requests and results as JSON: reranked candidates, other keys unchanged."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text, write_atomically
from rnnreranker.base.method import Inputs
from rnnreranker.base.strict import parse_json
from rnnreranker.runs import Run

if TYPE_CHECKING:
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.parts.vectors import QueryVectors

TEXT_KEYS = ("text", "contents", "segment", "passage", "body")
Request = dict[str, Any]
"""`query`: {"text", "qid"}; `candidates`: [{"docid", "score", "doc"}]; a Result has more keys, which are kept."""


def read_requests(path: str | os.PathLike[str]) -> list[Request]:
    """The requests or results of a file: a JSON list, or one JSON object a line.

    Raises:
        InputError: no such file, not JSON, an object that is no request, a repeated query id: with file and line.
    """
    text = read_text(path, "rank_llm requests")
    if text.lstrip().startswith("["):
        numbered = [(f"{path}: request {at}", one) for at, one in enumerate(parse_json(text, str(path)), 1)]
    else:
        lines = [(f"{path}:{at}", line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
        numbered = [(where, parse_json(line, where)) for where, line in lines]
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


def inputs_of(requests: Sequence[Request]) -> Inputs:
    """The texts of the queries and of their candidates; of a repeated docid the one with the highest score.

    Raises:
        InputError: no text: `doc` must be a string, or have one under `contents`, `text`, `segment`, `passage` or
            `body`.
    """
    topics: dict[str, str] = {}
    texts: dict[str, str] = {}
    for request in requests:
        qid = str(request["query"]["qid"])
        topics[qid] = _text(request["query"], f"query {qid}")
        for docid, candidate in _best(request).items():
            texts.setdefault(docid, _text(candidate.get("doc"), f"query {qid}: candidate {docid}"))
    return Inputs(topics=topics, texts=texts)


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
    if str(path).endswith(".jsonl"):
        text = "".join(json.dumps(request, ensure_ascii=False) + "\n" for request in requests)
    else:
        text = json.dumps(list(requests), ensure_ascii=False, indent=2) + "\n"
    with write_atomically(path) as stream:
        stream.write(text.encode())


def _best(request: Request) -> dict[str, dict[str, Any]]:
    """The candidates by docid, of a repeated one the first with the highest score."""
    ranked = sorted(request["candidates"], key=lambda candidate: -candidate["score"])
    return {str(candidate["docid"]): candidate for candidate in reversed(ranked)}


def _text(record: Any, where: str) -> str:
    if isinstance(record, str):
        return record
    known = record if isinstance(record, dict) else {}
    text = next((known[key] for key in TEXT_KEYS if isinstance(known.get(key), str)), None)
    if text is None:
        raise InputError(f"{where}: no text; expected a string under one of {', '.join(TEXT_KEYS)}")
    return f"{known['title']}\n{text}" if isinstance(known.get("title"), str) and known["title"] else text
