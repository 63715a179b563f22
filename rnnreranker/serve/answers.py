"""The answer to a question: results with their moves, measures, explanations, and commands to copy."""

from __future__ import annotations

import json
import shlex
from typing import Any

import yaml

from rnnreranker.base.chosen_method import as_list
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.base.written_form import Written, read_joined
from rnnreranker.search.explain import drawing
from rnnreranker.search.explain.page import membership, title
from rnnreranker.search.request import AUTO, HYBRID, NO_RERANKING
from rnnreranker.serve.collection import Answered, ServedIndex
from rnnreranker.serve.question import QID, SearchQuestion
from rnnreranker.serve.request import ServeRequest


def search_answer(collection: ServedIndex, question: SearchQuestion) -> dict[str, Any]:
    """The fields of `SearchAnswer` for a question."""
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
    """The fields of `ExplainAnswer`; size: of the picture, None = without one; InputError: not reranked by rnn."""
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
            "summands": [f"{amount:.4f}" for amount in candidate.amounts],
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


def copied(request: ServeRequest, answered: Answered) -> dict[str, str]:
    question = answered.question
    return {
        "shell": command_line(request, question),
        "python": script(request, question),
        "yaml": conditions(answered),
    }


def command_line(request: ServeRequest, question: SearchQuestion) -> str:
    """`python -m rnnreranker.search` with the flags that differ from the defaults."""
    text = ["--query", question.query] if not question.query.startswith("-") else [f"--query={question.query}"]
    words = ["python", "-m", "rnnreranker.search", "--index", request.index, *text]
    for name, value in arguments_of(request, question).items():
        flag = {"retrieve": "--retriever"}.get(name, f"--{name}")
        words += [
            word for one in (value if isinstance(value, list) else [value]) for word in (flag, str(one or NO_RERANKING))
        ]
    if question.limit != SearchQuestion.limit:
        words += ["--show", str(question.limit)]
    return shlex.join(words)


def script(request: ServeRequest, question: SearchQuestion) -> str:
    """Lines of Python that print ranks, docids and scores."""
    arguments = "".join(f", {name}={value!r}" for name, value in arguments_of(request, question).items())
    return (
        "from rnnreranker import open_index\n\n"
        f"index = open_index({request.index!r})\n"
        f"run = index.search({{'query': {question.query!r}}}{arguments})\n"
        f"for rank, (docid, score) in enumerate(run['query'][:{question.limit}], 1):\n"
        "    print(rank, docid, f'{score:.6f}', sep='\\t')\n"
    )


def arguments_of(request: ServeRequest, question: SearchQuestion) -> dict[str, Any]:
    """The arguments of `Index.search` that differ from the defaults, methods in their written form."""
    forms = {"fuse": question.fuse, "prf": question.prf, "expand": question.expand}
    rerank = _rerank(question)
    given = {
        "encoder": request.encoder,
        "retrieve": None if _auto(question) else _joined(question),
        **{name: None if form is None else _written(form) for name, form in forms.items()},
        "hits": None if question.hits == SearchQuestion.hits else question.hits,
    }
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if rerank != [SearchQuestion.rerank]:
        said["rerank"] = None if not rerank else rerank[0] if len(rerank) == 1 else rerank
    return said


def conditions(answered: Answered) -> str:
    """The `conditions` of a spec, and its `hits`."""
    question, pipeline = answered.question, answered.pipeline
    names = [one.name for one in pipeline.retrievers]
    forms = {one: Written(one) for one in names}
    if not _auto(question) and question.retrieve not in (*HYBRID, "hybrid"):
        forms = {one.name: one for one in read_joined(question.retrieve or AUTO)}
    feedback = {} if question.prf is None else {"prf": _mapping(question.prf)}
    made: dict[str, Any] = {name: {"title": name, "retrieve": _mapping(forms[name]), **feedback} for name in names}
    last = names[0]
    if len(names) > 1:
        how = {pipeline.request.methods.fusion.fuse: {}} if question.fuse is None else _mapping(question.fuse)
        made[last := "fused"] = {"title": " + ".join(names), "fuse": how, "of": names}
    if question.expand is not None:
        made["expanded"] = {"title": f"{last}, expanded", "expand": _mapping(question.expand), "of": last}
        last = "expanded"
    if rerank := [_mapping(one) for one in _rerank(question)]:
        title = f"{last}, then {' and '.join(next(iter(one)) for one in rerank)}"
        made["reranked"] = {"title": title, "rerank": rerank[0] if len(rerank) == 1 else rerank, "of": last}
    deep = {} if question.hits == SearchQuestion.hits else {"hits": question.hits}
    text: str = yaml.safe_dump({**deep, "conditions": made}, sort_keys=False, allow_unicode=True, width=120)
    return text


def _auto(question: SearchQuestion) -> bool:
    return question.retrieve in (None, AUTO)


def _joined(question: SearchQuestion) -> str:
    forms = question.retrieve
    assert forms is not None
    return forms if isinstance(forms, str) else "+".join(str(one) for one in read_joined(forms))


def _rerank(question: SearchQuestion) -> list[str]:
    written = [_written(one) for one in as_list(question.rerank)]
    return [one for one in written if one != NO_RERANKING]


def _written(form: Any) -> str:
    return str(Written.read(form))


def _mapping(form: Any) -> dict[str, Any]:
    one = Written.read(form)
    settings = {key: _plain(value) for key, value in one.params.items()}
    return {one.name: settings | ({"preset": one.preset} if one.preset else {})}


def _plain(value: Any) -> Any:
    """A typed value as YAML: a number, yes or no, or itself."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return {"yes": True, "no": False}.get(value, str(value))
