"""Files, tars and zips of given bytes: the same bytes every time, and none written that is there."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from rnnreranker.base.files import write_atomically

FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the first that a zip can name


def write_file(path: Path, content: bytes) -> None:
    """A file in a folder that is made with it; compressed where its name ends in .gz. One that is there stays."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content)


def write_rows(path: Path, rows: Iterable[Iterable[object]], sign: str = "\t") -> None:
    """A file of rows, see `write_file`."""
    write_file(path, table(rows, sign))


def table(rows: Iterable[Iterable[object]], sign: str = "\t") -> bytes:
    """Rows as lines whose columns a sign separates."""
    return "".join(sign.join(map(str, row)) + "\n" for row in rows).encode()


def write_tar(path: Path, members: Mapping[str, bytes]) -> None:
    """A tar with these members in their order; compressed where its name ends in .gz. One that is there stays."""
    if path.exists():
        return
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    write_file(path, content.getvalue())


def write_zip(path: Path, members: Mapping[str, bytes]) -> None:
    """A zip with these members in their order. One that is there stays."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, FIRST_DAY), data)
    write_file(path, content.getvalue())
