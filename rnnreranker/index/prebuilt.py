"""The prebuilt indexes of Pyserini, by name."""

from __future__ import annotations

import contextlib
import difflib
import io
import sys
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.java import prebuilt_index_names, start_java
from rnnreranker.data.names import BUILT_IN


def prebuilt_index(name: str) -> Path:
    """The folder of a prebuilt index of Pyserini, which Pyserini downloads on first use."""
    known = [] if (near := difflib.get_close_matches(name, BUILT_IN, cutoff=0.7)) else prebuilt_index_names()
    if name not in known:
        near = near or _near(name, known)
        if near:
            raise InputError(f"{name}: no such folder or index; did you mean {' or '.join(near)}?")
        raise InputError(
            f"{name}: no such folder or file, and no prebuilt index of Pyserini; "
            "make one with python -m rnnreranker.index"
        )
    start_java()  # Pyserini's tables of indexes need it
    from pyserini.util import download_prebuilt_index

    try:
        with contextlib.ExitStack() as stack:
            if not sys.stderr.isatty():  # its progress bar is for a terminal
                stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            return Path(download_prebuilt_index(name, verbose=False))
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"{name}: this prebuilt index is not in the cache and cannot be downloaded ({type(error).__name__}: "
            "no network?); run where there is internet, or give the path of a folder"
        ) from None


def _near(name: str, known: list[str]) -> list[str]:
    """The most similar names of prebuilt indexes, three at most, first those of the same encoder."""
    ending = letters(name.split(".")[-1])
    same_ending = [other for other in known if len(ending) > 3 and ending in letters(other)]
    same = difflib.get_close_matches(name, same_ending, cutoff=0.55)
    return same or difflib.get_close_matches(name, known, cutoff=0.75)


def letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
