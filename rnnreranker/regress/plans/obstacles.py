"""What stands in the way of steps on this machine: data, files, a GPU, disk, network.

Quick: no model is loaded. Downloads themselves are left to Pyserini, ir_datasets and huggingface_hub, which show
progress and check their checksums; here is decided, before the first step, whether one can be begun.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.errors import RnnrerankerError, UnavailableError
from rnnreranker.regress.plans.disk import last_readers, sizes
from rnnreranker.regress.plans.inputs import ReadFirst
from rnnreranker.regress.plans.step import State, index_name, skipped, state_of

if TYPE_CHECKING:
    from rnnreranker.regress.plans.plan import Plan
    from rnnreranker.regress.plans.step import Step
    from rnnreranker.regress.specs.entries import IndexEntry

MIRROR = ("rgw.cs.uwaterloo.ca", 443)  # where Pyserini's prebuilt indexes are
PATIENCE = 3.0  # seconds for an answer
GB = 1e9


def obstacles(plan: Plan, steps: Sequence[Step]) -> dict[Path, State]:
    """Output of a step that cannot be taken here → why.

    Args:
        plan: of a spec.
        steps: those of it that are to be taken; of the others only the number of documents is looked at.
    """
    blocked = {
        path: skipped(f"needs {entry.title} for {one.id}; give the folder that holds it by --runs")
        for path, (entry, one) in plan.given().items()
        if not path.exists()
    }
    disk, size, gone = _Disk(), sizes(plan.steps, plan.spec), last_readers(plan.readers)
    wrong, inputs = _other_collections(plan), ReadFirst(plan)
    for step in plan.steps:
        named = wrong.get(step.value("--index")) or (step.module == "index" and wrong.get(step.value("--output")))
        state = named or next((blocked[path] for path in step.inputs if path in blocked), None)
        if step in steps:
            state = state or _data(plan, step) or _files(step) or _gpu(step) or _space(plan, step, disk)
            state = state or _download(plan, step) or inputs.state(step)
        if state:
            blocked[step.output] = state
        else:
            disk.give(plan.folder, sum(size[output] for output in gone.get(step.output, ()) if output not in blocked))
    return blocked


def count_documents(index: IndexEntry, name: str) -> int:
    """How many documents an index has, or will have where it is not there yet; name: what `--index` is given of it.

    Raises:
        RnnrerankerError: documents that cannot be had.
    """
    from rnnreranker.data.documents import load_documents
    from rnnreranker.parts.base import describe

    described = describe(Path(name))
    return int(described["count"]) if described else sum(1 for _ in load_documents(index.documents))


def _other_collections(plan: Plan) -> dict[str, State]:
    """What `--index` is given of indexes with another number of documents: a sample never passes for the collection."""
    states = {}
    named = {step.value(flag) for step in plan.steps for flag in ("--index", "--output")}
    for index in plan.spec.indexes:
        name = index_name(index, plan.folder)
        if index.count and name in named and (state := _data_state(plan, index.documents, _check_count, index, name)):
            states[name] = state
    return states


class _OtherCollection(UnavailableError):
    """The documents that are here are those of another collection."""


def _check_count(index: IndexEntry, name: str) -> None:
    fewest, most = index.count or (0, 0)
    count = count_documents(index, name)
    if not fewest <= count <= most:
        stated = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        here = f"{index.documents} has {count:,} documents here, the spec is for {stated}: another collection"
        raise _OtherCollection(here)


def _data(plan: Plan, step: Step) -> State | None:
    """Local data sets and files that are not here; whether data are whole says `ReadFirst`."""
    from rnnreranker.data import local
    from rnnreranker.data.names import left_out

    for flag in ("--documents", "--topics", "--qrels", "--validation-topics", "--validation-qrels"):
        if given := step.value(flag):
            name, others = left_out(given)
            for one, part in ((name, flag.rpartition("-")[2]), *((other, "topics") for other in others)):
                if state := _data_state(plan, one, local.source, one, part):
                    return state
    return None


def _data_state(plan: Plan, name: str, look: Callable[..., object], *given: object) -> State | None:
    """Why data cannot be read, by a function that looks at them, with what the spec says of how to get them."""
    from rnnreranker.data.names import COLLECTIONS

    if lacking := _no_file(plan, name):
        return lacking
    try:
        look(*given)
    except RnnrerankerError as error:
        state, needs = state_of(error), plan.spec.needs
        if state.kind == "error" or isinstance(error, _OtherCollection):
            return state
        files = str(needs.get("files", "")) if name.startswith(COLLECTIONS) else ""
        return skipped(needs.get("agreement") or "; ".join(filter(None, [str(error), files])))
    return None


def _no_file(plan: Plan, name: str) -> State | None:
    """That there is nothing where a path leads, with what the plan's needs say of it; None for other names."""
    from rnnreranker.data.names import is_path

    folder, _, _ = name.rpartition(":")  # of FOLDER:SPLIT
    if not is_path(name) or any(Path(text).expanduser().exists() for text in (name, folder) if text):
        return None
    texts = (str(step.needs.get("files", "")) for step in plan.steps)
    said = next((text for text in texts if text.startswith(f"{name}:")), f"{name}, and there is no such file here")
    return skipped(f"needs {said}")


def _files(step: Step) -> State | None:
    """Files that the step's needs name, as `path: what it is`, and that are not there."""
    text = str(step.needs.get("files", ""))
    name, colon, _ = text.partition(":")
    return skipped(f"needs {text}") if colon and not Path(name).expanduser().exists() else None


def _gpu(step: Step) -> State | None:
    hours = step.needs.get("gpu_hours", 0)
    if not hours or has_gpu():
        return None
    what = _WORK.get(step.module, step.module)
    return skipped(f"{what} takes a GPU ({hours:g} hours), and there is none here")


_WORK = {"train": "training", "index": "encoding the documents", "search": "reranking", "labels": "scoring the labels"}


def has_gpu() -> bool:
    """Whether this machine has a GPU that PyTorch can use, judged without loading PyTorch."""
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    return bool(devices) or shutil.which("nvidia-smi") is not None


class _Disk:
    """Free space by file system, less what earlier steps of the plan will take."""

    def __init__(self) -> None:
        self._left: dict[int, float] = {}
        self._once: set[str] = set()

    def take(self, folder: Path, wanted: float, once: str = "") -> State | None:
        """Reserve that many GB, for what is named in `once` only once; why not, or None."""
        if once in self._once:
            return None
        folder = folder.expanduser().absolute()
        folder = next(path for path in (folder, *folder.parents) if path.exists())
        device = folder.stat().st_dev
        left = self._left.setdefault(device, shutil.disk_usage(folder).free / GB)
        if wanted > left:
            return skipped(f"needs {wanted:g} GB of disk in {folder}, {max(0.0, left):.0f} GB are free")
        self._left[device] = left - wanted
        self._once.update(filter(None, [once]))
        return None

    def give(self, folder: Path, freed: float) -> None:
        """That many GB are free again."""
        folder = folder.expanduser().absolute()
        device = next(path for path in (folder, *folder.parents) if path.exists()).stat().st_dev
        if device in self._left:
            self._left[device] += freed


def _space(plan: Plan, step: Step, disk: _Disk) -> State | None:
    name = prebuilt(plan, step)
    reason = None
    if name and not downloaded(name):
        needs = next(source.needs for source in plan.spec.indexes if source.prebuilt == name)
        reason = disk.take(_pyserini_cache(), needs.get("disk_gb", 0), name)
    own = 0 if name and step.module in ("search", "labels") else step.needs.get("disk_gb", 0)
    return reason or disk.take(plan.folder, own)


def _download(plan: Plan, step: Step) -> State | None:
    name = prebuilt(plan, step)
    what = name if name and not downloaded(name) else ""
    if step.module == "index" and step.needs.get("download_gb", 0):
        what = step.value("--documents")
    if not what or network():
        return None
    return skipped(f"{what} must be downloaded, and {MIRROR[0]} cannot be reached from here")


def prebuilt(plan: Plan, step: Step) -> str:
    """The prebuilt index of Pyserini that a step reads, or an empty text."""
    index = step.value("--index")
    return index if index in {source.prebuilt for source in plan.spec.indexes} else ""


def _pyserini_cache() -> Path:
    return Path(os.environ.get("PYSERINI_CACHE", "~/.cache/pyserini")).expanduser()


def downloaded(index: str, cache: Path | None = None) -> bool:
    """Whether Pyserini has this prebuilt index already, in a folder of its name with date and checksum.

    Such as `lucene-inverted.msmarco-v1-passage.20221004.252b5e.MD5`; that of its -slim is another. cache: None =
    Pyserini's.
    """
    whole = re.compile(rf".*?{re.escape(index)}(\.(\d{{4}}.*|[0-9a-zA-Z]+))?")
    folders = ((cache or _pyserini_cache()) / "indexes").glob(f"*{index}*")
    return any(path.is_dir() and whole.fullmatch(path.name) for path in folders)


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
