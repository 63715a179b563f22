"""Which part of an index gives what a method needs."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.checksums import DESCRIPTION
from rnnreranker.base.method import find, methods, names
from rnnreranker.parts.description import describe

if TYPE_CHECKING:
    from rnnreranker.parts.base import Part


def parts() -> dict[str, type[Part]]:
    """All parts by name, in their order."""
    return methods("part")


@functools.cache
def givers(queries: bool = False) -> dict[str, str]:
    """What methods need of documents → the part that gives it; with `queries` what they need of queries for it, too."""
    documents = {one.gives: name for name, one in parts().items() if one.gives}
    own = {one.gives_queries: name for name, one in parts().items() if one.gives_queries}
    return documents | own if queries else documents


def parts_of(needs: Iterable[str]) -> set[str]:
    """The parts of an index that have what methods need.

    >>> sorted(parts_of({"vectors", "query vectors", "topics", "words"}))
    ['bm25', 'dense']
    """
    return {giver for need in needs if (giver := givers(queries=True).get(need))}


def part(name: str) -> type[Part]:
    """The part of a name; InputError: there is none of that name."""
    kind: type[Part] = find("part", name)
    return kind


def parts_at(path: Path) -> dict[str, Path]:
    """The parts that a folder has, or a file is: name → where its `open` finds it.

    Those that are made of others come with others alone.
    """
    there = {name: at for name, one in parts().items() if (at := one.at(path)) is not None}
    return there if any(not part(name).made_of for name in there) else {}


def stored_parts(index: Path) -> list[str]:
    """The parts that an index has: those that it describes or, where nothing describes it, those that stand there."""
    described = describe(index)
    return [name for name in (described["parts"] if described else parts_at(index)) if name in names("part")]


def stored_settings(index: Path, named: Iterable[str]) -> dict[str, Any]:
    """The settings of some parts that an index describes.

    Raises:
        InputError: a part that there is not here, or one that is described otherwise.
    """
    described = describe(index)["parts"]
    kinds = {name: part(name) for name in named}
    try:
        return {name: kind.params_of(described[name]) for name, kind in kinds.items()}
    except (TypeError, AttributeError, InputError):
        raise InputError(
            f"{index / DESCRIPTION}: does not describe parts as this version does; make the index again"
        ) from None
