"""Obstacles to steps on this machine: data, files, a GPU, disk, network. No model is loaded."""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.errors import RnnrerankerError, UnavailableError
from rnnreranker.data import local
from rnnreranker.data.names import BUILT_IN_TOPICS, COLLECTIONS, is_path
from rnnreranker.regress.plans.step import State, Step, index_name, state_of
from rnnreranker.regress.specs.methods import data_sets

if TYPE_CHECKING:
    from rnnreranker.regress.plans.plan import Plan
    from rnnreranker.regress.specs.entries import IndexEntry

MIRROR = ("rgw.cs.uwaterloo.ca", 443)  # where Pyserini's prebuilt indexes are
PATIENCE = 3.0  # seconds for an answer
GB = 1e9
DATA = ("documents", "topics", "qrels", "validation_topics", "validation_qrels")  # flags that name data sets


def obstacles(plan: Plan, steps: Collection[Step]) -> dict[Path, State]:
    """Output of a step that cannot be taken here → why; steps: those to take."""
    blocked = {
        path: State("skipped", f"needs {entry.title} for {one.id}; give the folder that holds it by --runs")
        for path, (entry, one) in plan.given().items()
        if not path.exists()
    }
    judged = {path: one.qrels for one in plan.query_sets for c in plan.conditions for path in plan.run_files(c, one)}
    taken, wrong, disk = {step.output for step in steps}, _other_collections(plan), _Disk()
    look = functools.cache(functools.partial(check_data, plan))
    for step in plan.steps:
        named = [wrong.get(step.value("index")), wrong.get(step.value("output")) if step.module == "index" else None]
        state = next(filter(None, [*named, *map(blocked.get, step.inputs)]), None)
        if step.output in taken and not state:
            try:
                for flag in DATA:
                    look(step.value(flag), flag.removeprefix("validation_"))
                look(judged.get(step.output, ""), "qrels")
                _check_machine(plan, step, disk)
            except RnnrerankerError as error:
                state = state_of(error)
        if state:
            blocked[step.output] = state
        elif step.output in taken:
            gone = {output for output in plan.removed(step) if output not in blocked}
            disk.reserve(plan.folder, -sum(one.disk for one in plan.steps if one.output in gone))
    return blocked


def check_data(plan: Plan, given: str, kind: str) -> None:
    """Look for the data sets in a name; files of topics and judgements are read.

    Raises:
        InputError: damaged data.
        UnavailableError: missing data.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics

    for name, of in data_sets(given, kind) if given else ():
        folder = name.rpartition(":")[0]  # of FOLDER:SPLIT
        if is_path(name) and not any(Path(text).expanduser().exists() for text in (name, folder) if text):
            texts = (str(step.needs.get("files", "")) for step in plan.steps)
            said = f"{name}, and there is no such file here"
            raise UnavailableError(f"needs {next((text for text in texts if text.startswith(f'{name}:')), said)}")
        try:
            local.files_of(name, of)
            if of != "documents" and (name in BUILT_IN_TOPICS or local.kept_at(name)):
                (load_qrels if of == "qrels" else load_topics)(name)
        except UnavailableError as error:
            files = plan.spec.needs.get("files", "") if name.startswith(COLLECTIONS) else ""
            said = plan.spec.needs.get("agreement") or "; ".join(filter(None, [str(error), files]))
            raise UnavailableError(said) from None


def _check_machine(plan: Plan, step: Step, disk: _Disk) -> None:
    """Raise UnavailableError if this machine lacks a file, a GPU, disk or the network for a step."""
    text, hours = str(step.needs.get("files", "")), step.needs.get("gpu_hours", 0)
    if ":" in text and not Path(text.partition(":")[0]).expanduser().exists():
        raise UnavailableError(f"needs {text}")
    if hours and not has_gpu():
        raise UnavailableError(f"{step.module} takes a GPU ({hours:g} hours), and there is none here")
    index = step.value("index")
    lacking = index in {entry.prebuilt for entry in plan.spec.indexes} and not downloaded(index)
    if lacking:
        disk.reserve(_pyserini_cache(), step.downloads.get("disk_gb", 0))
    disk.reserve(plan.folder, step.disk)
    encodes = step.module == "index" and step.needs.get("download_gb")
    what = index if lacking else step.value("documents") if encodes else ""
    if what and not network():
        raise UnavailableError(f"{what} must be downloaded, and {MIRROR[0]} cannot be reached from here")


def count_documents(index: IndexEntry, name: str) -> int:
    """The number of documents of an index, or of its source; name: the value of `--index`.

    Raises:
        RnnrerankerError: documents that cannot be read.
    """
    from rnnreranker.data.documents import load_documents
    from rnnreranker.parts.base import describe

    described = describe(Path(name))
    return int(described["count"]) if described else sum(1 for _ in load_documents(index.documents))


def _other_collections(plan: Plan) -> dict[str, State]:
    """Value of `--index` → the state of an index whose documents are missing or of another number."""
    states = {}
    named = {step.value(flag) for step in plan.steps for flag in ("index", "output")}
    for index in plan.spec.indexes:
        name = index_name(index, plan.folder)
        if index.count and name in named:
            try:
                check_data(plan, index.documents, "documents")
                count, (fewest, most) = count_documents(index, name), index.count
            except RnnrerankerError as error:
                states[name] = state_of(error)
                continue
            if not fewest <= count <= most:
                stated = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
                said = f"{index.documents} has {count:,} documents here, the spec is for {stated}"
                states[name] = State("skipped", f"{said}: another collection")
    return states


def has_gpu() -> bool:
    """Whether this machine has a GPU that PyTorch can use, judged without PyTorch."""
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    return bool(devices) or shutil.which("nvidia-smi") is not None


class _Disk:
    """Free space by file system, less what earlier steps take."""

    def __init__(self) -> None:
        self._taken: dict[int, float] = defaultdict(float)

    def reserve(self, folder: Path, wanted: float) -> None:
        """Take GB in a folder, or free them (< 0); UnavailableError: too little is free."""
        folder = folder.expanduser().absolute()
        folder = next(path for path in (folder, *folder.parents) if path.exists())
        device = folder.stat().st_dev
        left = shutil.disk_usage(folder).free / GB - self._taken[device]
        if wanted > max(0.0, left):
            raise UnavailableError(f"needs {wanted:g} GB of disk in {folder}, {max(0.0, left):.0f} GB are free")
        self._taken[device] += wanted


def _pyserini_cache() -> Path:
    return Path(os.environ.get("PYSERINI_CACHE", "~/.cache/pyserini")).expanduser()


def downloaded(index: str) -> bool:
    """Whether Pyserini has this prebuilt index, as `lucene-inverted.msmarco-v1-passage.20221004.252b5e.MD5`."""
    whole = re.compile(rf".*?{re.escape(index)}(\.(\d{{4}}.*|[0-9a-zA-Z]+))?")
    folders = (_pyserini_cache() / "indexes").glob(f"*{index}*")
    return any(path.is_dir() and whole.fullmatch(path.name) for path in folders)


@functools.cache
def network() -> bool:
    """Whether Pyserini's mirror, or the proxy to it, answers."""
    proxy = urllib.request.getproxies().get("https", "")
    parts = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    address = (parts.hostname, parts.port or 3128) if parts.hostname else MIRROR
    try:
        with socket.create_connection(address, timeout=PATIENCE):
            return True
    except OSError:
        return False
