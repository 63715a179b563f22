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
from pathlib import Path

from rnnreranker.base import files
from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.data.document import Document

HERE = Path(__file__).parent
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
    library = os.stat(os.__file__)
    python = [sys.version, sys.executable, sys.platform, library.st_size, library.st_mtime_ns]
    key = files.fingerprint(python, *((HERE / name).read_bytes() for name in OWN_FILES))
    remembered = files.cache_home() / "digests" / f"pydoc-{key}.json"
    with contextlib.suppress(InputError):
        known = files.read_json(remembered)
        if isinstance(known, str) and re.fullmatch("[0-9a-f]{16}", known):
            return known
    digest = files.fingerprint(*([document.docid, document.text] for document in _documents()))
    with contextlib.suppress(OSError, InputError):  # without a cache folder the next call takes as long
        remembered.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(remembered, digest)
    return digest


@functools.cache
def _documents() -> tuple[Document, ...]:
    lines = (HERE / "pydoc_files" / "uses.tsv").read_text(encoding="utf-8").splitlines()
    uses = dict(line.split("\t", 1) for line in lines)
    # a Python without site packages and optimisation
    command = [sys.executable, "-I", "-S", "-X", "utf8", str(HERE / "docstrings.py"), *sorted(uses)]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "")).strip() or str(error)
        raise UnavailableError(
            f"pydoc: the docstrings of {sys.executable or 'Python'} cannot be read: {said.splitlines()[-1]}"
        ) from None
    texts = (
        (docid, "\n".join([*about, *filter(None, [uses.get(docid)])])) for docid, *about in json.loads(done.stdout)
    )
    return tuple(Document(docid, re.sub(r" at 0x[0-9A-Fa-f]+", "", text)) for docid, text in texts)
