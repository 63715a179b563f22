"""The memory of this machine, and whether its address space is too small."""

from __future__ import annotations

import os
import sys


def memory_gb() -> float:
    """The memory of this machine in GB; 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        return 0.0


LEAST = 1 << 31  # bytes of address space: NumPy, SciPy, pandas, numba, PyArrow and Faiss take most of it


def check_for(package: str) -> None:
    """End a command (`python -m PACKAGE…`, at its first line) with one line if its address space is too small.

    OpenBLAS would abort or hang while it loads. `--help` needs little.
    """
    if sys.argv[:1] != ["-m"] or os.name != "posix" or {"-h", "--help"} & {*sys.argv[2:], *sys.argv[1:2]}:
        return
    words = (word.removeprefix("-m").split(".")[0] for word in sys.orig_argv[1:3])
    if package not in words or len(sys.argv) == 1:
        return
    if said := too_little(LEAST, "the libraries need"):
        print(f"error: {said}", file=sys.stderr)
        raise SystemExit(2)


def too_little(least: int, who: str) -> str:
    """The message if the address space is limited to fewer than `least` bytes; else ""."""
    if os.name != "posix":
        return ""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= least:
        return ""
    return (
        f"address space limited to {limit >> 10} KiB: {who} {least >> 10} KiB at least; raise the limit, as by "
        f"ulimit -v {least >> 10} or ulimit -v unlimited"
    )
