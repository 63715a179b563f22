"""Obstacles to steps on this machine: data, files, models, a GPU, disk, network. No model is loaded."""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import re
import shutil
import socket
import tarfile
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.errors import InputError, RnnrerankerError, UnavailableError
from rnnreranker.base.files import cache_home, fingerprint
from rnnreranker.base.method import methods
from rnnreranker.base.written_form import Written
from rnnreranker.data import local
from rnnreranker.data.names import BUILT_IN_TOPICS, COLLECTIONS, is_path, left_out
from rnnreranker.regress.plans.step import State, Step, index_name, state_of

if TYPE_CHECKING:
    from rnnreranker.regress.plans.plan import Plan
    from rnnreranker.regress.specs.entries import IndexEntry

MIRROR = ("rgw.cs.uwaterloo.ca", 443)  # where Pyserini's prebuilt indexes are
PATIENCE = 3.0  # seconds for an answer
GB = 1e9
DATA = ("documents", "topics", "qrels", "validation_topics", "validation_qrels")  # flags that name data sets
WORK = {"train": "training", "index": "encoding the documents", "search": "reranking", "labels": "scoring the labels"}
ARCHIVES = (".gz", ".tar", ".zip")


class _OtherCollection(UnavailableError):
    """The documents here are those of another collection."""


def obstacles(plan: Plan, steps: Collection[Step]) -> dict[Path, State]:
    """Output of a step that cannot be taken here → why; steps: those to take."""
    blocked = {
        path: State("skipped", f"needs {entry.title} for {one.id}; give the folder that holds it by --runs")
        for path, (entry, one) in plan.given().items()
        if not path.exists()
    }
    judged = {path: one for one in plan.query_sets for entry in plan.conditions for path in plan.run_files(entry, one)}
    disk, wrong, look = _Disk(plan), _other_collections(plan), functools.cache(check_readable)
    for step in plan.steps:
        named = wrong.get(step.value("index")) or (step.module == "index" and wrong.get(step.value("output")))
        state = named or next((blocked[path] for path in step.inputs if path in blocked), None)
        if step in steps and not state:
            asked = [(name, flag.removeprefix("validation_")) for flag in DATA if (name := step.value(flag))]
            try:
                _check(plan, step, asked, disk)
                for name, of in [*asked, *((judged[path].qrels, "qrels") for path in [step.output] if path in judged)]:
                    look(name, of)
            except RnnrerankerError as error:
                state = state_of(error)
        if state:
            blocked[step.output] = state
        else:
            disk.free(step, blocked)
    return blocked


def _check(plan: Plan, step: Step, asked: list[tuple[str, str]], disk: _Disk) -> None:
    """Raise UnavailableError or InputError if a step cannot be taken here."""
    for given, of in asked:
        name, others = left_out(given)
        for one, kind in ((name, of), *((other, "topics") for other in others)):
            with _explained(plan, one):
                local.source(one, kind)
    text, hours = str(step.needs.get("files", "")), step.needs.get("gpu_hours", 0)
    if ":" in text and not Path(text.partition(":")[0]).expanduser().exists():
        raise UnavailableError(f"needs {text}")
    if hours and not has_gpu():
        what = WORK.get(step.module, step.module)
        raise UnavailableError(f"{what} takes a GPU ({hours:g} hours), and there is none here")
    disk.take(step)
    name = prebuilt(plan, step)
    what = name if name and not downloaded(name) else ""
    if step.module == "index" and step.needs.get("download_gb", 0):
        what = step.value("documents")
    if what and not network():
        raise UnavailableError(f"{what} must be downloaded, and {MIRROR[0]} cannot be reached from here")
    for name in (Written.read(str(value)).name for flag, value in step.request.items() if flag.endswith("encoder")):
        if said := other_vocabulary(name):
            raise InputError(f"model {name}: {said}; these are files of two models: get them again")


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
    """Value of `--index` → the state of an index with another number of documents."""
    states = {}
    named = {step.value(flag) for step in plan.steps for flag in ("index", "output")}
    for index in plan.spec.indexes:
        name = index_name(index, plan.folder)
        if index.count and name in named:
            try:
                with _explained(plan, index.documents):
                    fewest, most = index.count
                    if not fewest <= (count := count_documents(index, name)) <= most:
                        stated = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
                        said = f"{index.documents} has {count:,} documents here, the spec is for {stated}"
                        raise _OtherCollection(f"{said}: another collection")
            except RnnrerankerError as error:
                states[name] = state_of(error)
    return states


@contextlib.contextmanager
def _explained(plan: Plan, name: str) -> Iterator[None]:
    """A block that looks at the data of a name: errors get what the spec says about them."""
    folder, _, _ = name.rpartition(":")  # of FOLDER:SPLIT
    if is_path(name) and not any(Path(text).expanduser().exists() for text in (name, folder) if text):
        texts = (str(step.needs.get("files", "")) for step in plan.steps)
        said = next((text for text in texts if text.startswith(f"{name}:")), f"{name}, and there is no such file here")
        raise UnavailableError(f"needs {said}")
    try:
        yield
    except RnnrerankerError as error:
        if state_of(error).kind == "error" or isinstance(error, _OtherCollection):
            raise
        files = str(plan.spec.needs.get("files", "")) if name.startswith(COLLECTIONS) else ""
        said = plan.spec.needs.get("agreement") or "; ".join(filter(None, [str(error), files]))
        raise UnavailableError(said) from None


def has_gpu() -> bool:
    """Whether this machine has a GPU that PyTorch can use, judged without PyTorch."""
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    return bool(devices) or shutil.which("nvidia-smi") is not None


class _Disk:
    """Free space by file system, less what earlier steps take."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._left: dict[int, float] = {}
        self._once: set[str] = set()

    def take(self, step: Step) -> None:
        """Reserve the space of a step and its prebuilt index; UnavailableError: too little is free."""
        name = prebuilt(self._plan, step)
        if name and name not in self._once and not downloaded(name):
            needs = next(source.needs for source in self._plan.spec.indexes if source.prebuilt == name)
            self._reserve(_pyserini_cache(), needs.get("disk_gb", 0))
            self._once.add(name)
        own = 0 if name and step.module in ("search", "labels") else step.needs.get("disk_gb", 0)
        self._reserve(self._plan.folder, own)

    def _reserve(self, folder: Path, wanted: float) -> None:
        folder = folder.expanduser().absolute()
        folder = next(path for path in (folder, *folder.parents) if path.exists())
        device = folder.stat().st_dev
        left = self._left.setdefault(device, shutil.disk_usage(folder).free / GB)
        if wanted > left:
            raise UnavailableError(f"needs {wanted:g} GB of disk in {folder}, {max(0.0, left):.0f} GB are free")
        self._left[device] = left - wanted

    def free(self, step: Step, blocked: Collection[Path]) -> None:
        """Free the space of the outputs that are removed after a step."""
        gone = self._plan.removed.get(step.output, ())
        self._reserve(self._plan.folder, -sum(self._plan.sizes[output] for output in gone if output not in blocked))


def prebuilt(plan: Plan, step: Step) -> str:
    """The prebuilt index of Pyserini that a step reads, or ""."""
    index = step.value("index")
    return index if index in {source.prebuilt for source in plan.spec.indexes} else ""


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


@functools.cache
def other_vocabulary(name: str) -> str:
    """A message if a tokenizer has more tokens than the weights have rows, else ""."""
    name = getattr(methods("encoder").get(name), "hub", "") or name
    if not (Path(name).is_dir() or re.fullmatch(r"[\w.-]+/[\w.-]+", name)):
        return ""
    from transformers import AutoConfig, AutoTokenizer

    try:
        rows = getattr(AutoConfig.from_pretrained(name, local_files_only=True), "vocab_size", None)
        tokens = len(AutoTokenizer.from_pretrained(name, local_files_only=True)) if rows else 0
    except (OSError, ValueError):  # not here, or no model of transformers: loading it reports what is wrong
        return ""
    return f"its tokenizer has {tokens:,} tokens, its weights {rows:,}" if rows and tokens > rows else ""


def check_readable(name: str, part: str) -> None:
    """Read topics or qrels, or the archives of documents, unless they are not downloaded yet.

    Raises:
        InputError: damaged data.
        UnavailableError: missing data that cannot be downloaded.
    """
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics

    folder = _folder_of(name)
    if folder is not None and not folder.is_dir():
        return
    if part == "documents":
        for archive in sorted(folder.iterdir()) if folder else ():
            if archive.name.endswith(ARCHIVES):
                _check_archive(archive)
    elif part == "qrels":
        load_qrels(name)
    else:
        load_topics(name)


def _folder_of(name: str) -> Path | None:
    """The folder of ir_datasets with the data of an id; None for other names."""
    from rnnreranker.data import tripclick
    from rnnreranker.data.irds import SHORT_NAMES

    if name in BUILT_IN_TOPICS or is_path(name) or local.kept_at(name) is not None:
        return None
    known = ["tripclick"] if tripclick.is_name(name) else SHORT_NAMES.get(name, name).split("/")
    home = Path(os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")).expanduser()
    return home.joinpath(*known[: 2 if known[0] == "beir" else 1])


def _check_archive(path: Path) -> None:
    """Read an archive to its end, once for its size and time; InputError: cut off or damaged."""
    status = path.stat()
    seen = cache_home() / "digests" / f"whole-{fingerprint(str(path), status.st_size, status.st_mtime_ns)}"
    if seen.exists():
        return
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                if wrong := archive.testzip():
                    raise zipfile.BadZipFile(f"{wrong} is damaged")
        elif path.suffix == ".tar":
            with tarfile.open(path, "r:") as tar:
                tar.getmembers()
        else:
            with gzip.open(path) as stream:
                while stream.read(2**20):
                    pass
    except (EOFError, OSError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{path}: cut off or damaged ({said}); delete it and get it again") from None
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.touch()
