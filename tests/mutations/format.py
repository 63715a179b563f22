"""What a format is to the fuzzer, and one case: a damaged file, our reader, an independent one."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from mutations.damage import damage_file
from rnnreranker.base.errors import MissingDependencyError, RnnrerankerError

Damage = Callable[[Random, Path], None]


@dataclass(frozen=True)
class Format:
    """A kind of file or folder.

    Attributes:
        name: a row of the table.
        make: writes valid files into an empty folder.
        targets: files of the folder, or patterns of their names, one of which is damaged in a case.
        read: what our reader finds in the folder, as plain values and arrays.
        slow: the same by an independent reading; any error means that it finds nothing.
        weight: the share of cases; those that take long have a small one.
        own: damages of the format's own, one of which takes the place of the general ones in half of the cases.
        quick: cases of the short form.
        needs: looks whether the format can be read here; a reason if not.
        longest: characters of a message.
    """

    name: str
    make: Callable[[Path], Any]
    targets: tuple[str, ...]
    read: Callable[[Path], Any]
    slow: Callable[[Path], Any]
    weight: float = 1.0
    own: Sequence[Damage] = ()
    quick: int = 20
    needs: Callable[[], str] = str
    longest: int = 2000


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "accepted", "refused", or "failed", and why."""

    state: str
    said: str = ""


def run_case(format: Format, seed: int, number: int) -> Outcome:
    """One case; number 0 is the valid files."""
    rng = Random(f"{seed} {format.name} {number}")
    with tempfile.TemporaryDirectory(prefix="mutated-") as place:
        folder = Path(place) / "files"
        shutil.copytree(_valid(format), folder)
        if number:
            target = rng.choice(sorted(folder.glob(rng.choice(format.targets))))
            if format.own and rng.random() < 0.5:
                rng.choice(format.own)(rng, target)
            else:
                damage_file(rng, target)
        outcome = _ended(format, folder)
        return Outcome("failed", f"valid files: {outcome}") if not number and outcome.state != "accepted" else outcome


def _ended(format: Format, folder: Path) -> Outcome:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = format.read(folder)
        except MissingDependencyError as error:
            return Outcome("failed", f"not installed: {error}")
        except RnnrerankerError as error:
            said = str(error)
            if "\n" in said or len(said) > format.longest or str(folder) not in said:
                return Outcome("failed", f"refused badly: {said[:300]!r}")
            outcome = Outcome("refused", said)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return Outcome("failed", f"{type(error).__name__}: {str(error)[:300]}")
        else:
            outcome = Outcome("accepted")
    if foreign := [one for one in warned if str(folder) not in str(one.message)]:
        return Outcome("failed", f"warned: {foreign[0].category.__name__} {str(foreign[0].message)[:200]}")
    if outcome.state == "refused":
        return outcome
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = format.slow(folder)
        except Exception as error:
            shown = f"{type(error).__name__}: {str(error)[:200]}"
            return Outcome("failed", f"read, but the independent reader finds {shown}; ours {plain(found)[:200]}")
    if plain(found) != plain(expected):
        return Outcome("failed", f"differs: {plain(found)[:400]} from {plain(expected)[:400]}")
    return outcome


def plain(value: Any) -> str:
    """A text that two values share when they are equal: NaN is NaN, and arrays count by their values."""
    if isinstance(value, np.ndarray):
        return f"{value.shape} {value.tolist()!r}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {plain(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(plain, value)) + "]"
    return repr(value)


@cache
def _valid(format: Format) -> Path:
    """The valid files, made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="valid-")) / "files"
    folder.mkdir()
    _made.append(folder.parent)
    format.make(folder)
    return folder


_made: list[Path] = []


def forget() -> None:
    """Remove the valid files of this process."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
    _valid.cache_clear()
