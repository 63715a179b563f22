"""The words of the code: those of the field, as docs/glossary.md has them, and names that say what a value is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from places import ROOT

PACKAGE = ROOT / "rnnreranker"
DOCS = PACKAGE.parent / "docs" / "source"
MODULES = sorted([*PACKAGE.rglob("*.py"), *DOCS.rglob("*.py")])
SAYING_NOTHING = {"found", "place", "places"}  # of a list of docids, a path, a row, a rank, a position in YAML alike


def names_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that is assigned, taken as an argument or defined, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def functions_of(tree: ast.AST) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_names_say_what_a_value_is() -> None:
    """Fields of a record are exempt: their names are keys of files that are kept."""
    empty = set()
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {(name, line) for function in functions_of(tree) for name, line in names_of(function)}
        empty |= {f"{path}:{line}: {name}" for name, line in names if name in SAYING_NOTHING}
    assert sorted(empty) == []


def test_texts_have_the_words_of_the_field() -> None:
    """Docstrings, messages and help."""
    banned = re.compile(r"\b(un)?likeness(es)?\b|\bwhat the run knows\b|\bthat are borne\b", re.IGNORECASE)
    texts = [*MODULES, *DOCS.rglob("*.j2"), PACKAGE.parent / "README.md"]
    said = {
        f"{path.relative_to(PACKAGE.parent)}:{number}": line.strip()
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if banned.search(line)
    }
    assert said == {}
