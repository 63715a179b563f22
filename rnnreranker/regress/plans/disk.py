"""The disk of a plan: readers of large files follow each other, and what no later step reads is removed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rnnreranker.base.files.checksums import DESCRIPTION
from rnnreranker.regress.plans.step import Step
from rnnreranker.regress.specs.spec import Spec

LARGE = 20.0  # GB from which on the output of a step is removed when nobody needs it any more
REMOVABLE = ("index", "search", "labels", "negatives")  # commands whose output can be; trained models stay


Sizes = Mapping[Path, float]  # output of a step → GB of disk


def sizes(steps: Iterable[Step], spec: Spec) -> dict[Path, float]:
    """What the outputs of steps take, without the prebuilt indexes that their steps are the first to read."""
    prebuilt = {entry.prebuilt: float(entry.needs.get("disk_gb", 0)) for entry in spec.indexes if entry.prebuilt}
    known = {}
    for step in steps:
        of_others = prebuilt.get(step.value("--index"), 0.0) if "download_gb" in step.needs else 0.0
        known[step.output] = float(step.needs.get("disk_gb", 0)) - of_others
    return known


def by_large_files(steps: Sequence[Step], size: Sizes) -> list[Step]:
    """The steps in an order in which those that read something large follow it as soon as they can.

    Plans without anything large keep their order. Every step stays behind those that make what it reads.
    """
    large = {step.output for step in steps if size[step.output] >= LARGE and step.module in REMOVABLE}
    if not large:
        return list(steps)
    made = {step.output for step in steps}
    waiting, done, ordered = list(steps), set[Path](), list[Step]()
    while waiting:
        ready = (step for step in waiting if done.issuperset(made.intersection(step.inputs)))
        reading = (step for step in ready if any(path in large for path in step.inputs))
        step = next(reading, waiting[0])
        waiting.remove(step)
        done.add(step.output)
        ordered.append(step)
    return ordered


def readers(steps: Sequence[Step], size: Sizes, kept: Iterable[Path]) -> dict[Path, list[Path]]:
    """Outputs that are removed when nobody needs them any more → those of the steps that read them.

    Who adds a part to an index reads it, and who reads a part of it too.

    Args:
        steps: of a plan, with the sizes of their outputs.
        kept: outputs that the plan is for, or that its measuring reads.
    """
    wanted = set(kept)
    removable = [step.output for step in steps if step.module in REMOVABLE and step.output not in wanted]
    large = [output for output in removable if size[output] >= LARGE]
    reading = {
        output: [step.output for step in steps if step.output != output and _reads(step, output)] for output in large
    }
    return {output: by for output, by in reading.items() if by}


def _reads(step: Step, output: Path) -> bool:
    return any(path == output or path.is_relative_to(output) for path in (*step.inputs, step.output))


def last_readers(read_by: Mapping[Path, Sequence[Path]]) -> dict[Path, list[Path]]:
    """Output of a step → what nobody reads behind it."""
    last: dict[Path, list[Path]] = {}
    for output, reading in read_by.items():
        last.setdefault(reading[-1], []).append(output)
    return last


def peak(steps: Sequence[Step], size: Sizes, gone: Mapping[Path, Sequence[Path]]) -> float:
    """The most GB that the outputs of steps take at a time.

    Args:
        steps: in their order, with the sizes of their outputs.
        gone: output of a step → the outputs that are removed then.
    """
    taken = most = 0.0
    for step in steps:
        taken += size[step.output]
        most = max(most, taken)
        taken -= sum(size.get(output, 0.0) for output in gone.get(step.output, ()))
    return most


def remove(output: Path) -> None:
    """Remove what a step made: of an index all but its description, which records name."""
    if not output.is_dir():
        output.unlink(missing_ok=True)
        return
    for path in output.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != DESCRIPTION:
            path.unlink()
