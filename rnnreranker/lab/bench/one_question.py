"""One question on the command line, beside the import of torch: everything is there, in fresh processes."""

from __future__ import annotations

import itertools
import json
import site
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from rnnreranker.base.command import say
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.data.documents import load_documents
from rnnreranker.encode.dense.encoder import Encoder
from rnnreranker.lab.bench.fresh_process import fresh_python
from rnnreranker.lab.bench.page_cache import drop
from rnnreranker.lab.bench.summaries import judged, ratio_of
from rnnreranker.parts.description import describe

ENCODER, TEXTS = "minilm", "pydoc"
ASKED = "remove duplicates from a list"
ROUNDS, DROPPED_ROUNDS = 5, 1  # dropping takes seconds


class QuestionCase(NamedTuple):
    """A case: the retriever, or all; a question that is new, or was asked before, whose encoding is kept."""

    retriever: str
    question: str
    bound: float | None = None  # of the ratio to `import torch`: about 1.2 s where that takes 2
    flags: tuple[str, ...] = ()


CASES = (
    QuestionCase("dense", "kept", 0.6),
    QuestionCase("dense", "new", 0.6),
    QuestionCase("dense", "new, by the model", None, ("--encoder", ENCODER)),
    QuestionCase("impact", "kept"),
    QuestionCase("impact", "new"),
    QuestionCase("bm25", "new"),
    QuestionCase("all", "kept", 1.6),
    QuestionCase("all", "new", 1.6),
)
DROPPED = (
    QuestionCase("dense", "new"),
    QuestionCase("impact", "new"),
    QuestionCase("bm25", "new"),
    QuestionCase("all", "new"),
)


def one_question(count: int, pairs: int) -> list[dict[str, Any]]:
    """Elapsed seconds of `search --query` over `count` texts, in turn with `import torch`, of every case.

    Then once after the page cache has let go of the files of Python, of the packages and of the index.
    """
    try:
        Encoder.digest_of(ENCODER)
    except (UnavailableError, MissingDependencyError) as error:
        say(f"question: left out: {error}")
        return []
    with tempfile.TemporaryDirectory() as name:
        documents, index = Path(name) / "documents.jsonl", str(Path(name) / "index")
        texts = itertools.islice(load_documents(TEXTS), count)
        documents.write_text("".join(json.dumps({"id": one.docid, "text": one.text}) + "\n" for one in texts))
        _run(name, "index", "--documents", str(documents), "--parts", "auto", "--encoder", ENCODER, "--output", index)
        parts = describe(Path(index))["parts"]
        if lost := [part for part in ("dense", "impact", "bm25") if part not in parts]:
            say(f"question: without {' and '.join(lost)}, which cannot be made here")
        cases = [case for case in CASES if case.retriever in {*parts, "all"}]
        for case in cases:  # what is kept in files is there from now on
            _ask(name, index, case, -1)
        rows = _rows(name, index, cases, min(pairs, ROUNDS), count, dropped=False)
        cases = [case for case in DROPPED if case.retriever in {*parts, "all"}]
        return rows + _rows(name, index, cases, min(pairs, DROPPED_ROUNDS), count, dropped=True)


def _rows(
    home: str, index: str, cases: list[QuestionCase], rounds: int, count: int, dropped: bool
) -> list[dict[str, Any]]:
    measured: list[list[tuple[float, float]]] = [[] for _ in cases]
    folders = [Path(home), *_libraries()]
    kept = 0.0
    for number in range(rounds):
        kept = max(kept, drop(folders)) if dropped else kept
        torch = _run(home, "")
        for case, its in zip(cases, measured, strict=True):
            kept = max(kept, drop(folders)) if dropped else kept
            its.append((torch, _ask(home, index, case, number + 1000 * dropped)))
    if dropped:
        say(f"question: after dropping, {kept:.0%} of the files still were in the page cache, which others have mapped")
    rows = []
    for case, its in zip(cases, measured, strict=True):
        ratio = ratio_of(its)
        row: dict[str, Any] = {"retriever": case.retriever, "question": case.question}
        row |= {"files": "dropped" if dropped else "warm", "documents": count}
        row |= {"torch_s": ratio.base, "search_s": ratio.other, "ratio": ratio.ratio}
        row |= {"low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
        rows.append(judged(row, "ratio", None if dropped else case.bound))
    return rows


def _ask(home: str, index: str, case: QuestionCase, number: int) -> float:
    text = ASKED if case.question == "kept" else f"{ASKED} {case.retriever} {number} {len(case.flags)}"
    retriever = [] if case.retriever == "all" else ["--retriever", case.retriever]
    return _run(home, "search", "--index", index, "--query", text, *retriever, *case.flags)


def _libraries() -> list[Path]:
    """The folders of Python's own modules and of the packages."""
    named = {sysconfig.get_path("stdlib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return sorted(path for path in map(Path, named) if path.is_dir())


def _run(home: str, name: str, *flags: str) -> float:
    """Elapsed seconds of a command, or without one of `import torch`; see `fresh_python`."""
    words = ["-m", f"rnnreranker.{name}", *flags] if name else ["-c", "import torch"]
    begun = time.perf_counter()
    fresh_python(words, name or "import torch", {"RNNRERANKER_HOME": home})
    return time.perf_counter() - begun
