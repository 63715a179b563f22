"""What steps read: data that are not whole are refused before the first step; a step is current while its inputs are.

Each is named hours before the step that would meet it.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, RnnrerankerError, UnavailableError
from rnnreranker.base.files import file_digest, files_digest, fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.method import methods
from rnnreranker.base.written_form import Written
from rnnreranker.data.local import kept_at
from rnnreranker.data.names import left_out
from rnnreranker.encode.named import KnownModel
from rnnreranker.regress.plans.plan import check_readable
from rnnreranker.regress.plans.step import State, failed, state_of

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
    except (OSError, ValueError, RecursionError):  # loading the model reports what is wrong
        return {}
    return content if isinstance(content, dict) else {}


REMOVED = "removed"  # of a stamp: nobody needed the output any more
DEVICE = "--device"  # where a step computes: its output does not depend on it but for the last bits
NO_INPUTS = ("--output", "--record", "--tag", DEVICE)  # flags whose values are not read, even those that name a file


class Keys:
    """Names of what the output of each step depends on.

    They follow from the plan alone, so that it is known before the first step which outputs are stale. A plan in
    another folder has the same ones.
    """

    def __init__(self, plan: Plan) -> None:
        self._steps = {step.output: step for step in plan.steps}
        self._folder = plan.folder
        self._known: dict[Path, str] = {}

    def of(self, step: Step) -> str:
        """16 hexadecimal digits."""
        if step.output not in self._known:
            before = [self.of(self._steps[path]) if path in self._steps else _digest_of(path) for path in step.inputs]
            self._known[step.output] = fingerprint(self.inputs(step), before)
        return self._known[step.output]

    def inputs(self, step: Step) -> str:
        """16 hexadecimal digits: of the command and of the files outside the plan."""
        argv = [pair for pair in zip(("", *step.argv), step.argv, strict=False) if DEVICE not in pair]
        words = [_within(word, self._folder) for _, word in argv]
        read = [_content(value, self._folder) for value in named_in(step)]
        return fingerprint(step.module, words, list(filter(None, read)))


def stale_steps(plan: Plan, keys: Keys, without: Container[Path] = ()) -> list[Step]:
    """The steps that must be taken for what a plan is for: those that are stale, and stale ones that they need.

    Args:
        plan: of a spec.
        keys: of its steps.
        without: outputs that nothing is to be done for.
    """
    by_output = {step.output: step for step in plan.steps}
    wanted: set[Path] = set()

    def visit(path: Path) -> None:
        step = by_output.get(path)
        if step is not None and path not in wanted and path not in without and not is_current(step, keys):
            wanted.add(path)
            for before in step.inputs:
                visit(before)

    for path in plan.outputs():
        visit(path)
    return [step for step in plan.steps if step.output in wanted]


def is_current(step: Step, keys: Keys) -> bool:
    """Whether the output of a step is there, whole, and from its present inputs."""
    return was_taken(step, keys) and step.output.exists() and REMOVED not in read_stamp(step)


def was_taken(step: Step, keys: Keys) -> bool:
    """Whether a step was taken from its present inputs; its output may be removed since."""
    stamp = read_stamp(step)
    return stamp.get("key") == keys.of(step) and "seconds" in stamp


def read_stamp(step: Step) -> dict[str, Any]:
    """What was noted when a step was begun (key) and ended (seconds); empty where it never was."""
    path = _stamp(step)
    try:
        stamp = read_json(path) if path.is_file() else None
    except InputError:  # one that is damaged says nothing: the step is taken again
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(step: Step, stamp: dict[str, Any]) -> None:
    """Note that a step was begun or ended."""
    write_json(_stamp(step), stamp)


def forget(plan: Plan) -> None:
    """Make every step of a plan stale."""
    for step in plan.steps:
        _stamp(step).unlink(missing_ok=True)


def _stamp(step: Step) -> Path:
    return step.output.with_name(f".{step.output.name}.inputs")


def _within(word: str, folder: Path) -> str:
    """A path under the folder of the plan relative to it, also among the settings of a method; other words as they are.

    >>> _within("runs/models/a", Path("runs")), _within("scorer:model=runs/models/a", Path("runs"))
    ('models/a', 'scorer:model=models/a')
    """
    path, form = Path(word), _form(word)
    if form is not None:
        values = {key: _within(str(value), folder) for key, value in form.params.items()}
        return str(Written(form.name, values, _within(form.preset, folder) if form.preset else ""))
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else word


def named_in(step: Step) -> Iterator[str]:
    """What the words of a command may name that it reads: every value, and what the settings of methods say."""
    for before, word in zip(("", *step.argv), step.argv, strict=False):
        if before not in NO_INPUTS and not word.startswith("--"):
            yield from _values(word)


def _values(word: str) -> Iterator[str]:
    yield word
    if (form := _form(word)) is not None:
        for value in (form.name, form.preset, *map(str, form.params.values())):
            yield from _values(value) if value else ()
    elif "," in word:  # a list of names
        yield from word.split(",")


def _form(word: str) -> Written | None:
    """A method with settings that a word is; None where it is none."""
    try:
        form = Written.read(word)
    except InputError:
        return None
    return form if form.params or form.preset else None


def _content(name: str, folder: Path) -> str:
    """The digest of the file or folder that an argument names, outside the plan's folder; empty for other names."""
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.fingerprint()
    first, others = left_out(name)
    if others:
        return fingerprint([_content(part, folder) for part in (first, *others)])
    path = kept_at(name)
    if path is None or path.is_relative_to(folder):
        return ""
    return file_digest(path) if path.is_file() else files_digest(filter(Path.is_file, path.rglob("*")), path)


def _digest_of(given: Path) -> str:
    """The checksum of a file that no step makes; empty where it is not there."""
    return file_digest(given) if given.is_file() else ""
