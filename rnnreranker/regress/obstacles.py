"""What stands in the way of a step on this machine: data, files, a GPU, disk, network. Quick: no model is loaded.

Downloads themselves are left to Pyserini, ir_datasets and huggingface_hub, which show progress and check their
checksums; here is decided, before the first step, whether one can be begun.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rnnreranker.errors import RnnrerankerError, UnavailableError
from rnnreranker.regress.recipe_plan import RecipePlan, RecipeStep, value_of

MIRROR = ("rgw.cs.uwaterloo.ca", 443)  # where Pyserini's prebuilt indexes are
PATIENCE = 3.0  # seconds for an answer
GB = 1e9


def obstacles(plan: RecipePlan, steps: Iterable[RecipeStep]) -> dict[Path, str]:
    """Output of a step that cannot be taken here → `skipped: reason` or `error: reason`.

    Args:
        plan: of a recipe.
        steps: those that are to be taken, each after the ones it needs.
    """
    blocked: dict[Path, str] = {}
    disk = _Disk()
    for step in steps:
        reason = next((blocked[path] for path in step.inputs if path in blocked), "")
        reason = reason or _data(plan, step) or _files(step) or _gpu(step) or _space(plan, step, disk)
        reason = reason or _download(plan, step)
        if reason:
            blocked[step.output] = reason
    return blocked


def _data(plan: RecipePlan, step: RecipeStep) -> str:
    """Local data sets and files that are not here; data sets of ir_datasets show it when they are read."""
    from rnnreranker.data import local
    from rnnreranker.data.names import FILE_ENDINGS

    for part in ("documents", "topics", "qrels"):
        name = value_of(step.argv, f"--{part}")
        if not name:
            continue
        path = Path(name).expanduser()
        if name.endswith(FILE_ENDINGS) and not path.exists():
            return f"skipped: needs {_described(plan, name)}"
        try:
            local.source(name, part)
        except UnavailableError as error:
            return f"skipped: {plan.recipe.needs.get('agreement') or error}"
        except RnnrerankerError as error:
            return f"error: {error}"
    return ""


def _described(plan: RecipePlan, name: str) -> str:
    """The name of a file, with what the plan's needs say of it."""
    texts = (str(step.needs.get("files", "")) for step in plan.steps)
    return next((text for text in texts if text.startswith(f"{name}:")), f"{name}, and there is no such file here")


def _files(step: RecipeStep) -> str:
    """Files that the step's needs name, as `path: what it is`, and that are not there."""
    text = str(step.needs.get("files", ""))
    name, colon, _ = text.partition(":")
    return f"skipped: needs {text}" if colon and not Path(name).expanduser().exists() else ""


def _gpu(step: RecipeStep) -> str:
    hours = step.needs.get("gpu_hours", 0)
    if not hours or has_gpu():
        return ""
    return f"skipped: {_WORK.get(step.module, step.module)} takes a GPU ({hours:g} hours), and there is none here"


_WORK = {"train": "training", "index": "encoding the documents"}


def has_gpu() -> bool:
    """Whether this machine has a GPU that PyTorch can use, judged without loading PyTorch."""
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    return bool(devices) or shutil.which("nvidia-smi") is not None


class _Disk:
    """Free space by file system, less what earlier steps of the plan will take."""

    def __init__(self) -> None:
        self._left: dict[int, float] = {}
        self._prebuilt: set[str] = set()

    def take(self, folder: Path, wanted: float) -> str:
        """Reserve that many GB; why not, or an empty text."""
        folder = _existing(folder)
        device = folder.stat().st_dev
        left = self._left.setdefault(device, shutil.disk_usage(folder).free / GB)
        if wanted > left:
            return f"skipped: needs {wanted:g} GB of disk in {folder}, {max(0.0, left):.0f} GB are free"
        self._left[device] = left - wanted
        return ""

    def take_prebuilt(self, name: str, wanted: float) -> str:
        """As `take`, in Pyserini's cache; an index is taken once."""
        if name in self._prebuilt:
            return ""
        reason = self.take(_pyserini_cache(), wanted)
        if not reason:
            self._prebuilt.add(name)
        return reason


def _space(plan: RecipePlan, step: RecipeStep, disk: _Disk) -> str:
    name = prebuilt(plan, step)
    reason = ""
    if name and not downloaded(name):
        reason = disk.take_prebuilt(name, _needs(plan, name).get("disk_gb", 0))
    own = 0 if name and step.module in ("search", "labels") else step.needs.get("disk_gb", 0)
    return reason or disk.take(plan.folder, own)


def _download(plan: RecipePlan, step: RecipeStep) -> str:
    name = prebuilt(plan, step)
    what = name if name and not downloaded(name) else ""
    if step.module == "index" and step.needs.get("download_gb", 0):
        what = value_of(step.argv, "--documents")
    if not what or network():
        return ""
    return f"skipped: {what} must be downloaded, and {MIRROR[0]} cannot be reached from here"


def prebuilt(plan: RecipePlan, step: RecipeStep) -> str:
    """The prebuilt index of Pyserini that a step reads, or an empty text."""
    index = value_of(step.argv, "--index")
    return index if index in {source.prebuilt for source in plan.recipe.indexes} else ""


def _needs(plan: RecipePlan, name: str) -> dict[str, Any]:
    return next(source.needs for source in plan.recipe.indexes if source.prebuilt == name)


def _pyserini_cache() -> Path:
    return Path(os.environ.get("PYSERINI_CACHE", "~/.cache/pyserini")).expanduser()


def downloaded(index: str) -> bool:
    """Whether Pyserini has this prebuilt index already, in a folder of its name with date and checksum."""
    found = (_pyserini_cache() / "indexes").glob(f"*{index}*")
    return any(path.is_dir() and _stem_is(path.name, index) for path in found)


def _stem_is(folder: str, index: str) -> bool:
    """Whether a folder as `lucene-inverted.msmarco-v1-passage.20221004.252b5e.MD5` is of it, not of its -slim."""
    _, _, rest = folder.partition(index)
    return not rest or (rest[0] == "." and (rest[1:5].isdigit() or rest[1:].isalnum()))


@functools.cache
def network() -> bool:
    """Whether Pyserini's mirror, or the proxy that leads there, answers."""
    proxy = urllib.request.getproxies().get("https", "")
    parts = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    address = (parts.hostname, parts.port or 3128) if parts.hostname else MIRROR
    try:
        with socket.create_connection(address, timeout=PATIENCE):
            return True
    except OSError:
        return False


def _existing(folder: Path) -> Path:
    folder = folder.expanduser().absolute()
    while not folder.exists():
        folder = folder.parent
    return folder
