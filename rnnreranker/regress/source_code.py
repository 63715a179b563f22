"""The code that a command may run: its module and all that it imports from this package, however late."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from rnnreranker.base.files import fingerprint, read_bytes
from rnnreranker.base.method import KINDS

PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def code_of(room: str) -> str:
    """A fingerprint of the source of `python -m rnnreranker.<room>`: another room's code does not change it."""
    return fingerprint(*(read_bytes(path) for path in sources(module_of(room))))


def module_of(name: str) -> str:
    """The module behind `python -m rnnreranker.NAME`: of a room its `__main__`, else the file itself.

    >>> module_of("search"), module_of("pool")
    ('rnnreranker.search.__main__', 'rnnreranker.pool')
    """
    return f"{PACKAGE.name}.{name}.__main__" if (PACKAGE / name).is_dir() else f"{PACKAGE.name}.{name}"


def sources(module: str) -> list[Path]:
    """The files of a module and of everything in the package that it imports, at any depth, also inside functions.

    Methods are found by name, not imported: with any file of their folder, all of them count.

    >>> "labels" in {path.parent.name for path in sources("rnnreranker.index.__main__")}
    False
    """
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path is None or name in files:
            continue
        files[name] = path
        if name == PACKAGE.name:
            continue  # it names every room for those who import it, and runs nothing of them
        parts = name.split(".")
        waiting += [".".join(parts[:end]) for end in range(1, len(parts))]  # imported with it
        waiting += [*_imports(path, path.stat().st_mtime_ns), *_methods_beside(path)]
    return sorted(set(files.values()))


def _file(module: str) -> Path | None:
    """The source of a module of the package, or None for other names."""
    parts = module.split(".")
    if parts[0] != PACKAGE.name:
        return None
    path = PACKAGE.joinpath(*parts[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _methods_beside(path: Path) -> list[str]:
    """The modules of a folder of methods, for any of them; where a method is a folder, its module in every one."""
    folder = path.parent.relative_to(PACKAGE)
    kind = next((kind for kind in KINDS.values() if kind.folder == folder.as_posix()), None)
    if kind is None:
        return []
    beside = sorted(path.parent.glob(f"*/{kind.each}.py" if kind.each else "*.py"))
    return [".".join((PACKAGE.name, *file.relative_to(PACKAGE).with_suffix("").parts)) for file in beside]


@functools.cache
def _imports(path: Path, changed: int) -> tuple[str, ...]:
    """What a file imports: modules, and names that may be modules of a package."""
    imported: list[str] = []
    for node in ast.walk(ast.parse(read_bytes(path))):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(imported)
