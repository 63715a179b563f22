"""The built-in collection: the docstrings of the running Python's standard library, and `pydoc_files/uses.tsv`."""

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
from rnnreranker.base.strict import read_json
from rnnreranker.data.document import Document

OWN_FILES = ("pydoc.py", "docstrings.py", "pydoc_files/modules.txt", "pydoc_files/uses.tsv")


def documents() -> Iterator[Document]:
    """The documents of the built-in collection, sorted by docid.

    A docid is a public name (`dict.fromkeys`). The text is its signature, the name in words, the first paragraphs of
    the docstring, and perhaps a sentence on typical use.

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
    with contextlib.suppress(InputError):
        known = read_json(remembered)
        if isinstance(known, str) and re.fullmatch("[0-9a-f]{16}", known):
            return known
    digest = files.fingerprint(*([document.docid, document.text] for document in _documents()))
    with contextlib.suppress(OSError, InputError):  # without a cache folder the next call takes as long
        remembered.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(remembered, digest)
    return digest


def _depends_on() -> Iterator[Any]:
    """The interpreter, its library and this package's files."""
    library = os.stat(os.__file__)
    yield [sys.version, sys.executable, sys.platform, library.st_size, library.st_mtime_ns]
    for name in OWN_FILES:
        yield resources.files("rnnreranker.data").joinpath(name).read_bytes()


@functools.cache
def _documents() -> tuple[Document, ...]:
    uses = _uses()
    lines = ((docid, [*about, *([uses[docid]] if docid in uses else [])]) for docid, *about in _gathered(sorted(uses)))
    return tuple(Document(docid, re.sub(r" at 0x[0-9A-Fa-f]+", "", "\n".join(own))) for docid, own in lines)


def _uses() -> dict[str, str]:
    content = resources.files("rnnreranker.data").joinpath("pydoc_files/uses.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t", 1) for line in content.splitlines())


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
