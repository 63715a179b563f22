"""rank_llm's requests and results as JSON: reranked candidates, other keys unchanged."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text, write_atomically
from rnnreranker.base.method import Inputs
from rnnreranker.base.strict import parse_json, read_json
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
        requests = read_json(path, "rank_llm requests")
        where = [f"{path}: request {number}" for number in range(1, len(requests) + 1)]
    else:
        requests, where = [], []
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                requests.append(parse_json(line, f"{path}:{number}"))
                where.append(f"{path}:{number}")
    seen: dict[str, str] = {}
    for request, source in zip(requests, where, strict=True):
        qid = _check(request, source)
        if qid in seen:
            raise InputError(f"{source}: query {qid} is there already ({seen[qid]}); expected each once")
        seen[qid] = source
    return requests


def as_run(requests: Sequence[Request]) -> Run:
    """The candidates of requests as a run; of a repeated docid, as of segments, the highest score counts."""
    return Run.from_dict(
        {
            str(request["query"]["qid"]): {
                docid: float(candidate["score"]) for docid, candidate in _best(request["candidates"]).items()
            }
            for request in requests
        }
    )


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
        for docid, candidate in _best(request["candidates"]).items():
            texts.setdefault(docid, _text(candidate.get("doc"), f"query {qid}: candidate {docid}"))
    return Inputs(topics=topics, texts=texts)


def rerank_requests(
    requests: Sequence[Request], reranker: Reranker, queries: QueryVectors | None = None
) -> list[Request]:
    """Copies of the requests with their candidates in the new order and with the new scores, a repeated docid once.

    queries: a vector for every query, by qid; None if the reranker needs none, or has them.
    """
    new = reranker.rerank(as_run(requests), queries)
    result = []
    for request in requests:
        by_docid = _best(request["candidates"])
        ranked = new[str(request["query"]["qid"])]
        candidates = [{**by_docid[docid], "score": float(score)} for docid, score in ranked]
        result.append({**request, "candidates": candidates})
    return result


def write_requests(path: str | os.PathLike[str], requests: Sequence[Request]) -> None:
    """Write requests: one JSON object a line to `.jsonl`, else a JSON list."""
    if str(path).endswith(".jsonl"):
        text = "".join(json.dumps(request, ensure_ascii=False) + "\n" for request in requests)
    else:
        text = json.dumps(list(requests), ensure_ascii=False, indent=2) + "\n"
    with write_atomically(path) as stream:
        stream.write(text.encode())


def _best(candidates: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    candidate_of: dict[str, dict[str, Any]] = {}
    for candidate in candidates:
        other = candidate_of.setdefault(str(candidate["docid"]), candidate)
        if float(candidate["score"]) > float(other["score"]):
            candidate_of[str(candidate["docid"])] = candidate
    return candidate_of


def _check(request: Any, where: str) -> str:
    query = request.get("query") if isinstance(request, dict) else None
    if not isinstance(query, dict) or "qid" not in query or not isinstance(request.get("candidates"), list):
        raise InputError(f'{where}: expected {{"query": {{"text", "qid"}}, "candidates": [...]}} as rank_llm writes it')
    for number, candidate in enumerate(request["candidates"], 1):
        if not isinstance(candidate, dict) or "docid" not in candidate or not _is_number(candidate.get("score")):
            raise InputError(f"{where}: candidate {number} has no docid, or a score that is no number")
    return str(query["qid"])


def _text(record: Any, where: str) -> str:
    if isinstance(record, str):
        return record
    known = record if isinstance(record, dict) else {}
    text = next((known[key] for key in TEXT_KEYS if isinstance(known.get(key), str)), None)
    if text is None:
        raise InputError(f"{where}: no text; expected a string under one of {', '.join(TEXT_KEYS)}")
    title = known.get("title")
    return f"{title}\n{text}" if isinstance(title, str) and title else text


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
