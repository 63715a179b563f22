"""What stands beside every measured figure: machine, versions, commit."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from rnnreranker import __version__
from rnnreranker.command import cores

VERSIONS_OF = ("faiss-cpu", "ir-measures", "numba", "numpy", "pyserini", "torch", "transformers")


def machine() -> str:
    """One line about the machine: system, processor architecture, cores, Python."""
    return f"{platform.system()} {platform.machine()}, {cores()} cores, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    """The versions of this package and of those that measured values depend on."""
    return {"rnnreranker": __version__} | {name: metadata.version(name) for name in VERSIONS_OF}


def commit() -> str:
    """The commit of the checkout that the package runs from, `+` for uncommitted changes; empty outside a checkout."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    try:
        head = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "rnnreranker")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
