"""One question on the command line, beside the import of torch: everything is there, in fresh processes."""

from __future__ import annotations

import itertools
import json
import os
import site
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from rnnreranker.base.command import say
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.data.documents import load_documents
from rnnreranker.encode.dense.encoder import digest_of
from rnnreranker.lab.bench.page_cache import drop
from rnnreranker.lab.bench.summaries import judged, ratio_of
from rnnreranker.parts.description import describe

ENCODER, TEXTS = "minilm", "pydoc"
ASKED = "remove duplicates from a list"
ROUNDS, DROPPED_ROUNDS = 5, 1  # dropping takes seconds


class Way(NamedTuple):
    """A way to ask: the retriever, or all; a question that is new, or was asked before, whose encoding is kept."""

    retriever: str
    question: str
    bound: float | None = None  # of the ratio to `import torch`: about 1.2 s where that takes 2
    more: tuple[str, ...] = ()


WAYS = (
    Way("dense", "kept", 0.6),
    Way("dense", "new", 0.6),
    Way("dense", "new, by the model", None, ("--encoder", ENCODER)),
    Way("impact", "kept"),
    Way("impact", "new"),
    Way("bm25", "new"),
    Way("all", "kept", 1.6),
    Way("all", "new", 1.6),
)
DROPPED = (Way("dense", "new"), Way("impact", "new"), Way("bm25", "new"), Way("all", "new"))


def one_question(count: int, pairs: int) -> list[dict[str, Any]]:
    """Elapsed seconds of `search --query` over `count` texts, in turn with `import torch`, of every way to ask.

    Then once after the page cache has let go of the files of Python, of the packages and of the index.
    """
    try:
        digest_of(ENCODER)
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
        ways = [way for way in WAYS if way.retriever in {*parts, "all"}]
        for way in ways:  # what is kept in files is there from now on
            _ask(name, index, way, -1)
        rows = _rows(name, index, ways, min(pairs, ROUNDS), count, dropped=False)
        ways = [way for way in DROPPED if way.retriever in {*parts, "all"}]
        return rows + _rows(name, index, ways, min(pairs, DROPPED_ROUNDS), count, dropped=True)


def _rows(home: str, index: str, ways: list[Way], rounds: int, count: int, dropped: bool) -> list[dict[str, Any]]:
    measured: list[list[tuple[float, float]]] = [[] for _ in ways]
    folders = [Path(home), *_libraries()]
    kept = 0.0
    for number in range(rounds):
        kept = max(kept, drop(folders)) if dropped else kept
        torch = _run(home, "")
        for way, its in zip(ways, measured, strict=True):
            kept = max(kept, drop(folders)) if dropped else kept
            its.append((torch, _ask(home, index, way, number + 1000 * dropped)))
    if dropped:
        say(f"question: after dropping, {kept:.0%} of the files still were in the page cache, which others have mapped")
    rows = []
    for way, its in zip(ways, measured, strict=True):
        found = ratio_of(its)
        row: dict[str, Any] = {"retriever": way.retriever, "question": way.question}
        row |= {"files": "dropped" if dropped else "warm", "documents": count}
        row |= {"torch_s": found.base, "search_s": found.other, "ratio": found.ratio}
        row |= {"low": found.low, "high": found.high, "pairs": found.pairs}
        rows.append(judged(row, "ratio", None if dropped else way.bound))
    return rows


def _ask(home: str, index: str, way: Way, number: int) -> float:
    text = ASKED if way.question == "kept" else f"{ASKED} {way.retriever} {number} {len(way.more)}"
    flags = [] if way.retriever == "all" else ["--retriever", way.retriever]
    return _run(home, "search", "--index", index, "--query", text, *flags, *way.more)


def _libraries() -> list[Path]:
    """The folders of Python's own modules and of the packages."""
    named = {sysconfig.get_path("stdlib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return sorted(path for path in map(Path, named) if path.is_dir())


def _run(home: str, name: str, *flags: str) -> float:
    """Elapsed seconds of a command, or without one of `import torch`.

    Raises:
        UnavailableError: it failed, with the last line that it said.
    """
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    words = ["-m", f"rnnreranker.{name}", *flags] if name else ["-c", "import torch"]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": path, "RNNRERANKER_HOME": home},
        capture_output=True,
        text=True,
    )
    spent = time.perf_counter() - begun
    if done.returncode:
        raise UnavailableError(
            f"{name or 'import torch'} failed: {(done.stderr.strip().splitlines() or ['nothing'])[-1]}"
        )
    return spent
