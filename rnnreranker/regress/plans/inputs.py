"""Which steps are current: those taken for the same request from the same inputs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, files_digest, fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.written_form import Written
from rnnreranker.data.local import kept_at
from rnnreranker.data.names import left_out
from rnnreranker.regress.plans.step import Step

if TYPE_CHECKING:
    from rnnreranker.regress.plans.plan import Plan

REMOVED = "removed"  # of a stamp: nobody needed the output any more
DEVICE = "device"  # where a step computes: its output does not depend on it but for the last bits
NOT_READ = ("output", "record", "tag", DEVICE)  # flags whose values are not read, even those that name a file


class Keys:
    """Digests of what the output of each step depends on, from the plan alone."""

    def __init__(self, plan: Plan) -> None:
        self._steps = {step.output: step for step in plan.steps}
        self._folder = plan.folder
        self._known: dict[Path, str] = {}

    def of(self, step: Step) -> str:
        """16 hexadecimal digits: of the request, the files outside the plan that it names, and the steps before."""
        if step.output not in self._known:
            before = [self.of(self._steps[path]) if path in self._steps else _digest(path) for path in step.inputs]
            request = {name: value for name, value in step.request.items() if name != DEVICE}
            words = [word.replace(f"{self._folder}{os.sep}", "") for word in Step("", request, step.output).argv]
            read = filter(None, (content_of(name, self._folder) for name in named_in(step)))
            self._known[step.output] = fingerprint(step.module, words, list(read), before)
        return self._known[step.output]


def named_in(step: Step) -> Iterator[str]:
    """The values of a request that may name an input."""
    for name, value in step.request.items():
        if name not in NOT_READ:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
        return
    text = str(value)
    yield text
    try:
        form = Written.read(text)
    except InputError:
        form = Written(text)
    if form.params or form.preset:
        yield from (one for inner in (form.name, form.preset, *form.params.values()) for one in _texts(inner))
    elif "," in text:  # a list of names
        yield from text.split(",")


def content_of(name: str, folder: Path) -> str:
    """The digest of the named file or folder outside the plan's folder; "" for other names."""
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.fingerprint()
    first, others = left_out(name)
    if others:
        return fingerprint([content_of(part, folder) for part in (first, *others)])
    path = kept_at(name) if name else None
    if path is None or path.is_relative_to(folder):
        return ""
    return file_digest(path) if path.is_file() else files_digest(filter(Path.is_file, path.rglob("*")), path)


def _digest(given: Path) -> str:
    """The checksum of a file that no step makes; "" without a file."""
    return file_digest(given) if given.is_file() else ""


def stale_steps(plan: Plan, keys: Keys, without: Container[Path] = ()) -> list[Step]:
    """The stale steps that a plan's outputs need; without: outputs to ignore."""
    by_output = {step.output: step for step in plan.steps}
    wanted: set[Path] = set()
    waiting = list(plan.outputs())
    while waiting:
        path = waiting.pop()
        step = by_output.get(path)
        if step is not None and path not in wanted and path not in without and not is_current(step, keys):
            wanted.add(path)
            waiting += step.inputs
    return [step for step in plan.steps if step.output in wanted]


def is_current(step: Step, keys: Keys) -> bool:
    """Whether the output of a step is there, whole, and from its present inputs."""
    return was_taken(step, keys) and step.output.exists() and REMOVED not in read_stamp(step)


def was_taken(step: Step, keys: Keys) -> bool:
    """Whether a step was taken from its present inputs."""
    stamp = read_stamp(step)
    return stamp.get("key") == keys.of(step) and "seconds" in stamp


def read_stamp(step: Step) -> dict[str, Any]:
    """The note on begin (key) and end (seconds) of a step, or {}."""
    with contextlib.suppress(InputError):  # absent or damaged
        if isinstance(stamp := read_json(_stamp(step)), dict):
            return stamp
    return {}


def write_stamp(step: Step, stamp: dict[str, Any]) -> None:
    """Write the note on a step."""
    write_json(_stamp(step), stamp)


def forget(plan: Plan) -> None:
    """Make every step of a plan stale."""
    for step in plan.steps:
        _stamp(step).unlink(missing_ok=True)


def _stamp(step: Step) -> Path:
    return step.output.with_name(f".{step.output.name}.inputs")
