"""One question on the command line, beside the import of torch: everything is there, in fresh processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rnnreranker.bench.summaries import judged, ratio_of
from rnnreranker.command import say
from rnnreranker.data.documents import load_documents
from rnnreranker.encode.encoder import digest_of
from rnnreranker.errors import MissingDependencyError, UnavailableError

ENCODER, TEXTS = "minilm", "pydoc"
BOUNDS = {"kept": 0.6, "graph": 0.6, "model": None}  # ratios to `import torch`: about 1.2 s where that takes 2
ASKED = "remove duplicates from a list"


def one_question(count: int, pairs: int) -> list[dict[str, Any]]:
    """Elapsed seconds of `search --query` over `count` texts, in turn with `import torch`.

    Vectors of the query are `kept` from before, made by the `graph` of the index, or by the `model` (`--encoder`).
    """
    try:
        digest_of(ENCODER)
    except (UnavailableError, MissingDependencyError) as error:
        say(f"question: left out: {error}")
        return []
    rows = []
    with tempfile.TemporaryDirectory() as name:
        documents, index = Path(name) / "documents.jsonl", str(Path(name) / "index")
        texts = itertools.islice(load_documents(TEXTS), count)
        documents.write_text("".join(json.dumps({"id": one.docid, "text": one.text}) + "\n" for one in texts))
        _run(name, "index", "--documents", str(documents), "--parts", "dense", "--encoder", ENCODER, "--output", index)
        for way, bound in BOUNDS.items():
            others = ["--encoder", ENCODER] if way == "model" else []

            def ask(number: int, way: str = way, others: list[str] = others) -> float:
                text = ASKED if way == "kept" else f"{ASKED} {number}"
                return _run(name, "search", "--index", index, "--query", text, *others)

            ask(-1)  # what is kept in files is there from now on
            found = ratio_of([(_run(name, ""), ask(number)) for number in range(pairs)])
            row: dict[str, Any] = {"vectors": way, "documents": count, "torch_s": found.base, "search_s": found.other}
            row |= {"ratio": found.ratio, "low": found.low, "high": found.high, "pairs": found.pairs}
            rows.append(judged(row, "ratio", bound))
    return rows


def _run(home: str, name: str, *flags: str) -> float:
    """Elapsed seconds of a command, or without one of `import torch`.

    Raises:
        UnavailableError: it failed, with the last line that it said.
    """
    root = str(Path(__file__).resolve().parents[2])
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
