"""Whether the data that are here are whole and can be read: looked at before the first step, not after days of others.

Nothing large is downloaded for it: of a data set of ir_datasets that has no folder yet nothing is looked at.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint

ARCHIVES = (".gz", ".tar", ".zip")
AT_ONCE = 2**20  # bytes


def check_readable(name: str, part: str) -> None:
    """Nothing, when the data of a name are whole, or are yet to be downloaded.

    Args:
        name: a data set or file; part: "topics" and "qrels" are read, of "documents" the archives of ir_datasets.

    Raises:
        InputError: topics or judgements that are damaged, an archive that is cut off.
        UnavailableError: some that lack beside others that are here, and that cannot be downloaded.
    """
    folder = _folder_of(name)
    if folder is not None and not folder.is_dir():
        return
    if part == "documents":
        for archive in _archives(folder) if folder else ():
            _check_archive(archive)
    else:
        _read(name, part)


def _read(name: str, part: str) -> None:
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics

    if part == "qrels":
        load_qrels(name)
    else:
        load_topics(name)


def _folder_of(name: str) -> Path | None:
    """The folder in which ir_datasets keeps what it downloads of an id; None of other names, and of ids like a file."""
    from rnnreranker.data import local, tripclick
    from rnnreranker.data.irds import SHORT_NAMES
    from rnnreranker.data.names import BUILT_IN_TOPICS, is_path

    if name in BUILT_IN_TOPICS or is_path(name) or local.kept_at(name) is not None:
        return None
    known = ["tripclick"] if tripclick.is_name(name) else SHORT_NAMES.get(name, name).split("/")
    home = Path(os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")).expanduser()
    return home.joinpath(*known[: 2 if known[0] == "beir" else 1])


def _archives(folder: Path) -> Iterator[Path]:
    """The archives of documents: those of queries and judgements are read as such."""
    yield from sorted(path for path in folder.iterdir() if path.name.endswith(ARCHIVES))


def _check_archive(path: Path) -> None:
    """Read an archive to its end, once for as long as its size and time stay.

    Raises:
        InputError: one that is cut off or damaged.
    """
    status = path.stat()
    seen = cache_home() / "digests" / f"whole-{fingerprint(str(path), status.st_size, status.st_mtime_ns)}"
    if seen.exists():
        return
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                while stream.read(AT_ONCE):
                    pass
        elif path.suffix == ".tar":
            with tarfile.open(path, "r:") as tar:
                last = [member.offset_data + member.size for member in tar][-1:] or [0]
            with open(path, "rb") as stream:  # tarfile takes one that ends within the name of a member
                stream.seek(-(-last[0] // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
                if stream.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
                    raise tarfile.ReadError("no end of the archive")
        else:
            with zipfile.ZipFile(path) as archive:
                if wrong := archive.testzip():
                    raise zipfile.BadZipFile(f"{wrong} is damaged")
    except (EOFError, OSError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{path}: cut off or damaged ({said}); delete it and get it again") from None
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.touch()
