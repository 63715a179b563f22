"""Which steps are current: those taken for the same request from the same inputs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, files_digest, fingerprint, write_json
from rnnreranker.base.strict import read_json
from rnnreranker.data.local import kept_at
from rnnreranker.regress.plans.step import DEVICE, Step, named_in
from rnnreranker.regress.specs.methods import data_sets

if TYPE_CHECKING:
    from rnnreranker.regress.plans.plan import Plan

REMOVED = "removed"  # of a stamp: nobody needed the output any more


class Keys:
    """Digests of what the output of each step depends on, from the plan alone."""

    def __init__(self, plan: Plan) -> None:
        self._steps = {step.output: step for step in plan.steps}
        self._folder = plan.folder
        self._known: dict[Path, str] = {}

    def of(self, step: Step) -> str:
        """16 hexadecimal digits: of the request, the files outside the plan that it names, and the steps before."""
        if step.output not in self._known:
            request = {name: value for name, value in step.request.items() if name != DEVICE}
            words = [word.replace(f"{self._folder}{os.sep}", "") for word in Step("", request, step.output).argv]
            before = [self.of(self._steps[path]) for path in step.inputs if path in self._steps]
            read = [content_of(name) for name in named_in(step.request) if Path(name) not in self._steps]
            self._known[step.output] = fingerprint(step.module, words, [*filter(None, read)], before)
        return self._known[step.output]


def content_of(name: str) -> str:
    """The digest of the named file or folder; "" for other names."""
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.fingerprint()
    paths = [path for one, _ in data_sets(name, "") if one and (path := kept_at(one))]
    return fingerprint([_digest(path) for path in paths]) if paths else ""


def _digest(path: Path) -> str:
    return file_digest(path) if path.is_file() else files_digest(filter(Path.is_file, path.rglob("*")), path)


def stale_steps(plan: Plan, keys: Keys, without: Container[Path] = ()) -> list[Step]:
    """The stale steps that a plan's outputs need; without: outputs to ignore."""
    stale = plan.needed(plan.outputs(), lambda step: step.output not in without and not is_current(step, keys))
    return [step for step in plan.steps if step.output in stale]


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
        if isinstance(stamp := read_json(stamp_file(step)), dict):
            return stamp
    return {}


def write_stamp(step: Step, stamp: dict[str, Any]) -> None:
    """Write the note on a step."""
    write_json(stamp_file(step), stamp)


def stamp_file(step: Step) -> Path:
    return step.output.with_name(f".{step.output.name}.inputs")
