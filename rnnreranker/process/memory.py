"""A limit of memory under which libraries fail to load is said before they are loaded."""

from __future__ import annotations

import os
import sys

LEAST = 1 << 31  # bytes of address space: NumPy, SciPy, pandas, numba, PyArrow and Faiss take most of it


def check_for(package: str) -> None:
    """End a command (`python -m PACKAGE…`, at its first line) by one line where less is allowed; --help needs little.

    Below it OpenBLAS ends the process in its own words or waits for ever while it is loaded.
    """
    if sys.argv[:1] != ["-m"] or os.name != "posix" or {"-h", "--help"} & {*sys.argv[2:], *sys.argv[1:2]}:
        return
    words = (word.removeprefix("-m").split(".")[0] for word in sys.orig_argv[1:3])
    if package not in words or len(sys.argv) == 1:
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST:
        print(
            f"error: address space limited to {limit >> 10} KiB: the libraries need {LEAST >> 10} KiB at least; raise "
            f"the limit, as by ulimit -v {LEAST >> 10} or ulimit -v unlimited",
            file=sys.stderr,
        )
        raise SystemExit(2)
