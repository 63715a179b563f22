"""The built-in collection: the documentation of the running Python's standard library, made from its docstrings.

The documents depend on the Python alone. `pydoc_files/uses.tsv` adds sentences on typical use to built-in types and
functions.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from typing import Any

from rnnreranker.base import files
from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.data.document import Document

OWN_FILES = ("pydoc.py", "docstrings.py", "pydoc_files/modules.txt", "pydoc_files/uses.tsv")
NOT_READ = (
    "__pycache__",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "site-packages",
    "test",
    "turtledemo",
)  # of the library


def documents() -> Iterator[Document]:
    """The documents of the built-in collection, sorted by docid.

    A docid is the public name of an object (`dict.fromkeys`). The text is its signature, the name in words, the first
    paragraphs of the docstring (about 400 characters), and perhaps a sentence on typical use.

    Raises:
        UnavailableError: Python has no docstrings, or cannot be started to read them.
    """
    return iter(_documents())


def fingerprint() -> str:
    """16 hexadecimal digits: the digest of the collection under this Python, kept in the cache folder.

    Raises:
        UnavailableError: as `documents`.
    """
    remembered = files.cache_home() / "digests" / f"pydoc-{files.fingerprint(*_depends_on())}.json"
    try:
        known = json.loads(remembered.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        known = None
    if isinstance(known, str) and re.fullmatch("[0-9a-f]{16}", known):
        return known
    digest = files.fingerprint(*([document.docid, document.text] for document in _documents()))
    try:
        remembered.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(remembered, digest)
    except (OSError, InputError):
        return digest  # a cache folder that cannot be written costs time, not correctness
    return digest


def _depends_on() -> Iterator[Any]:
    """The interpreter, this package's files, and size and time of the library's files."""
    yield [sys.version, sys.executable, sys.platform]
    for name in OWN_FILES:
        yield resources.files("rnnreranker.data").joinpath(name).read_bytes()
    read = [sys.executable]
    for folder, below, names in os.walk(os.path.dirname(os.__file__)):
        below[:] = sorted(name for name in below if name not in NOT_READ)
        read.extend(os.path.join(folder, name) for name in sorted(names))
    for path in read:
        with contextlib.suppress(OSError):  # a link to nowhere
            stat = os.stat(path)
            yield [path, stat.st_size, stat.st_mtime_ns]


@functools.cache
def _documents() -> tuple[Document, ...]:
    uses = _uses()
    documents = []
    for docid, title, words, docstring in _gathered(sorted(uses)):
        lines = [title, words, docstring]
        if docid in uses:
            lines.append(uses[docid])
        documents.append(Document(docid, re.sub(r" at 0x[0-9A-Fa-f]+", "", "\n".join(lines))))
    return tuple(documents)


def _uses() -> dict[str, str]:
    """Docid → a sentence on typical use."""
    content = resources.files("rnnreranker.data").joinpath("pydoc_files/uses.tsv").read_text(encoding="utf-8")
    uses = {}
    for line in content.splitlines():
        docid, _, sentence = line.partition("\t")
        uses[docid] = sentence
    return uses


def _gathered(names: list[str]) -> list[list[str]]:
    """Rows of `docstrings.gather`, from a Python without site packages and optimisation."""
    with resources.as_file(resources.files("rnnreranker.data").joinpath("docstrings.py")) as script:
        command = [sys.executable, "-I", "-S", "-X", "utf8", str(script), *names]
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        except OSError as error:
            raise UnavailableError(f"pydoc: {sys.executable or 'Python'} cannot be started ({error})") from None
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise UnavailableError(f"pydoc: the docstrings of {sys.executable} cannot be read: {reason[0]}")
    rows: list[list[str]] = json.loads(done.stdout)
    return rows
