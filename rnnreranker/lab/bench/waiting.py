"""What one waits for in everyday commands, beside what they cannot do without."""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import say
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.private.python import around_imports
from rnnreranker.base.process import phases
from rnnreranker.data.documents import load_documents
from rnnreranker.encode.dense.encoder import Encoder
from rnnreranker.lab.bench.fresh_process import in_fresh_process
from rnnreranker.lab.bench.summaries import judged, quartiles

ENCODER, TEXTS, TOPICS, STEPS = "minilm", "pydoc", 50, 4
ENGINES = {"index": "onnxruntime", "search": "onnxruntime", "train": "torch"}
TRAINED = "trained"  # a folder
BOUND = 2.0  # of all that one waits for, beside what cannot be left out
FIRST = "the first on a machine"
SHOWN = 3  # phases that are named


def waiting(count: int, times: int) -> list[dict[str, Any]]:
    """Elapsed seconds of everyday commands in fresh processes, over `count` texts, and what they are made of."""
    try:
        Encoder.digest_of(ENCODER)
    except (UnavailableError, MissingDependencyError) as error:
        say(f"waiting: left out: {error}")
        return []
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for command, works_on, flags, given in _commands(folder, count):
            first = works_on.endswith(FIRST)  # what it makes is there afterwards
            seen = [_once(folder, command, flags, given) for _ in range(1 if first else times)]
            row: dict[str, Any] = {"command": command, "of": works_on, "times": len(seen)}
            row |= {key: quartiles([one[key] for one in seen])[1] for key in seen[0] if key.endswith("_s")}
            row["ratio"] = quartiles([one["total_s"] / one["needed_s"] for one in seen])[1]
            row["phases"] = seen[-1]["phases"]
            rows.append(judged(row, "ratio", None if first else BOUND))
    return rows


def _commands(folder: Path, count: int) -> list[tuple[str, str, list[str], list[Path]]]:
    """Commands in their order, what each works on, its flags, and the files that it reads."""
    documents, topics, qrels = folder / "documents.jsonl", folder / "topics.tsv", folder / "qrels.txt"
    texts = list(itertools.islice(load_documents(TEXTS), count))
    documents.write_text("".join(json.dumps({"id": one.docid, "text": one.text}) + "\n" for one in texts))
    asked = texts[: min(TOPICS, count)]
    topics.write_text("".join(f"{n}\t{' '.join(one.text.split()[:8])}\n" for n, one in enumerate(asked)))
    qrels.write_text("".join(f"{n} 0 {one.docid} 1\n" for n, one in enumerate(asked)))
    index, run, labels, trained = (folder / name for name in ("index", "run.txt", "labels.parquet", TRAINED))
    texts_of, queries = f"{count} texts", f"{len(asked)} queries"
    one = ["--documents", str(documents), "--encoder", ENCODER, "--output", str(index), "--overwrite", "--threads", "1"]
    two = ["--index", str(index), "--topics", str(topics), "--output", str(run), "--rerank", "none"]
    three = ["--run", str(run), "--index", str(index), "--topics", str(topics), "--qrels", str(qrels)]
    four = ["--labels", str(labels), "--index", str(index), "--topics", str(topics), "--encoder", ENCODER]
    steps = ["--max-steps", str(STEPS), "--batch-size", "8", "--output", str(trained)]
    steps += ["--model", "query:validation_share=0.2"]
    return [
        ("index", f"{texts_of}, {FIRST}", one, [documents]),
        ("index", texts_of, one, [documents]),
        ("search", "one question", ["--index", str(index), "--query", "remove duplicates from a list"], [index]),
        ("search", queries, two, [index, topics]),
        ("labels", queries, [*three, "--output", str(labels)], [run, index, topics, qrels]),
        ("train", f"{STEPS} steps of 8 queries", [*four, *steps], [labels, index, topics]),
        ("evaluate", queries, [str(run), "--qrels", str(qrels)], [run, qrels]),
    ]


def _once(home: Path, command: str, flags: Sequence[str], given: Sequence[Path]) -> dict[str, Any]:
    """Seconds of a command in a fresh process: all, and what is needed."""
    where = {"RNNRERANKER_HOME": str(home)}
    shutil.rmtree(home / TRAINED, ignore_errors=True)
    begun = time.perf_counter()
    in_fresh_process(__name__, "nothing", where)
    started = time.perf_counter() - begun
    begun = time.perf_counter()
    measured = in_fresh_process(__name__, "done", where, command=command, flags=list(flags))
    total = time.perf_counter() - begun
    begun = time.perf_counter()
    for path in given:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                file.read_bytes()
    files = time.perf_counter() - begun
    needed = started + measured["imports"] + measured["passes"] + files
    own = sorted(measured["spent"].items(), key=lambda item: -item[1])[:SHOWN]
    named = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in own)
    return {
        "total_s": total,
        "python_s": started,
        "imports_s": measured["imports"],
        "passes_s": measured["passes"],
        "files_s": files,
        "needed_s": needed,
        "phases": named,
    }


def nothing() -> float:
    """What every command takes: Python, and NumPy."""
    return float(np.zeros(1)[0])


def done(command: str, flags: Sequence[str]) -> dict[str, Any]:
    """Run a command in this process; seconds of imports, of passes of a model, and of the phases beside."""
    imports, passes = Clock(), Clock()
    _watch_imports(imports)
    if engine := ENGINES.get(command):
        _watch(engine, passes)
    phases.start()
    main: Callable[[Sequence[str]], int] = importlib.import_module(f"rnnreranker.{command}.__main__").main
    with contextlib.redirect_stdout(io.StringIO()), phases.phase(phases.STARTING):
        main(flags)
    spent = {name: seconds for name, seconds in phases.spent.items() if name != "imports"}
    return {"imports": imports.seconds, "passes": passes.seconds, "spent": spent}


class Clock:
    """Adds up the seconds of functions; of one inside another only those of the other."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def timed(self, function: Callable[..., Any], own: str = "") -> Callable[..., Any]:
        """The function, with its seconds counted unless its first argument begins with `own`."""

        def call(*given: Any, **named: Any) -> Any:
            if own and str(given[0]).startswith(own):
                return function(*given, **named)
            self._depth += 1
            begun = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - begun

        return call


def _watch_imports(clock: Clock) -> None:
    """Count the imports of modules that are not ours, and what they import, from now on."""
    around_imports(lambda function: clock.timed(function, "rnnreranker"))


def _watch(engine: str, clock: Clock) -> None:
    """Count an engine's passes from now on."""
    if engine == "torch":
        import torch

        torch.nn.Module.__call__ = clock.timed(torch.nn.Module.__call__)  # type: ignore[method-assign]
        torch.Tensor.backward = clock.timed(torch.Tensor.backward)  # type: ignore[method-assign]
        for kind in vars(torch.optim).values():
            if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and "step" in vars(kind):
                kind.step = clock.timed(kind.step)  # type: ignore[method-assign]
    else:
        import onnxruntime

        onnxruntime.InferenceSession.run = clock.timed(onnxruntime.InferenceSession.run)
