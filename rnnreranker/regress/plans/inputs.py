"""What steps read is looked at before the first of them: data that are not whole, models whose tokenizer is another's.

Each is named hours before the step that would meet it.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import RnnrerankerError, UnavailableError
from rnnreranker.base.method import methods
from rnnreranker.encode.named import KnownModel
from rnnreranker.regress.plans.stale import named_in
from rnnreranker.regress.plans.step import State, failed, state_of
from rnnreranker.regress.plans.whole import check_readable

if TYPE_CHECKING:
    from rnnreranker.regress.plans.plan import Plan
    from rnnreranker.regress.plans.step import Step

ENCODERS = ("encoder", "sparse-encoder", "late-encoder", "cross-encoder")  # kinds of method that are models
EMBEDDINGS = ("word_embeddings.weight", "embed_tokens.weight")  # how the names of weights end that have a row a token


class ReadFirst:
    """Looks at what steps of a plan read, each name once."""

    def __init__(self, plan: Plan) -> None:
        self._judged = {
            path: one.qrels
            for one in plan.query_sets
            for entry in plan.conditions
            for path in plan.run_files(entry, one)
        }
        self._known: dict[tuple[str, str], State | None] = {}

    def state(self, step: Step) -> State | None:
        """Why the step, or the measuring of what it makes, would fail; None where nothing is known against it."""
        return next((state for kind, name in self._read(step) if (state := self._look(kind, name))), None)

    def _read(self, step: Step) -> Iterator[tuple[str, str]]:
        for kind in ("topics", "qrels"):
            for flag in (f"--{kind}", f"--validation-{kind}"):
                yield kind, step.value(flag)
        yield "qrels", self._judged.get(step.output, "")
        yield "documents", step.value("--documents")
        for name in named_in(step):
            yield "model", name

    def _look(self, kind: str, name: str) -> State | None:
        if name and (kind, name) not in self._known:
            try:
                self._known[kind, name] = None
                if kind == "model":
                    self._known[kind, name] = _model(name)
                else:
                    check_readable(name, kind)
            except RnnrerankerError as error:
                self._known[kind, name] = state_of(error)
        return self._known.get((kind, name))


def _model(name: str) -> State | None:
    """A model that is here: whether its tokenizer and its weights are of one vocabulary."""
    folder = _folder(name)
    said = other_vocabulary(folder) if folder else ""
    return failed(f"model {name}: {folder}: {said}; these are files of two models: get them again") if said else None


def _folder(name: str) -> Path | None:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", hub := _hub_ids().get(name, name)):
        return None
    from huggingface_hub import try_to_load_from_cache

    home = os.environ.get("HF_HOME", "~/.cache/huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()
    path = try_to_load_from_cache(hub, "config.json", cache_dir=cache)
    return Path(path).parent if isinstance(path, str) else None


@functools.cache
def _hub_ids() -> dict[str, str]:
    """Short name of a model → its id on the hub."""
    models = [model for kind in ENCODERS for model in methods(kind).values()]
    return {model.name: model.hub for model in models if issubclass(model, KnownModel) and model.hub}


def other_vocabulary(folder: Path) -> str:
    """How many tokens the tokenizer of a model's folder has and its weights have not; empty where they fit.

    A model may have rows that no token has, and files that say nothing of either are no fault.
    """
    config = _json(folder / "config.json")
    size, tokens = config.get("vocab_size"), _tokens(folder)
    if not isinstance(size, int):
        return ""
    rows = _rows(folder)
    if rows is not None and rows != size:
        return f"config.json says {size:,} tokens, its weights have {rows:,}"
    return f"its tokenizer has {tokens:,} tokens, its weights {size:,}" if tokens > size else ""


def _tokens(folder: Path) -> int:
    """One more than the largest number of a token; 0 where no file says it."""
    tokenizer = _json(folder / "tokenizer.json")
    model, added = tokenizer.get("model"), tokenizer.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    ids = [*vocabulary.values()] if isinstance(vocabulary, dict) else [*range(len(vocabulary or ()))]
    ids += [one["id"] for one in added or () if isinstance(one, dict) and "id" in one]
    if not ids and (words := folder / "vocab.txt").is_file():
        return len(words.read_text("utf-8", "replace").splitlines())
    return max(ids, default=-1) + 1


def _rows(folder: Path) -> int | None:
    """The rows of the embeddings of tokens in model.safetensors, of which the header alone is read."""
    path = folder / "model.safetensors"
    if not path.is_file():
        return None
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as weights:
            name = next((name for name in weights.keys() if name.endswith(EMBEDDINGS)), None)  # noqa: SIM118
            return int(weights.get_slice(name).get_shape()[0]) if name else None
    except SafetensorError as error:
        raise UnavailableError(f"{path}: cut or damaged ({error}); delete it and get it again") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # whoever loads the model says what is wrong with it
        return {}
    return content if isinstance(content, dict) else {}
